//! Tests that messages name the failed value, except if several values could be meant.

use super::*;

/// Checks the message and the position of an error whose engine position is marked with `^`.
#[track_caller]
fn check(script: &str, engine: &str, expected: &str) {
    let (line, column) = script.find('^').map_or((0, 0), |at| place_of(script, at));
    let mut error = ScriptError {
        name: "TypeError".to_owned(),
        message: engine.to_owned(),
        line,
        column,
        ..ScriptError::default()
    };
    improve(&mut error, &script.replace('^', ""));
    assert_eq!(error.message, expected, "{script}");
}

#[test]
fn a_missing_value_is_named() {
    let of = "cannot read property 'b' of undefined";
    check(
        "return ^r.a.b",
        of,
        "cannot read `b` of `r.a`, which is undefined",
    );
    check(
        "f(^r.a[0].b.c)",
        of,
        "cannot read `b` of `r.a[0]`, which is undefined",
    );
    check(
        "x.b; return ^(await y()).b",
        of,
        "cannot read `b` of `(await y())`, which is undefined",
    );
    check(
        "return null.b",
        of,
        "cannot read `b` of `null`, which is undefined",
    );
}

#[test]
fn where_two_could_be_meant_the_engine_s_words_stay() {
    let of = "cannot read property 'b' of undefined";
    check("x.b; y.b", of, of);
    check("s.map(^g(1))", "not a function", "not a function");
    check("s(1, [^g(1)])", "not a function", "not a function");
    check(
        "const {a: {b}} = c",
        "Cannot convert undefined or null to object",
        "Cannot convert undefined or null to object",
    );
}

#[test]
fn a_call_is_at_its_bracket() {
    #[track_caller]
    fn check(marked: &str, expected: Option<(u32, u32)>) {
        let at = marked.find('^').unwrap();
        let (script, place) = (marked.replace('^', ""), place_of(marked, at));
        let found = bracket_of(
            &script,
            &tokens::tokenize(&script),
            place,
            ["search", "logs_search", "find"],
        );
        assert_eq!(found, expected, "{marked}");
    }
    check("a\nawait logs.^search({})", Some((2, 18)));
    check("await é.^search({})", Some((1, 15)));
    check("await logs_search({ a: ^x.y })", Some((1, 18)));
    check("await find({ a: ^x.y })", Some((1, 11)));
    check("search(search(\n^1))", Some((1, 14)));
    check("const f = logs.search; ^f({})", Some((1, 25)));
    check("await logs['sea' + ^'rch']({})", Some((1, 26)));
    check("const f = logs.search; f({ a: ^x.y })", None);
}

#[test]
fn a_callee_is_named() {
    let engine = "not a function";
    check("^r()", engine, "`r` is not a function");
    check(
        "return [1].map(() => r.^doIt(3))",
        engine,
        "`r.doIt` is not a function",
    );
    check("if (r.^doIt(3)) {}", engine, "`r.doIt` is not a function");
    check(
        "f(function () { r.^doIt(3) })",
        engine,
        "`r.doIt` is not a function",
    );
    check("new ^r.Foo()", engine, "`r.Foo` is not a function");
}

#[test]
fn a_class_that_is_called_is_where_it_is_called() {
    #[track_caller]
    fn placed(marked: &str, expected: (u32, u32)) {
        let at = marked.find('^').unwrap();
        let (line, column) = place_of(marked, at);
        let mut error = ScriptError {
            name: "TypeError".to_owned(),
            message: "class constructor A cannot be invoked without 'new'".to_owned(),
            line,
            column,
            ..ScriptError::default()
        };
        let before = error.message.clone();
        improve(&mut error, &marked.replace('^', ""));
        assert_eq!((error.line, error.column), expected, "{marked}");
        assert_eq!(error.message, before);
    }
    placed("return ^A()", (1, 8));
    placed("const f = (t) => A(^t)", (1, 18));
    placed("const f = (t) => lib.A(\n^t.x, 1)", (1, 22));
    placed("return A(A(^t))", (1, 12));
    placed("const B = A; ^B()", (1, 14));
}

#[test]
fn what_is_iterated_over_is_named() {
    let engine = "cannot read property 'Symbol.iterator' of null";
    check(
        "for (const x of ^r.e) {}",
        engine,
        "cannot iterate over `r.e`, which is null",
    );
    check(
        "return [...^r.e]",
        engine,
        "cannot iterate over `r.e`, which is null",
    );
    check(
        "const [a] = r.e",
        engine,
        "cannot destructure `r.e`, which is null",
    );
    check("const [a] = r.e || []", engine, engine);
}
