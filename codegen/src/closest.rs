//! The spelling that somebody probably meant.

use strsim::{damerau_levenshtein, jaro_winkler};

/// Words longer than this are not compared: the cost grows with the square.
const WORD_CHARS_MAX: usize = 80;
const SIMILARITY_MIN: f64 = 0.8;

/// The candidate closest to `word`, when one is close enough to be worth naming.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.is_empty() || word.chars().count() > WORD_CHARS_MAX {
        return None;
    }
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
    if candidate.chars().count() > WORD_CHARS_MAX {
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
}
