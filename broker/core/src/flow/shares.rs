//! Finds the earlier results that an argument field repeats, as plain text or in a simple encoding.
//! The approver sees these results as evidence. A field for which none is found may still repeat a
//! result, so rules must not treat such a field as safe.

use std::collections::{BTreeMap, HashMap};

use crate::id::CallId;

/// Length of the compared pieces, in letters and digits.
const PIECE: usize = 12;
/// Minimum length of a whole text that is compared, such as a code of six digits.
const WHOLE_MIN: usize = 6;
/// Maximum number of pieces kept per run; later pieces are not compared.
const PIECES_MAX: usize = 64 * 1024;
/// Maximum number of bytes of one field that are compared.
const FIELD_BYTES_MAX: usize = 64 * 1024;

/// The pieces of all results that a run has received.
#[derive(Debug, Default)]
pub(super) struct Pieces(HashMap<u64, CallId>);

impl Pieces {
    pub(super) fn add(&mut self, call: CallId, text: &str) {
        let plain = plain(text);
        if let Some(whole) = whole(&plain) {
            self.put(whole, call);
        }
        for piece in windows(&plain) {
            if self.0.len() >= PIECES_MAX {
                return;
            }
            self.put(piece, call);
        }
    }

    /// Stores a piece. A piece that occurs in several results belongs to the first of them.
    fn put(&mut self, piece: u64, call: CallId) {
        if self.0.len() < PIECES_MAX {
            self.0.entry(piece).or_insert(call);
        }
    }

    /// Returns how many pieces of each earlier result a text contains, in the encoding with the
    /// most matches.
    pub(super) fn found_in(&self, text: &str) -> BTreeMap<CallId, u32> {
        let mut best = BTreeMap::new();
        if self.0.is_empty() {
            return best;
        }
        let text = cut(text);
        for reading in readings(text) {
            for (call, pieces) in self.count(&reading) {
                let known: &mut u32 = best.entry(call).or_default();
                *known = pieces.max(*known);
            }
        }
        best
    }

    fn count(&self, reading: &str) -> BTreeMap<CallId, u32> {
        let mut found: BTreeMap<CallId, u32> = BTreeMap::new();
        let whole_words = reading.split(|c: char| !c.is_alphanumeric());
        let words = whole_words.filter_map(|word| whole(&plain(word)));
        let text = plain(reading);
        for piece in windows(&text).chain(words).chain(whole(&text)) {
            if let Some(call) = self.0.get(&piece) {
                let pieces = found.entry(*call).or_default();
                *pieces = pieces.saturating_add(1);
            }
        }
        found
    }
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(FIELD_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Returns letters and digits in lower case, so that spaces, line ends and punctuation cannot hide
/// a repetition.
fn plain(text: &str) -> Vec<char> {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

fn whole(plain: &[char]) -> Option<u64> {
    (WHOLE_MIN..PIECE)
        .contains(&plain.len())
        .then(|| hash(plain))
}

fn windows(plain: &[char]) -> impl Iterator<Item = u64> + '_ {
    plain.windows(PIECE).map(hash)
}

/// Computes the FNV-1a hash. A collision only causes a wrong hint to a person.
fn hash(piece: &[char]) -> u64 {
    piece.iter().fold(0xcbf2_9ce4_8422_2325, |hash, c| {
        (hash ^ u64::from(u32::from(*c))).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the text itself, the text backwards, and its percent-, base64- and hex-decoded forms.
fn readings(text: &str) -> Vec<String> {
    let mut readings = vec![text.to_owned(), text.chars().rev().collect()];
    if text.contains('%') {
        readings.push(percent_decoded(text));
    }
    let runs = text.split(|c: char| !(c.is_ascii_alphanumeric() || "+/-_".contains(c)));
    for run in runs.filter(|run| run.len() >= 8) {
        readings.extend(hex(run));
        readings.extend(base64(run));
    }
    readings
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let decoded = (*byte == b'%')
            .then(|| pair(after.first(), after.get(1)))
            .flatten();
        bytes.push(decoded.unwrap_or(*byte));
        rest = if decoded.is_some() {
            after.get(2..).unwrap_or_default()
        } else {
            after
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(run: &str) -> Option<String> {
    if !run.len().is_multiple_of(2) || !run.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let bytes: Option<Vec<u8>> = run
        .as_bytes()
        .chunks(2)
        .map(|two| pair(two.first(), two.get(1)))
        .collect();
    readable(&bytes?)
}

fn pair(high: Option<&u8>, low: Option<&u8>) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high?)? * 16 + digit(low?)?).ok()
}

fn base64(run: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(run.len());
    let (mut bits, mut held) = (0_u32, 0_u32);
    for byte in run.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).ok()?);
        }
    }
    readable(&bytes)
}

fn readable(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let odd = text.chars().filter(|c| *c == '\u{fffd}').count();
    (odd * 4 < text.chars().count()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "The merger with Initech closes on Friday at nine.";

    fn check(field: &str, found: bool) {
        let mut pieces = Pieces::default();
        pieces.add(CallId(1), "something else entirely, of no interest");
        pieces.add(CallId(2), SECRET);
        pieces.add(CallId(3), "834512");
        let calls: Vec<_> = pieces.found_in(field).into_keys().collect();
        let expected = if found { vec![CallId(2)] } else { Vec::new() };
        assert_eq!(calls, expected, "{field}");
    }

    #[test]
    fn repeated_text_is_found_through_simple_encodings() {
        check(SECRET, true);
        check("fyi: THE MERGER, WITH INITECH", true);
        check("t h e m e r g e r w i t h i n i t e c h", true);
        check(&SECRET.chars().rev().collect::<String>(), true);
        check(
            "x=VGhlIG1lcmdlciB3aXRoIEluaXRlY2ggY2xvc2VzIG9uIEZyaWRheQ==",
            true,
        );
        check("546865206d6572676572207769746820496e6974656368", true);
        check("%54%68%65%20%6d%65rger%20with%20Initech", true);
        check("a harmless note about lunch", false);
    }

    #[test]
    fn short_code_is_found_as_whole_word() {
        let mut pieces = Pieces::default();
        pieces.add(CallId(3), "834512");
        assert_eq!(pieces.found_in("your code is 834512.").len(), 1);
        assert_eq!(pieces.found_in("8345120").len(), 0);
    }
}
