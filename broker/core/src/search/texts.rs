//! The words of documents, field by field, as numbers of words in one vocabulary. This part of an
//! index depends only on its own documents. It is built when the texts arrive, so that an index
//! over many servers only joins such parts.

mod stored;

use std::sync::Arc;

use super::words::NumberedWords;
use super::{Document, FIELDS, head};

/// Documents that were split into words. Positions follow the order in which the documents were
/// given.
#[derive(Debug, Clone, Default)]
pub struct IndexedTexts {
    pub(super) words: Vec<Arc<str>>,
    /// Word numbers of all fields of all documents, in order.
    numbers: Vec<u32>,
    /// The end of each field in `numbers`.
    ends: Vec<usize>,
}

impl IndexedTexts {
    #[must_use]
    pub fn build(documents: &[Document]) -> Self {
        let mut numbered = NumberedWords::default();
        let (mut numbers, mut ends) = (Vec::new(), Vec::new());
        for document in documents {
            for field in &FIELDS {
                numbers.extend(numbered.read(head((field.of)(document))));
                ends.push(numbers.len());
            }
        }
        Self {
            words: numbered.into_words(),
            numbers,
            ends,
        }
    }

    /// Returns the number of documents.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.ends.len() / FIELDS.len()
    }

    /// Returns the words of one field of a document, in their order.
    pub(super) fn field(&self, place: usize, field: usize) -> &[u32] {
        let at = place * FIELDS.len() + field;
        let end = self.ends.get(at).copied().unwrap_or_default();
        let before = at.checked_sub(1).and_then(|it| self.ends.get(it));
        let from = before.copied().unwrap_or_default();
        self.numbers.get(from..end).unwrap_or_default()
    }
}
