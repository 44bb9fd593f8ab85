//! Ranks documents by meaning: by the distance between a document's embedding vector and the
//! query's.

use std::collections::HashMap;
use std::sync::Arc;

use super::model::Model;
use super::ranker::Ranker;
use super::{Document, head};
use crate::id::Digest;

/// Maximum number of results. Every document has some similarity with a query, so further results
/// are irrelevant.
const FOUND_MAX: usize = 50;

/// One unit vector per document, in the order of the documents.
#[derive(Debug, Clone)]
pub struct Vectors {
    model: Arc<Model>,
    of: Vec<(Digest, Arc<[f32]>)>,
}

impl Vectors {
    /// Computes the vectors. Unchanged documents keep their vectors from `before`.
    #[must_use]
    pub fn new(model: Arc<Model>, documents: &[Document], before: Option<&Self>) -> Self {
        let known: HashMap<Digest, &Arc<[f32]>> = before
            .filter(|before| Arc::ptr_eq(&before.model, &model))
            .into_iter()
            .flat_map(|before| before.of.iter().map(|(digest, vector)| (*digest, vector)))
            .collect();
        let of = |document: &Document| {
            let text = text_of(document);
            let digest = Digest::sha256(text.as_bytes());
            let vector = match known.get(&digest) {
                Some(vector) => Arc::clone(vector),
                None => unit(model.embed(&text)).into(),
            };
            (digest, vector)
        };
        Self {
            of: documents.iter().map(of).collect(),
            model,
        }
    }
}

impl Ranker for Vectors {
    fn ranked(&self, query: &str) -> Vec<usize> {
        let query = unit(self.model.embed(head(query)));
        let closeness = |vector: &[f32]| -> f32 {
            let products = vector.iter().zip(&query).map(|(a, b)| a * b);
            products.sum()
        };
        let scores = self.of.iter().map(|(_, vector)| closeness(vector));
        let mut found: Vec<(usize, f32)> = scores.enumerate().collect();
        found.retain(|(_, score)| *score > 0.0);
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(FOUND_MAX);
        found.into_iter().map(|(place, _)| place).collect()
    }
}

/// Returns a document as a sentence, with the identifier split into words.
fn text_of(document: &Document) -> String {
    let words = document.name.replace(['_', '-', '.', '/'], " ");
    let text = head(&document.text);
    format!("{} {words}. {text}", document.server)
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|it| it * it).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|it| *it /= length);
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::tiny;
    use super::*;

    fn documents(texts: &[&str]) -> Vec<Document> {
        let of = |text: &&str| Document {
            text: (*text).into(),
            ..Document::default()
        };
        texts.iter().map(of).collect()
    }

    #[test]
    fn synonyms_have_close_vectors() {
        let model = Arc::new(tiny());
        let all = documents(&["deletes a file", "sends a letter", "unknown words"]);
        let vectors = Vectors::new(model, &all, None);
        assert_eq!(vectors.ranked("removes"), [0]);
        assert_eq!(vectors.ranked("mails"), [1]);
        assert_eq!(vectors.ranked("quite another"), Vec::<usize>::new());
        assert_eq!(vectors.ranked(""), Vec::<usize>::new());
    }

    #[test]
    fn unchanged_document_keeps_its_vector() {
        let model = Arc::new(tiny());
        let before = documents(&["deletes a file", "sends a letter"]);
        let before = Vectors::new(Arc::clone(&model), &before, None);
        let now = documents(&["mails", "deletes a file"]);
        let after = Vectors::new(model, &now, Some(&before));
        assert!(Arc::ptr_eq(&before.of[0].1, &after.of[1].1));
        assert!(
            !after
                .of
                .iter()
                .any(|it| Arc::ptr_eq(&before.of[1].1, &it.1))
        );
        let other = Vectors::new(Arc::new(tiny()), &now, Some(&before));
        assert!(!Arc::ptr_eq(&before.of[0].1, &other.of[1].1));
    }
}
