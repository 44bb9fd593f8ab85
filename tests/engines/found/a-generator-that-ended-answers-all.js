const g = (async function* () { await null })();
g.next().then(log); g.next().then(log); g.next().then(log); g.return(1).then(log); g.next().then(log);
await new Promise(r => setTimeout(r, 5));
