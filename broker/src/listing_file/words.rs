//! What search has read of a listing, beside it: most of what there is to do
//! between a start and the first answer. It counts only for the very tools that
//! it was read from, and as long as it is whole; otherwise it is read again.

use std::path::PathBuf;

use airlock_core::id::Digest;
use airlock_core::search::Texts;

use super::Listings;

/// Of the digest in front.
const DIGEST_BYTES: usize = size_of::<Digest>();
/// Less than a listing may be.
const BYTES_MAX: u64 = 24 * 1024 * 1024;

impl Listings {
    /// Of the server with this spec, as it was read from `tools`.
    pub(crate) fn load_words(&self, spec: &Digest, tools: &Digest) -> Option<Texts> {
        let path = self.words(spec);
        if std::fs::metadata(&path).ok()?.len() > BYTES_MAX {
            return None;
        }
        let bytes = std::fs::read(path).ok()?;
        let (digest, texts) = bytes.split_at_checked(DIGEST_BYTES)?;
        let is_whole = digest == sealed(tools, texts).0;
        is_whole.then(|| Texts::from_bytes(texts)).flatten()
    }

    pub(crate) fn store_words(&self, spec: &Digest, tools: &Digest, texts: &Texts) {
        if let Some(texts) = texts.to_bytes() {
            let whole = [&sealed(tools, &texts).0, &texts[..]].concat();
            self.replace(&self.words(spec), &whole);
        }
    }

    fn words(&self, spec: &Digest) -> PathBuf {
        self.file(spec).with_extension("words")
    }
}

/// What stands in front says both what it was read from and that it is whole.
fn sealed(tools: &Digest, texts: &[u8]) -> Digest {
    Digest::of(&[&tools.0, texts].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use airlock_core::search::Document;

    #[test]
    fn words_are_those_of_the_same_tools_and_whole_or_none() {
        let scratch = Scratch::new();
        let listings = Listings::new(scratch.path());
        let (spec, tools) = (Digest::of(b"spec"), Digest::of(b"tools"));
        assert!(listings.load_words(&spec, &tools).is_none());
        let document = Document {
            name: "read_file".into(),
            ..Document::default()
        };
        let texts = Texts::of(&[document]);
        listings.store_words(&spec, &tools, &texts);
        let loaded = |tools: &Digest| listings.load_words(&spec, tools);
        let bytes = texts.to_bytes();
        assert_eq!(loaded(&tools).and_then(|it| it.to_bytes()), bytes);
        assert!(loaded(&Digest::of(b"other tools")).is_none());
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
        // Made anew over what is damaged, and nothing is left beside it.
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
