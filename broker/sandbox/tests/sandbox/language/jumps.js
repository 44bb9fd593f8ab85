// The targets of jumps and errors, and the iterators that they close.
const say = (...words) => console.log(...words.map(String));

// Counts from 0 to `n`, and prints when it is closed.
function items(name, n = 3, { nextThrows, returnThrows } = {}) {
  let i = 0;
  return {
    [Symbol.iterator]() { return this; },
    next() {
      if (nextThrows === i) throw new Error(`${name} next`);
      return i < n ? { value: i++, done: false } : { value: undefined, done: true };
    },
    return(v) {
      say('close', name);
      if (returnThrows) throw new Error(`${name} return`);
      return {};
    },
  };
}

function t(name, f) {
  try {
    say(name, JSON.stringify(f()));
  } catch (e) {
    say(name, 'threw', e.name, e.constructor === Error ? e.message : '');
  }
}

t('j1', () => { try { try { throw new Error('a'); } catch { throw new Error('b'); } finally { try { throw new Error('c'); } catch { } } } catch (e) { return e.message; } });
t('j2', () => { const out = []; L: { for (const x of items('l')) { out.push(x); if (x === 1) break L; } } return out; });
t('j3', () => { const out = []; L: for (const a of items('a', 2)) { for (const b of items('b', 3)) { out.push([a, b]); if (b === 1) continue L; } } return out; });
t('j4', () => { const out = []; L: { for (const a of items('a', 2)) for (const b of items('b', 3)) { out.push([a, b]); if (b === 1) break L; } } return out; });
t('j5', () => { const out = []; for (const o of items('o', 3)) { try { for (const k in { a: 1, b: 2 }) { if (k === 'b') throw new Error('k'); } } catch (e) { out.push(e.message, o); } } return out; });
t('j6', () => { const out = []; for (const o of items('o', 3)) { try { const [a, b] = items('p', 3, { nextThrows: 1 }); } catch (e) { out.push(e.message, o); } } return out; });
t('j7', () => { for (const o of items('o', 3)) { for (const p of items('p', 3, { returnThrows: true })) { break; } } });
t('j8', () => { L: { for (const o of items('o', 3)) { for (const p of items('p', 3, { returnThrows: true })) { break L; } } } });
t('j9', () => { L: { for (const o of items('o', 3, { returnThrows: true })) { try { for (const p of items('p', 3)) { break L; } } catch (e) { return 'caught ' + e.message; } } } return 'end'; });
t('j10', () => { const f = (k) => { const out = []; A: { B: { try { try { if (k === 0) break A; if (k === 1) break B; out.push('t'); } finally { out.push('f1'); } } finally { out.push('f2'); } out.push('after'); } out.push('b'); } out.push('a'); return out; }; return [0, 1, 2].map(f); });
t('j11', () => { const f = (k) => { for (let i = 0; i < 2; i++) { try { try { if (k === 0) continue; if (k === 1) break; if (k === 2) return 'r' + i; if (k === 3) throw new Error('e' + i); } finally { if (k === 5) continue; } } finally { if (k === 4) return 'fin'; } } return 'end'; }; return [0, 1, 2, 4, 5, 6].map(f); });
t('j12', () => { function f() { try { return 1; } finally { L: try { return 2; } finally { break L; } } } return f(); });
t('j13', () => { function f() { try { for (; ;) { try { return 1; } finally { break; } } return 3; } finally { } } return f(); });
t('j14', () => { const out = []; let n = 0; one: two: for (let i = 0; i < 3; i++) { if (n++ > 10) break; out.push(i); continue one; } return out; });
t('j15', () => { const out = []; one: two: for (const i of items('x')) { for (; ;) { out.push(i); continue one; } } return out; });
t('g1', () => { function* g() { for (const x of items('g')) { yield x; } } for (const v of g()) { if (v === 1) break; } return 'ok'; });
t('g2', () => { function* g() { try { for (const x of items('g')) { try { yield x; } finally { say('in'); } } } finally { say('out'); } } for (const v of g()) { break; } return 'ok'; });
t('g3', () => { function* g() { for (const x of items('g', 3, { returnThrows: true })) yield x; } for (const v of g()) { break; } return 'ok'; });
t('g4', () => { function* h() { try { yield 1; yield 2; } finally { say('h'); } } function* g() { for (const x of items('g')) { yield* h(); } } for (const v of g()) { break; } return 'ok'; });
t('g5', () => { function* g() { try { yield 1; } catch (e) { } finally { try { throw 1; } catch { } } yield 2; } const i = g(); return [i.next(), i.return(7), i.next()]; });
t('g6', () => { function* g() { try { try { yield 1; } finally { yield 2; } } finally { yield 3; } } const i = g(); return [i.next(), i.return(7), i.next(), i.next()]; });
t('g7', () => { function* g() { try { yield 1; } finally { return 5; } } const i = g(); return [i.next(), i.return(7), i.next()]; });
t('g8', () => { function* g() { try { return 'v'; } finally { yield 2; } } const i = g(); return [i.next(), i.next(), i.next()]; });
t('g9', () => { function* g() { const [a, b = yield 'y'] = items('pat', 1); return [a, b]; } const i = g(); return [i.next(), i.return(3)]; });
t('g10', () => { function* g() { const [a = yield 'y'] = { [Symbol.iterator]() { return { next() { return { value: undefined, done: false }; }, return() { say('closed'); return {}; } }; } }; } const i = g(); return [i.next(), i.return(3)]; });
t('g11', () => { function* g() { for (const k in { a: 1, b: 2 }) { for (const x of items('x')) { try { yield k + x; } finally { } } } } const out = []; for (const v of g()) { out.push(v); if (out.length === 4) break; } return out; });
t('s1', () => { const f = (...a) => a; const out = []; for (let i = 0; i < 3; i++) { try { out.push(f(1, 2, f(3, (() => { if (i === 1) throw new Error('x'); return i; })()))); } catch (e) { out.push(e.message); } } return out; });
t('s2', () => { const f = (a, b) => [a, b]; let x; return f(1, ([x] = items('z'), x)); });

