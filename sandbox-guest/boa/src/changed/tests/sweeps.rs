//! Lists that are spread, and what is asked where much may be made.

use super::super::{changed, marks};
use super::{both, end, without_place_where_none_was_known};

#[test]
fn where_much_may_be_made_it_is_asked_whether_the_heap_is_full() {
    for (script, expected) in [
        (
            "return { x: 1, ... a ? b : c }",
            "return { x: 1, ... airlock_sweep()?0:a ? b : c }",
        ),
        (
            "for (;;) { const row = [1] }",
            "for (;;) { const row = airlock_sweep()?0:[1] }",
        ),
        (
            "const {a, ...rest} = x",
            "const {a, ...rest} = airlock_sweep()?0:x",
        ),
        (
            "return new Array(n)",
            "return new Array(airlock_sweep()?0:n)",
        ),
    ] {
        let made = changed(script).unwrap();
        assert_eq!(made.text, expected);
        assert_eq!(made.shifts.restored(expected).as_deref(), Some(script));
    }
    let script = "return [1, ...a.b(2), ...c]";
    let made = changed(script).unwrap();
    let mark = |text| marks::marked("airlock_mark", text, "");
    let [list, items] = ["airlock_list(", "airlock_items("].map(mark);
    let close = "/*airlock_list*/)";
    let expected = format!("return {list}[1, ...{items}a.b(2){close}, ...{items}c{close}]{close}");
    assert_eq!(made.text, expected);
    assert_eq!(made.shifts.restored(&expected).as_deref(), Some(script));
    for script in [
        "const row = [1]; return [row]",
        "for (const x of [[1, 2]]) f(...x)",
        "return ((...all) => new Map(all))",
        "return new Array(...list)",
        "return [, ...list]",
        "return [...a ? b : c]",
        "[...list] = other",
    ] {
        assert!(changed(script).is_none(), "{script}");
    }
    for script in [
        "const a = [1, 2]; return [0, ...a, ...'xy', ...new Set([3])]",
        "const o = { a: 1, b: [2] }; const { a, ...rest } = o; return { ...rest, ...null, ...'é', a }",
        "const f = (...all) => [...all.map((x) => ({ ...x, y: 1 }))]; return [f({ x: 1 }), String(f)]",
        "function* g() { const a = [...yield 1]; return a } const i = g(); i.next(); return [i.next('ab').value, String(g)]",
        "const f = async () => [...await g()]; const g = async () => new Array(3); return (await f()).length",
        "let b; const a = [...b = [1], ...b ?? [], ...b || []]; return a",
        "class A { #x = [...'ab']; get() { const [...all] = this.#x; return [...all] } } return new A().get()",
        "for (const n of [1, 2]) { const row = [n]; if (n > 1) return row }",
        "const a = [1.5, 2], b = [{}, 'x']; a.length = 3; return [[...a], [...b, ...[]], [...b, ...b].length, [...a, ...'é']]",
        "const a = [1, 2]; return [...a, a.push(3), ...a, (a.length = 0), ...a]",
        "const a = [1, , 3]; const b = [...a]; return [1 in b, b]",
        "const a = [1, 2]; a[Symbol.iterator] = function* () { yield 7 }; return [0, ...a]",
        "class L extends Array { *[Symbol.iterator]() { yield 8 } } const l = L.from([1]); return [...l]",
        "class L extends Array {} const l = L.from([1, 2]); return [[...l], [...l] instanceof L]",
        "Array.prototype[Symbol.iterator] = function* () { yield 9 }; const a = [1]; return [...a].length",
        "const steps = Object.getPrototypeOf([].values()), a = [1]; steps.next = () => ({ done: true }); return [...a].length",
        "const a = [1]; Object.defineProperty(a, 0, { get: () => 5 }); return [...a]",
        "const p = new Proxy([1, 2], {}); return [...p, ...p.map((x) => x)]",
        "const m = new Map([[1, 2]]), s = new Set('ab'); return [...m, ...s, ...m.keys(), ...arguments_of(1, 2)]; function arguments_of() { return arguments }",
        "const f = () => [...g(), 1]; const g = () => { throw new Error('g') };\n  return [0,\n    ...f()]",
        "const a = null;\n  return [1, ...a]",
        "const o = { a: 5 };\n  return [1, ...o.a, ...o.b]",
        "const o = {};\n  return [1, ...o.list()]",
        "const a = [1, 2], b = Object.freeze([...a, 3]); return [b, Object.isFrozen(b), Array.isArray([...b]), Object.getOwnPropertyDescriptor([...b], 0)]",
        "const all = (...x) => { const f = () => [...x, ...x]; return [f(), String(f)] }; return all(1, 'b')",
        "return [...5]",
        "const a = [...undefined]",
        "const { ...rest } = null",
        "return new Array(-1)",
    ] {
        let [mut changed, mut as_written] = both(script).map(|step| end(&step));
        without_place_where_none_was_known(&mut changed, &mut as_written);
        assert_eq!(changed, as_written, "{script}");
    }
}
