//! Finds tools by words, with BM25 over weighted fields, or by a pattern over the same texts. With
//! an embedding model, the meaning of the texts counts too. The search performs no I/O. Its index
//! is built once for a set of tools.

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

pub use pattern::BadSearchPattern;
pub use ranker::{Ranker, fused};
pub use texts::IndexedTexts;
pub use vectors::Vectors;

use hash::Hash;
use pattern::SearchPattern;

/// The searchable text of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    pub name: String,
    pub server: String,
    /// Title and description of the tool.
    pub text: String,
    /// Names of the tool's parameters.
    pub parameters: String,
    /// Descriptions of the parameters.
    pub about_parameters: String,
}

/// A field with its weight, and how strongly its length reduces the weight.
struct Field {
    weight: f64,
    length_norm: f64,
    of: fn(&Document) -> &str,
}

/// The fields of a document. The values are tuned on labelled queries; `cargo xtask bench search`
/// measures the result.
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
/// BM25 saturation. With a smaller value, repeated occurrences of a word add less.
const SATURATION: f64 = 2.5;
/// Exponent of a word's number of repetitions in the query. Repeated words count slightly more.
const REPETITION: f64 = 0.35;
/// Maximum number of words of a query that count.
const QUERY_WORDS_MAX: usize = 200;
const TEXT_BYTES_MAX: usize = 20_000;
/// Maximum size of a text that is matched against a pattern. Matching can be slow per byte and
/// cannot be interrupted within a text.
const PATTERN_TEXT_BYTES_MAX: usize = 2_000;

/// An index for ranking documents. Results are positions in the order in which the documents were
/// given.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// The range of each word in `places`.
    words: HashMap<Arc<str>, Range<usize>, Hash>,
    /// The documents that contain each word, with the word's score in each of them; grouped by
    /// word.
    places: Vec<(u32, f64)>,
    documents: usize,
}

impl Index {
    #[must_use]
    pub fn new(documents: impl Iterator<Item = Document>) -> Self {
        let documents: Vec<_> = documents.collect();
        let texts = Arc::new(IndexedTexts::build(&documents));
        let places = 0..documents.len();
        let documents: Vec<_> = places.map(|at| (Arc::clone(&texts), at)).collect();
        Self::build(&documents)
    }

    /// Builds an index of documents that were already split into words. Each document is given by
    /// its position in an [`IndexedTexts`].
    #[must_use]
    pub fn build(documents: &[(Arc<IndexedTexts>, usize)]) -> Self {
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

    /// Returns the documents that match any word of the query, best first.
    #[must_use]
    pub fn ranked(&self, query: &str) -> Vec<usize> {
        let mut words: Vec<String> = words::terms(query).take(QUERY_WORDS_MAX).collect();
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

/// Returns the positions of the documents with a name or a text that the pattern matches. Each item
/// is a full name, `server.tool`, and a text. The search fails as too slow once `may_go_on` returns
/// false.
pub fn matching(
    pattern: &str,
    documents: impl Iterator<Item = (String, String)>,
    mut may_go_on: impl FnMut() -> bool,
) -> Result<Vec<usize>, BadSearchPattern> {
    let pattern = SearchPattern::parse(pattern)?;
    let mut places = Vec::new();
    for (place, (name, text)) in documents.enumerate() {
        if !may_go_on() {
            return Err(BadSearchPattern::TooSlow);
        }
        let text = first(&text, PATTERN_TEXT_BYTES_MAX);
        let name = first(&name, PATTERN_TEXT_BYTES_MAX);
        // `^` also matches the beginning of the tool's own name.
        let own = name.split_once('.').map_or(name, |(_, own)| own);
        if pattern.is_in(name) || pattern.is_in(own) || pattern.is_in(text) {
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

/// Counts how often each word occurs in each document, weighted by field.
fn frequencies(documents: &[(Arc<IndexedTexts>, usize)]) -> Index {
    let averages = averages(documents);
    let mut joined = JoinedTexts::default();
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

/// The words of several texts, each of which has its own numbering.
#[derive(Default)]
struct JoinedTexts {
    words: HashMap<Arc<str>, usize, Hash>,
    of_texts: HashMap<*const IndexedTexts, Arc<[usize]>>,
    /// For each word, the number of documents with this word, and the index of its latest posting
    /// in `found`.
    counts: Vec<(usize, usize)>,
    found: Vec<Posting>,
}

/// An occurrence of a word in a document.
struct Posting {
    word: usize,
    place: u32,
    weight: f64,
}

impl JoinedTexts {
    /// Returns the number of each word of these texts in the joined numbering.
    fn numbers(&mut self, texts: &Arc<IndexedTexts>) -> Arc<[usize]> {
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

    /// Adds an occurrence in the current document.
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
                self.found.push(Posting {
                    word,
                    place,
                    weight,
                });
            }
        }
    }

    /// Groups the postings by word.
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

/// Returns the average number of words of each field.
fn averages(documents: &[(Arc<IndexedTexts>, usize)]) -> [f64; FIELDS.len()] {
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
    fn search_finds_by_name_text_server_and_parameter() {
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
    fn pattern_returns_tools_in_order() {
        let matching = |pattern: &str| matching(pattern, named(documents()), || true);
        assert_eq!(matching("^fs\\."), Ok(vec![0, 1]));
        assert_eq!(matching("(?i)E-MAIL"), Ok(vec![3]));
        assert_eq!(matching("log$"), Ok(vec![2]));
        assert!(matching("(").is_err() && matching("a{1000}{1000}").is_err());
    }

    #[test]
    fn pattern_search_is_interruptible_and_bounded() {
        let mut left = 3;
        let stopped = matching("log", named(documents()), || {
            left -= 1;
            left > 0
        });
        assert_eq!((stopped, left), (Err(BadSearchPattern::TooSlow), 0));
        let long = |before: usize| Document {
            text: "-".repeat(before) + "needle",
            ..Document::default()
        };
        let texts = || named([0, PATTERN_TEXT_BYTES_MAX].map(long).into());
        assert_eq!(matching("needle", texts(), || true), Ok(vec![0]));
        // A pattern that would be slow at each byte is refused because of its compiled size.
        let large = matching("[ab].{4000}[cd]", texts(), || true);
        assert_eq!(large, Err(BadSearchPattern::TooLarge));
    }

    #[test]
    fn empty_index_finds_nothing() {
        let index = Index::new(std::iter::empty());
        assert_eq!(index.ranked("file"), Vec::<usize>::new());
        assert_eq!(matching(".*", named(Vec::new()), || true), Ok(Vec::new()));
    }

    #[test]
    fn joined_index_equals_whole_index() {
        let documents = documents();
        let apart: Vec<_> = documents
            .chunks(3)
            .map(IndexedTexts::build)
            .map(Arc::new)
            .collect();
        let [first, last] = &apart[..] else {
            panic!("{apart:?}");
        };
        let places = [(first, 0), (first, 1), (first, 2), (last, 0)];
        let joined = Index::build(&places.map(|(texts, at)| (Arc::clone(texts), at)));
        let together = Index::new(documents.into_iter());
        assert_eq!(joined.words, together.words);
        assert_eq!(joined.places, together.places);
        // Without one of the documents, the index equals an index of the others.
        let fewer = places
            .iter()
            .skip(1)
            .map(|(texts, at)| (Arc::clone(texts), *at));
        let fewer = Index::build(&fewer.collect::<Vec<_>>());
        for query in ["read files", "git commits", "send to subject"] {
            let others = Index::new(self::documents().into_iter().skip(1));
            assert_eq!(fewer.ranked(query), others.ranked(query), "{query}");
        }
    }
}