async function at(name, f) {
  try {
    say(name, JSON.stringify(await f()));
  } catch (e) {
    say(name, 'threw', e.name, e.constructor === Error ? e.message : '');
  }
}

async function* ag(name, n = 3) { try { for (let i = 0; i < n; i++) yield i; } finally { say('ag closed', name); } }

await at('a1', async () => { L: { for await (const x of ag('a')) for await (const y of ag('b')) { if (y === 1) break L; } } return 'ok'; });
await at('a2', async () => { for await (const x of ag('a')) { try { return x; } finally { await null; say('fin'); } } });
await at('a3', async () => { async function* g() { for (const x of items('in')) yield x; } for await (const v of g()) break; return 'ok'; });
await at('a4', async () => { async function* g() { yield* ag('deleg'); } for await (const v of g()) { if (v === 1) break; } return 'ok'; });
await at('a5', async () => { async function* g() { for (const x of items('around')) yield* ag('deleg'); } const i = g(); return [await i.next(), await i.return(4), await i.next()]; });
await at('a6', async () => { const f = async (k) => { for (const o of items('o', 2)) { try { if (k) throw new Error('e'); return await o; } catch (e) { await null; say(e.message); if (k === 2) throw e; } finally { try { await Promise.reject(1); } catch { } } } return 'end'; }; return [await f(0), await f(1), await f(2).catch(e => 'c' + e.message)]; });
await at('a7', async () => { async function f() { try { await Promise.reject(new Error('r')); } finally { try { throw 1; } catch { } } } return f(); });
await at('a8', async () => { async function* g() { try { yield 1; } finally { await null; yield 2; } } const i = g(); return [await i.next(), await i.return(9), await i.next()]; });
