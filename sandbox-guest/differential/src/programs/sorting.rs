//! Generates sorting: lists of every kind, and comparisons that throw, contradict themselves, and
//! change the sorted list.

use super::Maker;

const MANY: &str = "const many = (f, n = 50) => Array.from({ length: n }, (_, i) => f(i));";

/// Whether a comparison gives the items of a list a unique order. Otherwise the result of sorting
/// is unspecified.
const STEADY: &str = "const steady = (list, compare) => { \
    try { const items = Array.from({ length: list.length }, (_, i) => list[i]).filter(item => item !== undefined); \
    const signs = items.map(a => items.map(b => Math.sign(Number(compare(a, b))))); \
    const above = signs.map(row => row.filter(sign => sign > 0).length); \
    return signs.every((row, i) => row.every((sign, j) => sign === Math.sign(above[i] - above[j]))); \
    } catch { return true } };";

/// Short lists, and lists that are long enough for the guest to parse the comparison.
const LISTS: [&str; 30] = [
    "[3, 1, 2]",
    "[]",
    "[1]",
    "[undefined, 3, , 1, undefined, 2]",
    "[3.5, -0, 0, NaN, 1, -Infinity]",
    "['b', 'a', 'é', '€', '😀', 'B', '10', '9']",
    "[1n, 3, 2n, '2']",
    "[{}, [], null, true]",
    "many(i => i * 7919 % 101)",
    "many(i => (i * 7919 % 101) / 8 - 5)",
    "many(i => i % 3 ? i % 7 : -0)",
    "many(i => i % 9 ? i : NaN)",
    "many(i => 'n' + i * 7919 % 101)",
    "many(i => i % 5 ? i % 11 : undefined)",
    "many(i => ({ n: i * 7919 % 13, at: i }))",
    "many(i => ({ n: { m: i * 7919 % 13 / 4 }, at: i }))",
    "many(i => Object.assign(Object.create({ n: i % 4 }), { at: i }))",
    "many(i => ({ get n() { return i % 3 }, at: i }))",
    "many(i => ({ n: i % 4 ? i : String(-i), at: i }))",
    "many(i => ({ n: i % 40 ? i : 2n, at: i }))",
    "many(i => i % 49 ? { n: -i, at: i } : null)",
    "many(i => [i * 7919 % 13, i])",
    "many(i => i % 2 ? 2 ** 53 + i : -(2 ** 53) - i)",
    "many(i => new Date(i * 7919 % 13))",
    "many(i => Object(i * 7919 % 13))",
    "many(i => i % 17 ? i * 7919 % 101 : Infinity)",
    "many(i => i, 33).fill(7, 3, 9)",
    "Object.assign(many(i => -i), { more: 'x' })",
    "many(i => ({ 'a b': i % 6, 0: -i, at: i }))",
    "many(i => new (class P { #p = i; n = i % 5; get m() { return -this.n } })())",
];

/// Comparisons that are consistent and give a unique order.
const HONEST: [&str; 26] = [
    "(a, b) => a - b",
    "(a, b) => b - a",
    "function (a, b) { return a - b }",
    "(a, b) => { return b - a; }",
    "(a, b) => a.n - b.n",
    "(a, b) => b.n - a.n",
    "(x, y) => x.n.m - y.n.m",
    "(a, b) => a['n'] - b['n']",
    "(a, b) => a[0] - b[0]",
    "(a, b) => (a.n) - (b.n)",
    "(a, b) => a.n - b.at",
    "(a, b) => a.at - b.at",
    "(a, b) => a?.n - b?.n",
    "(a, b) => a['a b'] - b['a b']",
    "(a, b) => a.m - b.m",
    "function (a, b) { 'use strict'; return a.n - b.n }",
    "(a, b) => a < b ? -1 : a > b ? 1 : 0",
    "(a, b) => String(a) < String(b) ? -1 : 1 * (String(a) > String(b))",
    "undefined",
    "(b, a) => a - b",
    "(a, b) => -(b - a)",
    "(a, b, c) => a - b",
    "(a, b = 0) => a - b",
    "function c(a, b) { return a.length - b.length }",
    "async (a, b) => a - b",
    "(a, b) => a.n - b.n || a.at - b.at",
];

/// Comparisons with an unspecified order, or that throw or have side effects.
const OTHERS: [&str; 17] = [
    "() => { throw new RangeError('compared') }",
    "(a, b) => { if (a === list[0] || b === list[0]) throw 'first'; return 0 }",
    "() => 0",
    "() => NaN",
    "() => undefined",
    "() => '0'",
    "() => null",
    "() => ({ valueOf() { return 0 } })",
    "() => 1n",
    "() => Symbol()",
    "null",
    "5",
    "{}",
    "'abc'",
    "new Proxy((a, b) => 0, {})",
    "(a, b) => { if (!list.done) { list.done = true; list.push('pushed') } return 0 }",
    "(a, b) => { list.length = 0; return 0 }",
];

