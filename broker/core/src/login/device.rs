//! The device authorization grant (RFC 8628): the person enters a code on a page of the authorization
//! server, on any device, and the client asks again and again whether they have.

use std::fmt;

use serde_json::Value;
use url::Url;

use super::address::{Network, checked};
use super::client::SECRET_BYTES_MIN;
use super::error::{LoginError, shown};
use super::metadata::{object, text};
use super::request::Answer;
use super::token;

/// Maximum length of the code that the person enters.
const USER_CODE_CHARS_MAX: usize = 64;
/// The pause between two questions, if the server names none, and the longest one.
const PAUSE_DEFAULT_S: u64 = 5;
const PAUSE_MAX_S: u64 = 60;
/// What RFC 8628 adds to the pause after `slow_down`.
const SLOW_DOWN_MS: u64 = 5_000;
/// Longest time for the person, whatever the server allows.
const LIFE_MAX_S: u64 = 30 * 60;

/// What the person is told.
#[derive(Clone, PartialEq, Eq)]
pub struct DevicePrompt {
    pub address: Url,
    pub user_code: String,
    /// With this code, the client asks for the token. It must never be shown.
    pub device_code: String,
}

impl fmt::Debug for DevicePrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DevicePrompt({})", self.address)
    }
}

/// A device code, and when to ask about it.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) prompt: DevicePrompt,
    pub(super) pause_ms: u64,
    ends_at_ms: u64,
}

impl Device {
    pub(super) fn read(
        answer: &Answer<'_>,
        network: Network,
        now_ms: u64,
    ) -> Result<Self, LoginError> {
        match answer.status {
            200 => {}
            300..=399 => {
                return Err(LoginError::Redirected {
                    what: "device authorization endpoint",
                });
            }
            _ => return Err(token::refused_answer(answer, "device login")),
        }
        let object = object(answer.body).map_err(LoginError::Token)?;
        let invalid = |why: &str| LoginError::Token(why.to_owned());
        let address = text(&object, "verification_uri");
        let address = address.ok_or_else(|| invalid("it has no `verification_uri`"))?;
        let address = checked(address, network).map_err(|why| LoginError::Address {
            what: "verification_uri",
            why,
        })?;
        let is_code = |code: &&str| {
            !code.is_empty() && code.chars().count() <= USER_CODE_CHARS_MAX && **code == shown(code)
        };
        let user_code = text(&object, "user_code").filter(is_code);
        let user_code = user_code.ok_or_else(|| invalid("it has no usable `user_code`"))?;
        let is_secret = |code: &&str| code.len() >= SECRET_BYTES_MIN;
        let device_code = text(&object, "device_code").filter(is_secret);
        let device_code = device_code.ok_or_else(|| invalid("it has no usable `device_code`"))?;
        let seconds = |name: &str| object.get(name).and_then(Value::as_u64);
        let pause_s = seconds("interval").unwrap_or(PAUSE_DEFAULT_S);
        let life_s = seconds("expires_in").unwrap_or(LIFE_MAX_S).min(LIFE_MAX_S);
        Ok(Self {
            prompt: DevicePrompt {
                address,
                user_code: user_code.to_owned(),
                device_code: device_code.to_owned(),
            },
            pause_ms: pause_s.clamp(1, PAUSE_MAX_S) * 1_000,
            ends_at_ms: now_ms.saturating_add(life_s * 1_000),
        })
    }

    pub(super) fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.ends_at_ms
    }

    /// Whether the person has not decided yet. The server can ask for longer pauses.
    pub(super) fn is_pending(&mut self, answer: &Answer<'_>) -> bool {
        let object = object(answer.body).unwrap_or_default();
        match text(&object, "error") {
            Some("authorization_pending") => true,
            Some("slow_down") => {
                self.pause_ms = (self.pause_ms + SLOW_DOWN_MS).min(PAUSE_MAX_S * 1_000);
                true
            }
            _ => false,
        }
    }
}
