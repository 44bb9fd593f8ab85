//! Randomness from the operating system, for run ids and seeds.

use airlock_core::id::RunId;

/// Crockford's alphabet in lower case. Its texts sort like the numbers, and no letter looks like a
/// digit.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TIME_CHARS: u32 = 10;
const CHANCE_CHARS: u32 = 10;

#[derive(Debug, thiserror::Error)]
#[error("the operating system provides no random numbers: {0}")]
pub struct EntropyError(#[from] getrandom::Error);

/// Returns a run id. Ids sort by time, and an id cannot be guessed from an earlier one.
pub(super) fn run_id(now_ms: u64) -> Result<RunId, EntropyError> {
    let text: String = [(now_ms, TIME_CHARS), (getrandom::u64()?, CHANCE_CHARS)]
        .into_iter()
        .flat_map(|(number, chars)| {
            (0..chars)
                .rev()
                .map(move |place| number >> (5 * place) & 31)
        })
        .filter_map(|digit| ALPHABET.get(digit as usize))
        .map(|byte| char::from(*byte))
        .collect();
    Ok(RunId(text.into()))
}

/// Returns a seed that a JSON number represents exactly.
pub(super) fn seed() -> Result<u64, EntropyError> {
    Ok(getrandom::u64()? >> 11)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_sort_by_time_and_are_unique() {
        let ids: Vec<_> = [1, 31, 32, 1_700_000_000_000, 1_700_000_000_001]
            .map(|ms| run_id(ms).unwrap().0.to_string())
            .into();
        assert!(ids.is_sorted(), "{ids:?}");
        assert!(ids.iter().all(|id| id.len() == 20));
        assert_ne!(run_id(1).unwrap(), run_id(1).unwrap());
    }
}
