//! The words of some documents, field by field, as numbers into one vocabulary:
//! the part of an index that has to read the texts. It can be made where the
//! texts come in, so that an index over many servers is only put together.

mod stored;

use std::sync::Arc;

use super::words::Numbered;
use super::{Document, FIELDS, head};

/// Answers with places in the order in which the documents were given.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    pub(super) words: Vec<Arc<str>>,
    /// Of all fields of all documents, one after the other.
    numbers: Vec<u32>,
    /// Where each field ends in `numbers`.
    ends: Vec<usize>,
}

impl Texts {
    #[must_use]
    pub fn of(documents: &[Document]) -> Self {
        let mut numbered = Numbered::default();
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

    /// How many they are.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.ends.len() / FIELDS.len()
    }

    /// The words of one field of a document, in their order.
    pub(super) fn field(&self, place: usize, field: usize) -> &[u32] {
        let at = place * FIELDS.len() + field;
        let end = self.ends.get(at).copied().unwrap_or_default();
        let before = at.checked_sub(1).and_then(|it| self.ends.get(it));
        let from = before.copied().unwrap_or_default();
        self.numbers.get(from..end).unwrap_or_default()
    }
}
