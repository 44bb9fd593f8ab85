//! All randomness that a script can observe, from the host's seed. The same seed gives the same
//! run.

/// Maximum number of bytes per request for randomness, as in other environments.
pub const BYTES_MAX: usize = 65_536;

/// Returns the error message for a larger request.
pub fn too_many_bytes() -> String {
    format!("at most {BYTES_MAX} random bytes at once")
}

/// A xoshiro256++ generator. It is sufficient for `Math.random` and identifiers; scripts never
/// generate secrets.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        // SplitMix64 spreads any seed, including zero, over the whole state.
        let mut mixed = seed;
        let mut word = || {
            mixed = mixed.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = mixed;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        Self {
            state: [word(), word(), word(), word()],
        }
    }

    pub fn word(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let word = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        word
    }

    /// Returns a number evenly distributed over `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        const STEPS: f64 = (1_u64 << 53) as f64;
        (self.word() >> 11) as f64 / STEPS
    }

    /// Returns a UUID of version 4.
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.word(), self.word());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | (low >> 48) & 0x3fff,
            low & 0xffff_ffff_ffff
        )
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.word().to_le_bytes();
            for (byte, chance) in chunk.iter_mut().zip(word) {
                *byte = chance;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn the_same_seed_gives_the_same_words() {
        let mut one = Rng::new(7);
        let mut two = Rng::new(7);
        assert!((0..100).all(|_| one.word() == two.word()));
    }

    #[test]
    fn a_uuid_says_its_version() {
        let mut chance = Rng::new(7);
        for _ in 0..100 {
            let uuid = chance.uuid();
            let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12]);
            assert_eq!(uuid.as_bytes()[14], b'4');
            assert!(b"89ab".contains(&uuid.as_bytes()[19]));
        }
    }

    #[test]
    fn units_stay_below_one() {
        let mut chance = Rng::new(0);
        assert!((0..10_000).all(|_| (0.0..1.0).contains(&chance.unit())));
    }
}
