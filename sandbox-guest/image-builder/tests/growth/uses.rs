//! One use of each built-in operation on many items or long texts. The names of the rows contain
//! every replaced function with its class. The guest's own tests compare this file with the
//! replaced functions.

/// A name, and a script whose input has length `N`. `many(f)` creates a list of `N` items.
pub(crate) const USES: [(&str, &str); 104] = [
    ("String.split", "'a,b;'.repeat(N).split(',').length"),
    ("String.split, all of it", "','.repeat(N).split(',').length"),
    (
        "String.split, a long separator",
        "('x'.repeat(40) + ',').repeat(N).split('x'.repeat(20) + ',').length",
    ),
    (
        "RegExp.Symbol.split",
        "'a, b; '.repeat(N).split(/[,;]\\s*/).length",
    ),
    (
        "RegExp.Symbol.split, groups",
        "'a1b'.repeat(N).split(/(\\d)/).length",
    ),
    (
        "String.indexOf, from find to find",
        "for (let t = 'ab '.repeat(N), at = 0; (at = t.indexOf(' ', at)) >= 0; at++);",
    ),
    (
        "String.indexOf, almost everywhere",
        "'a'.repeat(N * 4).indexOf('a'.repeat(N) + 'b')",
    ),
    (
        "String.lastIndexOf",
        "('b' + 'a'.repeat(N * 4)).lastIndexOf('b')",
    ),
    (
        "String.lastIndexOf, almost everywhere",
        "'a'.repeat(N * 4).lastIndexOf('b' + 'a'.repeat(N))",
    ),
    ("String.includes", "'ab'.repeat(N).includes('abb')"),
    ("String.includes, wide", "'a€'.repeat(N).includes('€€')"),
    (
        "String.replace",
        "('a'.repeat(N) + 'b').replace('b', '$`').length",
    ),
    (
        "String.replaceAll",
        "'a-b'.repeat(N).replaceAll('-', '$&+').length",
    ),
    (
        "String.replaceAll, a function",
        "'a-b'.repeat(N).replaceAll('-', (found, at) => at).length",
    ),
    (
        "String.replaceAll, of nothing",
        "'a€'.repeat(N).replaceAll('', '.').length",
    ),
    (
        "RegExp.Symbol.replace",
        "'a1b'.repeat(N).replace(/(\\d)/g, '<$1>').length",
    ),
    (
        "RegExp.Symbol.replace, a function",
        "'a1b'.repeat(N).replace(/\\d/g, (found) => found + found).length",
    ),
    (
        "RegExp.exec, from find to find",
        "for (let r = /\\d/g, t = 'a1'.repeat(N); r.exec(t););",
    ),
    (
        "RegExp.test, from find to find",
        "for (let r = /\\d/gy, t = '1'.repeat(N); r.test(t););",
    ),
    (
        "RegExp.Symbol.match",
        "'a1b'.repeat(N).match(/\\d/g).length",
    ),
    (
        "matchAll",
        "[...'a1b'.repeat(N).matchAll(/(\\d)b/g)].length",
    ),
    (
        "RegExp.compile",
        "for (let i = 0; i < N / 8; i++) /a/.compile('b' + i % 7)",
    ),
    (
        "Array.sort, numbers",
        "many(i => i * 7919 % 10007).sort((a, b) => a - b)[0]",
    ),
    (
        "Array.sort, by a member",
        "many(i => ({ n: i * 7919 % 10007 })).sort((a, b) => b.n - a.n)[0].n",
    ),
    (
        "Array.sort, by anything",
        "many(i => i * 7919 % 10007).sort((a, b) => (a < b ? -1 : 1))[0]",
    ),
    (
        "Array.sort, in place",
        "many(i => i * 7919 % 10007 + 0.5).sort()[0]",
    ),
    (
        "Array.from, by counting",
        "Array.from({ length: N * 4 }, (_, i) => i).length",
    ),
    (
        "Array.sort, texts",
        "many(i => 'k' + i * 7919 % 10007).sort()[0]",
    ),
    (
        "Array.toSorted",
        "many(i => i * 7919 % 10007).toSorted((a, b) => a - b)[0]",
    ),
    (
        "JSON.parse, rows",
        "JSON.parse('[' + '{\"a\":1,\"b\":\"x\"},'.repeat(N) + '0]').length",
    ),
    (
        "JSON.parse, keys",
        "Object.keys(JSON.parse('{' + many(i => `\"k${i}\":${i}`).join() + '}')).length",
    ),
    (
        "JSON.stringify, rows",
        "JSON.stringify(many(i => ({ id: i, name: 'n' + i, tags: ['a', 'b'] }))).length",
    ),
    (
        "JSON.stringify, texts",
        "JSON.stringify(['a\"\\n'.repeat(N), 'é€'.repeat(N)], null, 2).length",
    ),
    (
        "append",
        "(() => { let s = ''; for (let i = 0; i < N * 8; i++) s += '0123456789'; return s.length })()",
    ),
    (
        "append, wide",
        "(() => { let s = '€'; for (let i = 0; i < N * 8; i++) s += i; return s.length })()",
    ),
    (
        "append, two by turns, kept",
        "(() => { let a = '', b = ''; const all = []; for (let i = 0; i < N * 4; i++) { a += 'abc'; b += 'x€'; all.push(a, b) } return all.length })()",
    ),
    ("String.repeat", "'ab'.repeat(N).length"),
    ("String.padStart", "'ab'.padStart(N, 'xy').length"),
    ("String.padEnd", "'ab'.padEnd(N, 'xy').length"),
    (
        "String.localeCompare, long texts",
        "'Añ-1 '.repeat(N).localeCompare('añ-1 '.repeat(N))",
    ),
    (
        "String.localeCompare, long numbers",
        "'12'.repeat(N).localeCompare('12'.repeat(N) + '3', 'en', { numeric: true })",
    ),
    (
        "String.localeCompare, sorting",
        "many(i => 'k' + i * 7919 % 10007).sort((a, b) => a.localeCompare(b))[0]",
    ),
    (
        "sort by a collator",
        "many(i => 'k' + i * 7919 % 10007).sort(new Intl.Collator('en', { numeric: true }).compare)[0]",
    ),
    (
        "numbers as texts",
        "many(i => (i * 1234.5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })).length",
    ),
    (
        "a long number as a text",
        "(10n ** BigInt(N)).toLocaleString().length",
    ),
    ("a list as a text", "many(i => i).toLocaleString().length"),
    (
        "dates as texts",
        "many(i => new Date(i * 1e9).toLocaleString('en-US', { dateStyle: 'full' })).length",
    ),
    (
        "dates from texts",
        "many(i => Date.parse('Nov ' + (i % 28 + 1) + ', 2026 10:00 PM')).length",
    ),
    (
        "a list in words",
        "new Intl.ListFormat('en').format(many(i => 'w' + i)).length",
    ),
    (
        "String.slice, eating from the front",
        "for (let s = 'ab'.repeat(N * 8); s.length > 0; s = s.slice(1));",
    ),
    (
        "String.slice, eating from the end",
        "for (let s = 'a€'.repeat(N * 8); s.length > 0; s = s.slice(0, -1));",
    ),
    (
        "String.slice, line by line",
        "for (let s = 'a line of words\\n'.repeat(N * 4), at; (at = s.indexOf('\\n')) >= 0; s = s.slice(at + 1));",
    ),
    (
        "String.slice, kept",
        "(() => { let s = 'ab'.repeat(N * 8); const all = []; while (s.length > 0) { s = s.slice(1); all.push(s) } return all.length })()",
    ),
    (
        "String.slice, from a place on",
        "for (let s = 'word '.repeat(N * 4), at = 0; at < s.length; at += 5) s.slice(at);",
    ),
    (
        "String.substring, eating from the front",
        "for (let s = 'ab'.repeat(N * 8); s.length > 0; s = s.substring(1));",
    ),
    (
        "String.substr, eating from the front",
        "for (let s = 'ab'.repeat(N * 8); s.length > 0; s = s.substr(1));",
    ),
    (
        "String.trim, eating from the front",
        "for (let s = 'a '.repeat(N * 8); s.length > 0; s = s.slice(1).trim());",
    ),
    (
        "String.trim, long blanks",
        "for (let s = ' '.repeat(N * 8) + 'a' + ' '.repeat(N * 8), i = 0; i < 3; i++) s.trim();",
    ),
    (
        "String.trimStart, String.trimLeft",
        "for (let s = 'a '.repeat(N * 8); s.length > 0; s = s.slice(1).trimStart());",
    ),
    (
        "String.trimEnd, String.trimRight",
        "for (let s = ' a'.repeat(N * 8); s.length > 0; s = s.slice(0, -1).trimEnd());",
    ),
    (
        "toUpperCase and toLowerCase",
        "'Straße Ünd '.repeat(N * 4).toUpperCase().toLowerCase().length",
    ),
    (
        "Array.unshift, many at once",
        "for (let a = [], more = many(i => i), i = 0; i < 8; i++) a.unshift(...more);",
    ),
    (
        "Array.splice, many at once",
        "many(i => i).splice(1, N - 2, ...many(i => -i)).length",
    ),
    (
        "push and pop",
        "for (let a = many(i => i), i = 0; a.length > 0; i++) a.pop();",
    ),
    (
        "Map.delete, the first",
        "for (let m = new Map(many(i => [i, i])), i = 0; i < N; i++) m.delete(i);",
    ),
    (
        "Map.delete, the last",
        "for (let m = new Map(many(i => [i, i])), i = N; i-- > 0;) m.delete(i);",
    ),
    (
        "Map.delete, Map.keys, Map Iterator.next: the oldest goes",
        "for (let m = new Map(), i = 0; i < N * 2; i++) { m.set(i, i); if (m.size > 10) m.delete(m.keys().next().value) }",
    ),
    (
        "Map.delete, the oldest but one goes",
        "for (let m = new Map([['kept', 1]]), i = 0; i < N * 2; i++) { m.set(i, i); if (m.size > 10) { const goes = m.keys(); goes.next(); m.delete(goes.next().value) } }",
    ),
    (
        "Map.delete, Map.entries, Map.Symbol.iterator: while going through",
        "for (let m = new Map(many(i => [i, i])), all = [...m, ...m.entries()], i = 0; i < 1; i++) for (const [k] of m) m.delete(k);",
    ),
    (
        "Map.forEach, Map.values",
        "for (let m = new Map(many(i => [i, i])), i = 0; i < 3; i++) { m.forEach((v, k) => m.delete(k)); for (const v of m.values()); }",
    ),
    (
        "Map.clear, while somebody goes through",
        "for (let m = new Map(), all = [], i = 0; i < N; i++) { m.set(i, i); const goes = m.keys(); goes.next(); all.push(goes); if (i % 10 === 0) m.clear() }",
    ),
    (
        "Set.delete, the first",
        "for (let s = new Set(many(i => i)), i = 0; i < N; i++) s.delete(i);",
    ),
    (
        "Set.delete, Set.values, Set.Symbol.iterator, Set Iterator.next: a list of work",
        "for (let s = new Set(many(i => 'k' + i)); s.size > 0;) { const [first] = s; s.delete(first) }",
    ),
    (
        "Set.delete, many go through",
        "for (let s = new Set(many(i => i)), all = many(() => { const goes = s.values(); goes.next(); return goes }), i = 0; i < N; i++) s.delete(i);",
    ),
    (
        "Set.forEach, Set.keys, Set.entries",
        "for (let s = new Set(many(i => i)), i = 0; i < 3; i++) { s.forEach((v) => s.has(v)); for (const v of s.keys()); for (const v of s.entries()); }",
    ),
    (
        "Set.clear",
        "for (let s = new Set(), i = 0; i < N * 2; i++) { s.add(i); if (i % 10 === 0) s.clear() }",
    ),
    (
        "union and intersection",
        "new Set(many(i => i)).union(new Set(many(i => -i))).intersection(new Set(many(i => i * 2))).size",
    ),
    (
        "map, filter, reduce, forEach and find",
        "many(i => i).map(i => i + 1).filter(i => i % 2).reduce((a, b) => a + b, 0) + (many(i => i).find(i => i < 0) ?? 0)",
    ),
    (
        "flatMap and Array.flat",
        "many(i => i).flatMap(i => [i, [i]]).flat().length",
    ),
    (
        "Array.slice, Array.concat, reverse and fill",
        "many(i => i).slice(1).concat(many(i => i)).reverse().fill(0).length",
    ),
    (
        "Array.toSpliced, Array.with and Array.toReversed",
        "many(i => i).toSpliced(1, 1).with(1, 2).toReversed().length",
    ),
    (
        "indexOf and includes of a list",
        "many(i => 't' + i).indexOf('none') + many(i => i).includes(-1)",
    ),
    ("join", "many(i => 't' + i).join(', ').length"),
    (
        "Array.from",
        "Array.from(new Set(many(i => i)), i => i).length + Array.from({ length: N }, (_, i) => i).length",
    ),
    (
        "Object.entries, Object.keys and Object.fromEntries",
        "Object.keys(Object.fromEntries(Object.entries(Object.fromEntries(many(i => ['k' + i, i]))))).length",
    ),
    (
        "Object.assign, Object.values and spread of objects",
        "Object.values({ ...Object.assign({}, Object.fromEntries(many(i => ['k' + i, i]))), more: 1 }).length",
    ),
    (
        "Object.groupBy and Map.groupBy",
        "Object.keys(Object.groupBy(many(i => i), i => i % 10)).length + Map.groupBy(many(i => i), i => i).size",
    ),
    (
        "spread of lists and arguments",
        "[...many(i => i), ...many(i => i)].length + Math.max(...many(i => i))",
    ),
    (
        "destructuring",
        "for (const list = many(i => [i, { a: i, b: { c: i } }]), out = []; out.length < 1;) { for (const [n, { a, b: { c } }] of list) out.push(a + c + n); const [first, ...rest] = out }",
    ),
    (
        "rest of an object",
        "for (let all = many(i => ({ a: i, b: i, c: i })), i = 0; i < N; i++) { const { a, ...rest } = all[i] }",
    ),
    (
        "delete, the last first",
        "(() => { const o = {}; for (let i = 0; i < N; i++) o['k' + i] = i; for (let i = N; i-- > 0;) delete o['k' + i] })()",
    ),
    (
        "delete, of a list",
        "for (let a = many(i => i), i = 0; i < N; i++) delete a[i];",
    ),
    (
        "sums that grow",
        "(() => { let s = ''; for (let i = 0; i < N * 8; i++) s = s + 'line ' + i + ','; return s.length })()",
    ),
    (
        "sums that grow, in members",
        "(() => { const o = { s: '' }; for (let i = 0; i < N * 8; i++) { o.s += 'line '; o.s = o.s + i + ',' } return o.s.length })()",
    ),
    (
        "sums that grow, reduced",
        "many(i => i).concat(many(i => i)).reduce((s, i) => s + 'a line of words ' + i + ',', '').length",
    ),
    (
        "Function.toString",
        "(() => { let all = 0; for (let i = 0; i < N; i++) all += (() => i).toString().length; return all })()",
    ),
    ("Math.random", "many(() => Math.random()).length"),
    (
        "Number.toPrecision",
        "many(i => (i % 50 * 1.25).toPrecision(5) + (i % 50 / 8).toPrecision(2)).length",
    ),
    (
        "Number.toExponential",
        "many(i => (i % 50 * 1.25).toExponential(3) + (i % 50 / 8).toExponential(0)).length",
    ),
    (
        "Number.toString",
        "many(i => (i * 1.25).toString() + i.toString(16)).length",
    ),
    (
        "Set.difference",
        "new Set(many(i => i)).difference(new Set(many(i => i))).size",
    ),
    (
        "Set.difference, of more",
        "new Set(many(i => i)).difference(new Set(many(i => i + 1).slice(1))).size",
    ),
    (
        "Set.symmetricDifference",
        "new Set(many(i => i)).symmetricDifference(new Set(many(i => i))).size",
    ),
    (
        "TypedArray.sort, TypedArray.toSorted",
        "Float64Array.from(many(i => i * 7919 % 10007)).sort((a, b) => a - b).toSorted((a, b) => b - a)[0]",
    ),
];

/// Rows that move all items of a list `N` times. This takes no more instructions than the length of
/// the list, because all items are moved at once.
pub(crate) const MOVES: [(&str, &str); 6] = [
    (
        "Array.unshift, one by one",
        "for (let a = [], i = 0; i < N; i++) a.unshift(i);",
    ),
    (
        "Array.unshift, objects",
        "for (let a = [], i = 0; i < N; i++) a.unshift({ i });",
    ),
    (
        "Array.splice, the first",
        "for (let a = many(i => 't' + i); a.length > 0; a.splice(0, 1));",
    ),
    (
        "Array.splice, in the middle",
        "for (let a = [], i = 0; i < N; i++) a.splice(a.length >> 1, 0, i);",
    ),
    (
        "shift, one by one",
        "for (let a = many(i => ({ i })); a.length > 0; a.shift());",
    ),
    (
        "shift and push",
        "for (let a = [1], i = 0; i < N; i++) { a.push(i); a.push(i); a.shift() }",
    ),
];
