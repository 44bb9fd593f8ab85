//! Properties of the shipped rules for any call and any facts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::facts::{Counts, Time};
use crate::labels::Writes;

static SHIPPED: LazyLock<Vec<PolicyFile>> = LazyLock::new(shipped);
static WHOLE: LazyLock<Policies> = LazyLock::new(|| with(&[]));

#[expect(
    clippy::disallowed_methods,
    reason = "reads the folder, so that the tests cover new files too"
)]
fn shipped() -> Vec<PolicyFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies");
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let cedar = paths.filter(|path| path.extension().is_some_and(|it| it == "cedar"));
    let read = |path: std::path::PathBuf| PolicyFile {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        text: std::fs::read_to_string(&path).unwrap(),
        tightens: false,
    };
    let files: Vec<_> = cedar.map(read).collect();
    assert!(files.len() >= 2, "{files:?}");
    files
}

/// Returns the shipped rules together with others.
fn with(others: &[&str]) -> Policies {
    let all: Vec<_> = SHIPPED.iter().cloned().chain(files(others)).collect();
    Policies::load(&all, vocabulary(), true).unwrap()
}

fn decide(policies: &Policies, call: &Call, facts: &Facts) -> Level {
    let tool = ToolId::parse(call.0).unwrap();
    policies.judge(&tool, &args(call.1), facts).level
}

type Call = (&'static str, &'static str);

fn call() -> impl Strategy<Value = Call> {
    let tools = vec!["ops.read", "ops.write-all", "mail.send"];
    let texts = vec![
        ARGS_OPS,
        r#"{"project":"DEV","count":3,"to":["a@b.example"]}"#,
        r#"{"project":"DEV","share":0.5,"count":1}"#,
    ];
    (prop::sample::select(tools), prop::sample::select(texts))
}

fn words(all: &'static [&'static str]) -> impl Strategy<Value = BTreeSet<String>> {
    let some = prop::sample::subsequence(all, 0..=all.len());
    some.prop_map(|words| words.into_iter().map(str::to_owned).collect())
}

/// Generates random facts of a call, any of which may be unknown.
fn facts() -> impl Strategy<Value = Facts> {
    let truths = any::<[bool; 5]>();
    let explained = (any::<Option<bool>>(), any::<Option<bool>>());
    let paths = prop::option::of(words(&["project", "outside"]));
    let hosts = prop::option::of(words(&["docs.rs", "evil.example"]));
    let fields = (words(&["/to", "/url"]), words(&["/to"]));
    let counts = any::<[u8; 2]>();
    (
        super::property::labels(),
        truths,
        explained,
        paths,
        hosts,
        fields,
        counts,
    )
        .prop_map(
            |(labels, truths, (dest_explained, pinned), path_roots, dest_hosts, fields, counts)| {
                let [script_trusted, external, state, disclosed, _] = truths;
                Facts {
                    labels,
                    script_trusted,
                    writes: Writes { external, state },
                    path_roots,
                    dest_hosts,
                    dest_explained,
                    dest_unexplained: fields.0,
                    lookalikes: fields.1,
                    counts: Counts {
                        calls_run: counts[0].into(),
                        bytes_run: counts[1].into(),
                        ..Counts::default()
                    },
                    time: Time::at(u64::from(counts[0]) * 3_600_000),
                    disclosed,
                    pinned,
                    ..Facts::default()
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn additional_forbid_never_widens_shipped_rules(
        rule in super::prefilter::rule(Just(true)), call in call(), facts in facts(),
    ) {
        let (before, after) = (decide(&WHOLE, &call, &facts), decide(&with(&[&format!("more: {rule}")]), &call, &facts));
        prop_assert!(after >= before, "{rule}: {before:?} became {after:?}");
    }

    #[test]
    fn error_denies_under_shipped_rules(call in call(), facts in facts(), forbids in any::<bool>()) {
        let effect = if forbids { "forbid" } else { "permit" };
        let fails = format!(
            "fails: {effect}(principal, action, resource) \
             when {{ context.time.hour * 0 + 9223372036854775807 + 1 > 0 }};"
        );
        let tool = ToolId::parse(call.0).unwrap();
        let judged = with(&[&fails]).judge(&tool, &args(call.1), &facts);
        prop_assert_eq!(judged.level, Level::Deny);
        prop_assert!(judged.rules.contains("fails"), "{:?}", judged.reasons);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn additional_label_never_widens_shipped_rules(
        call in call(), facts in facts(), more in super::property::labels(),
    ) {
        let tainted = Facts { labels: facts.labels.clone().joined(&more), ..facts.clone() };
        let (before, after) = (decide(&WHOLE, &call, &facts), decide(&WHOLE, &call, &tainted));
        prop_assert!(after >= before, "{before:?} became {after:?}");
    }

    #[test]
    fn empty_folder_allows_nothing(call in call(), facts in facts()) {
        let empty = Policies::load(&[], vocabulary(), true).unwrap();
        prop_assert_eq!(decide(&empty, &call, &facts), Level::Deny);
    }
}
