//! What three documents want of a server like this one: progressive disclosure 2.1
//! (`pd-`, §3 to §10), groups and tags (`gt-`, SEP-1300), and the practices for clients
//! (`bp-`), each statement in our words. The tests beside this file say which of them
//! they show; each of them runs in both eras, over both transports.
//!
//! A statement that neither has a test nor stands among those that are left out fails one.

mod disclosure;
mod filtering;
mod meaning;
mod practices;
mod servers;
mod sources;

use std::collections::BTreeSet;
use std::path::Path;

/// Names the statements that a test shows, and makes four tests of it.
macro_rules! shown {
    ($($test:ident: [$($id:literal),+ $(,)?];)+) => {
        pub(super) const SHOWN: &[(&str, &str)] = &[$($(($id, stringify!($test))),+),+];
        $(
            mod $test {
                use super::super::super::{WAYS, Way};

                async fn check(way: Way) {
                    super::$test(way).await;
                }

                #[tokio::test]
                async fn older_era_over_streams() {
                    check(WAYS[0]).await;
                }

                #[tokio::test]
                async fn newer_era_over_streams() {
                    check(WAYS[1]).await;
                }

                #[tokio::test]
                async fn older_era_over_http() {
                    check(WAYS[2]).await;
                }

                #[tokio::test]
                async fn newer_era_over_http() {
                    check(WAYS[3]).await;
                }
            }
        )+
    };
}
use shown;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Must,
    Should,
    May,
}
use Strength::{May, Must, Should};

