log(/a-b/v.exec('a-b'));
attempt(() => new RegExp('a/b|-', 'v').exec('-')[0]);
