//! Parses the setting for what servers may send to hosts in addition to the results of calls, from
//! flags or a file.

use airlock_core::problem::Problem;
use codegen::closest::closest;

use super::located::LocatedText;
use super::{Offer, Offers};
use super::{ServerConfig, choice, invalid_at};
use crate::client_bridge::ClientCapabilities;

const WORDS: [&str; 5] = ["elicitation", "sampling", "roots", "logging", "none"];

/// The requests and messages that servers may send to the host during a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassThrough {
    /// The requests that servers may send to the host.
    pub asked: ClientCapabilities,
    /// Whether the host receives the servers' log messages.
    pub logs: bool,
}

/// By default, servers cannot request the host's folders, because servers treat these folders as
/// places where everything is allowed.
impl Default for PassThrough {
    fn default() -> Self {
        Self {
            asked: ClientCapabilities {
                roots: false,
                ..ClientCapabilities::ALL
            },
            logs: false,
        }
    }
}

pub(super) fn of_flag(words: Vec<String>) -> Vec<LocatedText> {
    words.into_iter().map(|text| at("--pass", text)).collect()
}

pub(super) fn of_offer(text: String) -> LocatedText {
    at("--offer", text)
}

fn at(origin: &str, text: String) -> LocatedText {
    LocatedText {
        text,
        origin: origin.to_owned(),
    }
}

pub(super) fn parse(words: &[LocatedText]) -> Result<PassThrough, Problem> {
    for word in words {
        let wrong = |why: String, next: String| {
            let what = format!("invalid value `{}` for `pass` ({})", word.text, word.origin);
            Err(invalid_at(&word.origin, what, why, &next))
        };
        if !WORDS.contains(&word.text.as_str()) {
            let next = match closest(&word.text, WORDS) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "correct or remove the value".to_owned(),
            };
            return wrong(format!("expected one of {}", WORDS.join(", ")), next);
        }
        if word.text == "none" && words.len() > 1 {
            let next = "remove `none` or the other values".to_owned();
            return wrong(
                "`none` cannot be combined with other values".to_owned(),
                next,
            );
        }
    }
    let has = |what| words.iter().any(|it| it.text == what);
    Ok(PassThrough {
        asked: ClientCapabilities {
            form: has("elicitation"),
            address: has("elicitation"),
            sampling: has("sampling"),
            sampling_tools: has("sampling"),
            roots: has("roots"),
        },
        logs: has("logging"),
    })
}

/// Parses offers. Each must name a configured server.
pub(super) fn offers(named: &[LocatedText], servers: &[ServerConfig]) -> Result<Offers, Problem> {
    let offer = |at: &LocatedText| {
        let wrong = |why: String, next: &str| {
            let what = format!("invalid offer `{}` ({})", at.text, at.origin);
            invalid_at(&at.origin, what, why, next)
        };
        let offer = Offer::parse(&at.text).map_err(|bad| {
            wrong(
                bad.to_string(),
                "name a server and what it offers, such as `fs` or `fs.prompts`",
            )
        })?;
        let names = || servers.iter().map(|it| &*it.spec.name.0);
        if names().any(|name| name == offer.server()) {
            return Ok(offer);
        }
        let next = match closest(offer.server(), names()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if servers.is_empty() => {
                "add the server with --server NAME=COMMAND, --mcp-config, --config or --demo".into()
            }
            None => choice::one_of(offer.server(), &names().collect::<Vec<_>>()),
        };
        Err(wrong(
            format!("no server `{}` is configured", offer.server()),
            &next,
        ))
    };
    named
        .iter()
        .map(offer)
        .collect::<Result<_, _>>()
        .map(Offers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], expected: Result<&str, &str>) {
        let words = words.iter().map(|it| at("airlock.toml:3", (*it).into()));
        let read = parse(&words.collect::<Vec<_>>());
        let said = read.map(|it| {
            let declared = it.asked.declared();
            let logs = if it.logs { " and logs" } else { "" };
            format!("{declared}{logs}")
        });
        match (said, expected) {
            (Ok(said), Ok(expected)) => assert_eq!(said, expected),
            (Err(problem), Err(expected)) => {
                let problem = problem.to_string();
                assert!(problem.contains(expected), "{problem}");
                assert!(problem.contains("airlock.toml:3"), "{problem}");
            }
            (said, _) => panic!("{said:?}"),
        }
    }

    #[test]
    fn pass_through_parses_each_word() {
        check(&[], Ok("{}"));
        check(&["none"], Ok("{}"));
        check(
            &["elicitation", "logging"],
            Ok(r#"{"elicitation":{"form":{},"url":{}}} and logs"#),
        );
        check(&["roots"], Ok(r#"{"roots":{}}"#));
        check(&["none", "roots"], Err("other values"));
        check(&["loging"], Err("did you mean `logging`?"));
    }
}
