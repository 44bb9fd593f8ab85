//! Finds the spelling that was probably meant.

use std::cell::Cell;

use strsim::{damerau_levenshtein, jaro_winkler};

/// Maximum length of compared words in characters: the cost grows with its square.
const WORD_CHARS_MAX: usize = 80;
const SIMILARITY_MIN: f64 = 0.8;
/// Maximum number of character pairs compared for all words of one report.
const PAIRS_MAX: usize = 16 * 1024 * 1024;
/// Fixed cost of a candidate, in character pairs.
const CANDIDATE_PAIRS: usize = 100;
/// Maximum number of values compared with a schema. A union compares the same value several times.
const VALUES_MAX: usize = 50_000;
/// Maximum number of steps upwards in the syntax tree, in the search for what surrounds a finding.
const STEPS_MAX: usize = 4_000_000;

/// Returns the candidate closest to `word`, if one is close enough to be worth naming.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    CompareBudget::default().closest(word, candidates)
}

/// Returns the closest candidate for `server.tool`. If the server exists, only the names of its
/// tools are compared, because the shared prefix would make all of them look similar. Otherwise
/// whole names are compared.
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

/// Limits the comparisons for one report, because the script decides how many names it misspells
/// and how many candidates exist. Beyond the limit, findings get no suggestion.
#[derive(Debug)]
pub struct CompareBudget {
    pairs_left: Cell<usize>,
    values_left: Cell<usize>,
    steps_left: Cell<usize>,
}

impl Default for CompareBudget {
    fn default() -> Self {
        Self {
            pairs_left: Cell::new(PAIRS_MAX),
            values_left: Cell::new(VALUES_MAX),
            steps_left: Cell::new(STEPS_MAX),
        }
    }
}

impl CompareBudget {
    /// Returns the candidate closest to `word`. Compares only as many candidates as the budget
    /// allows.
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

    /// Spends the budget for one value. Returns false if it is used up.
    pub fn judges(&self) -> bool {
        spend(&self.values_left, 1)
    }

    /// Spends the budget for one step. Returns false if it is used up.
    pub fn climbs(&self) -> bool {
        spend(&self.steps_left, 1)
    }

    fn bears(&self, word: &str, candidate: &str) -> bool {
        let is_compared = candidate.chars().nth(WORD_CHARS_MAX).is_none();
        let pairs = if is_compared {
            word.len() * candidate.len()
        } else {
            0
        };
        spend(&self.pairs_left, pairs + CANDIDATE_PAIRS)
    }
}

/// Subtracts `some` from the budget. If less is left, sets the budget to 0 and returns false.
fn spend(left: &Cell<usize>, some: usize) -> bool {
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

/// Returns 1 for words that differ only in case and punctuation, and less for less similar words.
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

/// Scores words by their edit distance, which suits words with one or two typing mistakes.
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
    fn closest_name_is_found_and_distant_ones_ignored() {
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
    fn tool_is_compared_within_its_server() {
        let tools = ["mail.send", "mail.slow_echo", "files.search", "server:mail"];
        for (word, expected) in [
            ("mail.sned", Some("mail.send")),
            // The tools of a server share the prefix, which is most of this word.
            ("mail.nope", None),
            ("mail.search", None),
            ("mial.send", Some("mail.send")),
            ("server:mall", Some("server:mail")),
        ] {
            assert_eq!(closest_tool(word, tools), expected, "{word}");
        }
    }

    #[test]
    fn many_comparisons_are_bounded() {
        let names: Vec<_> = (0..300)
            .map(|n| format!("{n:04}{}", "x".repeat(74)))
            .collect();
        let words = names.iter().map(String::as_str);
        let patience = CompareBudget {
            pairs_left: Cell::new(2_000 * 78 * 78),
            ..CompareBudget::default()
        };
        let mut offered = 0;
        let found = words.clone().filter(|word| {
            let others = words.clone().filter(|it| it != word);
            let closest = patience.closest(word, others.inspect(|_| offered += 1));
            closest.is_some()
        });
        let found = found.count();
        // Even without budget, each word is compared with one candidate.
        assert!(offered <= 2_000 + names.len(), "{offered}");
        assert!((1..=7).contains(&found), "{found}");
    }

    #[test]
    fn one_word_is_compared_with_tools_of_many_servers() {
        let names: Vec<_> = (0..10_000).map(|n| format!("tool_{n}_of_server")).collect();
        let names = names.iter().map(String::as_str).chain(["list_workflows"]);
        assert_eq!(closest("list_workflow", names), Some("list_workflows"));
    }
}
