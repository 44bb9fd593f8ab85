//! Tests of instrumented scripts, and of the parsing of their output.

use super::*;

const SECRET: Secret = Secret(0xAB);

/// Returns the instrumented script without the runtime code and the wrapper.
fn watched(script: &str) -> String {
    seen(script, InstrumentPass::Calls)
}

fn seen(script: &str, look: InstrumentPass) -> String {
    let text = instrument(script, SECRET, look).unwrap().text;
    let (_, own) = text.split_once("})();\ntry {\n").unwrap();
    let (own, _) = own.rsplit_once("\n} catch").unwrap();
    own.to_owned()
}

#[track_caller]
fn check(script: &str, expected: &str) {
    assert_eq!(watched(script), expected);
}

#[test]
fn members_and_calls_are_instrumented() {
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
    // The receiver of a method is preserved.
    check(
        "let a\nreturn (a.b)(1) + (a?.b)(1) + a.b`1`",
        "let a\nreturn (look__r(a,0).b)(1) + (a?.b)(1) + look__r(a,1).b`1`",
    );
}

#[test]
fn spreads_and_destructuring_are_instrumented() {
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
fn optional_chain_becomes_conditions() {
    check(
        "let a\nreturn a?.b.c",
        "let a\nreturn look__v((look__t=a)==null?void 0:look__r(look__r(look__t,0).b,1,0).c)",
    );
    check(
        "let a\nreturn a.f?.(1)?.[2]",
        "let a\nreturn look__v((look__f=[look__s=look__r(a,0),look__s.f])[1]==null?void 0:(look__t=look__c(1,look__f[0],look__f[1],[1],[0,void 0]))==null?void 0:look__r(look__t,2)[2])",
    );
    check("let a\ndelete a?.b", "let a\ndelete a?.b");
}

#[test]
fn undeclared_names_are_instrumented() {
    check(
        "typeof gone; ({ gone, late }); let late",
        "typeof gone; ({ gone:look__u(0,()=>gone), late:look__u(1,()=>late) }); let late",
    );
}

#[test]
fn unserialisable_value_is_located_at_return() {
    let found = |script: &str, console: &[&str]| {
        let watched = instrument(script, SECRET, InstrumentPass::Calls).unwrap();
        let said = watched.failure(console.iter().copied(), "TypeError");
        said.map(|found| (found.line, found.column))
    };
    let script = "const f = () => { return 1 }\nif (f()) {\n  return  [f]\n}";
    assert_eq!(found(script, &[]), Some((3, 11)));
    // A function inside the call threw at an unknown place.
    assert_eq!(found(script, &["look__00000000000000ab{\"end\":0}"]), None);
    // It is not known which of the two returned; without a returned value there is no location.
    assert_eq!(found("let a\nif (a) return 1\nreturn a", &[]), None);
    assert_eq!(found("let a\nif (a) return", &[]), None);
}

#[test]
fn erased_type_blanks_are_not_quoted() {
    assert_eq!(in_one_line("(x.a       ).b  .c"), "(x.a).b.c");
}

#[test]
fn instrumentation_keeps_line_count() {
    let script = "let a = {\n b() {\n  return this\n   .c // why\n   ?.d(\n    ...[1],\n   )\n }\n};\n[...a]\n";
    assert_eq!(watched(script).lines().count(), script.lines().count());
}

#[test]
fn unsupported_syntax_is_left_alone() {
    let watch = |script: &str| instrument(script, SECRET, InstrumentPass::Calls);
    assert_eq!(watch("look__r(1)"), None);
    assert_eq!(watch(r"const loo\u006b__r = 1; return q.a"), None);
    assert_eq!(watch(r"return \u{6c}ook__t"), None);
    assert_eq!(follow(r"loo\u006b__l(1)", SECRET, None), None);
    assert!(watch(r"return q.look + '\u006b__'").is_some());
    assert_eq!(watch("let x: number = 1"), None);
    assert_eq!(watch("let = = 1"), None);
    assert_eq!(watch(&" ".repeat(SCRIPT_BYTES_MAX + 1)), None);
}

#[test]
fn transcript_accepts_only_well_formed_lines() {
    let watched = instrument("let a = {}\nreturn a.b.c", SECRET, InstrumentPass::Calls).unwrap();
    let found = |lines: &[&str]| {
        let found = watched.failure(lines.iter().copied(), "TypeError");
        found.filter(|it| it.message.is_some())
    };
    let note = r#"look__00000000000000ab{"note":1,"place":1,"name":"TypeError","value":{"kind":"undefined"},"parent":{"kind":"object","keys":["total"],"of":1}}"#;
    let message = found(&[note]).unwrap().message.unwrap();
    assert_eq!(
        message,
        "cannot read `c` of `a.b`, which is undefined; `a` has: total"
    );
    assert_eq!(found(&[note, r#"look__00000000000000ab{"end":0}"#]), None);
    assert_eq!(
        found(&["look__00000000000000ab{\"note\":1,\"place\":99,\"name\":\"TypeError\"}"]),
        None
    );
    assert_eq!(
        found(&[
            "look__00000000000000ab[",
            "look__00000000000000ab{\"note\":-1}",
            "note"
        ]),
        None
    );
    assert_eq!(found(&[]), None);
}

/// Returns the location-reporting script without the runtime code and the wrapper.
fn followed(script: &str) -> String {
    let text = follow(script, SECRET, None).unwrap().text;
    let (_, own) = text.split_once("})();\ntry {\n").unwrap();
    let (own, _) = own.rsplit_once("\n} catch").unwrap();
    own.to_owned()
}

#[test]
fn statements_loops_and_functions_are_traced() {
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
            "for (;;) while (a) x: do b()\n while (c)",
            "look__s(0);look__b(1);for (;;) {look__l(1);look__b(2);while (a) {look__l(2,1);look__b(3);x: do {look__l(3,2);b()}\n while (c)}}",
        ),
        (
            "if (a) for (;;) b()\nelse x: while (c);\nif (d) do e(); while (f); else g()",
            "look__s(0);if (a) {look__b(1);for (;;) {look__l(1);b()}}\nelse {look__b(2);x: while (c){look__l(2);;}}\nlook__s(3);if (d) {look__b(4);do {look__l(4);e();} while (f);} else g()",
        ),
        (
            "for (const f = () => { for (;;); }; ;) f()",
            "look__s(0);look__b(4);for (const f = () => {look__f(1); look__s(2);look__b(3);for (;;){look__l(3);;} }; ;) {look__l(4);f()}",
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
fn stop_location_is_last_reported_location() {
    let script = "let a = 1\nwhile (a) {\n  a += 1\n}\nfunction f() { f() }";
    let followed = follow(script, SECRET, None).unwrap();
    let stopped = |line: &str, is_recursion| {
        followed.stop([line, "look__00000000000000ab[", "else"], is_recursion)
    };
    let round = stopped("look__00000000000000ab{\"at\":3,\"loops\":[[2,7]]}", false).unwrap();
    assert_eq!((round.line, round.column), (3, 3));
    assert_eq!(
        round.message,
        "a second run reached round 7 of `while (a)` of line 2"
    );
    let deep = stopped(
        "look__00000000000000ab{\"at\":5,\"entered\":[4,4,4,4]}",
        true,
    )
    .unwrap();
    assert_eq!((deep.line, deep.column), (5, 1));
    assert_eq!(deep.message, "`f` of line 5 calls itself without end");
    assert_eq!(stopped("look__00000000000000ab{\"at\":99}", false), None);
    assert_eq!(stopped("{}", false), None);
}

#[test]
fn awaited_names_and_parenthesised_calls_keep_receiver() {
    check(
        "return srv[await name()](1)",
        "return look__c(4,look__t=look__r(look__u(0,()=>srv),1),look__u(5,(it,keys)=>it[keys[keys.length-1]],look__t,[await look__c(3,void 0,look__u(2,()=>name),[])]),[1],[1,void 0])",
    );
    check(
        "let o, p\no[p.k?.()]?.(1)",
        "let o, p\nlook__v((look__f=[look__s=look__r(o,0),look__s[look__v((look__f=[look__s=look__r(p,1),look__s.k])[1]==null?void 0:look__c(2,look__f[0],look__f[1],[],[1]))]])[1]==null?void 0:look__c(3,look__f[0],look__f[1],[1],[0,void 0]))",
    );
}

/// Every instrumented script can be parsed again.
#[test]
fn instrumented_script_parses() {
    for script in [
        "if (a) do x(); while (0); else y()",
        "for (;;) if (a) for (const b of c) if (b) break; else continue\nelse d()",
        "async function f(s) { await s.m[await g()](await h()); s?.[yes?.(await i())]?.() }\nfunction* j(s) { srv[yield 1](yield 2) }",
        "const f = (a) => {\n  return-a\n};\nf(typeof+f)\n~f;void-f(1)\n`${f}`\nf`${-f}`",
        "let i, o = {};\no.a =\n i +\n o.b\no[await i] += await o; o.c ??= 1; i = (-i) ** 1 || (i, o) in o; i++\no.d.e **= 2",
        "class A extends f(1) { #p = 1; static s = this; constructor(a) { super(a\n); this.b = () => this.#p; this.#p += -a } has(o) { return #p in o && o?.#p.q && o.#m?.(1) && super.has(o) } #m() {} set x([a, { b: [c] = [] }]) { super.y = a } }",
        "for (const [a, { b }] of c) for (const { d: [e] } of [f\n]) if (a < b instanceof e) continue; else for await (const { g } of h) i",
        "async function* f({ a: { b }, c: [d, , ...e] }, [g = await_] = []) { yield* a; return await b }\nconst g = async () => ({ a: await f() }), h = async (x) => x\nconst { k: { l: [m] }, ...n } = g ?? h",
        "const k = 1; k += 2; k--; ({ k } = k); [k] = [k]; for (const a in { k }) a; label: { break label }",
        "x: for (;;) y: while (1) { if (a) continue x; else z: do break y; while (b) }",
    ] {
        let looks = [
            InstrumentPass::Calls,
            InstrumentPass::Operators,
            InstrumentPass::Awaits,
        ];
        let watched = looks.map(|look| seen(script, look));
        for text in watched.into_iter().chain([followed(script)]) {
            assert_eq!(text.lines().count(), script.lines().count(), "{text}");
            let allocator = Allocator::default();
            let parsed = parse::parse(&allocator, false, &text);
            assert!(parsed.is_ok(), "{text}");
        }
    }
}

#[test]
fn only_lines_with_secret_are_accepted() {
    let script = "let a = {}\nreturn a.b.c";
    let watched = instrument(script, SECRET, InstrumentPass::Calls).unwrap();
    let note = r#"{"note":1,"place":1,"name":"TypeError","value":{"kind":"undefined"},"parent":{"kind":"object","keys":["do_this"],"of":1}}"#;
    let said = |mark: &str| {
        let found = watched.failure([format!("{mark}{note}").as_str()], "TypeError");
        found.and_then(|it| it.message)
    };
    assert!(said("look__00000000000000ab").is_some());
    for other in ["look__", "look__00000000000000ac", "look__0", "ab", ""] {
        assert_eq!(said(other), None, "{other}");
    }
    assert!(
        watched
            .text
            .contains("say('look__00000000000000ab' + json(")
    );
    assert!(!watched.text.contains("'look__'"));
    let followed = follow(script, SECRET, None).unwrap();
    assert_eq!(followed.stop(["look__{\"at\":0}"], false), None);
    assert!(!followed.text.contains("'look__'"));
}

/// Runs a closure with enough stack for the deepest script of these tests. Outside the sandbox, a
/// stack overflow is not a trap.
fn deep<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    const STACK_BYTES: usize = 1024 * 1024 * 1024;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, run).unwrap().join().unwrap()
    })
}

/// Returns the number of bytes written for a script, and the rough size of its places.
fn work(script: &str, look: InstrumentPass) -> (usize, usize) {
    let made = read(script, |parsed, _| {
        let built = SemanticBuilder::new().build(&parsed.program);
        let scoping = built.semantic.scoping();
        let mut rewriter = rewrite::Rewriter::new(parsed, scoping, look, Form::Body);
        rewriter.visit_program(&parsed.program);
        let kept = format!("{:?}", rewriter.places).len();
        Some((rewriter.budget.bytes(), kept))
    });
    made.unwrap_or_default()
}

/// Whatever the script contains, instrumenting writes at most the allowed number of bytes and keeps
/// little more than the script.
#[test]
fn instrumentation_work_is_bounded() {
    let filled = |piece: &str| piece.repeat((60_000 / piece.len()).max(1));
    let names: Vec<_> = (0..2_000)
        .map(|n| format!("n{n}{}", "x".repeat(70)))
        .collect();
    let names = names.join(",");
    let shapes = [
        filled(&("while(0)".repeat(2_400) + ";")),
        filled(&("if(0)".repeat(1_400) + ";")),
        filled(&("a".to_owned() + &".b".repeat(2_400) + ";")),
        filled(&("a".to_owned() + &".b(1)".repeat(1_200) + ";")),
        filled(&("a".to_owned() + &"?.b".repeat(1_000) + ";")),
        filled(&("a".to_owned() + &"[0]".repeat(1_400) + ";")),
        filled(&("f(".repeat(190) + "a.b" + &")".repeat(190) + ";")),
        filled(&("[a]=".repeat(1_000) + "b;")),
        filled(&("f(({a},[b])=>".repeat(60) + "1" + &")".repeat(60) + ";")),
        format!("f({}a)", filled("a.b,")),
        format!("f(({}a)=>1)", filled("{a},")),
        format!("const {{{}a}} = v", filled("a:{},")),
        format!(
            "const {{{}:{{{}a}}}} = v",
            "k".repeat(30_000),
            "a:{b:{}},".repeat(3_000)
        ),
        format!(
            "const {} = () => {{{}}}",
            "k".repeat(30_000),
            "a.b;".repeat(6_000)
        ),
        format!(
            "const c = a.{}; {}",
            "k".repeat(30_000),
            "c.d;".repeat(6_000)
        ),
        format!("const q = () => [{names}];let {names};"),
        filled("a;"),
        filled("a.b;"),
        filled("new f(a.b);"),
        filled(&("1".to_owned() + &"+a".repeat(2_400) + ";")),
        filled(&("-".to_owned() + &"- ".repeat(180) + "a;")),
        filled(&("a=".repeat(2_400) + "b;")),
        filled(&("a.b=".repeat(1_400) + "c;")),
        filled(&("a.b+=".repeat(1_000) + "c;")),
        filled(&("`${".repeat(180) + "a" + &"}`".repeat(180) + ";")),
        filled(&("await ".repeat(180) + "a;")),
        filled("for(const{a:{b:[c]}}of d);"),
    ];
    for script in shapes {
        deep(|| {
            let shape: String = script.chars().take(20).collect();
            for text in [
                instrument(&script, SECRET, InstrumentPass::Calls).map(|it| it.text),
                instrument(&script, SECRET, InstrumentPass::Operators).map(|it| it.text),
                instrument(&script, SECRET, InstrumentPass::Awaits).map(|it| it.text),
                follow(&script, SECRET, None).map(|it| it.text),
            ]
            .into_iter()
            .flatten()
            {
                assert!(text.len() <= budget::TEXT_BYTES_MAX + 20_000, "{shape}");
            }
            for look in [
                InstrumentPass::Calls,
                InstrumentPass::Operators,
                InstrumentPass::Awaits,
            ] {
                let (work, kept) = work(&script, look);
                assert!(
                    work <= budget::WORK_BYTES_MAX + 8 * script.len(),
                    "{shape} {look:?}: {work}"
                );
                assert!(kept <= 256 * script.len(), "{shape} {look:?}: {kept}");
            }
        });
    }
}

#[test]
fn long_excerpt_is_elided_in_the_middle() {
    let check = |text: &str, expected: &str| {
        let end = u32::try_from(text.len()).unwrap();
        assert_eq!(quote(text, Span::new(0, end)), expected);
    };
    check("a\n  .b ?.c", "a.b?.c");
    let long = "items\n  .map((é) => é.name)\n".repeat(4_000) + "  .filter(Boolean)";
    let expected = "items.map((é) => é.n…tems.map((é) => é.name).filter(Boolean)";
    check(&long, expected);
    // The result is the same as for the whole text.
    assert_eq!(shorten(&in_one_line(&long)), expected);
    check(&" ".repeat(5_000), "…");
}

#[test]
fn operator_pass_instruments_operators_assignments_and_classes() {
    let check = |script: &str, expected: &str| {
        assert_eq!(seen(script, InstrumentPass::Operators), expected)
    };
    check(
        "let a\nreturn 1n + a < `${a}`",
        "let a\nreturn look__o(2,'<',look__o(0,'+',1n,a),`${look__o2(1,a)}`)",
    );
    check(
        "let a\nreturn-a === 1",
        "let a\nreturn look__o1(0,'-',a) === 1",
    );
    check(
        "const k = 1; k += 2",
        "const k = 1; k=look__k(0,look__o(1,'+',k,2))",
    );
    check(
        "let o; o.a = 1; o[o] += 2",
        "let o; look__w(1,look__r(o,0),\"a\",1,(o,k,v)=>o.a=v); look__w2(3,4,'+',look__r(o,2),o,(o,k)=>o[k],(o,k,v)=>o[k]=v)(2)",
    );
    check(
        "let B; class A extends B { constructor() { super() } }",
        "let B; class A extends look__h2(0,B) { constructor() { look__u(1,()=>super()) } }",
    );
    check(
        "let l; for (const [{ a }] of l);",
        "let l; for (const [{ a }=look__p(0)] of look__i2(look__i(l,1,false),2,true,[[0]]));",
    );
}

#[test]
fn open_waits_are_reported() {
    let script = "const f = async () => {\n  await g;\n};\nawait Promise.all([f(), h]);";
    let watched = instrument(script, SECRET, InstrumentPass::Awaits).unwrap();
    let place = |of: &str| {
        let is_it = |place: &&Place| format!("{:?}", place.what).contains(&format!("of: {of:?}"));
        let found = watched.places.iter().position(|place| is_it(&place));
        found.unwrap().to_string()
    };
    let (inner, outer) = (place("g"), place("Promise.all([f(), h])"));
    let heard = |said: &str| {
        let said = said.replace("INNER", &inner).replace("OUTER", &outer);
        let first = r#"look__00000000000000ab{"waits":[]}"#;
        let last = format!("look__00000000000000ab{said}");
        watched.wait([first, last.as_str(), "look__00000000000000ab[", "else"])
    };
    let inner = r#"{"place":INNER}"#;
    let outer = r#"{"place":OUTER,"of":2}"#;
    let first = r#"{"place":OUTER,"number":1,"own":true}"#;
    let second = r#"{"place":OUTER,"number":2}"#;
    let found = heard(&format!(r#"{{"waits":[{inner},{outer},{first}]}}"#)).unwrap();
    assert_eq!((found.line, found.column), (2, 3));
    assert_eq!(found.message, "`await g` waits for ever");
    let frames: Vec<_> = found.stack.iter().map(|it| it.function.as_str()).collect();
    assert_eq!(frames, ["f", "<script>"]);
    let found = heard(&format!(r#"{{"waits":[{outer},{second}]}}"#)).unwrap();
    assert_eq!((found.line, found.column), (4, 1));
    assert_eq!(
        found.message,
        "`await Promise.all([f(), h])` waits for ever, for promise 2 of 2"
    );
    assert_eq!(heard(r#"{"waits":[]}"#), None);
    assert_eq!(heard(r#"{"waits":[{"place":99}]}"#), None);
    assert_eq!(heard("{}"), None);
}
