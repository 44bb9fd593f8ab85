//! Tests of the level and the deciding rules for given rules and a call.

mod nesting;
mod prefilter;
mod property;
mod shipped;
mod words;

use super::*;
use crate::labels::Labels;
use crate::testing::{args, tool};
use codegen::description::Description;

fn vocabulary() -> Vocabulary {
    let mut vocabulary = Vocabulary::new();
    let schema = json!({
        "type": "object",
        "properties": {
            "project": {"type": "string"}, "count": {"type": "integer"}, "share": {"type": "number"},
            "to": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["project"],
    });
    for (name, read_only, groups) in [
        ("ops.read", true, &[][..]),
        ("ops.write-all", false, &["paging"]),
        ("mail.send", false, &["outside"]),
    ] {
        let mut known = tool(name);
        known.effects.read_only = Some(read_only);
        let listed = json!({"name": name, "inputSchema": schema});
        let shape = codegen::shape::tool_shape(&Description::parse("s", &listed).unwrap());
        let groups = groups.iter().map(|it| (*it).to_owned()).collect();
        vocabulary.add(&known.id, known.effects, &groups, &shape);
    }
    let words = |word: &str| [word.to_owned()];
    let sending = ToolId::parse("mail.send").unwrap();
    vocabulary.add_file_words(&sending, &words("post"), &words("leaves the house"));
    vocabulary
}

fn file(text: &str) -> PolicyFile {
    PolicyFile {
        name: "p.cedar".into(),
        text: text.into(),
        tightens: false,
    }
}

/// Returns files for rules such as `id: permit(…) …;`, with the annotations that each needs.
fn files(rules: &[&str]) -> Vec<PolicyFile> {
    let annotated = |rule: &&str| {
        let (id, body) = rule.split_once(": ").unwrap();
        let prompt = if body.contains("approval") {
            "@prompt(\"ok?\")"
        } else {
            ""
        };
        file(&format!(
            "@id(\"{id}\") @owner(\"o\") @reason(\"r\") {prompt}\n{body}"
        ))
    };
    rules.iter().map(annotated).collect()
}

fn load(rules: &[&str]) -> Policies {
    Policies::load(&files(rules), vocabulary(), true).unwrap()
}

fn judge(rules: &[&str], tool: &str, text: &str, facts: &Facts) -> PolicyVerdict {
    load(rules).judge(&ToolId::parse(tool).unwrap(), &args(text), facts)
}

fn check(rules: &[&str], tool: &str, text: &str, expected: (Level, &[&str])) {
    let judged = judge(rules, tool, text, &clean());
    let ids: Vec<&str> = judged.rules.iter().map(|id| &**id).collect();
    assert_eq!(
        (judged.level, ids.as_slice()),
        expected,
        "{:?}",
        judged.reasons
    );
}

fn clean() -> Facts {
    Facts {
        labels: Labels::default(),
        ..Facts::default()
    }
}

const ALL: &str = "all: permit(principal, action, resource);";
const READS: &str = "reads: permit(principal, action in Action::\"read-only\", resource);";
const PAGING: &str = "paging: forbid(principal, action in Action::\"group:paging\", resource);";
const OPS: &str = "ops: permit(principal, action in Action::\"server:ops\", resource) \
                   when { context.args.project == \"OPS\" };";
const ONE: &str = "one: permit(principal, action == Action::\"ops.write-all\", resource) \
                   when { context.args has count && context.args.count <= 3 };";
const ASK_RUN: &str =
    "ask-run: permit(principal, action, resource) when { context.approval >= 1 };";
const ASK_EACH: &str = "ask-each: forbid(principal, action in Action::\"server:mail\", resource) \
                        unless { context.approval >= 2 };";

const ARGS_OPS: &str = r#"{"project":"OPS"}"#;

#[test]
fn permit_allows_forbid_denies_and_default_denies() {
    check(&[], "ops.read", ARGS_OPS, (Level::Deny, &[]));
    check(&[ALL], "ops.read", ARGS_OPS, (Level::Allow, &["all"]));
    check(
        &[ALL, PAGING],
        "ops.write-all",
        ARGS_OPS,
        (Level::Deny, &["paging"]),
    );
    check(&[READS], "ops.read", ARGS_OPS, (Level::Allow, &["reads"]));
    check(&[READS], "mail.send", ARGS_OPS, (Level::Deny, &[]));
    check(
        &[OPS, READS],
        "ops.read",
        ARGS_OPS,
        (Level::Allow, &["ops", "reads"]),
    );
    check(
        &[OPS],
        "ops.read",
        r#"{"project":"DEV"}"#,
        (Level::Deny, &[]),
    );
}

#[test]
fn condition_sees_exact_arguments() {
    for (text, level) in [
        (r#"{"project":"x","count":3}"#, Level::Allow),
        (r#"{"project":"x","count":3.0}"#, Level::Allow),
        (r#"{"project":"x","count":4}"#, Level::Deny),
        (ARGS_OPS, Level::Deny),
    ] {
        assert_eq!(
            judge(&[ONE], "ops.write-all", text, &clean()).level,
            level,
            "{text}"
        );
    }
}

#[test]
fn smallest_sufficient_approval_is_asked() {
    check(
        &[ASK_RUN],
        "ops.read",
        ARGS_OPS,
        (Level::AskRun, &["ask-run"]),
    );
    check(
        &[ALL, ASK_EACH],
        "mail.send",
        ARGS_OPS,
        (Level::AskCall, &["all", "ask-each"]),
    );
    check(
        &[ALL, ASK_EACH],
        "ops.read",
        ARGS_OPS,
        (Level::Allow, &["all"]),
    );
    check(
        &[ALL, ASK_RUN],
        "ops.read",
        ARGS_OPS,
        (Level::Allow, &["all"]),
    );
    // If a permit needs no approval, the question of another permit is not asked.
    check(
        &[ALL, ASK_RUN, ASK_EACH],
        "mail.send",
        ARGS_OPS,
        (Level::AskCall, &["all", "ask-each"]),
    );
    check(
        &[ASK_RUN, ASK_EACH],
        "mail.send",
        ARGS_OPS,
        (Level::AskCall, &["ask-each", "ask-run"]),
    );
    check(
        &[ASK_RUN, PAGING],
        "ops.write-all",
        ARGS_OPS,
        (Level::Deny, &["paging"]),
    );
}

#[test]
fn verdict_names_rule_place_reason_and_prompt() {
    let asked = judge(&[ALL, ASK_EACH], "mail.send", ARGS_OPS, &clean());
    let reasons = [
        "rule `ask-each` (p.cedar:1) asks: r",
        "rule `all` (p.cedar:1) permits: r",
    ];
    assert_eq!(asked.reasons, reasons);
    assert_eq!(asked.told, ["rule `ask-each`", "rule `all`"]);
    assert_eq!(asked.prompts, ["ok?"]);
    let denied = judge(&[], "mail.send", ARGS_OPS, &clean());
    assert_eq!(denied.reasons, ["no policy rule permits the call"]);
}

#[test]
fn rule_evaluation_error_denies() {
    let overflows = "over: forbid(principal, action == Action::\"ops.write-all\", resource) \
                     when { context.args has count && context.args.count * 9223372036854775807 > 10 };";
    let text = r#"{"project":"x","count":3}"#;
    check(
        &[ALL, overflows],
        "ops.write-all",
        text,
        (Level::Deny, &["over"]),
    );
    check(
        &[ALL, overflows],
        "ops.read",
        text,
        (Level::Allow, &["all"]),
    );
    let told = judge(&[ALL, overflows], "ops.write-all", text, &clean()).told;
    assert_eq!(told, ["rule `over`"]);
    let asking = overflows.replace("when {", "when { context.approval < 2 &&");
    check(
        &[ALL, &asking],
        "ops.write-all",
        text,
        (Level::Deny, &["over"]),
    );
}

#[test]
fn unmodelled_argument_is_named_and_required_one_denies() {
    let unseen =
        "unseen: forbid(principal, action, resource) when { !context.unmodelled.isEmpty() };";
    check(
        &[ALL, unseen],
        "ops.read",
        ARGS_OPS,
        (Level::Allow, &["all"]),
    );
    for text in [
        r#"{"project":"x","share":1.5}"#,
        r#"{"project":"x","count":1e20}"#,
        r#"{"project":"x","other":1}"#,
    ] {
        check(&[ALL, unseen], "ops.read", text, (Level::Deny, &["unseen"]));
    }
    check(
        &[OPS],
        "ops.read",
        r#"{"project":7}"#,
        (Level::Deny, &["ops"]),
    );
    // The number is above 2⁵³ and still exact.
    let many = "many: forbid(principal, action, resource) \
                when { context.args has count && context.args.count > 9007199254740992 };";
    let text = r#"{"project":"x","count":9007199254740994}"#;
    check(
        &[ALL, unseen, many],
        "ops.read",
        text,
        (Level::Deny, &["many"]),
    );
}

/// For Cedar, the call has no such argument and `has` would be false, although the server gets a
/// value.
#[test]
fn rule_that_reads_unmodelled_argument_denies() {
    let over = "over: forbid(principal, action, resource) \
                when { context.args has count && context.args.count > 100 };";
    let without = "without: permit(principal, action, resource) \
                   unless { context.args has count };";
    let asking = "asking: forbid(principal, action, resource) \
                  when { context.args has count && context.args.count > 100 } \
                  unless { context.approval >= 1 };";
    for (number, is_seen) in [
        ("100", true),
        ("9223372036854656000", true),
        ("1e19", false),
        ("1e300", false),
        ("-1e300", false),
    ] {
        let text = format!(r#"{{"project":"x","count":{number}}}"#);
        let judged = |rules: &[&str]| judge(rules, "ops.read", &text, &clean());
        if is_seen {
            assert!(
                !judged(&[over])
                    .reasons
                    .concat()
                    .contains("argument-unmodelled")
            );
            continue;
        }
        for (rules, deciding) in [
            (&[ALL, over][..], "over"),
            (&[ALL, asking], "asking"),
            (&[ALL, without], "without"),
        ] {
            check(rules, "ops.read", &text, (Level::Deny, &[deciding]));
            let reasons = judged(rules).reasons.concat();
            assert!(reasons.contains("argument-unmodelled"), "{reasons}");
            assert!(reasons.contains("`/count`"), "{reasons}");
            let told = judged(rules).told.concat();
            assert!(told.contains("argument-unmodelled"), "{told}");
        }
        // A rule that does not read the argument is evaluated as usual.
        check(&[ALL], "ops.read", &text, (Level::Allow, &["all"]));
    }
}

/// Cedar also ends a comment at a carriage return.
#[test]
fn carriage_return_ends_comment() {
    let [all, no] =
        [ALL, "no: forbid(principal, action, resource);"].map(|it| files(&[it]).remove(0).text);
    for comment in ["// none\r", "// none\r\n", "// none\n\r", "//\r"] {
        let text = format!("{all}\n{comment}{no}");
        let policies = Policies::load(&[file(&text)], vocabulary(), true).unwrap();
        let read = ToolId::parse("ops.read").unwrap();
        let judged = policies.judge(&read, &args(ARGS_OPS), &clean());
        assert_eq!(
            (judged.level, policies.rules().len()),
            (Level::Deny, 2),
            "{comment:?}"
        );
    }
}

#[test]
fn absent_fact_is_absent_in_context() {
    let inside = "inside: permit(principal, action, resource) \
                  when { context has path_roots && [\"work\"].containsAll(context.path_roots) };";
    let with = |roots: &[&str]| Facts {
        path_roots: Some(roots.iter().map(|it| (*it).to_owned()).collect()),
        ..clean()
    };
    for (facts, level) in [
        (clean(), Level::Deny),
        (with(&["work"]), Level::Allow),
        (with(&["work", "outside"]), Level::Deny),
    ] {
        assert_eq!(judge(&[inside], "ops.read", ARGS_OPS, &facts).level, level);
    }
}

#[test]
fn tightening_file_never_permits() {
    let tight = |text: &str| PolicyFile {
        tightens: true,
        ..files(&[text]).remove(0)
    };
    let ops = ToolId::parse("ops.write-all").unwrap();
    let alone = Policies::load(&[tight(PAGING)], vocabulary(), false).unwrap();
    assert_eq!(
        alone.judge(&ops, &args(ARGS_OPS), &clean()).level,
        Level::Deny
    );
    let other = ToolId::parse("ops.read").unwrap();
    assert_eq!(
        alone.judge(&other, &args(ARGS_OPS), &clean()).level,
        Level::Allow
    );
    let found = Policies::load(&[tight(ALL)], vocabulary(), false)
        .unwrap_err()
        .findings()
        .to_vec();
    assert!(found[0].what.contains("may only forbid"), "{}", found[0]);
}

fn findings(text: &str) -> Vec<String> {
    match Policies::load(&[file(text)], vocabulary(), true) {
        Ok(_) => Vec::new(),
        Err(invalid) => invalid.findings().iter().map(ToString::to_string).collect(),
    }
}

fn check_found(rule: &str, expected: &str) {
    let notes = "@id(\"x\")\n@owner(\"o\")\n@reason(\"r\")\n";
    let found = findings(&format!("{notes}{rule}"));
    assert_eq!(found, [expected], "{rule}");
}

#[test]
fn misspelling_is_an_error_with_place_and_suggestion() {
    for (rule, expected) in [
        (
            "permit(principal, action == Action::\"ops.raed\", resource);",
            "p.cedar:4:37: there is no tool or group `ops.raed`; did you mean `ops.read`?",
        ),
        (
            "permit(principal, action in [Action::\"ops.read\", Action::\"group:pagign\"], resource);",
            "p.cedar:4:58: there is no tool or group `group:pagign`; did you mean `group:paging`?",
        ),
        (
            "permit(principal, action == Action::\"opps.read\", resource);",
            "p.cedar:4:37: there is no server `opps`; did you mean `ops`?",
        ),
        (
            "permit(principal, action == Action::\"server:ops\", resource);",
            "p.cedar:4:37: `server:ops` is a group, not a tool; \
             write `action in Action::\"server:ops\"`",
        ),
        (
            "permit(principal, action, resource) when { context.args.projekt == \"x\" };",
            "p.cedar:4:57: there is no argument `projekt`; did you mean `project`?",
        ),
        (
            "permit(principal, action, resource) when { context.args has cuont };",
            "p.cedar:4:61: there is no argument `cuont`; did you mean `count`?",
        ),
        (
            "permit(principal, action, resource) when { context.disclozed };",
            "p.cedar:4:52: there is no fact `disclozed`; did you mean `disclosed`?",
        ),
        (
            "permit(principal, action, resource) when { context.counts.calls_rum < 3 };",
            "p.cedar:4:59: there is no fact `calls_rum`; did you mean `calls_run`?",
        ),
        (
            "forbid(principal, action, resource) when { context.labels.contains(\"untrustd\") };",
            "p.cedar:4:68: `untrustd` is not a label: labels are untrusted, private and \
             private:CLASS; did you mean `untrusted`?",
        ),
    ] {
        check_found(rule, expected);
    }
}

#[test]
fn optional_members_need_has_check_and_types_must_match() {
    let count = "permit(principal, action, resource) when { context.args.count < 3 };";
    let host = "permit(principal, action, resource) when { context.dest_hosts.contains(\"x\") };";
    let kind = "permit(principal, action, resource) when { context.args.project < 3 };";
    for (rule, part) in [
        (count, "has count"),
        (host, "has dest_hosts"),
        (kind, "unexpected type"),
    ] {
        let found = findings(&format!("@id(\"x\") @owner(\"o\") @reason(\"r\")\n{rule}"));
        assert!(found.len() == 1 && found[0].contains(part), "{found:?}");
        assert!(found[0].starts_with("p.cedar:2:"), "{found:?}");
    }
}

#[test]
fn each_rule_needs_id_owner_and_reason() {
    let rule = "permit(principal, action, resource);";
    for (text, expected) in [
        (
            format!("@owner(\"o\") @reason(\"r\") {rule}"),
            "the rule has no @id",
        ),
        (
            format!("@id(\"x\") @reason(\"r\") {rule}"),
            "the rule has no @owner",
        ),
        (
            format!("@id(\"x\") @owner(\"o\") {rule}"),
            "the rule has no @reason",
        ),
        (
            format!("@id(\"x\") @owner(\"o\") @reason(\"r\") @reson(\"r\") {rule}"),
            "unknown annotation `@reson`: the annotations are @id, @owner, @reason and @prompt; \
             did you mean `@reason`?",
        ),
        (
            format!("@id(\"a b\") @owner(\"o\") @reason(\"r\") {rule}"),
            "invalid @id: an id has up to 80 letters, digits, `-`, `_` and `.`",
        ),
        (
            format!("@id(\"x\") @owner(\"o\") @reason(\"r\") @prompt(\"p\") {rule}"),
            "the @prompt of the rule `x` is never shown",
        ),
        (
            "@id(\"x\") @owner(\"o\") @reason(\"r\") permit(principal, action, resource) \
             when { context.approval >= 1 };"
                .to_owned(),
            "the rule `x` asks a person and has no @prompt",
        ),
        (
            format!(
                "@id(\"x\") @owner(\"o\") @reason(\"r\") {rule} @id(\"x\") @owner(\"o\") @reason(\"r\") {rule}"
            ),
            "the rule id `x` is already used",
        ),
        ("permit(principal action);".to_owned(), "not valid Cedar"),
        (
            "permit(principal, action, resource)".to_owned(),
            "not valid Cedar",
        ),
    ] {
        let found = findings(&text);
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn rule_for_absent_server_waits() {
    let github = "gh: forbid(principal, action in [Action::\"github.merge\", \
                  Action::\"server:github\"], resource) when { context.args.base == \"main\" };";
    let both = "both: permit(principal, action in [Action::\"github.merge\", Action::\"ops.read\"], \
                resource);";
    let policies = load(&[github, both, ALL]);
    let idle: Vec<&str> = policies.idle().map(|rule| &*rule.id).collect();
    assert_eq!(idle, ["gh"]);
    check(
        &[github, both],
        "ops.read",
        ARGS_OPS,
        (Level::Allow, &["both"]),
    );
}

#[test]
fn digest_changes_with_any_rule_text() {
    let digest = |rules: &[&str]| load(rules).digest();
    assert_eq!(digest(&[ALL]), digest(&[ALL]));
    assert_ne!(digest(&[ALL]), digest(&[READS]));
    assert_ne!(digest(&[ALL]), digest(&[]));
}

#[test]
fn load_refuses_more_rules_and_more_text_than_the_maximum() {
    let file = |text: String| PolicyFile {
        name: "a.cedar".into(),
        text,
        tightens: false,
    };
    let rules = |count: usize| -> String {
        let rule = "\") @owner(\"o\") @reason(\"r\") permit(principal, action, resource);";
        (0..count).map(|n| format!("@id(\"r{n}{rule}")).collect()
    };
    let refused = |files: &[PolicyFile]| match Policies::load(files, vocabulary(), true) {
        Ok(_) => String::new(),
        Err(invalid) => {
            let first = &invalid.findings()[0];
            format!("{} {}", first.kind.as_str(), first.what)
        }
    };
    assert_eq!(refused(&[file(rules(RULES_MAX))]), "");
    let many = [file(rules(RULES_MAX + 1))];
    assert_eq!(refused(&many), "too-many more than 2000 rules");
    let half = "//\n".repeat(TEXT_BYTES_MAX / 6);
    assert_eq!(refused(&[file(half.clone()), file(half.clone())]), "");
    let long = [file(half.clone()), file(half), file("// a".into())];
    assert_eq!(refused(&long), "too-many more than 512 KiB of rules");
}
