//! Tests of findings about rules that are valid Cedar but probably wrong.

use super::super::source::PolicyFile;

fn read(rule: &str) -> Vec<String> {
    let notes = "@id(\"x\") @owner(\"o\") @reason(\"r\") ";
    let prompt = if rule.contains("approval") {
        "@prompt(\"p\") "
    } else {
        ""
    };
    let file = PolicyFile {
        name: "a.cedar".into(),
        text: format!("{notes}{prompt}{rule}"),
        tightens: false,
    };
    match super::super::load::read(&[file]) {
        Ok(_) => Vec::new(),
        Err(findings) => findings.into_iter().map(|it| it.what).collect(),
    }
}

fn check(rule: &str, expected: &[&str]) {
    assert_eq!(read(rule), expected, "{rule}");
}

fn permit(condition: &str, expected: &[&str]) {
    check(
        &format!("permit(principal, action, resource) when {{ {condition} }};"),
        expected,
    );
}

fn forbid(condition: &str, expected: &[&str]) {
    check(
        &format!("forbid(principal, action, resource) when {{ {condition} }};"),
        expected,
    );
}

const ODD_APPROVAL: &[&str] = &["invalid use of `context.approval`"];
const ODD_LABELS: &[&str] = &["invalid use of `context.labels`"];

/// Checks the fix of the only finding of a condition; `None` if there must be none.
fn check_fix(effect: &str, condition: &str, expected: Option<&str>) {
    let rule = |condition: &str| {
        format!(
            "@id(\"x\") @owner(\"o\") @reason(\"r\") @prompt(\"p\") \
             {effect}(principal, action, resource) when {{ {condition} }};"
        )
    };
    let file = PolicyFile {
        name: "a.cedar".into(),
        text: rule(condition),
        tightens: false,
    };
    let findings = super::super::load::read(&[file]).unwrap_err();
    let fix = findings[0].fix.as_ref();
    let fixed = fix.and_then(|fix| fix.apply(&rule(condition)));
    assert_eq!(fixed, expected.map(rule), "{effect} {condition}");
}

#[test]
fn fixed_forbid_covers_levels_of_less_than_and_equal() {
    for (condition, expected) in [
        ("context.approval <= 0", "context.approval < 1"),
        ("context.approval <= 1", "context.approval < 2"),
        ("1 >= context.approval", "context.approval < 2"),
        ("2 > context.approval", "context.approval < 2"),
        ("context.approval == 0", "context.approval < 1"),
        ("context.approval == 1", "context.approval < 2"),
        ("context.approval > 1", "context.approval < 2"),
        ("context.approval >= 1", "context.approval < 1"),
    ] {
        check_fix("forbid", condition, Some(expected));
    }
    for condition in [
        "context.approval <= 2",
        "context.approval == 2",
        "!(context.approval >= 3)",
        "!(context.approval > 2)",
        "!(context.approval == 0)",
        "!(context.approval == 1)",
        "context.approval != 1",
    ] {
        check_fix("forbid", condition, None);
    }
    let not_two = "!(context.approval >= 2)";
    check_fix("forbid", "!(context.approval == 2)", Some(not_two));
    for (condition, expected) in [
        ("context.approval > 0", "context.approval >= 1"),
        ("context.approval == 1", "context.approval >= 1"),
        ("context.approval < 2", "context.approval >= 2"),
        ("context.approval <= 1", "context.approval >= 2"),
        ("context.approval >= 3", "context.approval >= 2"),
    ] {
        check_fix("permit", condition, Some(expected));
    }
}

