//! Properties of all rules: adding a forbid or a label never allows more calls, and rules for other
//! tools change nothing.

use proptest::prelude::*;

use super::*;
use crate::labels::Label;

const RULES: &[&str] = &[ALL, READS, PAGING, OPS, ONE, ASK_RUN, ASK_EACH];
const MORE: &[&str] = &[
    "clean: permit(principal, action, resource) when { !context.labels.contains(\"private\") };",
    "none: permit(principal, action, resource) when { context.labels.isEmpty() };",
    "two: forbid(principal, action, resource) when { context.writes.external && \
     context.labels.containsAll([\"untrusted\", \"private\"]) } unless { context.approval >= 2 };",
    "mail: forbid(principal, action in Action::\"server:mail\", resource) \
     when { context.labels.contains(\"private:mail\") && context.approval < 1 };",
];

pub(super) fn labels() -> impl Strategy<Value = Labels> {
    let word = prop::sample::select(vec!["untrusted", "private", "private:mail", "private:code"]);
    prop::collection::vec(word, 0..4).prop_map(|words| {
        words
            .into_iter()
            .map(|it| Label::parse(it).unwrap())
            .collect()
    })
}

fn rules() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence([RULES, MORE].concat(), 0..=RULES.len() + MORE.len())
}

fn call() -> impl Strategy<Value = (&'static str, String)> {
    let tool = prop::sample::select(vec!["ops.read", "ops.write-all", "mail.send"]);
    let project = prop::sample::select(vec!["OPS", "DEV"]);
    let count = prop::sample::select(vec!["0", "2", "3", "4", "5", "1e19", "null"]);
    (tool, project, count).prop_map(|(tool, project, count)| {
        (
            tool,
            format!(r#"{{"project":"{project}","count":{count}}}"#),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn additional_forbid_never_widens(rules in rules(), (tool, text) in call(), labels in labels()) {
        let facts = Facts { labels, ..Facts::default() };
        let before = judge(&rules, tool, &text, &facts).level;
        for forbid in [PAGING, ASK_EACH, MORE[2], MORE[3]] {
            if !rules.contains(&forbid) {
                let after = judge(&[rules.as_slice(), &[forbid]].concat(), tool, &text, &facts).level;
                prop_assert!(after >= before, "{forbid}: {before:?} became {after:?}");
            }
        }
    }

    #[test]
    fn additional_label_never_widens(
        rules in rules(), (tool, text) in call(), labels in labels(), more in labels(),
    ) {
        let facts = |labels| Facts { labels, ..Facts::default() };
        let before = judge(&rules, tool, &text, &facts(labels.clone())).level;
        let after = judge(&rules, tool, &text, &facts(labels.joined(&more))).level;
        prop_assert!(after >= before, "{before:?} became {after:?}");
    }

    #[test]
    fn rules_for_other_tools_have_no_effect(rules in rules(), text in call().prop_map(|it| it.1)) {
        let others: Vec<&str> = [ONE, ASK_EACH].into_iter().filter(|it| !rules.contains(it)).collect();
        let before = judge(&rules, "ops.read", &text, &Facts::default());
        let after = judge(&[rules, others].concat(), "ops.read", &text, &Facts::default());
        prop_assert_eq!(before, after);
    }

    #[test]
    fn arbitrary_text_never_panics_reader(text in "[a-z@(){}\";:=.&| \\n/\\\\-]{0,80}") {
        let _ = findings(&text);
    }
}
