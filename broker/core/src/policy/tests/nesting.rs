//! Tests of rules that nest deep. Each of them is either refused by a scan of its text, or can
//! decide a call.

use super::*;

/// Checks the finding about a rule with this condition. Without a finding, the rule must decide a
/// call.
fn check(condition: &str, expected: &str) {
    check_clauses(&format!("when {{ {condition} }}"), expected);
}

fn check_clauses(clauses: &str, expected: &str) {
    let rule = format!("x: forbid(principal, action, resource) {clauses};");
    let what = match Policies::load(&files(&[ALL, &rule]), vocabulary(), true) {
        Ok(policies) => {
            let tool = ToolId::parse("ops.read").unwrap();
            let judged = policies.judge(&tool, &args(ARGS_OPS), &clean());
            assert_eq!(judged.rules.len(), 1, "{:?}", judged.reasons);
            String::new()
        }
        Err(invalid) => invalid.findings()[0].to_string(),
    };
    let shown: String = clauses.chars().take(60).collect();
    assert!(what.contains(expected), "{shown}: {what}");
    assert_eq!(what.is_empty(), expected.is_empty(), "{shown}: {what}");
}

#[test]
fn too_deep_rule_is_rejected_before_parsing() {
    let joined = |word: &str, times: usize| vec!["true"; times].join(word);
    let asked = "context.args.project like \"O*\"";
    for one in ["true", "context.disclosed", asked] {
        check(&vec![one; 300].join(" && "), "");
        check(&format!("!({})", vec![one; 300].join(" || ")), "");
    }
    for word in [" && ", " || ", "&&//\n", " + ", " * ", " - "] {
        check(&joined(word, 15_000), "joins more than 300");
    }
    let nested = |open: &str, close: &str, times: usize| {
        format!("{}true{}", open.repeat(times), close.repeat(times))
    };
    check(&nested("(", ")", 50), "");
    check(&nested("(", ")", 15_000), "more than 60 levels");
    check(&nested("[", "]", 15_000), "more than 60 levels");
    check(&nested("{a: ", "}", 15_000), "more than 60 levels");
    check(
        &nested("if true then (", ") else false", 15_000),
        "more than 60 levels",
    );
    check(
        &nested("if true then false else ", "", 15_000),
        "joins more than 300",
    );
    check(&"!".repeat(15_000), "joins more than 300");
    let unseen = format!("// \r{}\n", nested("(", ")", 15_000));
    check(&unseen, "more than 60 levels");
    let way = format!("context{}", ".a".repeat(15_000));
    check(&way, "more than 60 levels");
    let calls = format!("context.a{}", ".contains(1, 2)".repeat(15_000));
    check(&calls, "more than 60 levels");
    let within = format!("{}1{}", "[1].contains(".repeat(15_000), ")".repeat(15_000));
    check(&within, "more than 60 levels");
}

#[test]
fn rule_is_rejected_beyond_64_kib() {
    let list = |bytes: usize| format!("[{}1].isEmpty()", "1, ".repeat(bytes / 3));
    check(&list(60 * 1024), "");
    check(&list(64 * 1024), "the maximum is 64 KiB");
}

fn nested_and_joined(times: usize) -> String {
    let opened = "(true && !true || true && true || ".repeat(times);
    format!("{opened}true{}", ")".repeat(times))
}

#[test]
fn postfix_operators_add_depth() {
    let index = |times: usize| format!("context{}", "[\"a\"]".repeat(times));
    check(&index(15_000), "more than 60 levels");
    check(
        &format!("true && [{}]", index(2_000)),
        "more than 60 levels",
    );
    let spaced = format!("context{}", "//\r [ \"a\" ]".repeat(2_000));
    check(&spaced, "more than 60 levels");
    check(
        &format!("[1]{}", "[1]".repeat(2_000)),
        "more than 60 levels",
    );
    check(
        &format!("\"a\"{}", "(1)".repeat(2_000)),
        "more than 60 levels",
    );
    for member in [".elsex", ".else", ".then", ". else", ".xelse", ".when"] {
        let way = format!("{}{member}", ".a".repeat(55));
        check(&format!("context{}", way.repeat(80)), "more than 60 levels");
    }
    // Each bracket closes before the next members, so the text is never deep at one position.
    let mut grown = "context".to_owned();
    for _ in 0..55 {
        grown = format!("({grown}{})", ".a".repeat(30));
    }
    check(&grown, "more than 60 levels");
    let members = format!("{}context.disclosed{}", "{a: ".repeat(25), "}.a".repeat(25));
    check(&members, "");
    let both = nested_and_joined(55);
    check(&both, "");
    let joined = vec![members.as_str(); 300].join(" && ");
    check(&joined, "");
}

#[test]
fn each_clause_adds_to_previous() {
    let clauses = |clause: &str, times: usize| clause.repeat(times);
    for clause in [
        "when{!context.disclosed}",
        "unless{context.disclosed}",
        "when{true}//\r",
    ] {
        check_clauses(&clauses(clause, 20_000), "joins more than 300");
    }
    check_clauses(&clauses("unless{context.disclosed}", 300), "");
    check_clauses(
        &clauses("unless{context.disclosed}", 302),
        "joins more than 300",
    );
    let otherwise = "if true then 0 else 0else 0";
    check(
        &otherwise.replace("0else", &"0else ".repeat(400)),
        "joins more than 300",
    );
}

#[test]
fn long_list_is_not_deep() {
    let many: Vec<String> = (0..2_000)
        .map(|it| format!("\"host{it}.example\""))
        .collect();
    let list = format!("[{}].contains(\"(((&&&\")", many.join(", "));
    check(&list, "");
    let asked: Vec<String> = (0..250)
        .map(|it| format!("(context.counts.calls_run == {it})"))
        .collect();
    check(&asked.join(" || "), "");
}
