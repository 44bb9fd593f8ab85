//! Finds credentials in `Authorization` headers and in assignments, however they are written: as a
//! line of HTTP, as JSON, in source code or on a command line.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::{Run, end_of_run, with_digit};

/// Maximum number of characters between a name and its value.
const BETWEEN_BYTES_MAX: usize = 16;
/// Maximum length of credentials that are decoded to find out what they are.
const DECODED_BYTES_MAX: usize = 4_096;
/// A value that is a credential even if nothing says so.
const OPAQUE: Run = with_digit(is_credential, 16);

/// Returns where the value of an assignment begins, after the end of its name.
pub(super) fn value(text: &[u8], name_end: usize) -> Option<usize> {
    let rest = text.get(name_end..)?;
    let is_between = |byte: &&u8| b" \t\"'`\\:=>,".contains(byte);
    let between = rest
        .iter()
        .take(BETWEEN_BYTES_MAX)
        .take_while(is_between)
        .count();
    (between > 0).then_some(name_end + between)
}

/// Returns the credentials in the value of an `Authorization` header.
pub(super) fn authorization(text: &[u8], name_end: usize) -> Option<Range<usize>> {
    let from = value(text, name_end)?;
    // Schemes are short. The look ahead is bounded, since a text can repeat the name.
    let bound = text.len().min(from + super::LOOKED_AT_BYTES);
    let end = end_of_run(text.get(..bound)?, from, is_credential);
    let scheme = text.get(from..end)?;
    let is_scheme = [
        "bearer",
        "basic",
        "token",
        "apikey",
        "bot",
        "negotiate",
        "key",
    ]
    .iter()
    .any(|it| scheme.eq_ignore_ascii_case(it.as_bytes()));
    if !is_scheme {
        return Some(from..OPAQUE.end(text, from)?);
    }
    let rest = text.get(end..)?;
    let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
    let from = end + spaces;
    let end = end_of_run(text, from, is_credential);
    (spaces > 0 && end > from).then_some(from..end)
}

/// Returns the credentials after `Bearer `.
pub(super) fn bearer(text: &[u8], from: usize) -> Option<Range<usize>> {
    Some(from..OPAQUE.end(text, from)?)
}

/// Returns the credentials after `Basic `, which encode a name, a colon and a password.
pub(super) fn basic(text: &[u8], from: usize) -> Option<Range<usize>> {
    let end = end_of_run(text, from, is_credential);
    let encoded = text.get(from..end)?;
    if encoded.len() > DECODED_BYTES_MAX {
        return Some(from..end);
    }
    let padding = encoded
        .iter()
        .rev()
        .take_while(|byte| **byte == b'=')
        .count();
    let decoded = STANDARD_NO_PAD
        .decode(encoded.get(..encoded.len() - padding)?)
        .ok()?;
    let is_text = std::str::from_utf8(&decoded).is_ok_and(|it| !it.contains(char::is_control));
    let is_pair = is_text && decoded.contains(&b':');
    is_pair.then_some(from..end)
}

/// The characters of credentials in a header (`token68` of RFC 9110).
fn is_credential(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}
