//! The spelling that somebody probably meant.

use std::cell::Cell;

use strsim::{damerau_levenshtein, jaro_winkler};

/// Words longer than this are not compared: the cost grows with the square.
const WORD_CHARS_MAX: usize = 80;
const SIMILARITY_MIN: f64 = 0.8;
/// Pairs of characters that are compared for all the words of one report.
const PAIRS_MAX: usize = 16 * 1024 * 1024;
/// What a candidate costs besides.
const CANDIDATE_PAIRS: usize = 100;
/// Values that are judged by a schema, each as often as a union tries it.
const VALUES_MAX: usize = 50_000;
/// Steps upwards in the tree of a script, to find out what is around a finding.
const STEPS_MAX: usize = 4_000_000;

/// The candidate closest to `word`, when one is close enough to be worth naming.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    Patience::default().closest(word, candidates)
}

/// The same for `server.tool`. What names share with every tool of their server says nothing: a
/// known server's tools are compared by their own names, and all names only where there is no
/// such server.
pub fn closest_tool<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let all: Vec<&str> = candidates.into_iter().collect();
    let Some((server, tool)) = word.split_once('.') else {
        return closest(word, all);
    };
    let of_server = all.iter().filter_map(|it| {
        let own = it.strip_prefix(server)?.strip_prefix('.')?;
        Some((own, *it))
    });
    let of_server: Vec<(&str, &str)> = of_server.collect();
    if of_server.is_empty() {
        return closest(word, all);
    }
    let meant = closest(tool, of_server.iter().map(|(own, _)| *own))?;
    let whole = of_server.iter().find(|(own, _)| *own == meant);
    whole.map(|(_, whole)| *whole)
}

/// How much more may be compared for one report. Whoever writes a script decides how many words
/// it gets wrong and how many others there are; behind a bound the rest is told without a guess.
#[derive(Debug)]
pub struct Patience {
    pairs_left: Cell<usize>,
    values_left: Cell<usize>,
    steps_left: Cell<usize>,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            pairs_left: Cell::new(PAIRS_MAX),
            values_left: Cell::new(VALUES_MAX),
            steps_left: Cell::new(STEPS_MAX),
        }
    }
}

impl Patience {
    /// The candidate closest to `word`, among those that there was patience for.
    pub fn closest<'a>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        if word.is_empty() || word.chars().nth(WORD_CHARS_MAX).is_some() {
            return None;
        }
        let candidates = candidates.into_iter();
        closest_of(word, candidates.take_while(|it| self.bears(word, it)))
    }

    /// Whether there is patience for one more value.
    pub fn judges(&self) -> bool {
        take(&self.values_left, 1)
    }

    /// Whether there is patience for one more step.
    pub fn climbs(&self) -> bool {
        take(&self.steps_left, 1)
    }

    fn bears(&self, word: &str, candidate: &str) -> bool {
        let is_compared = candidate.chars().nth(WORD_CHARS_MAX).is_none();
        let pairs = if is_compared {
            word.len() * candidate.len()
        } else {
            0
        };
        take(&self.pairs_left, pairs + CANDIDATE_PAIRS)
    }
}

/// Nothing is left behind the first that there is not enough for.
fn take(left: &Cell<usize>, some: usize) -> bool {
    let rest = left.get().checked_sub(some);
    left.set(rest.unwrap_or_default());
    rest.is_some()
}

fn closest_of<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let score = similarity(word, candidate);
        if score > SIMILARITY_MIN && best.is_none_or(|(top, _)| score > top) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// 1 for words that differ in case and punctuation only, towards 0 for strangers.
fn similarity(word: &str, candidate: &str) -> f64 {
    if candidate.chars().nth(WORD_CHARS_MAX).is_some() {
        return 0.0;
    }
    let (a, b) = (plain(word), plain(candidate));
    if a == b && !a.is_empty() {
        return 1.0;
    }
    jaro_winkler(&a, &b).max(edit_similarity(&a, &b))
}

/// A slip of one or two keys in a word long enough to still be recognised.
fn edit_similarity(a: &str, b: &str) -> f64 {
    let longest = a.chars().count().max(b.chars().count());
    let edits = u32::try_from(damerau_levenshtein(a, b)).unwrap_or(u32::MAX);
    let length = u32::try_from(longest).unwrap_or(u32::MAX);
    if length == 0 {
        0.0
    } else {
        1.0 - f64::from(edits) / f64::from(length)
    }
}

fn plain(word: &str) -> String {
    let kept = word
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | '.' | ' ' | '$'));
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_spelling_is_found_and_strangers_are_not_named() {
        let check = |word, candidates: &[&'static str], expected| {
            assert_eq!(
                closest(word, candidates.iter().copied()),
                expected,
                "{word}"
            );
        };
        check(
            "perPage",
            &["page", "per_page", "perPages"],
            Some("per_page"),
        );
        check(
            "list_workflow",
            &["list_workflows", "get_workflow"],
            Some("list_workflows"),
        );
        check("ownre", &["owner", "repo"], Some("owner"));
        check("delete", &["owner", "repo"], None);
        check("", &["owner"], None);
        check("x", &["", "日本語"], None);
    }

    #[test]
    fn a_tool_is_compared_with_those_of_its_server_by_its_own_name() {
        let tools = ["mail.send", "mail.slow_echo", "files.search", "server:mail"];
        for (word, expected) in [
            ("mail.sned", Some("mail.send")),
            // Nearly all of it is what every tool of that server begins with.
            ("mail.nope", None),
            ("mail.search", None),
            ("mial.send", Some("mail.send")),
            ("server:mall", Some("server:mail")),
        ] {
            assert_eq!(closest_tool(word, tools), expected, "{word}");
        }
    }

    #[test]
    fn many_words_beside_many_others_are_compared_up_to_a_bound() {
        let names: Vec<_> = (0..300)
            .map(|n| format!("{n:04}{}", "x".repeat(74)))
            .collect();
        let words = names.iter().map(String::as_str);
        let patience = Patience {
            pairs_left: Cell::new(2_000 * 78 * 78),
            ..Patience::default()
        };
        let mut offered = 0;
        let found = words.clone().filter(|word| {
            let others = words.clone().filter(|it| it != word);
            let closest = patience.closest(word, others.inspect(|_| offered += 1));
            closest.is_some()
        });
        let found = found.count();
        // Without patience each word still costs one look.
        assert!(offered <= 2_000 + names.len(), "{offered}");
        assert!((1..=7).contains(&found), "{found}");
    }

    #[test]
    fn one_word_has_patience_for_the_tools_of_many_servers() {
        let names: Vec<_> = (0..10_000).map(|n| format!("tool_{n}_of_server")).collect();
        let names = names.iter().map(String::as_str).chain(["list_workflows"]);
        assert_eq!(closest("list_workflow", names), Some("list_workflows"));
    }
}
