//! Generates uses of functions of lists, maps and sets, on ordinary lists and on lists with holes,
//! getters, other classes and other prototypes.

use super::Maker;

const LISTS: [&str; 16] = [
    "[1, 2, 3]",
    "[]",
    "['a', 'b', 'a']",
    "[1, , 3]",
    "[1.5, -0, NaN]",
    "[undefined, null]",
    "[[1, [2]], [3]]",
    "[{ k: 1 }, { k: 2 }, { k: 1 }]",
    "Array(5)",
    "Array.from({ length: 20 }, (_, i) => i * 7 % 5)",
    "new (class L extends Array {})(3, 1, 2)",
    "Object.freeze([1, 2])",
    "Object.defineProperty([1, 2, 3], 1, { get() { log('get'); return 9 } })",
    "new Proxy([1, 2], { get(t, k) { log(k); return t[k] } })",
    "{ length: 2, 0: 'x', 1: 'y' }",
    "Object.assign([1, 2], { more: 1 })",
];

const FUNCTIONS: [&str; 14] = [
    "x => x",
    "x => x * 2",
    "(x, i) => i",
    "(...all) => { log(all.length); return all[0] }",
    "function (x) { log(this); return x }",
    "x => x > 1",
    "x => [x, [x]]",
    "x => x?.k",
    "() => { throw new RangeError('called') }",
    "(x, i, a) => { if (i === 0) a.push?.(7); return x }",
    "(x, i, a) => { a.length = 1; return x }",
    "(x, i, a) => { delete a[i + 1]; return x }",
    "undefined",
    "async x => x",
];

const WITH_FUNCTION: [&str; 12] = [
    "map",
    "filter",
    "forEach",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "some",
    "every",
    "flatMap",
    "reduce",
    "reduceRight",
];

const PLAIN: [&str; 36] = [
    "shift()",
    "unshift('u', 'v')",
    "unshift()",
    "push('p')",
    "pop()",
    "splice(1, 1, 'x', 'y')",
    "splice(-1)",
    "splice()",
    "slice(1)",
    "slice(-2, 9)",
    "concat([8, , 9], 7)",
    "concat()",
    "reverse()",
    "fill(0, 1)",
    "indexOf(3)",
    "indexOf(NaN)",
    "includes(NaN)",
    "lastIndexOf(1)",
    "join('-')",
    "flat()",
    "flat(9)",
    "copyWithin(0, 1)",
    "at(-1)",
    "entries().next()",
    "toReversed()",
    "toSpliced(0, 1)",
    "with(0, 'w')",
    "toString()",
    "keys().next()",
    "includes()",
    "concat({ length: 1, 0: 's', [Symbol.isConcatSpreadable]: true })",
    "length = 1",
    "[2] = 'set'",
    "values().next()",
    "indexOf(undefined)",
    "findLast(Boolean)",
];

const STATIC: [&str; 14] = [
    "Array.from(list)",
    "Array.from(list, F)",
    "Array.from({ length: 3 }, F)",
    "Array.from(new Set(['a', 'b']))",
    "Array.from('a😀b')",
    "Array.of(1, 2)",
    "Object.entries(list)",
    "Object.fromEntries([['a', 1], ['b', list]])",
    "Object.groupBy([1, 2, 3, 4], x => x % 2 ? 'odd' : 'even')",
    "Map.groupBy([1, 2, 3], x => x % 2)",
    "Object.keys(list)",
    "Object.values(list)",
    "[...list, ...list]",
    "Math.max(...list)",
];

const KEYED: [&str; 14] = [
    "m.set('a', 1).set(NaN, 2).set(-0, 3)",
    "m.delete('a')",
    "m.delete(NaN)",
    "m.get(0)",
    "m.has(NaN)",
    "m.size",
    "m.clear()",
    "[...m]",
    "m.forEach((v, k) => { log(k); m.delete(k) })",
    "(() => { let n = 0; for (const [k] of m) { log(k); m.delete('a'); m.delete('b'); if (n++ < 5) m.set(n % 2 ? n : k, 1) } return m })()",
    "(() => { const it = m.keys(); it.next(); m.delete('a'); m.set('a', 9); return [it.next(), it.next(), it.next()] })()",
    "new Map(m)",
    "Map.prototype.delete.call(new Set(), 1)",
    "(() => { for (let i = 0; i < 40; i++) m.set(i, i); for (let i = 0; i < 40; i += 2) m.delete(i); return m })()",
];

const SETS: [&str; 10] = [
    "s.add('a').add(NaN).add(-0)",
    "s.delete('a')",
    "s.has(0)",
    "s.size",
    "s.clear()",
    "[...s]",
    "s.forEach(v => { log(v); s.delete(v) })",
    "(() => { let n = 0; for (const v of s) { log(v); s.delete(v); if (n++ < 5) s.add(n % 2 ? v + 'x' : v) } return s })()",
    "s.union?.(new Set([1, 'a']))",
    "s.intersection?.(new Set(['a']))",
];

impl Maker {
    pub(crate) fn lists(&mut self) -> Vec<String> {
        let mut statements = Vec::new();
        match self.chance.below(4) {
            0 => {
                statements.push("let m = new Map([['a', 1], ['b', 2], [1, 3]]);".to_owned());
                self.several(&mut statements, &KEYED);
            }
            1 => {
                statements.push("let s = new Set(['a', 'b', 1]);".to_owned());
                self.several(&mut statements, &SETS);
            }
            _ => {
                statements.push(format!("let list = {};", self.one_of(&LISTS)));
                if self.rarely() {
                    let change = self.one_of(&[
                        "Array.prototype[1] = 'inherited';", "Object.defineProperty(Array, Symbol.species, { get() { log('species'); return Array } });",
                        "Array.prototype[Symbol.iterator] = function* () { log('iterator'); yield 'mine' };", "Object.defineProperty(Array.prototype, 3, { set(v) { log(v) } });",
                    ]);
                    statements.push(self.change(change));
                }
                for _ in 0..self.times(1, 4) {
                    let use_ = self.use_of_list();
                    statements.push(Self::attempt(&use_));
                    statements.push("log(list);".to_owned());
                }
            }
        }
        statements
    }

    fn several(&mut self, statements: &mut Vec<String>, uses: &[&str]) {
        for _ in 0..self.times(2, 6) {
            let use_ = self.one_of(uses);
            statements.push(Self::attempt(use_));
        }
    }

    fn use_of_list(&mut self) -> String {
        let function = self.one_of(&FUNCTIONS).to_owned();
        match self.chance.below(5) {
            0 | 1 => {
                let name = self.one_of(&WITH_FUNCTION);
                let more = if self.often() {
                    String::new()
                } else {
                    format!(", {}", self.value())
                };
                format!("Array.prototype.{name}.call(list, {function}{more})")
            }
            2 => self.one_of(&STATIC).replace('F', &function),
            _ => format!("list.{}", self.one_of(&PLAIN)).replace(".[", "["),
        }
    }
}
