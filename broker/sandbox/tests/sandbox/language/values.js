// The results of operators, classes, patterns and calls.
const say = (...words) => console.log(...words.map(String));

function t(name, f) {
  try {
    say(name, JSON.stringify(f()));
  } catch (e) {
    say(name, 'threw', e.name, e.constructor === Error ? e.message : '');
  }
}

t('p1', () => { function g() { throw new Error('x'); } const f = (p) => { p.catch(() => {}); return typeof p; }; return f(new Promise(r => g())); });
t('p2', () => { function g() { throw new Error('x'); } return [1, 2, [3].map(() => { try { return [1].map(() => g()); } catch (e) { return e.message; } }), 4]; });
t('p3', () => { class X { constructor() { throw new Error('q'); } } const f = (a, b) => a; const p = f(new Promise(class { constructor() { new X(); } }), 1); p.catch(() => {}); return typeof p; });
t('f1', () => { class T { static n = 0; id = T.n++; name = 'x' + T.n; } new T(); return [new T(), T.n]; });
t('f2', () => { class A { m() { return 'm' + this.k; } get v() { return 7 + this.k; } k = 1; static m() { return 'sm'; } } class B extends A { a = super.m(); b = super.v; c = () => super.m(); #d = super.m(); static s = super.m(); get d() { return this.#d; } } const b = new B(); return [b.a, b.b, b.c(), b.d, B.s]; });
t('f3', () => { let made = 0; class A { x = (made++, A.extra = made); ['y' + made] = this.x; #p = A.extra = 9; } const a = new A(); return [a, A.extra, new A()]; });
t('f4', () => { class A { x = this.#q(); #q() { return 4; } static z = new A(); } return A.z; });
t('u1', () => { let x = '5'; const y = x++; return [x, y, typeof y]; });
t('u2', () => { let x = null; return [x++, x, x--, x]; });
t('u3', () => { let x = { valueOf() { throw new Error('no'); } }; try { x++; } catch (e) {} return typeof x; });
t('u4', () => { let x = '3'; x = x++; return [x, typeof x]; });
t('u5', () => { let x = 5n; const y = x++; return [String(x), String(y)]; });
t('u6', () => { let x = 1; return x++ + x++ * ++x - x--; });
t('u7', () => { const c = 1; c++; });
t('l1', () => { for (undeclared1 of [1]) { } });
t('l2', () => { for (undeclared2 in { a: 1 }) { } });
t('l3', () => { let x; for (x of [1, 2]) { } let y; for (y in { a: 1, b: 2 }) { } return [x, y]; });
t('l4', () => { const x = 1; for (x of [1]) { } });
t('l5', () => { const x = 1; for (x in { a: 1 }) { } });
t('l6', () => { var v; const fs = []; for (v of [1, 2]) fs.push(() => v); return fs.map(f => f()); });
t('r1', () => { const { a: { b }, ...rest } = { a: { b: 1 }, c: 2 }; return [b, rest]; });
t('r2', () => { const k = () => 'a'; const { [k()]: { b }, ...rest } = { a: { b: 1 }, c: 2 }; return [b, rest]; });
t('r3', () => { let o = {}; ({ a: o.x, b: [o.y], ...o.rest } = { a: 1, b: [2], c: 3 }); return o; });
t('r4', () => { let n = 0; const s = { get a() { n++; return { b: 1 }; }, c: 1 }; const { a: { b }, ...rest } = s; return [n, rest]; });
t('r5', () => { const { 0: [x], 1.5: { y }, ...rest } = { 0: [1], 1.5: { y: 2 }, z: 3 }; return [x, y, rest]; });
t('length1', () => { const out = []; for (const x of [[4, 5, 6], [7, 8, 9], [1, 2]]) { x.length = 1; out.push(x, x[1] === undefined, x.length); } return out; });
t('length2', () => { const out = []; for (const v of ['1', 2, '0']) { const l = [1, 2, 3]; l.length = v; out.push(l, typeof l.length); } return out; });
t('length3', () => { const out = []; for (const l of [[1], Object.freeze([1]), { length: 3 }]) { try { l.length = 0; out.push(l); } catch (e) { out.push(e.name); } } return out; });
t('length4', () => { class L extends Array { clear() { this.length = 0; } } const out = []; for (let i = 0; i < 3; i++) { const l = new L(); l.push(1, 2); l.clear(); out.push(l.length, l[0] === undefined); } return out; });
t('length5', () => { const out = []; for (const v of [1, -1, 1.5, 4294967296]) { const l = [1, 2]; try { l.length = v; out.push(l.length); } catch (e) { out.push(e.name); } } return out; });
