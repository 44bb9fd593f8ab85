//! From a few words to the tools that fit them: BM25 over weighted fields, or a
//! pattern over the same texts; and beside it, where somebody gives a model, what
//! the texts mean. Pure, and built once for a set of tools.

pub mod model;
mod pattern;
mod ranker;
mod stem;
mod vectors;
mod words;

use std::collections::HashMap;

pub use pattern::BadPattern;
pub use ranker::{Ranker, fused};
pub use vectors::Vectors;

use pattern::Pattern;
use words::Numbered;

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
    /// What each word adds to the documents that it occurs in.
    words: HashMap<String, Vec<(usize, f64)>>,
    documents: Vec<Document>,
}

impl Index {
    #[must_use]
    pub fn new(documents: impl Iterator<Item = Document>) -> Self {
        let documents: Vec<_> = documents.collect();
        let mut index = Self {
            words: frequencies(&documents),
            documents,
        };
        let count = index.documents.len() as f64;
        for places in index.words.values_mut() {
            let found = places.len() as f64;
            let rarity = (1.0 + (count - found + 0.5) / (found + 0.5)).ln();
            for (_, weight) in places.iter_mut() {
                *weight = rarity * *weight * (SATURATION + 1.0) / (SATURATION + *weight);
            }
        }
        index
    }

    /// What was indexed, in its order.
    #[must_use]
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// The documents that any word of the query fits, best first.
    #[must_use]
    pub fn ranked(&self, query: &str) -> Vec<usize> {
        let mut words: Vec<String> = words::of(query).take(QUERY_WORDS_MAX).collect();
        words.sort();
        let mut scores = vec![0.0; self.documents.len()];
        for same in words.chunk_by(|a, b| a == b) {
            let said = (same.len() as f64).powf(REPETITION);
            let places = same.first().and_then(|word| self.words.get(word));
            for (place, weight) in places.into_iter().flatten() {
                if let Some(score) = scores.get_mut(*place) {
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

    /// The documents whose name, server or text the pattern matches, in their order. Between two
    /// of them `may_go_on` is asked.
    pub fn matching(
        &self,
        pattern: &str,
        mut may_go_on: impl FnMut() -> bool,
    ) -> Result<Vec<usize>, BadPattern> {
        let pattern = Pattern::parse(pattern)?;
        let mut places = Vec::new();
        for (place, document) in self.documents.iter().enumerate() {
            if !may_go_on() {
                return Err(BadPattern::TooSlow);
            }
            let name = format!("{}.{}", document.server, document.name);
            let text = first(&document.text, PATTERN_TEXT_BYTES_MAX);
            let name = first(&name, PATTERN_TEXT_BYTES_MAX);
            if pattern.is_in(name) || pattern.is_in(text) {
                places.push(place);
            }
        }
        Ok(places)
    }
}

impl Ranker for Index {
    fn ranked(&self, query: &str) -> Vec<usize> {
        Self::ranked(self, query)
    }
}

/// How often each word occurs in each document, by field, weighted.
fn frequencies(documents: &[Document]) -> HashMap<String, Vec<(usize, f64)>> {
    let mut numbered = Numbered::default();
    let fields: Vec<FieldTexts> = FIELDS
        .iter()
        .map(|field| FieldTexts::read(field, documents, &mut numbered))
        .collect();
    let words = numbered.into_words();
    let mut places: Vec<Vec<(usize, f64)>> = vec![Vec::new(); words.len()];
    for place in 0..documents.len() {
        for field in &fields {
            for (word, weight) in field.words_of(place) {
                let Some(places) = places.get_mut(word) else {
                    continue;
                };
                match places.last_mut().filter(|(at, _)| *at == place) {
                    Some((_, sum)) => *sum += weight,
                    None => places.push((place, weight)),
                }
            }
        }
    }
    words.into_iter().zip(places).collect()
}

/// One field of all documents, each text as the numbers of its words.
struct FieldTexts<'a> {
    field: &'a Field,
    texts: Vec<Vec<usize>>,
    average: f64,
}

impl<'a> FieldTexts<'a> {
    fn read<'d>(field: &'a Field, documents: &'d [Document], numbered: &mut Numbered<'d>) -> Self {
        let text = |document| numbered.read(head((field.of)(document)));
        let texts: Vec<_> = documents.iter().map(text).collect();
        let total: usize = texts.iter().map(Vec::len).sum();
        Self {
            field,
            average: (total as f64 / documents.len().max(1) as f64).max(1e-9),
            texts,
        }
    }

    /// Each word of a document, and what it weighs there.
    fn words_of(&self, place: usize) -> impl Iterator<Item = (usize, f64)> {
        let text = self.texts.get(place).map(Vec::as_slice).unwrap_or_default();
        let length = text.len() as f64 / self.average;
        let weight = self.field.weight / (1.0 + self.field.length_norm * (length - 1.0));
        text.iter().map(move |word| (*word, weight))
    }
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

    fn index() -> Index {
        let document = |server: &str, name: &str, text: &str, parameters: &str| Document {
            name: name.into(),
            server: server.into(),
            text: text.into(),
            parameters: parameters.into(),
            about_parameters: String::new(),
        };
        Index::new(
            [
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
            .into_iter(),
        )
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
        let matching = |pattern: &str| index().matching(pattern, || true);
        assert_eq!(matching("^fs\\."), Ok(vec![0, 1]));
        assert_eq!(matching("(?i)E-MAIL"), Ok(vec![3]));
        assert_eq!(matching("log$"), Ok(vec![2]));
        assert!(matching("(").is_err() && matching("a{1000}{1000}").is_err());
    }

    #[test]
    fn a_pattern_is_stopped_between_two_tools_and_reads_only_so_much_of_each() {
        let mut left = 3;
        let stopped = index().matching("log", || {
            left -= 1;
            left > 0
        });
        assert_eq!((stopped, left), (Err(BadPattern::TooSlow), 0));
        let long = |before: usize| Document {
            text: "-".repeat(before) + "needle",
            ..Document::default()
        };
        let index = Index::new([0, PATTERN_TEXT_BYTES_MAX].map(long).into_iter());
        assert_eq!(index.matching("needle", || true), Ok(vec![0]));
        // What is slow at each byte is refused for its size.
        let large = index.matching("[ab].{4000}[cd]", || true);
        assert_eq!(large, Err(BadPattern::TooLarge));
    }

    #[test]
    fn an_index_of_nothing_finds_nothing() {
        let index = Index::new(std::iter::empty());
        assert_eq!(index.ranked("file"), Vec::<usize>::new());
        assert_eq!(index.matching(".*", || true), Ok(Vec::new()));
    }
}
