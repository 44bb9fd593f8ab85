//! Finds the end of text that can be copied unchanged, eight bytes at a time.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// A range of bytes inside a string without a quote, backslash or control character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlainRun {
    pub(crate) length: usize,
    pub(super) is_ascii: bool,
}

/// Returns the range at the beginning of `text`.
pub(crate) fn plain(text: &[u8]) -> PlainRun {
    let (words, rest) = text.as_chunks::<8>();
    let mut length = 0;
    let mut seen = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let ends = ends(word);
        if ends != 0 {
            // Flags above the lowest one may be wrong; the lowest one is exact.
            let before = ends.trailing_zeros() / 8;
            seen |= word & !(u64::MAX << (8 * before));
            length += before as usize;
            return PlainRun {
                length,
                is_ascii: seen & HIGHS == 0,
            };
        }
        seen |= word;
        length += 8;
    }
    for &byte in rest {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            break;
        }
        seen |= u64::from(byte);
        length += 1;
    }
    PlainRun {
        length,
        is_ascii: seen & HIGHS == 0,
    }
}

/// Returns the high bit of each byte that ends a range; exact for the lowest such byte.
const fn ends(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let is_quote = quote.wrapping_sub(ONES) & !quote;
    let is_backslash = backslash.wrapping_sub(ONES) & !backslash;
    let is_control = word.wrapping_sub(ONES * 0x20) & !word;
    (is_quote | is_backslash | is_control) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_the_first_byte_that_needs_more_wherever_it_stands() {
        for length in 0..40 {
            for end in [b'"', b'\\', 0x1f, 0, b'\n'] {
                let mut text = vec![b'x'; length];
                text.push(end);
                text.extend_from_slice("\"é\u{1}".as_bytes());
                assert_eq!(
                    plain(&text),
                    PlainRun {
                        length,
                        is_ascii: true
                    },
                    "{length} {end}"
                );
            }
        }
    }

    #[test]
    fn every_byte_is_judged_alike_at_every_place() {
        for byte in 0..=u8::MAX {
            let ends = byte == b'"' || byte == b'\\' || byte < 0x20;
            for place in 0..17 {
                let mut text = [b'a'; 17];
                text[place] = byte;
                let expected = PlainRun {
                    length: if ends { place } else { text.len() },
                    is_ascii: ends || byte < 0x80,
                };
                assert_eq!(plain(&text), expected, "{byte} at {place}");
            }
        }
    }
}
