//! Who may see the page: the signed link that is good once, the cookie and the
//! key that it is exchanged for, and the address and origin that requests must
//! name.
//!
//! A browser sends a cookie to every port of this machine, so whatever else
//! listens here may come to know it. The key it gives to nobody: it goes to the
//! page behind the `#` of an address, and only our own page can send it.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, header};
use ring::hmac;

use super::super::{hex, nonce};
use crate::clock::Clock;

/// A link is opened soon after it was shown.
const LINK_MS: u64 = 10 * 60 * 1_000;
/// A page asks for news all the time; one that has not for so long is closed.
const AWAY_MS: u64 = 30 * 1_000;
/// Where the page sends its key.
pub(super) const KEY_HEADER: &str = "x-airlock-key";

pub(super) struct Gate {
    key: hmac::Key,
    clock: Clock,
    host: String,
    /// With our port in it: pages of two runs are open in one browser.
    cookie: String,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// Of the latest link, until it is used.
    link: Option<Link>,
    /// Who came in last.
    inside: Option<Inside>,
}

/// Under our key, what was given out.
struct Inside {
    cookie: hmac::Tag,
    key: hmac::Tag,
    /// When the page asked for something last.
    seen_ms: u64,
}

/// What a link is exchanged for.
pub(super) struct Entered {
    pub(super) cookie: String,
    pub(super) key: String,
}

struct Link {
    once: String,
    until_ms: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoEntry {
    /// Nobody here signed it.
    Forged,
    /// It was good once.
    Over,
}

impl Gate {
    pub(super) fn new(port: u16) -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            clock: Clock::start(),
            host: format!("127.0.0.1:{port}"),
            cookie: format!("airlock-{port}"),
            open: Mutex::default(),
        })
    }

    pub(super) fn link(&self) -> Result<String, getrandom::Error> {
        let once = nonce()?;
        let until_ms = self.clock.now_ms() + LINK_MS;
        let signature = hmac::sign(&self.key, signed(until_ms, &once).as_bytes());
        let mut link = format!("http://{}/enter?until={until_ms}", self.host);
        let _ = write!(link, "&once={once}&sig={}", hex(signature.as_ref()));
        self.lock().link = Some(Link { once, until_ms });
        Ok(link)
    }

    /// No page is open, and nobody has a link that is still good.
    pub(super) fn wants_link(&self) -> bool {
        let (open, now_ms) = (self.lock(), self.clock.now_ms());
        let is_good = |link: &Link| now_ms < link.until_ms;
        let is_there = |inside: &Inside| now_ms.saturating_sub(inside.seen_ms) < AWAY_MS;
        !open.inside.as_ref().is_some_and(is_there) && !open.link.as_ref().is_some_and(is_good)
    }

    /// Cookie and key, for the first one that brings the latest link.
    pub(super) fn enter(
        &self,
        until_ms: u64,
        once: &str,
        signature: &str,
    ) -> Result<Entered, NoEntry> {
        let tag = unhex(signature).ok_or(NoEntry::Forged)?;
        hmac::verify(&self.key, signed(until_ms, once).as_bytes(), &tag)
            .map_err(|_| NoEntry::Forged)?;
        let mut open = self.lock();
        let is_latest = |link: &Link| link.once == once;
        if self.clock.now_ms() >= until_ms || !open.link.as_ref().is_some_and(is_latest) {
            return Err(NoEntry::Over);
        }
        let (value, key) = nonce()
            .and_then(|value| Ok((value, nonce()?)))
            .map_err(|_| NoEntry::Over)?;
        open.link = None;
        open.inside = Some(Inside {
            cookie: hmac::sign(&self.key, value.as_bytes()),
            key: hmac::sign(&self.key, key.as_bytes()),
            seen_ms: self.clock.now_ms(),
        });
        let cookie = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict", self.cookie);
        Ok(Entered { cookie, key })
    }

    /// A name that somebody else points at this machine is not ours.
    pub(super) fn is_host(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
        host == Some(&*self.host)
    }

    pub(super) fn is_own_origin(&self, headers: &HeaderMap) -> bool {
        let origin = headers.get(header::ORIGIN).and_then(|it| it.to_str().ok());
        origin.and_then(|it| it.strip_prefix("http://")) == Some(&*self.host)
    }

    pub(super) fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).into_iter();
        let values = cookies
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().strip_prefix(&*self.cookie)?.strip_prefix('='));
        self.is_one_of(values, |inside| inside.cookie)
    }

    pub(super) fn has_key(&self, headers: &HeaderMap) -> bool {
        let key = headers.get(KEY_HEADER).and_then(|key| key.to_str().ok());
        let has_key = self.is_one_of(key.into_iter(), |inside| inside.key);
        if has_key && let Some(inside) = &mut self.lock().inside {
            inside.seen_ms = self.clock.now_ms();
        }
        has_key
    }

    fn is_one_of<'a>(
        &self,
        mut values: impl Iterator<Item = &'a str>,
        which: impl Fn(&Inside) -> hmac::Tag,
    ) -> bool {
        let Some(tag) = self.lock().inside.as_ref().map(which) else {
            return false;
        };
        values.any(|value| hmac::verify(&self.key, value.as_bytes(), tag.as_ref()).is_ok())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn signed(until_ms: u64, once: &str) -> String {
    format!("enter {until_ms} {once}")
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits.filter(|digits| digits.len() == 64)?;
    let pairs = digits.chunks_exact(2);
    Some(
        pairs
            .filter_map(|pair| Some(pair.first()? << 4 | pair.get(1)?))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_closed_the_page_gets_a_new_link_and_whoever_has_it_open_gets_none() {
        let gate = Gate::new(1).unwrap();
        assert!(gate.wants_link());
        let link = gate.link().unwrap();
        assert!(!gate.wants_link(), "the link is still good");
        let part = |name: &str| {
            let rest = link.split_once(&format!("{name}=")).unwrap().1;
            rest.split('&').next().unwrap().to_owned()
        };
        let until = part("until").parse().unwrap();
        let entered = gate.enter(until, &part("once"), &part("sig")).unwrap();
        assert!(!gate.wants_link(), "the page is open");

        let long_ago = |gate: &Gate| {
            let mut open = gate.lock();
            let inside = open.inside.as_mut().unwrap();
            inside.seen_ms = inside.seen_ms.saturating_sub(AWAY_MS);
        };
        long_ago(&gate);
        assert!(gate.wants_link());
        let mut headers = HeaderMap::new();
        headers.insert(KEY_HEADER, entered.key.parse().unwrap());
        assert!(gate.has_key(&headers));
        assert!(!gate.wants_link(), "it asked for news");
        headers.insert(KEY_HEADER, "somebody".parse().unwrap());
        long_ago(&gate);
        assert!(!gate.has_key(&headers));
        assert!(gate.wants_link(), "others do not count");
    }
}