/// The statements, in the order of their documents.
const STATEMENTS: &[(&str, Strength, &str)] = &[
    ("pd-3.1-1", Must, "the usual list has short descriptions"),
    (
        "pd-3.1-2",
        Must,
        "a short description is enough to choose by",
    ),
    ("pd-3.1-3", Should, "it says what the tool is for"),
    ("pd-3.1-4", Must, "no parameters, examples or usage in it"),
    ("pd-3.1-5", May, "the input schema in it is open"),
    (
        "pd-3.2-1",
        Must,
        "full descriptions come from a listed resource",
    ),
    ("pd-3.2-2", Must, "they hold the whole input schema"),
    ("pd-3.2-3", Should, "they hold examples"),
    ("pd-3.2-4", Should, "they say what to do about errors"),
    ("pd-3.2-5", Must, "the query chooses the tools"),
    ("pd-4.1-1", Must, "the resource has its URI"),
    ("pd-4.1-2", Must, "its name says what it holds"),
    ("pd-4.1-3", Must, "its description explains the workflow"),
    ("pd-4.1-4", Should, "it is JSON"),
    ("pd-4.2-1", Must, "told: how it relates to the list"),
    ("pd-4.2-2", Must, "told: read before calling"),
    ("pd-4.2-3", Must, "told: the syntax of the query"),
    (
        "pd-4.2-4",
        Must,
        "told: what becomes of a call without reading",
    ),
    ("pd-4.2-5", Should, "told in steps"),
    (
        "pd-4.2-6",
        Should,
        "told: choosing is one thing, learning another",
    ),
    ("pd-4.2-7", Should, "told with a whole URI"),
    (
        "pd-4.2-8",
        Should,
        "told: reading authorizes for the session",
    ),
    ("pd-4.3-1", Must, "one tool or several can be asked for"),
    ("pd-4.3-2", Must, "several are separated by commas"),
    ("pd-4.3-3", Must, "the names of the list are the names here"),
    ("pd-4.3-4", Must, "no names, no descriptions"),
    ("pd-4.4-1", Must, "an object from name to description"),
    ("pd-4.4-2", Must, "only what was asked for"),
    ("pd-4.4-3", Must, "nothing before or after it"),
    ("pd-4.4-4", Should, "made when it is read"),
    ("pd-5.1-1", Must, "reading a description opens its tool"),
    (
        "pd-5.1-2",
        Must,
        "a tool that was not opened fails with its code",
    ),
    ("pd-5.1-3", Must, "open for as long as the session lasts"),
    (
        "pd-5.1-4",
        Must,
        "what one session opened is closed in another",
    ),
    ("pd-5.2-1", Must, "sessions are those of the protocol"),
    ("pd-5.2-2", Must, "the state is that of one session"),
    ("pd-5.2-3", Must, "it ends with the session"),
    ("pd-5.2-4", May, "stale sessions are cleaned up"),
    ("pd-5.3-1", Must, "all other doors are where they were"),
    ("pd-5.3-2", Must, "a call passes all of them or is not made"),
    ("pd-5.3-3", Must, "rules say what is listed at all"),
    ("pd-5.3-4", Must, "a call is looked at when it is made, too"),
    ("pd-6.1-1", Must, "MISSING_TOOL_SELECTION in its shape"),
    ("pd-6.2-1", Must, "TOOL_DESCRIPTION_REQUIRED in its shape"),
    ("pd-6.3-1", Should, "an unknown tool is an entry of its own"),
    ("pd-7.1-1", Should, "one file for each tool"),
    ("pd-7.1-2", Should, "they are put together when asked for"),
    ("pd-7.2-1", May, "what was parsed is kept"),
    ("pd-7.2-2", Should, "a file that changes is read anew"),
    ("pd-7.2-3", May, "descriptions have a version"),
    ("pd-7.2-4", May, "a host may keep what it has read"),
    ("pd-8.2-1", Should, "the prompt explains both stages"),
    (
        "pd-8.2-2",
        Should,
        "the prompt: short ones are enough to choose by",
    ),
    ("pd-8.2-3", Should, "the prompt: never without naming tools"),
    ("pd-8.2-4", Should, "the prompt has the syntax"),
    (
        "pd-8.2-5",
        Should,
        "the prompt is there for whoever wants it",
    ),
    ("pd-9-1", Must, "short descriptions in the list"),
    ("pd-9-2", Must, "the resource is listed"),
    ("pd-9-3", Must, "it takes the parameter"),
    ("pd-9-4", Must, "it gives full descriptions"),
    ("pd-9-5", Must, "without the parameter its error"),
    ("pd-9-6", Must, "a session decides what is open"),
    ("pd-9-7", Must, "a call without reading has its error"),
    ("pd-9-8", Must, "sessions are isolated"),
    ("pd-10.1-1", Must, "rules hold whatever was read"),
    ("pd-10.1-2", Must, "reading allows nothing by itself"),
    ("pd-10.1-3", Must, "reading goes around no other door"),
    (
        "pd-10.2-1",
        Should,
        "the resource shows no more than may be used",
    ),
    ("pd-10.2-2", Should, "nor does the list"),
    ("pd-10.2-3", Should, "texts are cleaned"),
    ("pd-10.3-1", Should, "reading is limited in its rate"),
    ("pd-10.3-2", Should, "sessions do not last for ever"),
    ("pd-10.3-3", Should, "what was parsed stays in memory"),
    ("pd-10.3-4", Should, "fetches can be watched from outside"),
    (
        "gt-declared",
        Must,
        "filtering is declared, with whether its lists change",
    ),
    ("gt-groups", Must, "groups have name, title and description"),
    ("gt-many", May, "a tool may be in several groups"),
    (
        "gt-once",
        Should,
        "a tool in two chosen groups is listed once",
    ),
    ("gt-tags", Must, "tags have name and description"),
    (
        "gt-list-changed",
        May,
        "hosts are told when groups or tags change",
    ),
    ("gt-across", May, "a tag goes across groups"),
    ("gt-any", Must, "any of the groups"),
    ("gt-all", Must, "all of the tags"),
    ("gt-both", Must, "both: tags within the groups"),
    ("gt-absent", Must, "no filter changes nothing"),
    ("gt-empty", Must, "nor does one that names nothing"),
    ("gt-cursor", May, "a filter and a cursor in one request"),
    ("gt-carried", Must, "tools in the list carry both"),
    ("bp-threshold", Should, "few tools at once, many as needed"),
    (
        "bp-defer",
        Should,
        "many tools are kept from the model until it asks",
    ),
    (
        "bp-search",
        Should,
        "words find tools, with short descriptions",
    ),
    ("bp-keywords", May, "patterns find tools too"),
    (
        "bp-embeddings",
        May,
        "with a model, tools are found by what their texts mean",
    ),
    (
        "bp-hybrid",
        May,
        "words and meaning are joined into one order",
    ),
    ("bp-layers", Should, "search, then details, then the call"),
    (
        "bp-registry",
        Should,
        "all servers are known by what they are good for",
    ),
    (
        "bp-connect",
        Should,
        "a server is connected to when it is needed",
    ),
    (
        "bp-disconnect",
        Should,
        "a server that is not needed is left",
    ),
    ("bp-boundary", Should, "leaving a server changes no list"),
    (
        "bp-cached",
        Should,
        "a definition is fetched once and told often",
    ),
    (
        "bp-refresh",
        Should,
        "a list that changes is read and indexed anew",
    ),
    ("bp-levels", Should, "several levels of detail"),
    ("bp-by-server", Should, "tools stand with their server"),
    (
        "bp-stable",
        Should,
        "one tool calls all, and the list never changes",
    ),
    ("bp-append", Should, "what is disclosed changes no list"),
    ("bp-typed", Should, "schemas become typed functions"),
    (
        "bp-output-type",
        Should,
        "output schemas become result types",
    ),
    (
        "bp-any",
        Should,
        "without an output schema the result is any",
    ),
    ("bp-extract", May, "a fast model reads a value for a script"),
    (
        "bp-extract-checked",
        Must,
        "what it read is used only when it fits the schema",
    ),
    ("bp-final", Must, "only the result and the console return"),
    (
        "bp-each-call",
        Must,
        "running a script approves none of its calls",
    ),
    (
        "bp-grant",
        May,
        "a yes to calls like it is checked for each",
    ),
    (
        "bp-cross-flow",
        Must,
        "what one server said is not trusted for another",
    ),
    ("bp-no-network", Must, "a script has no network"),
    (
        "bp-brokered",
        Must,
        "its calls reach their server through the broker",
    ),
    ("bp-credentials", Must, "a script sees no credentials"),
    ("bp-limits", Must, "a script ends in time"),
    ("bp-memory", Must, "a script has bounded memory"),
    ("bp-output", Must, "long output is cut"),
    (
        "bp-clean-output",
        Must,
        "the console hides nothing from a reader",
    ),
    ("bp-throws", Should, "a failed call is an exception"),
    (
        "bp-uncaught",
        Should,
        "an uncaught one is the result, with what happened before",
    ),
];

