const width = 3;
return ' '.repeat(width - 5) + 'x';
