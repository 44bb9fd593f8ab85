//! Tests that the rest of a pattern does not contain members that the pattern names.

use super::comes_to;

#[test]
fn the_rest_is_without_what_was_taken_apart() {
    for (script, expected) in [
        (
            "const { b: { c }, ...s } = { b: { c: 1 }, e: 2 }; return [c, s]",
            r#"[1,{"e":2}]"#,
        ),
        (
            "const { b: [c], a, ...s } = { a: 0, b: [1], e: 2 }; return [a, c, s]",
            r#"[0,1,{"e":2}]"#,
        ),
        (
            "let { b: { c } = {}, 'x y': [d] = [4], 7: { f }, é: { g }, ...s } = { 7: { f: 1 }, é: { g: 2 }, e: 2 }; return [c ?? null, d, f, g, s]",
            r#"[null,4,1,2,{"e":2}]"#,
        ),
        (
            "const k = 'b'; const { [k]: { c }, ...s } = { b: { c: 1 }, e: 2 }; return s",
            r#"{"e":2}"#,
        ),
        (
            "const f = ({ b: { c }, ...s }, n = 1) => s; return [f({ b: {}, e: 2 }), f.length, String(f)]",
            r#"[{"e":2},1,"({ b: { c }, ...s }, n = 1) => s"]"#,
        ),
        (
            "let c, s, o = {}; ({ b: { c }, ... s } = { b: { c: 1 }, e: 2 }); ({ b: [c], ...o.rest } = { b: [3], f: 4 }); return [c, s, o]",
            r#"[3,{"e":2},{"rest":{"f":4}}]"#,
        ),
        (
            "const out = []; for (const { b: { c, ...t }, ...s } of [{ b: { c: 1, d: 2 }, e: 2 }]) out.push(c, s, t); return out",
            r#"[1,{"e":2},{"d":2}]"#,
        ),
        (
            "let s, c; for ({ b: { c }, ...s } of [{ b: { c: 1 }, e: 2 }]) ; try { throw { b: { c: 1 }, g: 2 } } catch ({ b: { c }, ...t }) { return [s, t] }",
            r#"[{"e":2},{"g":2}]"#,
        ),
        (
            "const { a: { b: { c }, ...t }, ...s } = { a: { b: { c: 1 }, d: 2 }, e: 3 }; return [c, t, s]",
            r#"[1,{"d":2},{"e":3}]"#,
        ),
        (
            "const [{ b: { c }, ...s }] = [{ b: { c: 1 }, e: 2 }]; const { b: x, a = 1, ...t } = { b: 1, e: 2 }; return [s, t]",
            r#"[{"e":2},{"e":2}]"#,
        ),
    ] {
        comes_to(script, expected);
    }
}
