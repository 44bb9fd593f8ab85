//! Finds private keys in PEM. The lines of a key may be quoted, indented, numbered or joined by the
//! two characters `\n`, and one of the two marker lines can be missing because the text was cut.
//! Every search ends at the next marker, so the time is linear even if a text repeats markers.

use std::ops::Range;

/// Maximum length of a key. An RSA key with 16,384 bits takes 12 KiB.
const KEY_BYTES_MAX: usize = 16 * 1024;
/// Maximum length of a marker's label.
const LABEL_BYTES_MAX: usize = 64;
/// Minimum length of a run of base64 that makes a line a part of a key.
const BODY_BYTES_MIN: usize = 16;
/// Maximum number of header lines, such as `DEK-Info: …`.
const HEADERS_MAX: usize = 8;
const DASHES: &[u8] = b"-----";

/// Returns the place of a key, given the place of `-----BEGIN ` or `-----END `.
pub(super) fn find(text: &[u8], floor: usize, start: Range<usize>) -> Option<Range<usize>> {
    let marker_end = marker_end(text, start.end)?;
    if text.get(start.clone())?.ends_with(b"END ") {
        // The marker at the beginning is missing. Otherwise the key would already have been found
        // from that marker.
        let floor = floor.max(start.start.saturating_sub(KEY_BYTES_MAX));
        let before = text.get(floor..start.start)?;
        let body = body_before(before);
        return (body > 0).then(|| start.start - body..marker_end);
    }
    let rest = text.get(marker_end..)?;
    let rest = rest.get(..KEY_BYTES_MAX).unwrap_or(rest);
    let dashes = find_dashes(rest);
    let body = rest.get(..dashes.unwrap_or(rest.len()))?;
    let end = dashes
        .and_then(|at| marker_end_of("END ", text, marker_end + at))
        .filter(|_| is_body(body));
    match (end, body_after(body)) {
        (Some(end), _) => Some(start.start..end),
        (None, 0) => None,
        (None, bytes) => Some(start.start..marker_end + bytes),
    }
}

/// Returns the end of a marker of a private key, given the beginning of its label.
fn marker_end(text: &[u8], label: usize) -> Option<usize> {
    let rest = text.get(label..)?;
    let rest = rest.get(..LABEL_BYTES_MAX + DASHES.len()).unwrap_or(rest);
    let end = find_dashes(rest)?;
    let is_private = rest.get(..end)?.windows(11).any(|it| it == b"PRIVATE KEY");
    is_private.then_some(label + end + DASHES.len())
}

fn marker_end_of(word: &str, text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at + DASHES.len()..)?;
    let is_it = rest.starts_with(word.as_bytes());
    is_it.then(|| marker_end(text, at + DASHES.len() + word.len()))?
}

fn find_dashes(text: &[u8]) -> Option<usize> {
    text.windows(DASHES.len()).position(|it| it == DASHES)
}

/// Returns whether the text between two markers is a key and not, say, source code.
fn is_body(text: &[u8]) -> bool {
    let mut lines = lines(text);
    let is_short = |line: &[u8]| {
        line.iter()
            .all(|byte| is_base64(*byte) || !byte.is_ascii_graphic())
    };
    lines.any(|(line, _)| longest_run(line) >= BODY_BYTES_MIN) || is_short(text)
}

/// Returns how many bytes at the beginning of a text belong to a key, if its end is missing.
fn body_after(text: &[u8]) -> usize {
    let (mut bytes, mut headers) = (0, 0);
    for (line, end) in lines(text) {
        if longest_run(line) >= BODY_BYTES_MIN && !is_header(line) {
            bytes = end;
        } else if bytes > 0 {
            // The last line of a key is short.
            return if is_last(line) { end } else { bytes };
        } else if is_header(line) && headers < HEADERS_MAX {
            headers += 1;
        } else if line.iter().any(u8::is_ascii_alphanumeric) {
            return 0;
        }
    }
    bytes
}

/// Returns how many bytes at the end of a text belong to a key, if its beginning is missing.
fn body_before(text: &[u8]) -> usize {
    let lines: Vec<(&[u8], usize)> = lines(text).collect();
    let (mut from, mut begun) = (text.len(), false);
    for (line, end) in lines.into_iter().rev() {
        let is_long = longest_run(line) >= BODY_BYTES_MIN;
        let is_blank = !line.iter().any(u8::is_ascii_alphanumeric);
        if !is_long && (begun || !(is_blank || is_last(line))) {
            break;
        }
        begun |= is_long;
        if !is_blank {
            from = end - line.len();
        }
    }
    match begun {
        true => text.len() - from.min(text.len()),
        false => 0,
    }
}

/// Splits a text at line ends and at the two characters `\n`. Returns each line and the end of it.
fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|it| !it.is_empty())?;
        let is_end = |pair: &[u8]| matches!(pair, [b'\n' | b'\r', ..] | [b'\\', b'n' | b'r']);
        let long = (0..rest.len()).position(|from| {
            rest.get(from..)
                .is_some_and(|it| is_end(it.get(..2).unwrap_or(it)))
        });
        let length = long.unwrap_or(rest.len());
        let end = at + length;
        let width = match rest.get(length) {
            Some(b'\\') => 2,
            _ => 1,
        };
        at = end + width;
        Some((rest.get(..length)?, end))
    })
}

fn longest_run(line: &[u8]) -> usize {
    let runs = line.split(|byte| !is_base64(*byte));
    let runs = runs.filter(|run| run.iter().any(u8::is_ascii_alphanumeric));
    runs.map(<[u8]>::len).max().unwrap_or(0)
}

fn is_header(line: &[u8]) -> bool {
    let known = [
        "Proc-Type:",
        "DEK-Info:",
        "Version:",
        "Comment:",
        "Hash:",
        "Charset:",
        "MessageID:",
    ];
    let line = String::from_utf8_lossy(line.get(..BODY_BYTES_MIN * 2).unwrap_or(line));
    known.iter().any(|it| line.contains(it))
}

/// Returns whether a short line can end a key. Such a line contains at most one sequence of base64,
/// apart from numbers.
fn is_last(line: &[u8]) -> bool {
    let runs = line
        .split(|byte| !is_base64(*byte))
        .filter(|it| !it.is_empty());
    let words = runs.filter(|run| !run.iter().all(u8::is_ascii_digit));
    words.count() <= 1
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
