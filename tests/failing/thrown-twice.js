const attempt = (n) => { throw 'busy'; };
try { attempt(1); } catch {}
await null;
throw 'busy';
