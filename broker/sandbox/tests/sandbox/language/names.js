// Computed names of methods, and patterns with more elements than the value.
const print = (...words) => console.log(...words.map(String));

const key = () => 'k', name = 'n', syms = ['a', 'b'];
class A { [(() => key())]() {} [[1].map((n) => 'm' + n)[0]]() { return 1; } get [syms.map((s) => s + name).join('')]() { return 2; } static async [(function () { return 'st' + name; })()]() { return 3; } *['g' + [...'xy'].filter((c) => c === 'x')]() { yield 4; } }
print(Object.getOwnPropertyNames(A.prototype).join(), Object.getOwnPropertyNames(A).filter((x) => x.startsWith('st')).join(), new A().m1(), new A().anbn);
const f = () => class { [name]() { return 5; } static [name + 's']() { return name; } };
const C = f(); print(new C().n(), C.ns());
function g(p) { const q = p + '!'; return class B { [q]() { return q + p; } [`${p}x`]() { return () => q; } set [(() => q + 'set')()](v) { this.v = [v, B.name, q]; } }; }
const G = g('z'); const o = new G(); o['z!set'] = 7; print(o['z!'](), o.zx()(), o.v.join());
for (let i = 0; i < 3; i++) { const H = class { [i]() { return i; } [(() => i + 'f')()]() { return i; } }; print(new H()[i](), new H()[i + 'f']()); }
const K = class L { [(() => typeof L2)()]() { return 8; } static m = 1; [(() => 'w' + name)()] = 9; static [(() => 'sw' + name)()] = () => L.m; }; print(new K().undefined(), new K().wn, K.swn());
async function h() { const n = await 'aw'; class M { async [n]() { return await n + 1; } [await 'two']() { return 2; } } print(await new M().aw(), new M().two()); }
await h();
function* gen() { class N { [yield 'y']() { return 'got'; } } return new N(); } const it = gen(); it.next(); print(it.next('nm').value.nm());
class O { ['x']() { class P { [name]() { return super.toString === Object.prototype.toString; } } return new P().n(); } } print(new O().x());
let count = 0; const counting = { [Symbol.iterator]() { return { next() { count++; return { done: count > 1, value: count }; } }; } };
{ const [a, b, c, ...r] = counting; print(a, b, c, r.length, count); }
count = 0; { let a, b; [a, , b, ...[]] = counting; print(a, b, count); }
count = 0; { const [, , ...r] = counting; print(count, r.length); }