/// Changes of the list.
const TWISTS: [&str; 16] = [
    "Object.freeze(list);",
    "Object.seal(list);",
    "Object.preventExtensions(list);",
    "Object.defineProperty(list, 1, { get() { log('get'); return 5 }, set(v) { log(v) }, configurable: true });",
    "Object.defineProperty(list, 0, { value: 9, writable: false });",
    "list.length += 2;",
    "Object.defineProperty(list, 'length', { writable: false });",
    "list = new Proxy(list, { get(t, k) { if (typeof k === 'string' && t.length < 9) log('get ' + k); return t[k] }, set(t, k, v) { if (t.length < 9) log('set ' + k); t[k] = v; return true }, deleteProperty(t, k) { log('delete ' + k); return delete t[k] }, has(t, k) { return k in t } });",
    "list = { ...list, length: list.length };",
    "list = { length: 3, 0: 'c', 1: 'b', 2: 'a' };",
    "list = Object.create(list);",
    "list = new (class L extends Array { static get [Symbol.species]() { log('species'); return Array } })(...list);",
    "list.constructor = { [Symbol.species]: function () { log('species'); return {} } };",
    "Object.setPrototypeOf(list, null);",
    "list = { length: -1, 0: 1 };",
    "list = { get length() { log('length'); return 2 }, 0: 2, 1: 1 };",
];

const TYPED: [&str; 6] = [
    "new Float64Array([3, NaN, -0, 0, 1.5, -Infinity, 2])",
    "new Uint8Array([3, 1, 2])",
    "new Int16Array(40).map((_, i) => i * 7919 % 13 - 6)",
    "new BigInt64Array([3n, -1n, 2n])",
    "new Uint8Array(0)",
    "new Float32Array([1, 0.1, -3])",
];

/// Changes of objects that all lists share.
const CHANGES: [&str; 5] = [
    "Array.prototype[1] = 'inherited';",
    "Object.prototype[2] = 'inherited';",
    "Object.defineProperty(Object.prototype, 'n', { get() { return 1 } });",
    "Object.defineProperty(Array.prototype, 0, { set(v) { log(v) } });",
    "Array.prototype.sort = Array.prototype.toSorted;",
];

impl Maker {
    pub(crate) fn sorting(&mut self) -> Vec<String> {
        let mut statements = vec![MANY.to_owned(), STEADY.to_owned()];
        let (mut is_mixed, mut is_told) = (false, false);
        if self.rarely() {
            let typed = self.one_of(&TYPED);
            statements.push(format!("let list = {typed};"));
        } else {
            is_mixed = self.chance.below(4) == 0;
            let list = match is_mixed {
                true => self.list_of_values(),
                false => self.one_of(&LISTS).to_owned(),
            };
            statements.push(format!("let list = {list};"));
            if self.chance.below(4) == 0 {
                is_told = true;
                statements.push(self.one_of(&TWISTS).to_owned());
            }
            if self.rarely() {
                is_told = true;
                let change = self.one_of(&CHANGES);
                statements.push(self.change(change));
            }
        }
        if self.chance.below(30) == 0 {
            statements.push("detach(list.buffer ?? new ArrayBuffer(1));".to_owned());
        }
        for _ in 0..self.times(1, 2) {
            statements.push(self.sort(is_mixed, is_told));
            statements.push("log(list);".to_owned());
        }
        statements
    }

    fn sort(&mut self, is_mixed: bool, is_told: bool) -> String {
        let name = self.one_of(&["sort", "toSorted"]).to_owned();
        match self.chance.below(8) {
            0 => {
                let (value, compare) = (self.value(), self.one_of(&OTHERS));
                Self::attempt(&format!("Array.prototype.{name}.call({value}, {compare})"))
            }
            // Whatever the comparison returns, no item is lost or duplicated.
            1 if !is_mixed && !is_told => format!(
                "{{ let turn = 0; const lie = () => (turn = (turn * 31 + 7) % 11) - 5; attempt(() => {{ const made = list.{name}(lie); return [made === list, made.length, [...made].map(String).sort()]; }}); list = [2, 1]; }}"
            ),
            2 if !is_mixed => {
                let compare = self.one_of(&OTHERS);
                Self::attempt(&format!("list.{name}({compare})"))
            }
            at => {
                let this = match at {
                    3 => format!("Array.prototype.{name}.call(list, compare)"),
                    _ => format!("list.{name}(compare)"),
                };
                // If several items cannot be compared, any of them may fail first.
                let attempt = if is_mixed {
                    Self::attempt_any(&this)
                } else {
                    Self::attempt(&this)
                };
                let compare = self.one_of(&HONEST);
                format!(
                    "{{ const compare = {compare}; if (!compare || steady(list, compare)) {attempt} }}"
                )
            }
        }
    }

    fn list_of_values(&mut self) -> String {
        let count = self.times(0, 6);
        // How often an item is converted to a string or number is unspecified.
        let values: Vec<String> = (0..count)
            .map(|_| self.value().replace("log(", "String("))
            .collect();
        format!("[{}]", values.join(", "))
    }
}