#[test]
fn no_fix_allows_more_arguments_or_hosts() {
    let all = r#"context.args == {"path": "x"}"#;
    check_fix("forbid", all, Some(r#"context.args["path"] == "x""#));
    check_fix("permit", all, None);
    let like = |pattern: &str| format!("context.args.url like \"{pattern}\"");
    let denied = r#"!(context has dest_hosts && !context.dest_hosts.contains("docs.rs"))"#;
    check_fix("forbid", &like("https://docs.rs/*"), Some(denied));
    let allowed = r#"context has dest_hosts && ["docs.rs"].containsAll(context.dest_hosts)"#;
    check_fix("permit", &like("https://*.docs.rs/*"), Some(allowed));
    check_fix("forbid", &like("https://*.docs.rs/*"), None);
    check_fix("forbid", &like("https://docs*"), None);
    for pattern in ["https://docs.rs", "https://docs.rs/", "http://docs.rs:80/*"] {
        check_fix("permit", &like(pattern), Some(allowed));
    }
    for pattern in [
        "https://docs.rs/crates/*",
        "https://docs.rs/?*",
        "https://docs.rs#*",
    ] {
        check_fix("permit", &like(pattern), None);
        check_fix("forbid", &like(pattern), Some(denied));
    }
    check_fix("forbid", &like("https://docs.rs:443/*"), Some(denied));
    let other_port = r#"!(context has dest_hosts && !context.dest_hosts.contains("docs.rs:80"))"#;
    check_fix("forbid", &like("https://docs.rs:80/*"), Some(other_port));
}

#[test]
fn forbid_of_paths_that_occur_inside_roots_has_no_fix() {
    let like = |pattern: &str| format!("context.args.path like \"{pattern}\"");
    let outside = r#"!(context has path_roots && !context.path_roots.contains("outside"))"#;
    for pattern in ["/etc/*", "~/.ssh/*"] {
        check_fix("forbid", &like(pattern), Some(outside));
    }
    for pattern in ["*/.ssh/*", "./secret/*", "../*", "secret/*"] {
        check_fix("forbid", &like(pattern), None);
    }
}

#[test]
fn lint_approval_only_permits() {
    permit("context.approval >= 1", &[]);
    permit("context.disclosed || context.approval >= 2", &[]);
    forbid("context.disclosed && context.approval < 2", &[]);
    forbid("!(context.approval >= 1)", &[]);
    check(
        "forbid(principal, action, resource) unless { context.approval >= 2 };",
        &[],
    );
    for condition in [
        "context.approval < 1",
        "context.approval >= 3",
        "context.approval == 1",
        "!(context.approval >= 1)",
        "2 <= context.approval",
        "[1].contains(context.approval)",
        "if context.approval >= 1 then false else true",
    ] {
        permit(condition, ODD_APPROVAL);
    }
    forbid("context.approval >= 1", ODD_APPROVAL);
}

#[test]
fn lint_labels_only_forbid() {
    forbid("context.labels.contains(\"untrusted\")", &[]);
    forbid(
        "context.labels.containsAll([\"untrusted\", \"private:mail\"])",
        &[],
    );
    forbid("[\"private\"].containsAny(context.labels)", &[]);
    permit("!context.labels.contains(\"private\")", &[]);
    permit("context.labels.isEmpty()", &[]);
    permit("[\"private\"].containsAll(context.labels)", &[]);
    for condition in [
        "context.labels.contains(\"private\")",
        "!context.labels.isEmpty()",
        "context.labels == [\"private\"]",
        "[\"private\"].containsAny(context.labels)",
        "if context.labels.contains(\"private\") then context.disclosed else true",
    ] {
        permit(condition, ODD_LABELS);
    }
    forbid("[\"private\"].containsAll(context.labels)", ODD_LABELS);
}

#[test]
fn lint_context_is_no_value() {
    let whole: &[&str] = &["`context` or `context.args` is used as a value"];
    for condition in [
        "{\"c\": context}.c.labels.contains(\"private\")",
        "{\"c\": context}[\"c\"][\"labels\"].contains(\"private\")",
        "{\"c\": context}.c.args.project like \"/srv/*\"",
        "{\"c\": context.args}.c.project like \"O*\"",
        "(if context.disclosed then context else context).labels.contains(\"private\")",
        "(if context.disclosed then context else context) has labels",
        "[context].contains(context)",
        "context == {\"disclosed\": true}",
        "context.args == {\"project\": \"x\"}",
        "[context[\"args\"]].contains({\"project\": \"x\"})",
        "context",
    ] {
        for (effect, clause) in [("permit", "when"), ("forbid", "when"), ("forbid", "unless")] {
            let rule = format!("{effect}(principal, action, resource) {clause} {{ {condition} }};");
            check(&format!("@prompt(\"p\") {rule}"), whole);
        }
    }
    permit("{\"c\": context}.c.approval < 1", whole);
    permit("context[\"disclosed\"] && context.args has project", &[]);
}

#[test]
fn lint_labels_and_approvals_are_no_values() {
    for value in [
        "{\"l\": context.labels}.l.contains(\"private\")",
        "(if context.disclosed then context.labels else [\"x\"]).contains(\"private\")",
        "[context.labels].contains([\"private\"])",
        "[\"private\"] == context[\"labels\"]",
        "(context.labels.contains(\"private\")) == true",
        "{\"l\": context.labels.contains(\"private\")}.l",
        "context.labels.containsAll(context.labels)",
        "context has labels",
    ] {
        permit(value, ODD_LABELS);
        forbid(value, ODD_LABELS);
    }
    for value in [
        "{\"a\": context.approval}.a >= 1",
        "(if context.disclosed then context.approval else 0) >= 1",
        "(context.approval >= 1) == false",
        "context[\"approval\"] + 1 > 1",
        "context has approval",
    ] {
        permit(value, ODD_APPROVAL);
        forbid(value, ODD_APPROVAL);
    }
}

#[test]
fn lint_names_misspelt_label() {
    forbid(
        "context.labels.contains(\"untrustd\")",
        &["`untrustd` is not a label"],
    );
}

#[test]
fn lint_refuses_text_comparison_of_paths_and_addresses() {
    for condition in [
        "context.args.path like \"/srv/data/*\"",
        "context.args.url == \"https://docs.rs\"",
        "[\"/etc\", \"x\"].contains(context.args.path)",
        "context.args.urls.contains(\"https://docs.rs\")",
        "context.args.path like \"*/secret\"",
    ] {
        let found = read(&format!(
            "forbid(principal, action, resource) when {{ {condition} }};"
        ));
        assert!(
            found.len() == 1 && found[0].ends_with("as text"),
            "{condition}: {found:?}"
        );
    }
    for condition in [
        "[context.args.path].contains(\"/etc\")",
        "[\"/etc\"] == [context.args.path]",
        "{\"p\": context.args.path}.p like \"/srv/*\"",
        "{\"p\": context.args.path} == {\"p\": \"/etc\"}",
        "(if context.disclosed then context.args.path else \"x\") like \"/srv/*\"",
        "(if context.disclosed then \"/etc\" else \"x\") == context.args[\"path\"]",
        "{\"o\": context.args.file}.o.path == \"/etc\"",
    ] {
        let text = if condition.contains("like") {
            "/srv/*"
        } else {
            "/etc"
        };
        let found = format!("the argument is compared with `{text}` as text");
        permit(condition, &[&found]);
    }
    permit(
        "(context.args.project == \"x\") == context.path_roots.contains(\"/srv\")",
        &[],
    );
    permit("context.args.repo == \"acme/site\"", &[]);
    permit("context.args.query like \"*invoice*\"", &[]);
    permit("context.path_roots == [\"/srv\"]", &[]);
}

#[test]
fn lint_refuses_principal_and_resource() {
    check(
        "permit(principal == Run::\"x\", action, resource);",
        &["the rule constrains `principal` or `resource`"],
    );
    permit(
        "resource == Server::\"x\"",
        &["the rule constrains `principal` or `resource`"],
    );
}

#[test]
fn lint_refuses_labels_in_erring_rule() {
    const BESIDE: &[&str] = &["labels together with arithmetic that may overflow"];
    permit(
        r#"!context.labels.contains("private") && context.args.n * 2 > 3"#,
        BESIDE,
    );
    forbid(
        r#"context.labels.contains("private") && -context.args.n < 3"#,
        BESIDE,
    );
    forbid(
        r#"context.args.n < -3 && context.labels.contains("private")"#,
        &[],
    );
    permit("context.args.n * 2 > 3", &[]);
}
