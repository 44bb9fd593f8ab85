//! Tests of the checker with hostile text, which may end the guest but not the process.

use codegen::check::Form;
use codegen::stub::StubTable;

use super::*;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

fn check(name: &str, script: &str) -> CheckResult {
    let table = StubTable::default();
    let surface = Surface::new(&table, &[]);
    let checker = Checker::embedded().unwrap();
    block_on(checker.check(name, script, &surface, &CheckLimits::default())).0
}

fn code(script: &str) -> Option<FindingCode> {
    check("a.ts", script).first_error().map(|it| it.code)
}

fn nested(open: &str, close: &str, times: usize) -> String {
    format!("return {}1{};", open.repeat(times), close.repeat(times))
}

#[test]
fn check_accepts_nesting_and_chains_that_the_engines_accept() {
    assert_eq!(code(&nested("(", ")", 190)), None);
    assert_eq!(code(&nested("[", "]", 190)), None);
    assert_eq!(
        code(&nested("(x = ", ")", 190)),
        Some(FindingCode::UnknownName)
    );
    for (piece, times) in [
        ("1+", 2_900),
        ("a=", 2_900),
        ("1?2:", 1_400),
        ("!", 190),
        ("()=>", 190),
        ("while(0)", 430),
        ("if(0)a=1;else ", 430),
    ] {
        let script = format!("let a; {}1;", piece.repeat(times));
        assert_eq!(code(&script), None, "{piece}");
    }
    for piece in [".a", "()", "[0]", "?.a", " as any"] {
        let script = format!("let a; a{}", piece.repeat(1_400));
        assert_eq!(code(&script), None, "{piece}");
    }
}

#[test]
fn check_refuses_what_nests_deeper_with_its_place() {
    for (open, close) in [("(", ")"), ("[", "]"), ("{", "}"), ("`${", "}`")] {
        let checked = check("a.js", &nested(open, close, 100_000));
        let error = checked.first_error().unwrap();
        assert!(error.code.is_syntax(), "{open}: {error:?}");
        assert_eq!(error.message, "the script is nested too deeply", "{open}");
        assert!(error.column > 200, "{open}: {error:?}");
    }
}

/// Each of these scripts crashed the process when it was parsed outside the sandbox.
#[test]
fn check_answers_scripts_that_exhaust_a_parser() {
    let pieces = [
        "a<",
        "a=",
        "()=>",
        "!",
        "1+",
        "class A extends ",
        "(a=(",
        "{a},",
        "x=>x,",
        "new ",
        "typeof ",
        "async()=>",
        "function*f(a=",
        "type A<B=",
        "`${",
        "if(a)",
        "a?b:",
        "[[",
        "@a(",
        "label:",
    ];
    for piece in pieces {
        for times in [1_344, 60_000] {
            for name in ["a.js", "a.ts"] {
                let script = piece.repeat(times);
                let checked = check(name, &script);
                let is_answered = checked.form.is_some() || checked.first_error().is_some();
                assert!(is_answered, "{piece} {times} {name}: {checked:?}");
            }
        }
    }
    let ordinary = check("a.js", "return 1");
    assert_eq!(ordinary.form, Some(Form::Body), "{ordinary:?}");
}

#[test]
fn check_of_a_script_that_meets_a_limit_is_one_finding() {
    let checked = check("a.ts", &"a<".repeat(1_344));
    assert_eq!(checked.findings.len(), 1, "{checked:?}");
    let finding = checked.first_error().unwrap();
    assert_eq!(finding.code, FindingCode::TooComplex);
    assert!(finding.suggestion.is_some());
}

#[test]
fn check_uses_no_more_time_than_its_limit() {
    let table = StubTable::default();
    let surface = Surface::new(&table, &[]);
    let limits = CheckLimits::from_limits(&Limits {
        guest_cpu_ms_max: 1,
        ..Limits::default()
    });
    let script = "const a = [1, 2, 3].map((x) => x + 1);\n".repeat(20_000);
    let checker = Checker::embedded().unwrap();
    let (checked, usage) = block_on(checker.check("a.js", &script, &surface, &limits));
    assert_eq!(checked.first_error().unwrap().code, FindingCode::TooComplex);
    assert!(usage.guest_cpu_us >= 1_000, "{usage:?}");
}

#[test]
fn check_reads_a_script_of_the_default_limit() {
    for piece in ["a;", "{a},", "x=>x,", "const { a } = b;\n", "a.b(c);"] {
        let script = format!("let a, b, c, x;\n{}", piece.repeat(1_000_000 / piece.len()));
        let checked = check("a.js", &script);
        let defeated = checked
            .findings
            .iter()
            .find(|it| it.code == FindingCode::TooComplex);
        assert_eq!(defeated, None, "{piece}");
    }
}

#[test]
fn uses_of_a_script_that_exhausts_the_parser_are_none() {
    let checker = Checker::embedded().unwrap();
    let uses = |script: &str| block_on(checker.uses(script, CheckLimits::default()));
    assert_eq!(uses(&"a<".repeat(60_000)), Uses::default());
    assert!(uses("return fs.read({})").names.contains("fs"));
}

#[test]
fn answer_that_does_not_fit_the_script_is_not_plausible() {
    let answer = |blanked: &str| CheckResult {
        form: Some(Form::Body),
        blanked: Some(blanked.to_owned()),
        findings: Vec::new(),
        findings_dropped: 0,
    };
    let script = "let a: é = 1";
    for (blanked, expected) in [
        ("let a    = 1", true),
        ("let a;   = 1", true),
        ("let a: é = 1", true),
        ("let a    = 2", false),
        ("let a    = 1 ", false),
        ("let a    = ", false),
        ("fs.delete()!", false),
    ] {
        assert_eq!(
            is_plausible(&answer(blanked), script),
            expected,
            "{blanked}"
        );
    }
}

#[test]
fn text_of_an_answer_is_shown_without_what_hides() {
    assert_eq!(presentable_text("a\u{1b}[2J\u{202e}b\n"), "a[2Jb\n");
    let long = presentable_text(&"x".repeat(10_000));
    assert_eq!(long.chars().count(), MESSAGE_CHARS_MAX);
}

#[test]
fn embedded_checker_can_be_loaded() {
    Checker::embedded().unwrap().load().unwrap();
}
