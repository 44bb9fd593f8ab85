//! From a few words to the tools that fit them: BM25 over weighted fields, or a
//! pattern over the same texts; and beside it, where somebody gives a model, what
//! the texts mean. Pure, and built once for a set of tools.

mod hash;
pub mod model;
mod pattern;
mod ranker;
mod stem;
mod texts;
mod vectors;
mod words;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

pub use pattern::BadPattern;
pub use ranker::{Ranker, fused};
pub use texts::Texts;
pub use vectors::Vectors;

use hash::Hash;
use pattern::Pattern;

/// What is known of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    pub name: String,
    pub server: String,
    /// Title and description.
    pub text: String,
    /// Names of its parameters.
    pub parameters: String,
    /// What is said about them.
    pub about_parameters: String,
}

/// How much a field says about its tool, and how much its length speaks against it.
struct Field {
    weight: f64,
    length_norm: f64,
    of: fn(&Document) -> &str,
}

/// Tried out on labelled queries; `cargo xtask bench search` says what they find.
const FIELDS: [Field; 5] = [
    Field {
        weight: 3.5,
        length_norm: 0.9,
        of: |document| &document.name,
    },
    Field {
        weight: 3.0,
        length_norm: 0.5,
        of: |document| &document.server,
    },
    Field {
        weight: 1.0,
        length_norm: 0.4,
        of: |document| &document.text,
    },
    Field {
        weight: 1.5,
        length_norm: 0.6,
        of: |document| &document.parameters,
    },
    Field {
        weight: 0.5,
        length_norm: 0.7,
        of: |document| &document.about_parameters,
    },
];
/// How soon one more occurrence of a word adds little.
const SATURATION: f64 = 2.5;
/// A word that is said again counts a little more.
const REPETITION: f64 = 0.35;
/// Words of one query, and of one text, that count.
const QUERY_WORDS_MAX: usize = 200;
const TEXT_BYTES_MAX: usize = 20_000;
/// A pattern may cost much at each byte, and is not stopped within a text.
const PATTERN_TEXT_BYTES_MAX: usize = 2_000;

/// Answers with places in the order in which the documents were given.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// Where each word stands in `places`.
    words: HashMap<Arc<str>, Range<usize>, Hash>,
    /// The documents that a word occurs in, with what it adds to each; word by word.
    places: Vec<(u32, f64)>,
    documents: usize,
}

impl Index {
    #[must_use]
    pub fn new(documents: impl Iterator<Item = Document>) -> Self {
        let documents: Vec<_> = documents.collect();
        let texts = Arc::new(Texts::of(&documents));
        let places = 0..documents.len();
        let documents: Vec<_> = places.map(|at| (Arc::clone(&texts), at)).collect();
        Self::of(&documents)
    }

    /// The same of documents that have been read, each by its place in some texts.
    #[must_use]
    pub fn of(documents: &[(Arc<Texts>, usize)]) -> Self {
        let mut index = frequencies(documents);
        let count = documents.len() as f64;
        for range in index.words.values() {
            let places = index.places.get_mut(range.clone()).unwrap_or_default();
            let found = places.len() as f64;
            let rarity = (1.0 + (count - found + 0.5) / (found + 0.5)).ln();
            for (_, weight) in places {
                *weight = rarity * *weight * (SATURATION + 1.0) / (SATURATION + *weight);
            }
        }
        index
    }

    /// The documents that any word of the query fits, best first.
    #[must_use]
    pub fn ranked(&self, query: &str) -> Vec<usize> {
        let mut words: Vec<String> = words::of(query).take(QUERY_WORDS_MAX).collect();
        words.sort();
        let mut scores = vec![0.0; self.documents];
        for same in words.chunk_by(|a, b| a == b) {
            let said = (same.len() as f64).powf(REPETITION);
            let range = same.first().and_then(|word| self.words.get(&**word));
            let places = range.and_then(|it| self.places.get(it.clone()));
            for (place, weight) in places.into_iter().flatten() {
                if let Some(score) = scores.get_mut(*place as usize) {
                    *score += weight * said;
                }
            }
        }
        let mut found: Vec<(usize, f64)> = scores
            .into_iter()
            .enumerate()
            .filter(|(_, score)| *score > 0.0)
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.into_iter().map(|(place, _)| place).collect()
    }
}

