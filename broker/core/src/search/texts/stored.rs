//! Stores split texts as bytes, so that they need not be split again. Inconsistent bytes are
//! rejected. The bytes do not identify the texts from which they were made.

use std::sync::Arc;

use super::IndexedTexts;
use crate::search::FIELDS;

/// Version of the format; raised whenever a text would be split differently.
const VERSION: u32 = 1;

impl IndexedTexts {
    /// Returns `None` if a word or the vocabulary is too large for the format.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(2 * self.numbers.len() + 16 * self.words.len());
        let count = |bytes: &mut Vec<u8>, it: usize| {
            bytes.extend(u32::try_from(it).ok()?.to_le_bytes());
            Some(())
        };
        bytes.extend(VERSION.to_le_bytes());
        count(&mut bytes, self.words.len())?;
        count(&mut bytes, self.ends.len())?;
        for word in &self.words {
            bytes.push(u8::try_from(word.len()).ok()?);
            bytes.extend(word.as_bytes());
        }
        for end in &self.ends {
            count(&mut bytes, *end)?;
        }
        for number in &self.numbers {
            bytes.extend(u16::try_from(*number).ok()?.to_le_bytes());
        }
        Some(bytes)
    }

    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        if number(&mut rest)? != VERSION {
            return None;
        }
        let (words, ends) = (number(&mut rest)? as usize, number(&mut rest)? as usize);
        // Each word and each end takes at least one byte, so the counts cannot exceed the bytes.
        if words > rest.len() || ends > rest.len() || !ends.is_multiple_of(FIELDS.len()) {
            return None;
        }
        let words = (0..words).map(|_| word(&mut rest));
        let words: Vec<Arc<str>> = words.collect::<Option<_>>()?;
        let ends = (0..ends).map(|_| Some(number(&mut rest)? as usize));
        let ends: Vec<usize> = ends.collect::<Option<_>>()?;
        let (pairs, odd) = rest.as_chunks::<2>();
        let numbers = pairs.iter().map(|it| u32::from(u16::from_le_bytes(*it)));
        let numbers: Vec<u32> = numbers.collect();
        let are_known = numbers.iter().all(|it| (*it as usize) < words.len());
        let are_whole = ends.is_sorted() && ends.last().copied().unwrap_or(0) == numbers.len();
        (odd.is_empty() && are_known && are_whole).then_some(Self {
            words,
            numbers,
            ends,
        })
    }
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*bytes))
}

fn word(rest: &mut &[u8]) -> Option<Arc<str>> {
    let (length, after) = rest.split_first()?;
    let (word, after) = after.split_at_checked(usize::from(*length))?;
    *rest = after;
    std::str::from_utf8(word).ok().map(Arc::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Digest;
    use crate::search::{Document, Index};

    fn documents() -> Vec<Document> {
        let document = |name: &str, text: &str| Document {
            name: name.into(),
            server: "file_store".into(),
            text: text.into(),
            parameters: "path maxCount".into(),
            about_parameters: "Where it is. How MANY of them, 3 at least".into(),
        };
        vec![
            document("readFile", "Reads a file whole, relationally or not."),
            document(
                "HTTPServer2",
                "Größe über 日本; organizations' generalizations",
            ),
            document("", ""),
        ]
    }

    #[test]
    fn stored_texts_round_trip() {
        for documents in [documents(), Vec::new()] {
            let texts = IndexedTexts::build(&documents);
            let bytes = texts.to_bytes().unwrap();
            let again = IndexedTexts::from_bytes(&bytes).unwrap();
            assert_eq!(again.documents(), documents.len());
            assert_eq!(
                (&again.words, &again.numbers),
                (&texts.words, &texts.numbers)
            );
            assert_eq!(again.ends, texts.ends);
            let of = |texts: IndexedTexts| {
                let texts = Arc::new(texts);
                let places = 0..documents.len();
                let places: Vec<_> = places.map(|at| (Arc::clone(&texts), at)).collect();
                Index::build(&places).ranked("read the organization's file")
            };
            assert_eq!(of(again), of(texts));
        }
    }

    #[test]
    fn corrupt_stored_texts_are_rejected() {
        let bytes = IndexedTexts::build(&documents()).to_bytes().unwrap();
        for cut in 0..bytes.len() {
            assert!(IndexedTexts::from_bytes(&bytes[..cut]).is_none(), "{cut}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(IndexedTexts::from_bytes(&longer).is_none());
        for at in 0..bytes.len() {
            for other in [0, 1, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = other;
                let Some(texts) = IndexedTexts::from_bytes(&changed) else {
                    continue;
                };
                let texts = Arc::new(texts);
                let places = 0..texts.documents();
                let places: Vec<_> = places.map(|at| (Arc::clone(&texts), at)).collect();
                let found = Index::build(&places).ranked("file");
                assert!(found.len() <= places.len());
            }
        }
    }

    /// After a change in how texts are split, raise the version and update the digest.
    #[test]
    fn stored_format_depends_on_version() {
        let bytes = IndexedTexts::build(&documents()).to_bytes().unwrap();
        let digest = Digest::sha256(&bytes).to_string();
        assert_eq!(
            (VERSION, digest.as_str()),
            (
                1,
                "sha256:94b7d1960691f448236e16c576b355544cde2c331e07e461fa988b8e78a3c2b3"
            )
        );
    }
}
