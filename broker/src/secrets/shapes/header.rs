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
/// Schemes of `Authorization` headers that are followed by one word, the credential.
const SCHEMES: [&str; 10] = [
    "bearer",
    "basic",
    "token",
    "apikey",
    "bot",
    "negotiate",
    "key",
    "ssws",
    "splunk",
    "geniekey",
];
/// The credential of an unknown scheme: a run that is long enough and has a digit.
const OPAQUE: Run = with_digit(is_credential, 16);

/// Returns the credential in the value of a header that consists of a scheme and one more word. After
/// an unknown scheme, the word must look like a token, because it could be part of a passphrase.
pub(in crate::secrets) fn token_after_scheme(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim_start();
    let is_one_word = !token.contains(char::is_whitespace);
    let is_token = || OPAQUE.end(token.as_bytes(), 0) == Some(token.len());
    (is_one_word && (is_scheme(scheme) || is_token())).then_some(token)
}

fn is_scheme(word: &str) -> bool {
    SCHEMES.iter().any(|it| word.eq_ignore_ascii_case(it))
}

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
    // Schemes are short. Only a limited number of characters is read, because a text can repeat the
    // name many times.
    let bound = text.len().min(from + super::LOOKED_AT_BYTES);
    let end = end_of_run(text.get(..bound)?, from, is_credential);
    let scheme = text.get(from..end)?;
    if !std::str::from_utf8(scheme).is_ok_and(is_scheme) {
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
