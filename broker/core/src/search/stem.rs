//! Reduces English words to their stem with the Porter2 stemmer: `connection`, `connected` and
//! `connects` become equal.

use rust_stemmers::{Algorithm, Stemmer};

/// Returns the stem of a word. Short words, words of other scripts, and words with other characters
/// than letters are returned unchanged.
pub(super) fn stem(word: &str) -> String {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let stemmer = Stemmer::create(Algorithm::English);
    stemmer.stem(word).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_forms_share_a_stem() {
        for forms in [
            &["repository", "repositories"] as &[&str],
            &["commit", "commits", "committed", "committing"],
            &["file", "files", "filing", "filed"],
            &["create", "creates", "created", "creating"],
            &["organize", "organization", "organizations"],
            &["connect", "connection", "connected", "connective"],
            &["translate", "translation", "translator"],
            &["query", "queries"],
        ] {
            let stems: std::collections::HashSet<_> = forms.iter().map(|form| stem(form)).collect();
            assert_eq!(stems.len(), 1, "{stems:?}");
        }
    }

    #[test]
    fn stems_match_porter2() {
        for (word, expected) in [
            ("consistently", "consist"),
            ("knightly", "knight"),
            ("generously", "generous"),
            ("hopping", "hop"),
            ("hoping", "hope"),
            ("ponies", "poni"),
            ("ties", "tie"),
            ("cries", "cri"),
            ("gas", "gas"),
            ("this", "this"),
            ("caresses", "caress"),
            ("agreed", "agre"),
            ("happy", "happi"),
            ("say", "say"),
            ("relational", "relat"),
            ("replacement", "replac"),
            ("adoption", "adopt"),
            ("probate", "probat"),
            ("controlling", "control"),
            ("controller", "control"),
            ("youth", "youth"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn short_and_non_latin_words_are_not_stemmed() {
        for word in ["is", "red", "größe", "日本", "s3"] {
            assert_eq!(stem(word), word);
        }
    }
}
