//! Beside the listings, an empty file for each server that has none because a
//! start waited for it in vain: no later start waits for it again.

use std::path::PathBuf;

use airlock_core::id::Digest;

use super::Listings;

impl Listings {
    /// Whether a start has waited in vain for the server with this spec.
    pub(crate) fn was_missed(&self, spec: &Digest) -> bool {
        self.missed(spec).exists()
    }

    pub(crate) fn note_missed(&self, spec: &Digest) {
        self.replace(&self.missed(spec), b"");
    }

    /// It has come.
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
    use crate::scratch::Scratch;

    #[test]
    fn a_server_is_missed_until_it_lists() {
        let scratch = Scratch::new();
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let listings = Listings::new(scratch.path());
        assert!(!listings.was_missed(&a));
        listings.note_missed(&a);
        listings.note_missed(&a);
        assert!(listings.was_missed(&a) && !listings.was_missed(&b));
        assert!(listings.load(&a).is_none());
        listings.store(&a, None, std::iter::empty());
        assert!(!listings.was_missed(&a));
    }
}