/// The places of the documents whose name, with its server's, or text the pattern matches. Of
/// each both are given, in this order; before each of them `may_go_on` is asked.
pub fn matching(
    pattern: &str,
    documents: impl Iterator<Item = (String, String)>,
    mut may_go_on: impl FnMut() -> bool,
) -> Result<Vec<usize>, BadPattern> {
    let pattern = Pattern::parse(pattern)?;
    let mut places = Vec::new();
    for (place, (name, text)) in documents.enumerate() {
        if !may_go_on() {
            return Err(BadPattern::TooSlow);
        }
        let text = first(&text, PATTERN_TEXT_BYTES_MAX);
        let name = first(&name, PATTERN_TEXT_BYTES_MAX);
        if pattern.is_in(name) || pattern.is_in(text) {
            places.push(place);
        }
    }
    Ok(places)
}

impl Ranker for Index {
    fn ranked(&self, query: &str) -> Vec<usize> {
        Self::ranked(self, query)
    }
}

/// How often each word occurs in each document, by field, weighted.
fn frequencies(documents: &[(Arc<Texts>, usize)]) -> Index {
    let averages = averages(documents);
    let mut joined = Joined::default();
    for (place, (texts, at)) in (0..).zip(documents) {
        let numbers = joined.numbers(texts);
        for (field, (kind, average)) in FIELDS.iter().zip(averages).enumerate() {
            let words = texts.field(*at, field);
            let length = words.len() as f64 / average;
            let weight = kind.weight / (1.0 + kind.length_norm * (length - 1.0));
            for word in words {
                if let Some(number) = numbers.get(*word as usize) {
                    joined.add(*number, place, weight);
                }
            }
        }
    }
    joined.word_by_word(documents.len())
}

/// The words of several texts, each of which has numbered its words for itself.
#[derive(Default)]
struct Joined {
    words: HashMap<Arc<str>, usize, Hash>,
    of_texts: HashMap<*const Texts, Arc<[usize]>>,
    /// Of each word, how many documents it occurs in, and where the last one stands in `found`.
    counts: Vec<(usize, usize)>,
    found: Vec<Found>,
}

/// A word in a document.
struct Found {
    word: usize,
    place: u32,
    weight: f64,
}

impl Joined {
    /// The number of each word of some texts.
    fn numbers(&mut self, texts: &Arc<Texts>) -> Arc<[usize]> {
        if let Some(known) = self.of_texts.get(&Arc::as_ptr(texts)) {
            return Arc::clone(known);
        }
        let mut number = |word: &Arc<str>| {
            let next = self.words.len();
            *self.words.entry(Arc::clone(word)).or_insert(next)
        };
        let numbers: Arc<[usize]> = texts.words.iter().map(&mut number).collect();
        self.counts.resize(self.words.len(), (0, 0));
        self.of_texts
            .insert(Arc::as_ptr(texts), Arc::clone(&numbers));
        numbers
    }

    /// One more occurrence, in the document that is read right now.
    fn add(&mut self, word: usize, place: u32, weight: f64) {
        let Some((count, last)) = self.counts.get_mut(word) else {
            return;
        };
        let before = self.found.get_mut(*last);
        match before.filter(|it| it.word == word && it.place == place) {
            Some(found) => found.weight += weight,
            None => {
                *count += 1;
                *last = self.found.len();
                self.found.push(Found {
                    word,
                    place,
                    weight,
                });
            }
        }
    }

    /// With all documents of a word side by side.
    fn word_by_word(self, documents: usize) -> Index {
        let mut next = 0;
        let mut ranges: Vec<Range<usize>> = Vec::with_capacity(self.counts.len());
        for (count, _) in &self.counts {
            ranges.push(next..next);
            next += count;
        }
        let mut places = vec![(0, 0.0); self.found.len()];
        for found in &self.found {
            let Some(range) = ranges.get_mut(found.word) else {
                continue;
            };
            if let Some(place) = places.get_mut(range.end) {
                *place = (found.place, found.weight);
            }
            range.end += 1;
        }
        let words = self.words.into_iter();
        let words = words.filter_map(|(word, at)| Some((word, ranges.get(at)?.clone())));
        Index {
            words: words.collect(),
            places,
            documents,
        }
    }
}

/// Words of each field, in the middle of all documents.
fn averages(documents: &[(Arc<Texts>, usize)]) -> [f64; FIELDS.len()] {
    let count = documents.len().max(1) as f64;
    std::array::from_fn(|field| {
        let lengths = documents
            .iter()
            .map(|(texts, at)| texts.field(*at, field).len());
        (lengths.sum::<usize>() as f64 / count).max(1e-9)
    })
}

