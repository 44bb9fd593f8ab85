//! Tests of spread arrays. The expected values are those of V8.

use super::comes_to;

#[test]
fn spread_arrays_have_their_items() {
    for (script, expected) in [
        (
            "const a = [1, 2]; return [0, ...a, ...'xy', ...new Set([3])]",
            r#"[0,1,2,"x","y",3]"#,
        ),
        (
            "const o = { a: 1, b: [2] }; const { a, ...rest } = o; return { ...rest, ...null, ...'é', a }",
            r#"{"0":"é","b":[2],"a":1}"#,
        ),
        (
            "const f = (...all) => [...all.map((x) => ({ ...x, y: 1 }))]; return [f({ x: 1 }), String(f)]",
            r#"[[{"x":1,"y":1}],"(...all) => [...all.map((x) => ({ ...x, y: 1 }))]"]"#,
        ),
        (
            "function* g() { const a = [...yield 1]; return a } const i = g(); i.next(); return [i.next('ab').value, String(g)]",
            r#"[["a","b"],"function* g() { const a = [...yield 1]; return a }"]"#,
        ),
        (
            "const f = async () => [...await g()]; const g = async () => new Array(3); return (await f()).length",
            "3",
        ),
        (
            "let b; const a = [...b = [1], ...b ?? [], ...b || []]; return a",
            "[1,1,1]",
        ),
        (
            "class A { #x = [...'ab']; get() { const [...all] = this.#x; return [...all] } } return new A().get()",
            r#"["a","b"]"#,
        ),
        (
            "for (const n of [1, 2]) { const row = [n]; if (n > 1) return row }",
            "[2]",
        ),
        (
            "const a = [1.5, 2], b = [{}, 'x']; a.length = 3; return [[...a], [...b, ...[]], [...b, ...b].length, [...a, ...'é']]",
            r#"[[1.5,2,null],[{},"x"],4,[1.5,2,null,"é"]]"#,
        ),
        (
            "const a = [1, 2]; return [...a, a.push(3), ...a, (a.length = 0), ...a]",
            "[1,2,3,1,2,3,0]",
        ),
        (
            "const a = [1, , 3]; const b = [...a]; return [1 in b, b]",
            "[true,[1,null,3]]",
        ),
        (
            "const a = [1, 2]; a[Symbol.iterator] = function* () { yield 7 }; return [0, ...a]",
            "[0,7]",
        ),
        (
            "class L extends Array { *[Symbol.iterator]() { yield 8 } } const l = L.from([1]); return [...l]",
            "[8]",
        ),
        (
            "class L extends Array {} const l = L.from([1, 2]); return [[...l], [...l] instanceof L]",
            "[[1,2],false]",
        ),
        (
            "Array.prototype[Symbol.iterator] = function* () { yield 9 }; const a = [1]; return [...a].length",
            "1",
        ),
        (
            "const steps = Object.getPrototypeOf([].values()), a = [1]; steps.next = () => ({ done: true }); return [...a].length",
            "0",
        ),
        (
            "const a = [1]; Object.defineProperty(a, 0, { get: () => 5 }); return [...a]",
            "[5]",
        ),
        (
            "const p = new Proxy([1, 2], {}); return [...p, ...p.map((x) => x)]",
            "[1,2,1,2]",
        ),
        (
            "const m = new Map([[1, 2]]), s = new Set('ab'); return [...m, ...s, ...m.keys(), ...arguments_of(1, 2)]; function arguments_of() { return arguments }",
            r#"[[1,2],"a","b",1,1,2]"#,
        ),
        (
            "const a = [1, 2], b = Object.freeze([...a, 3]); return [b, Object.isFrozen(b), Array.isArray([...b]), Object.getOwnPropertyDescriptor([...b], 0)]",
            r#"[[1,2,3],true,true,{"value":1,"writable":true,"enumerable":true,"configurable":true}]"#,
        ),
        (
            "const all = (...x) => { const f = () => [...x, ...x]; return [f(), String(f)] }; return all(1, 'b')",
            r#"[[1,"b",1,"b"],"() => [...x, ...x]"]"#,
        ),
    ] {
        comes_to(script, expected);
    }
}
