// Keys are converted to strings after their values are evaluated, once, and not for null.
const seen = [];
const said = (x) => (seen.push(x), x);
const key = (name) => ({ toString: () => said(name) });
const tell = (name, run) => {
  let end;
  try {
    end = JSON.stringify(run());
  } catch (error) {
    end = error.name;
  }
  console.log(name, seen.splice(0).join(' '), end);
};
tell('member', () => { const t = {}; t[key('k')] = said('v'); return t; });
tell('chain', () => { const t = {}, u = []; t[key('k')] = u[key('0')] = said('v'); return [t, u]; });
tell('object, key, value', () => { (said('o'), {})[said('k')] = said('v'); });
tell('value', () => { const t = {}; return t[key('k')] = said('v'); });
tell('no value', () => { const t = {}; t[key('k')] = missing; });
tell('of null', () => { const t = null; t[key('k')] = said('v'); });
tell('of nothing', () => { let t; t[said('k')] = said('v'); });
tell('of a text', () => { 'use strict'; 'abc'[key('0')] = said('v'); });
tell('symbol', () => { const t = {}; t[Symbol.iterator] = said('v'); return typeof t[Symbol.iterator]; });
tell('number', () => { const t = []; t[1.0] = said('v'); t[-0] = 1; t[1e21] = 2; t['01'] = 3; return [t, Object.keys(t)]; });
tell('own index', () => { const t = [1, 2, 3]; let i = 0; t[i] = i = 2; t[i++] = i; return [t, i]; });
tell('throwing key', () => { const t = {}; t[{ toString() { said('k'); throw new RangeError(); } }] = said('v'); });
tell('setter', () => { const t = { set k(v) { said(['set', v].join()); } }; t[key('k')] = said('v'); });
tell('proxy', () => { const t = new Proxy({}, { set: (t, k) => said(`set ${k}`) }); t[key('k')] = said('v'); });
tell('pattern', () => { const t = {}; [t[key('a')] = said('d'), t[key('b')]] = [, said('i')]; return t; });
tell('names', () => { const t = {}; ({ x: t[key('a')] = said('d'), y: t[said('b')] } = { y: said('y') }); return t; });
tell('rest', () => { const t = {}; [t[said('a')], ...t[key('b')]] = [1, 2, 3]; return t; });
tell('loop', () => { const t = {}; for (t[key('k')] of [said('1'), said('2')]) said('body'); return t; });
tell('loop of keys', () => { const t = []; for (t[t.length] in { a: 1, b: 2 }) said('body'); return t; });
tell('bytes', () => { const t = new Uint8Array(2); t[key('1')] = said('7'); t[{ toString: () => '-0' }] = 1; return [...t]; });
tell('private', () => { class A { #x = {}; set(k) { this.#x[k] = said('v'); return this.#x; } } return new A().set(key('k')); });
tell('super', () => { const t = { m() { super[said('k')] = said('v'); return Object.keys(this); } }; return t.m(); });
let at = 0;
const list = [];
const put = async () => { list[at++] = await said(at); list[key('last')] = await said('v'); return list; };
await put().then((list) => tell('behind a wait', () => [list, list.last]));
