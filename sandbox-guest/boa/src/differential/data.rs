//! Compares sorting, and the writing of JSON.

use super::{check_all, each};

#[test]
fn arrays_are_sorted_as_the_engine_sorts() {
    let arrays = [
        "[3, 1, 2]",
        "[]",
        "[undefined, 3, , 1, undefined, 2]",
        "many(i => i * 7919 % 101)",
        "many(i => (i * 7919 % 101) / 8 - 5)",
        "many(i => i % 3 ? i % 7 : -0)",
        "many(i => i % 9 ? i : Infinity)",
        "many(i => 'n' + i * 7919 % 101)",
        "many(i => i % 2 ? 'é' + i : '€' + i % 5)",
        "many(i => i % 5 ? i % 11 : undefined)",
    ];
    let compare = [
        "",
        "undefined",
        "(a, b) => a - b",
        "(a, b) => b - a",
        "function (a, b) { return (a) - (b) }",
        "(a, b) => a < b ? -1 : a > b ? 1 : 0",
        "(a, b) => b - a || 0",
    ];
    let rows = [
        "many(i => ({ n: i * 7919 % 13, at: i }))",
        "many(i => ({ n: i * 7919 % 13 / 4, at: i, in: { n: -i % 4 } }))",
        "many(i => ({ get n() { log.push(i); return i % 3 }, at: i }))",
        "many(i => Object.assign(Object.create({ n: i % 4 }), { at: i }))",
        "many(i => ({ n: i % 4 ? i : String(i), at: i }))",
        "many(i => ({ n: i % 4 ? i : { valueOf() { log.push(i); return 1 } }, at: i }))",
    ];
    let compare_rows = [
        "(a, b) => a.n - b.n",
        "(left, right) => right.n - left.n",
        "(a, b) => (log.push(a.at), a.n - b.n)",
    ];
    let many =
        "const log = [], many = f => Array.from({ length: 70 }, (_, i) => f(i)); const a = ARRAY;";
    let scripts = |arrays: &[&str], compare: &[&str]| {
        let uses = [
            "const b = a.sort(COMPARE); return [b === a, b.length, Object.keys(b), b, log.length]",
            "const b = a.toSorted(COMPARE); return [b === a, b.length, Object.keys(b), b, log.length]",
        ];
        let uses = uses.map(|use_| format!("{many} {use_}"));
        let uses: Vec<&str> = uses.iter().map(String::as_str).collect();
        each(&uses, &[("ARRAY", arrays), ("COMPARE", compare)])
    };
    let mut all = scripts(&arrays, &compare);
    // The number of calls of a comparison differs from the engine's.
    all.extend(
        scripts(&rows, &compare_rows)
            .into_iter()
            .map(|script| script.replace(", log.length]", "]")),
    );
    check_all(all);
}

#[test]
fn plain_data_is_written_as_the_engine_writes_it() {
    let values = [
        "null",
        "true",
        "undefined",
        "Symbol()",
        "() => 1",
        "1n",
        "0",
        "-0",
        "-2147483648",
        "1.5e300",
        "NaN",
        "'a\"b\\\\c\\n\\u0001\\u007f\\u2028é€😀'",
        "'\\ud83d!'",
        "'é\\\"'",
        "[]",
        "{}",
        "[[], {}]",
        "[1, 2.5, 'x', null, undefined, () => 1, Symbol()]",
        "[1, , 3]",
        "[0.5, -0, NaN]",
        "{ a: 1, b: undefined, c: () => 1, [Symbol()]: 1, d: { e: [1, { f: 2 }] } }",
        "{ b: 1, 10: 2, 9: 3, a: 4, '-1': 5, 4294967295: 6 }",
        "{ 'é\"': 1, '€': 2, '': 3 }",
        "Object.defineProperty({ a: 1 }, 'hidden', { value: 2 })",
        "Object.defineProperty({ a: 1, 5: 2 }, '7', { value: 2 })",
        "{ get a() { return 1 } }",
        "{ toJSON() { return 'own' } }",
        "[{ a: { toJSON: key => key } }]",
        "Object.assign([1], { toJSON: () => 'array' })",
        "Object.assign([1], { more: 2 })",
        "{ toJSON: 3 }",
        "Object.create(null)",
        "Object.create({ inherited: 1 })",
        "Object.setPrototypeOf([1], null)",
        "new (class A { x = 1 })()",
        "new Date(0)",
        "new Map([[1, 2]])",
        "new Number(3)",
        "new String('s')",
        "Object(1n)",
        "new Proxy([1, 2], {})",
        "new Proxy({ a: 1 }, {})",
        "new Uint8Array(2)",
        "/r/",
        "new Error('e')",
        "(() => { const row = { id: 1 }; return [row, row, { ...row }] })()",
        "(() => { const o = { a: [] }; o.a.push(o); return o })()",
        "(() => { let o = {}; for (let i = 0; i < 150; i++) o = { o }; return o })()",
        "(() => { const a = [1]; a.length = 3; return a })()",
        "Object.freeze([1, { a: 1 }])",
        "(() => { const o = { a: 1, b: 2, c: 3 }; delete o.b; o.d = 4; return o })()",
        "JSON.parse('{\"__proto__\": 1, \"a\": [{\"b\": 1}, {\"b\": 2}]}')",
    ];
    let rest = [
        "",
        ", null, 2",
        ", undefined, '\\t'",
        ", null, 20",
        ", null, -1",
        ", null, '--a longer gap--'",
        ", null, '€'",
        ", null, new Number(1)",
        ", null, true",
        ", ['a', 'b', 'id']",
        ", (key, value) => key === 'a' ? undefined : value",
        ", {}",
    ];
    let uses = [
        "return JSON.stringify(VALUE REST)",
        "return [JSON.stringify({ v: VALUE } REST)]",
        "Object.prototype.toJSON = function () { return 'changed' }; try { return JSON.stringify([VALUE] REST) } finally { delete Object.prototype.toJSON }",
        "Object.defineProperty(Array.prototype, 'toJSON', { configurable: true, get() { return () => 'got' } }); try { return JSON.stringify([VALUE] REST) } finally { delete Array.prototype.toJSON }",
    ];
    check_all(each(&uses, &[("VALUE", &values), ("REST", &rest)]));
}
