// Converts objects to numbers and strings, also during their own conversion.
const say = (...words) => console.log(...words.map(String));

function t(name, f) {
  try {
    say(name, JSON.stringify(f()));
  } catch (e) {
    say(name, 'threw', e.name);
  }
}

t('n1', () => { let n = 3; const o = { valueOf() { return n-- > 0 ? o + 1 : 10; } }; return o + 1; });
t('n2', () => { let n = 3; const o = { toString() { return n-- > 0 ? `<${o}>` : '.'; } }; return `${o}`; });
t('n3', () => { let n = 2; const a = { valueOf: () => b * 2 }, b = { valueOf: () => (n-- > 0 ? +a : 5) }; return [+a, +b]; });
t('n4', () => { let n = 1; const o = { valueOf() { return n-- > 0 ? o : 7; }, toString() { return '8' + (n >= 0 ? 0 : o); } }; return +o; });
t('n5', () => { const o = { valueOf() { return +o; } }; return +o; });
t('n6', () => { const o = { toString() { return `${o}`; } }; return `${o}`; });
t('n7', () => { const o = { valueOf() { try { return +o; } catch (e) { return e instanceof RangeError ? 1 : 2; } } }; return +o; });
t('l1', () => { const a = [1]; a.push(a, 2); return [a.join(), String(a), a + '', a.join('-')]; });
t('l2', () => { const a = [1], b = [2, a]; a.push(b); return [a.join(), b.join(), String(a), String(b)]; });
t('l3', () => { const a = [1], b = [2, a, a]; return [b.join(), [b, b].join(';')]; });
t('l4', () => { const a = [1]; a.push(a); a.toString = () => 'a'; return a.join(); });
t('l5', () => { const a = [1]; a.push({ toString: () => a.join('-') }); return [a.join(), String(a)]; });
t('l6', () => { const a = [1, { toString() { throw new Error('x'); } }]; try { a.join(); } catch {} a.pop(); return a.join(); });
t('l7', () => { const a = { length: 2, 0: 'x', join: [].join, toString() { return this.join('+'); } }; a[1] = a; return `${a}`; });
t('l8', () => { const a = [1]; a.push(a); return [a.toLocaleString(), [a, a].toLocaleString()]; });
t('l9', () => { const a = [1]; a.push(new Proxy(a, {})); return a.join().startsWith('1,1,'); });
t('l10', () => { const a = [1]; a.push([[a]]); return [`${a}`, a.toString(), [a].flat(3).length]; });
t('d1', () => Reflect.defineProperty(new Uint8Array(1), 0, { value: { valueOf() { throw new Error('x'); } } }));
t('d2', () => Reflect.defineProperty(new BigInt64Array(1), 0, { value: 1 }));
t('d3', () => Reflect.defineProperty(new Uint8Array(1), 1, { value: { valueOf() { throw new Error('x'); } } }));
t('d4', () => Object.defineProperty(new Float64Array(1), 0, { value: { valueOf() { throw new Error('x'); } } }));
t('d5', () => [Reflect.defineProperty(new Uint8Array(1), 0, { value: 1 }), Reflect.defineProperty(new Uint8Array(1), 0, { value: 1, writable: false })]);
t('x1', () => { const r = /a/g; Object.defineProperty(r, 'flags', { get() { throw new Error('x'); } }); return String(Object(structuredClone(r).flags)); });
t('x2', () => [structuredClone(new Date(5)).getTime(), structuredClone(new Map([[1, 2]])).get(1), structuredClone({ a: [new Set([3])] }).a[0].has(3)]);
const r = /ab/gi;
Object.defineProperty(r, 'global', { get() { throw new Error('asked'); } });
console.log(r, /x/dgimsuy, /[a--b]/v, new RegExp('\ud83d'));
const typed = new Uint8Array([1, 2]);
Object.defineProperty(typed, 'length', { get() { throw new Error('asked'); } });
console.log(typed, new Date(NaN), new Date(5));
