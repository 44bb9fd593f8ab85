// Declarations that shadow others: parameters declared again, functions declared in a `case`,
// constructors with quoted names.
const say = (...words) => console.log(...words.map(String));
async function t(name, test) { try { say(name, JSON.stringify(await test())); } catch (error) { say(name, 'threw', error.name); } }

await t('parameter1', async () => { function f(x, y = 1) { var x; return [x, y] } return f(5); });
await t('parameter2', async () => { function f(x, y = 1) { var x = x || {}; x.a = 1; return [x, y] } return f(); });
await t('parameter3', async () => { function f(x, g = () => x) { var x = 2; return [x, g()] } return f(1); });
await t('parameter4', async () => { function f(x, g = () => x) { x = 3; var x; return [x, g()] } return f(1); });
await t('parameter5', async () => { function f(x, g = (v) => { x = v }) { var x; g(9); return [x] } return f(1); });
await t('parameter6', async () => { function f(a = 1, b = a) { var a = a + 1; var b = b * 10; return [a, b, (() => a)()] } return f(4); });
await t('parameter7', async () => { function f({a, b} = {a: 1, b: 2}) { var a; var c = () => a; a = 7; return [a, b, c()] } return f(); });
await t('parameter8', async () => { function f(x, y = 1) { var x; function x() { return 'fn' } return typeof x } return f(5); });
await t('parameter9', async () => { function f(x, y = 1) { { function x() { return 'fn' } } return typeof x } return f(5); });
await t('parameter10', async () => { function f(x = 1) { for (var x of [1,2,3]); return x } return f(0); });
await t('parameter11', async () => { function f(x = 1) { for (var i = 0, x = x; i < 2; i++) x += i; return x } return f(10); });
await t('parameter12', async () => { function f(a, ...rest) { var rest; var a; return [a, rest] } return f(1, 2, 3); });
await t('parameter13', async () => { function* g(x, y = x) { var x; yield x; x = 5; yield [x, y] } return [...g(3)]; });
await t('parameter14', async () => { async function h(x, y = await2()) { var x; await null; return [x, y] } function await2() { return 4 } return await h(3); });
await t('parameter15', async () => { const k = (x, y = () => x) => { var x = x + 1; return [x, y()] }; return k(1); });
await t('constructor1', async () => { class A { m(x, y = 1) { var x; return [x, y] } constructor(p, q = () => p) { var p = 'in'; this.v = [p, q()] } } return [new A('out').v, new A().m(3)]; });
await t('parameter16', async () => { function f(x, y = 1) { if (true) { var x = 8 } return x } return [f(1)]; });
await t('parameter17', async () => { function f(x, y = 1) { if (false) { var x = 8 } return x } return [f(1)]; });
await t('parameter18', async () => { function f(x, y = 1) { var z; return [typeof z, (() => z)()] + '' } return f(1); });
await t('parameter19', async () => { function f(x, y = eval2) { var eval2 = 3; return [x, eval2] } var eval2 = 1; return f(2); });
await t('parameter20', async () => { function f(list, n = 2) { var list = list.map(v => v * n), out = () => list; return out() } return f([1,2]); });
await t('parameter21', async () => { function f(x, y = 1) { try { throw 1 } catch (x) { var x = 2 } return x } return f(5); });
await t('case1', async () => { const x = 1; const list = [1]; switch (true) { case list.some(x => x === 1): const y = 2; return [x, y] } });
await t('case2', async () => { const list = [1]; switch (true) { case list.some(x => x === 1): const x = 2; return x } });
await t('case3', async () => { const x = 'outer'; function g() { switch (true) { case [1].some(x => x === 2): return 'no'; default: return x } } return g(); });
await t('case4', async () => { const x = 'outer'; function g() { switch (true) { case [1].some(function (x) { var q = x; return q === 2 }): return 'no'; default: return [x, typeof q] } } return g(); });
await t('case5', async () => { switch ((() => { const a = 1; let b = 2; function c() {} class D {} return a })()) { case 1: { let a = 5; return [a, typeof b, typeof c, typeof D] } } });
await t('case6', async () => { switch ((() => { const a = 1; return a })()) { case 1: const a = 6; return a } });
await t('case7', async () => { switch (1) { case (() => { let z = 1; return z })(): let z = 3; return z } });
await t('case8', async () => { switch (1) { case class { static v = 1; m(x) { var w } }.v: let m = 3, x = 4, w = 5; return [m, x, w] } });
await t('case9', async () => { switch (1) { case ({ m(x) { return 1 } }).m(): let x = 4; return x } });
await t('case10', async () => { switch (2) { case 1: function q() { return 1 } default: return q() } });
await t('case11', async () => { switch (2) { case 1: var v = 1; break; default: return [v, (() => v)()] } });
await t('case12', async () => { switch (1) { case 1: let c = 1; const f = () => c; c = 2; return f() } });
await t('case13', async () => { switch (3) { default: let d = 1; case 2: d = 2; return d } });
await t('case14', async () => { const out = []; for (let i = 0; i < 3; i++) switch (i) { case [1].findIndex(i => i === 1): let j = i; out.push(() => j); break; default: let k = i * 10; out.push(() => k) } return out.map(f => f()); });
await t('case15', async () => { switch (1) { case 1: class C { v = 1 } return new C().v } });
await t('constructor2', async () => { class A { 'constructor'() { this.c = 1 } } return new A(); });
await t('constructor3', async () => { class A { "constructor"(a) { this.c = a } m() { return 1 } } class B extends A { 'constructor'() { super(4); this.d = 2 } } return [new B(), new B().m(), Object.getOwnPropertyNames(A.prototype)]; });
await t('constructor4', async () => { class A { static 'constructor'() { return 1 } } return A.constructor(); });
await t('constructor5', async () => { class A { ['constructor']() { return 7 } } return [new A().constructor(), Object.keys(new A())]; });
await t('constructor6', async () => { const o = { 'constructor'() { return 2 } }; return o.constructor(); });
await t('constructor7', async () => { class A { 'const\u0072uctor'() { this.x = 1 } } return new A(); });
