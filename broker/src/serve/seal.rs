//! Tokens that only this process can have made: states of runs that wait, and
//! handles of sessions. The key lives as long as the process.

use ring::hmac;

const TOKEN_BYTES: usize = 16;

#[derive(Debug, Clone)]
pub(super) struct Seal {
    key: hmac::Key,
}

/// What stood in a sealed text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sealed {
    pub(super) token: String,
}

#[derive(Debug, thiserror::Error)]
#[error("the operating system gives no random numbers: {0}")]
pub struct NoKey(#[from] getrandom::Error);

/// A text that nobody can guess.
pub(super) fn token() -> Result<String, NoKey> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

impl Seal {
    pub(super) fn new() -> Result<Self, NoKey> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
        })
    }

    /// `bound` says what the token is good for, and does not stand in the text.
    pub(super) fn seal(&self, token: &str, bound: &str) -> String {
        let tag = hmac::sign(&self.key, signed(token, bound).as_bytes());
        format!("{token}.{}", hex(tag.as_ref()))
    }

    pub(super) fn open(&self, text: &str, bound: &str) -> Option<Sealed> {
        let (token, tag) = text.split_once('.')?;
        let tag = unhex(tag)?;
        hmac::verify(&self.key, signed(token, bound).as_bytes(), &tag).ok()?;
        Some(Sealed {
            token: token.to_owned(),
        })
    }
}

/// Neither part can reach into the other: a token has no line end.
fn signed(token: &str, bound: &str) -> String {
    format!("{token}\n{bound}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    const TAG_CHARS: usize = 64;
    // One spelling each: nothing that is compared as text stands for the same in another.
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
    fn only_what_was_sealed_here_for_this_purpose_opens() {
        let (ours, theirs) = (Seal::new().unwrap(), Seal::new().unwrap());
        let token = token().unwrap();
        let sealed = ours.seal(&token, "session a");
        let expected = Some(Sealed {
            token: token.clone(),
        });
        assert_eq!(ours.open(&sealed, "session a"), expected);
        assert_eq!(ours.open(&sealed, "session b"), None);
        assert_eq!(theirs.open(&sealed, "session a"), None);
        let forged = sealed.replacen(
            &token[..1],
            if token.starts_with('0') { "1" } else { "0" },
            1,
        );
        for text in ["", ".", &token, &forged, &sealed[..sealed.len() - 1], "é.é"] {
            assert_eq!(ours.open(text, "session a"), None, "{text}");
        }
        let (token, tag) = sealed.split_once('.').unwrap();
        let other = format!("{token}.{}", tag.to_uppercase());
        assert!(other == sealed || ours.open(&other, "session a").is_none());
    }
}
