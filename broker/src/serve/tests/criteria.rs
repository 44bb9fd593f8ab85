//! The requirements of three documents on a server like airlock: progressive disclosure 2.1 (`pd-`,
//! §3 to §10), groups and tags (`gt-`, SEP-1300), and the practices for clients (`bp-`). Each
//! statement is in our words. The tests beside this file name the statements that they cover. Each
//! test runs in both eras and over both transports, with a host that sends no session handle back.
//!
//! One test checks that each statement has a test.

mod disclosure;
mod filtering;
mod meaning;
mod practices;
mod servers;
mod sources;

use std::collections::BTreeSet;
use std::path::Path;

/// Declares a test and the statements that it covers. Generates one test for each era and
/// transport.
macro_rules! shown {
    ($($test:ident: [$($id:literal),+ $(,)?];)+) => {
        pub(super) const SHOWN: &[(&str, &str)] = &[$($(($id, stringify!($test))),+),+];
        $(
            mod $test {
                use super::super::super::{HostKind, WAYS};

                async fn check(way: HostKind) {
                    super::$test(way.without_echo()).await;
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
        "a short description is enough to choose a tool",
    ),
    (
        "pd-3.1-3",
        Should,
        "a short description names the tool's purpose",
    ),
    (
        "pd-3.1-4",
        Must,
        "a short description has no parameters, examples or usage",
    ),
    ("pd-3.1-5", May, "the input schema in the list is open"),
    (
        "pd-3.2-1",
        Must,
        "full descriptions come from a listed resource",
    ),
    (
        "pd-3.2-2",
        Must,
        "full descriptions contain the whole input schema",
    ),
    ("pd-3.2-3", Should, "full descriptions contain examples"),
    (
        "pd-3.2-4",
        Should,
        "full descriptions contain advice about errors",
    ),
    ("pd-3.2-5", Must, "the query chooses the tools"),
    ("pd-4.1-1", Must, "the resource has the required URI"),
    (
        "pd-4.1-2",
        Must,
        "the resource's name describes its content",
    ),
    (
        "pd-4.1-3",
        Must,
        "the resource's description explains the workflow",
    ),
    ("pd-4.1-4", Should, "the resource is JSON"),
    (
        "pd-4.2-1",
        Must,
        "the workflow explains the relation to the list",
    ),
    (
        "pd-4.2-2",
        Must,
        "the workflow requires reading before calling",
    ),
    (
        "pd-4.2-3",
        Must,
        "the workflow contains the syntax of the query",
    ),
    (
        "pd-4.2-4",
        Must,
        "the workflow names the error of a call without reading",
    ),
    ("pd-4.2-5", Should, "the workflow consists of steps"),
    (
        "pd-4.2-6",
        Should,
        "the workflow separates choosing from reading",
    ),
    ("pd-4.2-7", Should, "the workflow contains a complete URI"),
    (
        "pd-4.2-8",
        Should,
        "the workflow explains that reading authorizes for the session",
    ),
    ("pd-4.3-1", Must, "the query names one tool or several"),
    ("pd-4.3-2", Must, "several names are separated by commas"),
    ("pd-4.3-3", Must, "the query takes the names of the list"),
    ("pd-4.3-4", Must, "without names there are no descriptions"),
    (
        "pd-4.4-1",
        Must,
        "the answer is an object from name to description",
    ),
    (
        "pd-4.4-2",
        Must,
        "the answer contains only the requested tools",
    ),
    (
        "pd-4.4-3",
        Must,
        "the answer has no text before or after the object",
    ),
    ("pd-4.4-4", Should, "the answer is created for each read"),
    (
        "pd-5.1-1",
        Must,
        "reading a description makes its tool callable",
    ),
    (
        "pd-5.1-2",
        Must,
        "a call of an undisclosed tool fails with the required code",
    ),
    (
        "pd-5.1-3",
        Must,
        "a disclosed tool stays callable during the session",
    ),
    (
        "pd-5.1-4",
        Must,
        "a disclosure in one session has no effect in another",
    ),
    ("pd-5.2-1", Must, "a session is a session of the protocol"),
    (
        "pd-5.2-2",
        Must,
        "the disclosure state belongs to one session",
    ),
    (
        "pd-5.2-3",
        Must,
        "the disclosure state ends with the session",
    ),
    ("pd-5.2-4", May, "stale sessions are cleaned up"),
    ("pd-5.3-1", Must, "all other access checks stay in place"),
    ("pd-5.3-2", Must, "a call passes all checks or is not made"),
    ("pd-5.3-3", Must, "rules decide which tools are listed"),
    (
        "pd-5.3-4",
        Must,
        "each call is also checked when it is made",
    ),
    (
        "pd-6.1-1",
        Must,
        "MISSING_TOOL_SELECTION has the required shape",
    ),
    (
        "pd-6.2-1",
        Must,
        "TOOL_DESCRIPTION_REQUIRED has the required shape",
    ),
    (
        "pd-6.3-1",
        Should,
        "an unknown tool has its own entry in the answer",
    ),
    ("pd-7.1-1", Should, "each tool has its own file"),
    ("pd-7.1-2", Should, "the files are combined on request"),
    ("pd-7.2-1", May, "parsed descriptions are cached"),
    ("pd-7.2-2", Should, "a changed file is read again"),
    ("pd-7.2-3", May, "descriptions have a version"),
    ("pd-7.2-4", May, "a host may cache descriptions"),
    ("pd-8.2-1", Should, "the prompt explains both stages"),
    (
        "pd-8.2-2",
        Should,
        "the prompt: short descriptions are enough to choose a tool",
    ),
    (
        "pd-8.2-3",
        Should,
        "the prompt: always name the tools to read",
    ),
    (
        "pd-8.2-4",
        Should,
        "the prompt contains the syntax of the query",
    ),
    ("pd-8.2-5", Should, "the prompt is available on request"),
    ("pd-9-1", Must, "the list has short descriptions"),
    ("pd-9-2", Must, "the resource is listed"),
    ("pd-9-3", Must, "the resource takes the parameter"),
    ("pd-9-4", Must, "the resource returns full descriptions"),
    (
        "pd-9-5",
        Must,
        "without the parameter, the required error is returned",
    ),
    (
        "pd-9-6",
        Must,
        "disclosed tools are tracked for each session",
    ),
    (
        "pd-9-7",
        Must,
        "a call without reading returns the required error",
    ),
    ("pd-9-8", Must, "sessions are isolated"),
    ("pd-10.1-1", Must, "rules apply to all tools, read or not"),
    (
        "pd-10.1-2",
        Must,
        "reading a description does not allow a call",
    ),
    ("pd-10.1-3", Must, "reading bypasses no other access check"),
    (
        "pd-10.2-1",
        Should,
        "the resource shows only permitted tools",
    ),
    ("pd-10.2-2", Should, "the list shows only permitted tools"),
    ("pd-10.2-3", Should, "texts are sanitized"),
    ("pd-10.3-1", Should, "the rate of reads is limited"),
    ("pd-10.3-2", Should, "sessions expire"),
    ("pd-10.3-3", Should, "parsed descriptions stay in memory"),
    ("pd-10.3-4", Should, "fetches can be monitored"),
    (
        "gt-declared",
        Must,
        "the filtering capability and changes of its lists are declared",
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
        "hosts are notified when groups or tags change",
    ),
    ("gt-across", May, "a tag may occur in several groups"),
    (
        "gt-any",
        Must,
        "a tool in any of the named groups is listed",
    ),
    (
        "gt-all",
        Must,
        "only tools with all of the named tags are listed",
    ),
    (
        "gt-both",
        Must,
        "with groups and tags, both conditions apply",
    ),
    ("gt-absent", Must, "without a filter the list is unchanged"),
    (
        "gt-empty",
        Must,
        "an empty filter leaves the list unchanged",
    ),
    ("gt-cursor", May, "a request may have a filter and a cursor"),
    (
        "gt-carried",
        Must,
        "listed tools have their groups and tags",
    ),
    (
        "bp-threshold",
        Should,
        "few tools are shown at once, many as needed",
    ),
    (
        "bp-defer",
        Should,
        "many tools are hidden from the model until it asks",
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
        "with a model, search finds tools by meaning",
    ),
    (
        "bp-hybrid",
        May,
        "matches by word and by meaning have one order",
    ),
    ("bp-layers", Should, "search, then details, then the call"),
    (
        "bp-registry",
        Should,
        "all servers are listed with their purpose",
    ),
    (
        "bp-connect",
        Should,
        "a server is connected when it is needed",
    ),
    ("bp-disconnect", Should, "an unused server is disconnected"),
    (
        "bp-boundary",
        Should,
        "disconnecting a server changes no list",
    ),
    (
        "bp-cached",
        Should,
        "a definition is fetched once and cached",
    ),
    (
        "bp-refresh",
        Should,
        "a changed list is read and indexed again",
    ),
    ("bp-levels", Should, "search has several levels of detail"),
    ("bp-by-server", Should, "found tools are grouped by server"),
    (
        "bp-stable",
        Should,
        "one tool calls all tools, and the list never changes",
    ),
    ("bp-append", Should, "disclosure changes no list"),
    ("bp-typed", Should, "schemas become typed functions"),
    (
        "bp-output-type",
        Should,
        "output schemas become result types",
    ),
    (
        "bp-any",
        Should,
        "without an output schema the result type is any",
    ),
    (
        "bp-extract",
        May,
        "a fast model extracts a value for a script",
    ),
    (
        "bp-extract-checked",
        Must,
        "an extracted value is used only if it fits the schema",
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
        "a grant for similar calls is checked for each call",
    ),
    (
        "bp-cross-flow",
        Must,
        "data of one server is not trusted for another",
    ),
    ("bp-no-network", Must, "a script has no network"),
    (
        "bp-brokered",
        Must,
        "calls of a script reach servers through the broker",
    ),
    ("bp-credentials", Must, "a script sees no credentials"),
    ("bp-limits", Must, "a script ends in time"),
    ("bp-memory", Must, "a script has bounded memory"),
    ("bp-output", Must, "long output is cut"),
    ("bp-clean-output", Must, "the console hides no characters"),
    ("bp-throws", Should, "a failed call is an exception"),
    (
        "bp-uncaught",
        Should,
        "an uncaught error is the result, with the calls before it",
    ),
];

/// Statements whose test is in another crate or module: file and function.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "bp-credentials",
        "tests/tests/cli/secrets.rs",
        "token_is_not_visible_to_script",
    ),
    (
        "pd-10.3-4",
        "tests/tests/telemetry.rs",
        "description_fetches_are_counted",
    ),
    (
        "bp-cross-flow",
        "broker/core/src/flow/tracker/tests.rs",
        "run_labels_join_results_and_errors",
    ),
];

/// Statements that airlock does not follow, with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "bp-subagent",
        "choosing tools with a second model is up to the host; search gives that model the same lines",
    ),
    (
        "bp-provider-caching",
        "only the host can find out what a provider caches, and for how long",
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
fn every_statement_has_a_test_and_every_test_a_statement() {
    let stated: BTreeSet<_> = STATEMENTS.iter().map(|(id, ..)| *id).collect();
    assert_eq!(stated.len(), STATEMENTS.len(), "an id occurs twice");
    let shown: BTreeSet<_> = shown_ids().into_iter().collect();
    let without_test: Vec<_> = stated.difference(&shown).collect();
    let without_statement: Vec<_> = shown.difference(&stated).collect();
    assert!(without_test.is_empty(), "{without_test:?}");
    assert!(without_statement.is_empty(), "{without_statement:?}");
    let shown_and_left_out = LEFT_OUT.iter().find(|(id, _)| shown.contains(id));
    assert_eq!(shown_and_left_out, None);
}

#[test]
fn referenced_tests_elsewhere_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (id, file, function) in ELSEWHERE {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        assert!(is_run(&text, function), "{id}: {function} of {file}");
    }
}

/// Whether a file has a test of this name that no attribute disables.
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
fn left_out_statements_have_no_test() {
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
