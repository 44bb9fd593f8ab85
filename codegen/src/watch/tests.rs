//! What becomes of scripts, and what is heard from them.

use super::*;

/// The watched script without the watcher and what is around it.
fn watched(script: &str) -> String {
    let text = watch(script).unwrap().text;
    let (_, own) = text.split_once("})();\ntry {\n").unwrap();
    let (own, _) = own.rsplit_once("\n} catch").unwrap();
    own.to_owned()
}

#[track_caller]
fn check(script: &str, expected: &str) {
    assert_eq!(watched(script), expected);
}

#[test]
fn members_and_calls_are_watched() {
    check(
        "const d = 1;\nreturn d.a.b",
        "const d = 1;\nreturn look__r(look__r(d,0).a,1,0).b",
    );
    check(
        "let d, f\n d\n .map(f, 2)",
        "let d, f\n look__c(1,look__t=look__r(d,0),look__t\n .map,[f, 2],[0,void 0,void 0])",
    );
    check(
        "let f\nreturn f(1)(2)",
        "let f\nreturn look__c(1,void 0,look__c(0,void 0,f,[1]),[2])",
    );
    check(
        "let a\na.b[a.c].d = 1",
        "let a\nlook__r(look__r(look__r(a,0).b,1,0)[look__r(a,2).c],3,1).d = 1",
    );
    check(
        "let a\nreturn new a.B",
        "let a\nreturn look__n(1, look__r(a,0).B,[],0)",
    );
    check(
        "let B; class A extends B { m() { super.m?.(1) } }",
        "let B; class A extends B { m() { look__v(super.m?.(1)) } }",
    );
    // What a method is called on is not lost.
    check(
        "let a\nreturn (a.b)(1) + (a?.b)(1) + a.b`1`",
        "let a\nreturn (look__r(a,0).b)(1) + (a?.b)(1) + look__r(a,1).b`1`",
    );
}

#[test]
fn what_is_spread_or_taken_apart_is_watched() {
    check(
        "let s, f\nf(...s.a)",
        "let s, f\nlook__c(2,void 0,f,[...look__i(look__r(s,0).a,1,false,0)])",
    );
    check(
        "let v\nconst { a, b: { c } } = v",
        "let v\nconst { a, b: { c } } = look__d(v,0,false,[[\"b\"]])",
    );
    check(
        "f(); function f({ a }, [b] = []) {}",
        "look__c(0,void 0,f,[]); function f({ a }=look__p(1), [b] = []) {}",
    );
    check(
        "let r\nr.map(({ id }) => id)",
        "let r\nlook__c(2,look__t=look__r(r,1),look__t.map,[look__g(({ id }=look__p(0)) => id,[[0,0]],false)],[1,void 0])",
    );
}

#[test]
fn a_chain_becomes_conditions() {
    check(
        "let a\nreturn a?.b.c",
        "let a\nreturn look__v((look__t=a)==null?void 0:look__r(look__r(look__t,0).b,1,0).c)",
    );
    check(
        "let a\nreturn a.f?.(1)?.[2]",
        "let a\nreturn look__v((look__f=(look__s=look__r(a,0)).f)==null?void 0:(look__t=look__c(1,look__s,look__f,[1],[0,void 0]))==null?void 0:look__r(look__t,2)[2])",
    );
    check("let a\ndelete a?.b", "let a\ndelete a?.b");
}

#[test]
fn names_that_may_not_be_there_are_watched() {
    check(
        "typeof gone; ({ gone, late }); let late",
        "typeof gone; ({ gone:look__u(0,()=>gone), late:look__u(1,()=>late) }); let late",
    );
}

#[test]
fn no_line_is_added_or_taken_away() {
    let script = "let a = {\n b() {\n  return this\n   .c // why\n   ?.d(\n    ...[1],\n   )\n }\n};\n[...a]\n";
    assert_eq!(watched(script).lines().count(), script.lines().count());
}

