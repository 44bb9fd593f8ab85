//! How words are hashed: a thousand descriptions are tens of thousands of words,
//! each looked up once or twice, and the hash of the standard library is most of
//! what that costs. Servers choose their words, so that each process and each
//! table has a seed of its own; what is hashed here is never told to anybody.

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

/// What the tables of the standard library start from.
fn chance() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_hashes_alike_and_two_tables_do_not() {
        let (one, other) = (Hash::default(), Hash::default());
        let hashes = |by: &Hash| ["read", "file", ""].map(|word| by.hash_one(word));
        assert_eq!(hashes(&one), hashes(&one.clone()));
        assert_ne!(hashes(&one), hashes(&other));
    }
}
