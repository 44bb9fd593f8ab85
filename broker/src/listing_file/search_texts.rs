//! Stores the search texts of a listing in a file next to the listing, because building them takes
//! most of the time between a start and the first answer. A stored file is used only if it is
//! complete and was built from exactly the same tools. Otherwise the texts are built again.

use std::path::PathBuf;

use airlock_core::id::Digest;
use airlock_core::search::IndexedTexts;

use super::ListingStore;

/// Length of the digest at the beginning of a file.
const DIGEST_BYTES: usize = size_of::<Digest>();
/// Maximum size of a file in bytes, no larger than a listing.
const BYTES_MAX: u64 = 24 * 1024 * 1024;

impl ListingStore {
    /// Loads the search texts of the server with this spec, if they were built from `tools`.
    pub(crate) fn load_words(&self, spec: &Digest, tools: &Digest) -> Option<IndexedTexts> {
        let path = self.words(spec);
        if std::fs::metadata(&path).ok()?.len() > BYTES_MAX {
            return None;
        }
        let bytes = std::fs::read(path).ok()?;
        let (digest, texts) = bytes.split_at_checked(DIGEST_BYTES)?;
        let is_whole = digest == sealed(tools, texts).0;
        is_whole.then(|| IndexedTexts::from_bytes(texts)).flatten()
    }

    pub(crate) fn store_words(&self, spec: &Digest, tools: &Digest, texts: &IndexedTexts) {
        if let Some(texts) = texts.to_bytes() {
            let whole = [&sealed(tools, &texts).0, &texts[..]].concat();
            self.replace(&self.words(spec), &whole);
        }
    }

    fn words(&self, spec: &Digest) -> PathBuf {
        self.file(spec).with_extension("words")
    }
}

/// Returns the digest at the beginning of a file. It shows from which tools the texts were built,
/// and that they are complete.
fn sealed(tools: &Digest, texts: &[u8]) -> Digest {
    Digest::sha256(&[&tools.0, texts].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir::TempDir;
    use airlock_core::search::Document;

    #[test]
    fn stored_words_match_their_tools_or_are_ignored() {
        let scratch = TempDir::new();
        let listings = ListingStore::new(scratch.path());
        let (spec, tools) = (Digest::sha256(b"spec"), Digest::sha256(b"tools"));
        assert!(listings.load_words(&spec, &tools).is_none());
        let document = Document {
            name: "read_file".into(),
            ..Document::default()
        };
        let texts = IndexedTexts::build(&[document]);
        listings.store_words(&spec, &tools, &texts);
        let loaded = |tools: &Digest| listings.load_words(&spec, tools);
        let bytes = texts.to_bytes();
        assert_eq!(loaded(&tools).and_then(|it| it.to_bytes()), bytes);
        assert!(loaded(&Digest::sha256(b"other tools")).is_none());
        assert!(listings.load_words(&tools, &tools).is_none());
        let path = listings.words(&spec);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            assert!(loaded(&tools).is_none(), "{at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(loaded(&tools).is_none(), "{at}");
        }
        // Damaged files are replaced, and no temporary file is left.
        listings.store_words(&spec, &tools, &texts);
        assert!(loaded(&tools).is_some());
        assert_eq!(
            std::fs::read_dir(scratch.path().join("listings"))
                .unwrap()
                .count(),
            1
        );
    }
}