#[test]
fn what_cannot_be_watched_is_not() {
    assert_eq!(watch("look__r(1)"), None);
    assert_eq!(watch("let x: number = 1"), None);
    assert_eq!(watch("let = = 1"), None);
    assert_eq!(watch(&"(".repeat(100_000)), None);
    assert_eq!(watch(&" ".repeat(SCRIPT_BYTES_MAX + 1)), None);
}

#[test]
fn what_is_said_is_believed_as_far_as_it_has_the_form() {
    let watched = watch("let a = {}\nreturn a.b.c").unwrap();
    let found = |lines: &[&str]| watched.found(lines.iter().copied(), "TypeError");
    let note = r#"look__{"note":1,"place":1,"name":"TypeError","value":{"kind":"undefined"},"parent":{"kind":"object","keys":["total"],"of":1}}"#;
    let message = found(&[note]).unwrap().message.unwrap();
    assert_eq!(
        message,
        "cannot read `c` of `a.b`, which is undefined; `a` has: total"
    );
    assert_eq!(found(&[note, r#"look__{"end":0}"#]), None);
    assert_eq!(
        found(&["look__{\"note\":1,\"place\":99,\"name\":\"TypeError\"}"]),
        None
    );
    assert_eq!(found(&["look__[", "look__{\"note\":-1}", "note"]), None);
    assert_eq!(found(&[]), None);
}

/// The followed script without the watcher and what is around it.
fn followed(script: &str) -> String {
    let text = follow(script).unwrap().text;
    let (_, own) = text.split_once("})();\ntry {\n").unwrap();
    let (own, _) = own.rsplit_once("\n} catch").unwrap();
    own.to_owned()
}

#[test]
fn statements_rounds_and_functions_are_followed() {
    for (script, expected) in [
        (
            "let a = 1;\nwhile (a) a += 1",
            "look__s(0);let a = 1;\nlook__s(1);look__b(2);while (a) {look__l(2);a += 1}",
        ),
        (
            "for (const a of b) { for (;;) {} }",
            "look__s(0);look__b(1);for (const a of b) {look__l(1); look__s(2);look__b(3);for (;;) {look__l(3,1);} }",
        ),
        (
            "x: do y(); while (1)",
            "look__s(0);look__b(1);x: do {look__l(1);y();} while (1)",
        ),
        (
            "let f = (a) => ({ a }); function g() { 'use strict'; return 1 }",
            "look__s(0);let f = (a) => (look__f(1),({ a })); function g() { 'use strict';;look__f(2); look__s(3);return 1 }",
        ),
        (
            "a(); function g() { 'use strict'\n f() }",
            "look__s(0);a(); function g() { 'use strict';look__f(1);\n look__s(2);f() }",
        ),
        (
            "switch (a) { case 1: b() }",
            "look__s(0);switch (a) { case 1: look__s(1);b() }",
        ),
    ] {
        assert_eq!(followed(script), expected);
    }
}

#[test]
fn where_a_script_was_stopped_is_what_it_said_last() {
    let followed = follow("let a = 1\nwhile (a) {\n  a += 1\n}\nfunction f() { f() }").unwrap();
    let stopped =
        |line: &str, is_recursion| followed.stopped([line, "look__[", "else"], is_recursion);
    let round = stopped("look__{\"at\":3,\"loops\":[[2,7]]}", false).unwrap();
    assert_eq!((round.line, round.column), (3, 3));
    assert_eq!(
        round.message,
        "a second look found it in round 7 of `while (a)` of line 2"
    );
    let deep = stopped("look__{\"at\":5,\"entered\":[4,4,4,4]}", true).unwrap();
    assert_eq!((deep.line, deep.column), (5, 1));
    assert_eq!(deep.message, "`f` of line 5 calls itself without end");
    assert_eq!(stopped("look__{\"at\":99}", false), None);
    assert_eq!(stopped("{}", false), None);
}
