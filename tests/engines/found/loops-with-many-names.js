// Found by what the other engine was mended for: only the last of a loop's names was one to go on with.
let turns = 0;
one: two: for (let at = 0; at < 3; at++) { log(['for', at]); if (turns++ > 20) break; continue one }
one: two: three: for (const x of [1, 2]) { for (const y of [1, 2]) { log([x, y]); if (y === 1) continue two; continue one } }
one: two: do { log('do'); if (turns++ > 20) break one; for (const k in { a: 1, b: 2 }) { log(k); continue one } } while (turns < 6);
one: two: while (true) { try { if (turns++ > 10) break two; continue one } finally { log('finally') } }
one: { two: for (const x of [1, 2]) { log(x); if (x === 1) continue two; break one } log('never') }
one: two: { log('left'); break one }
log(turns);
