//! The hash function for words. A thousand descriptions have tens of thousands of words, each
//! looked up once or twice, and the standard library's hash would take most of the indexing time.
//! Servers choose these words, so each process and each table has its own seed. The hashes are
//! never exposed.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use foldhash::SharedSeed;
use foldhash::fast::{FoldHasher, SeedableRandomState};

static OF_PROCESS: LazyLock<SharedSeed> = LazyLock::new(|| SharedSeed::from_u64(chance()));

#[derive(Debug, Clone)]
pub(super) struct Hash(SeedableRandomState);

impl Default for Hash {
    fn default() -> Self {
        Self(SeedableRandomState::with_seed(chance(), &OF_PROCESS))
    }
}

impl BuildHasher for Hash {
    type Hasher = FoldHasher<'static>;

    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}

/// Returns a random seed from the same source as the standard library's tables.
fn chance() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_stable_per_table_only() {
        let (one, other) = (Hash::default(), Hash::default());
        let hashes = |by: &Hash| ["read", "file", ""].map(|word| by.hash_one(word));
        assert_eq!(hashes(&one), hashes(&one.clone()));
        assert_ne!(hashes(&one), hashes(&other));
    }
}
