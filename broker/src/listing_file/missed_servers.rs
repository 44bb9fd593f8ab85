//! Marks servers without a listing for which an earlier start waited without success. The mark is
//! an empty file in the folder of the listings. Later starts do not wait for a marked server.

use std::path::PathBuf;

use airlock_core::id::Digest;

use super::ListingStore;

impl ListingStore {
    /// Returns whether an earlier start waited without success for the server with this spec.
    pub(crate) fn was_missed(&self, spec: &Digest) -> bool {
        self.missed(spec).exists()
    }

    pub(crate) fn note_missed(&self, spec: &Digest) {
        self.replace(&self.missed(spec), b"");
    }

    /// Removes the file after the server has listed its tools.
    pub(super) fn forget_missed(&self, spec: &Digest) {
        let _ = std::fs::remove_file(self.missed(spec));
    }

    fn missed(&self, spec: &Digest) -> PathBuf {
        self.file(spec).with_extension("missed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir::TempDir;
    use crate::upstream::GroupsAndTags;

    #[test]
    fn server_is_missed_until_listed() {
        let scratch = TempDir::new();
        let (a, b) = (Digest::sha256(b"a"), Digest::sha256(b"b"));
        let listings = ListingStore::new(scratch.path());
        assert!(!listings.was_missed(&a));
        listings.note_missed(&a);
        listings.note_missed(&a);
        assert!(listings.was_missed(&a) && !listings.was_missed(&b));
        assert!(listings.load(&a).is_none());
        listings.store(&a, None, &GroupsAndTags::default(), std::iter::empty());
        assert!(!listings.was_missed(&a));
    }
}
