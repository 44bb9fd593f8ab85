//! Tokens that only airlock can issue: states of waiting runs, and handles of sessions. The key is
//! in the state directory, so that handles outlive a restart.

use std::io;

use ring::hmac;

use crate::private_file::{StateDir, read_or_create_secret};

const TOKEN_BYTES: usize = 16;

#[derive(Debug, Clone)]
pub(super) struct Seal {
    key: hmac::Key,
}

/// The content of a sealed text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenedSeal {
    pub(super) token: String,
}

#[derive(Debug, thiserror::Error)]
pub enum SealKeyError {
    #[error("the operating system gives no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    #[error("{path} cannot be used as the key of session handles: {cause}")]
    File { path: String, cause: io::Error },
}

const KEY_BYTES: usize = 32;
const KEY_FILE: &str = "serve/seal.key";

/// Returns a random text that cannot be guessed.
pub(super) fn token() -> Result<String, SealKeyError> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

impl Seal {
    /// Reads the key from the state directory, or creates it there.
    pub(super) fn open(state: &StateDir) -> Result<Self, SealKeyError> {
        let path = state.path().join(KEY_FILE);
        let key = read_or_create_secret(&path, KEY_BYTES);
        let key = key.map_err(|cause| SealKeyError::File {
            path: path.display().to_string(),
            cause,
        })?;
        Ok(Self::new(&key))
    }

    fn new(key: &[u8]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
        }
    }

    /// Seals a token. `bound` describes what the token is valid for and is not part of the result.
    pub(super) fn seal(&self, token: &str, bound: &str) -> String {
        let tag = hmac::sign(&self.key, signed(token, bound).as_bytes());
        format!("{token}.{}", hex(tag.as_ref()))
    }

    pub(super) fn unseal(&self, text: &str, bound: &str) -> Option<OpenedSeal> {
        let (token, tag) = text.split_once('.')?;
        let tag = unhex(tag)?;
        hmac::verify(&self.key, signed(token, bound).as_bytes(), &tag).ok()?;
        Some(OpenedSeal {
            token: token.to_owned(),
        })
    }
}

/// Joins token and binding without ambiguity, because a token contains no line break.
fn signed(token: &str, bound: &str) -> String {
    format!("{token}\n{bound}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    const TAG_CHARS: usize = 64;
    // Only lower-case digits are accepted, so each token has exactly one spelling, and texts can be
    // compared.
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != TAG_CHARS || !text.bytes().all(is_digit) {
        return None;
    }
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_seal_for_same_purpose_opens() {
        let (ours, theirs) = (Seal::new(&[1; KEY_BYTES]), Seal::new(&[2; KEY_BYTES]));
        let token = token().unwrap();
        let sealed = ours.seal(&token, "session a");
        let expected = Some(OpenedSeal {
            token: token.clone(),
        });
        assert_eq!(ours.unseal(&sealed, "session a"), expected);
        assert_eq!(ours.unseal(&sealed, "session b"), None);
        assert_eq!(theirs.unseal(&sealed, "session a"), None);
        let forged = sealed.replacen(
            &token[..1],
            if token.starts_with('0') { "1" } else { "0" },
            1,
        );
        for text in ["", ".", &token, &forged, &sealed[..sealed.len() - 1], "é.é"] {
            assert_eq!(ours.unseal(text, "session a"), None, "{text}");
        }
        let (token, tag) = sealed.split_once('.').unwrap();
        let other = format!("{token}.{}", tag.to_uppercase());
        assert!(other == sealed || ours.unseal(&other, "session a").is_none());
    }
}