fn head(text: &str) -> &str {
    first(text, TEXT_BYTES_MAX)
}

fn first(text: &str, bytes_max: usize) -> &str {
    let end = text.floor_char_boundary(bytes_max.min(text.len()));
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> Vec<Document> {
        let document = |server: &str, name: &str, text: &str, parameters: &str| Document {
            name: name.into(),
            server: server.into(),
            text: text.into(),
            parameters: parameters.into(),
            about_parameters: String::new(),
        };
        vec![
            document("fs", "read_file", "Reads a file whole.", "path"),
            document("fs", "writeFile", "Writes text to a file.", "path content"),
            document(
                "git",
                "log",
                "Shows the commits of a repository.",
                "repo max_count",
            ),
            document(
                "mail",
                "send",
                "Sends an e-mail message.",
                "to subject body",
            ),
        ]
    }

    fn index() -> Index {
        Index::new(documents().into_iter())
    }

    fn named(documents: Vec<Document>) -> impl Iterator<Item = (String, String)> {
        let named = |it: Document| (format!("{}.{}", it.server, it.name), it.text);
        documents.into_iter().map(named)
    }

    fn check(query: &str, expected: &[usize]) {
        assert_eq!(index().ranked(query), expected, "{query}");
    }

    #[test]
    fn words_find_tools_by_name_text_server_and_parameter() {
        check("read files", &[0, 1]);
        check("writing a FILE", &[1, 0]);
        check("commit history of the repositories", &[2]);
        check("subject", &[3]);
        check("git", &[2]);
        check("", &[]);
        check("the of a", &[]);
        check("nothing like it", &[]);
    }

    #[test]
    fn a_pattern_finds_tools_in_their_order() {
        let matching = |pattern: &str| matching(pattern, named(documents()), || true);
        assert_eq!(matching("^fs\\."), Ok(vec![0, 1]));
        assert_eq!(matching("(?i)E-MAIL"), Ok(vec![3]));
        assert_eq!(matching("log$"), Ok(vec![2]));
        assert!(matching("(").is_err() && matching("a{1000}{1000}").is_err());
    }

    #[test]
    fn a_pattern_is_stopped_between_two_tools_and_reads_only_so_much_of_each() {
        let mut left = 3;
        let stopped = matching("log", named(documents()), || {
            left -= 1;
            left > 0
        });
        assert_eq!((stopped, left), (Err(BadPattern::TooSlow), 0));
        let long = |before: usize| Document {
            text: "-".repeat(before) + "needle",
            ..Document::default()
        };
        let texts = || named([0, PATTERN_TEXT_BYTES_MAX].map(long).into());
        assert_eq!(matching("needle", texts(), || true), Ok(vec![0]));
        // What is slow at each byte is refused for its size.
        let large = matching("[ab].{4000}[cd]", texts(), || true);
        assert_eq!(large, Err(BadPattern::TooLarge));
    }

    #[test]
    fn an_index_of_nothing_finds_nothing() {
        let index = Index::new(std::iter::empty());
        assert_eq!(index.ranked("file"), Vec::<usize>::new());
        assert_eq!(matching(".*", named(Vec::new()), || true), Ok(Vec::new()));
    }

    #[test]
    fn an_index_of_texts_that_were_read_apart_is_that_of_all_of_them() {
        let documents = documents();
        let apart: Vec<_> = documents.chunks(3).map(Texts::of).map(Arc::new).collect();
        let [first, last] = &apart[..] else {
            panic!("{apart:?}");
        };
        let places = [(first, 0), (first, 1), (first, 2), (last, 0)];
        let joined = Index::of(&places.map(|(texts, at)| (Arc::clone(texts), at)));
        let together = Index::new(documents.into_iter());
        assert_eq!(joined.words, together.words);
        assert_eq!(joined.places, together.places);
        // And without one of them it is that of the others.
        let fewer = places
            .iter()
            .skip(1)
            .map(|(texts, at)| (Arc::clone(texts), *at));
        let fewer = Index::of(&fewer.collect::<Vec<_>>());
        for query in ["read files", "git commits", "send to subject"] {
            let others = Index::new(self::documents().into_iter().skip(1));
            assert_eq!(fewer.ranked(query), others.ranked(query), "{query}");
        }
    }
}