/// Statements whose test stands in another crate or room: file and function.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "bp-credentials",
        "tests/tests/cli/secrets.rs",
        "a_token_is_not_in_the_world_of_the_script",
    ),
    (
        "pd-10.3-4",
        "tests/tests/telemetry.rs",
        "how_often_descriptions_are_fetched_is_told",
    ),
    (
        "bp-cross-flow",
        "broker/core/src/flow/watch/tests.rs",
        "a_run_carries_the_join_of_all_that_reached_it_errors_too",
    ),
];

/// What the documents say and nothing here does, with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "bp-subagent",
        "a second model that chooses tools is the host's own; search gives it the same lines",
    ),
    (
        "bp-provider-caching",
        "what a provider caches, and for how long, only the host can look up",
    ),
];

fn shown_ids() -> Vec<&'static str> {
    let here = [
        disclosure::SHOWN,
        filtering::SHOWN,
        meaning::SHOWN,
        practices::SHOWN,
        servers::SHOWN,
    ];
    let here = here.into_iter().flatten().map(|(id, _)| *id);
    here.chain(ELSEWHERE.iter().map(|(id, ..)| *id)).collect()
}

#[test]
fn every_statement_is_shown_by_a_test_and_every_test_shows_one() {
    let stated: BTreeSet<_> = STATEMENTS.iter().map(|(id, ..)| *id).collect();
    assert_eq!(stated.len(), STATEMENTS.len(), "an id stands there twice");
    let shown: BTreeSet<_> = shown_ids().into_iter().collect();
    let without_test: Vec<_> = stated.difference(&shown).collect();
    let without_statement: Vec<_> = shown.difference(&stated).collect();
    assert!(without_test.is_empty(), "{without_test:?}");
    assert!(without_statement.is_empty(), "{without_statement:?}");
    let shown_and_left_out = LEFT_OUT.iter().find(|(id, _)| shown.contains(id));
    assert_eq!(shown_and_left_out, None);
}

#[test]
fn tests_that_stand_elsewhere_are_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (id, file, function) in ELSEWHERE {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        assert!(is_run(&text, function), "{id}: {function} of {file}");
    }
}

/// Whether a file has a test of this name, which no attribute keeps from being run.
fn is_run(text: &str, function: &str) -> bool {
    let heads = [format!("fn {function}("), format!("async fn {function}(")];
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines
        .iter()
        .position(|line| heads.iter().any(|head| line.starts_with(head.as_str())))
    else {
        return false;
    };
    let before = lines[..at].iter().rev();
    let attributes: Vec<&str> = before
        .copied()
        .take_while(|line| line.starts_with("#[") || line.starts_with("///"))
        .filter(|line| line.starts_with("#["))
        .collect();
    let is_test = |line: &&str| *line == "#[test]" || line.starts_with("#[tokio::test");
    let (tests, others): (Vec<&str>, Vec<&str>) = attributes.into_iter().partition(is_test);
    tests.len() == 1
        && !others
            .iter()
            .any(|line| line.contains("ignore") || line.contains("cfg"))
}

#[test]
fn what_is_no_test_or_is_left_out_shows_nothing() {
    for (text, expected) in [
        ("#[test]\nfn it() {}", true),
        (
            "#[tokio::test(flavor = \"multi_thread\")]\n/// Words.\nasync fn it() {}",
            true,
        ),
        ("fn it() {}", false),
        ("#[test]\n\nfn it() {}", false),
        ("#[test]\n#[ignore]\nfn it() {}", false),
        ("#[test]\n#[ignore = \"slow\"]\nfn it() {}", false),
        ("#[test]\n#[cfg(windows)]\nfn it() {}", false),
        ("#[test]\n#[cfg_attr(unix, ignore)]\nfn it() {}", false),
        ("// #[test]\n// fn it() {}", false),
        ("#[test]\nfn it_too() {}", false),
        ("/// fn it() {}", false),
    ] {
        assert_eq!(is_run(text, "it"), expected, "{text}");
    }
}
