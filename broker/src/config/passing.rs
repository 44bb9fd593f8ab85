//! What passes between servers and hosts besides calls, as flags or a file say it.

use airlock_core::problem::Problem;
use codegen::closest::closest;

use super::file::Located;
use super::{Server, invalid_at};
use crate::carrier::Abilities;
use crate::serve::{Offer, Offers};

const WORDS: [&str; 5] = ["elicitation", "sampling", "roots", "logging", "none"];

/// What passes from servers to the host in the middle of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passing {
    /// What servers may ask of it.
    pub asked: Abilities,
    /// Whether it hears what they log.
    pub logs: bool,
}

/// A host's folders are nobody's business behind us, unless somebody says so: servers take them
/// for folders in which they may do what they like.
impl Default for Passing {
    fn default() -> Self {
        Self {
            asked: Abilities {
                roots: false,
                ..Abilities::ALL
            },
            logs: false,
        }
    }
}

pub(super) fn of_flag(words: Vec<String>) -> Vec<Located> {
    words.into_iter().map(|text| at("--pass", text)).collect()
}

pub(super) fn of_offer(text: String) -> Located {
    at("--offer", text)
}

fn at(origin: &str, text: String) -> Located {
    Located {
        text,
        origin: origin.to_owned(),
    }
}

pub(super) fn parse(words: &[Located]) -> Result<Passing, Problem> {
    for word in words {
        let wrong = |why: String, next: String| {
            let what = format!("`{}` ({}) cannot be passed on", word.text, word.origin);
            Err(invalid_at(&word.origin, what, why, &next))
        };
        if !WORDS.contains(&word.text.as_str()) {
            let next = match closest(&word.text, WORDS) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "leave it away, or correct it".to_owned(),
            };
            return wrong(format!("there are {}", WORDS.join(", ")), next);
        }
        if word.text == "none" && words.len() > 1 {
            let next = "write `none` alone, or name what may pass".to_owned();
            return wrong("it stands beside something else".to_owned(), next);
        }
    }
    let has = |what| words.iter().any(|it| it.text == what);
    Ok(Passing {
        asked: Abilities {
            form: has("elicitation"),
            address: has("elicitation"),
            sampling: has("sampling"),
            sampling_tools: has("sampling"),
            roots: has("roots"),
        },
        logs: has("logging"),
    })
}

/// Each names a server that is configured.
pub(super) fn offers(named: &[Located], servers: &[Server]) -> Result<Offers, Problem> {
    let offer = |at: &Located| {
        let wrong = |why: String, next: &str| {
            let what = format!("`{}` ({}) cannot be offered", at.text, at.origin);
            invalid_at(&at.origin, what, why, next)
        };
        let offer = Offer::parse(&at.text)
            .map_err(|bad| wrong(bad.to_string(), "name a server that is configured"))?;
        let names = || servers.iter().map(|it| &*it.spec.name.0);
        if names().any(|name| name == offer.server()) {
            return Ok(offer);
        }
        let next = match closest(offer.server(), names()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "name a server that is configured".to_owned(),
        };
        Err(wrong(
            format!("no server is called `{}`", offer.server()),
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
    fn what_passes_is_named_word_by_word() {
        check(&[], Ok("{}"));
        check(&["none"], Ok("{}"));
        check(
            &["elicitation", "logging"],
            Ok(r#"{"elicitation":{"form":{},"url":{}}} and logs"#),
        );
        check(&["roots"], Ok(r#"{"roots":{}}"#));
        check(&["none", "roots"], Err("something else"));
        check(&["loging"], Err("did you mean `logging`?"));
    }
}
