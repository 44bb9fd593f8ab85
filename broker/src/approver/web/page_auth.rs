//! Controls access to the page. A signed link is valid once and is exchanged for a cookie and a
//! key. Requests must also name the right host and origin.
//!
//! A browser sends a cookie to every port of this machine, so other local servers may learn the
//! cookie. The key is in the fragment of the page's URL, after `#`. Browsers do not send fragments,
//! so only airlock's page knows the key.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, header};
use ring::hmac;

use super::super::{hex, nonce};
use airlock_sandbox::clock::Clock;

/// Lifetime of a link, in milliseconds.
const LINK_MS: u64 = 10 * 60 * 1_000;
/// Time without a request after which a page counts as closed, in milliseconds. An open page
/// requests updates all the time.
const AWAY_MS: u64 = 30 * 1_000;
/// The header in which the page sends its key.
pub(super) const KEY_HEADER: &str = "x-airlock-key";

pub(super) struct PageAuth {
    key: hmac::Key,
    clock: Clock,
    host: String,
    /// The name of the cookie. It contains the port, because one browser may have the pages of two
    /// runs open.
    cookie: String,
    open: Mutex<AuthState>,
}

#[derive(Default)]
struct AuthState {
    /// The latest link, until it is used.
    link: Option<PageLink>,
    /// The session of the browser that used a link last.
    inside: Option<PageSession>,
}

/// The tags of the cookie and the key of a page, computed with the server's key.
struct PageSession {
    cookie: hmac::Tag,
    key: hmac::Tag,
    /// When the page last sent a request.
    seen_ms: u64,
}

/// The secrets that a link is exchanged for.
pub(super) struct PageCookie {
    pub(super) cookie: String,
    pub(super) key: String,
}

struct PageLink {
    once: String,
    until_ms: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PageAuthError {
    /// The link's signature is invalid.
    Forged,
    /// The link was valid, but it has been used or has expired.
    Over,
}

impl PageAuth {
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
        self.lock().link = Some(PageLink { once, until_ms });
        Ok(link)
    }

    /// Whether a new link is needed: no page is open, and no valid link exists.
    pub(super) fn wants_link(&self) -> bool {
        let (open, now_ms) = (self.lock(), self.clock.now_ms());
        let is_good = |link: &PageLink| now_ms < link.until_ms;
        let is_there = |inside: &PageSession| now_ms.saturating_sub(inside.seen_ms) < AWAY_MS;
        !open.inside.as_ref().is_some_and(is_there) && !open.link.as_ref().is_some_and(is_good)
    }

    /// Returns cookie and key for the first request with the latest link.
    pub(super) fn enter(
        &self,
        until_ms: u64,
        once: &str,
        signature: &str,
    ) -> Result<PageCookie, PageAuthError> {
        let tag = unhex(signature).ok_or(PageAuthError::Forged)?;
        hmac::verify(&self.key, signed(until_ms, once).as_bytes(), &tag)
            .map_err(|_| PageAuthError::Forged)?;
        let mut open = self.lock();
        let is_latest = |link: &PageLink| link.once == once;
        if self.clock.now_ms() >= until_ms || !open.link.as_ref().is_some_and(is_latest) {
            return Err(PageAuthError::Over);
        }
        let (value, key) = nonce()
            .and_then(|value| Ok((value, nonce()?)))
            .map_err(|_| PageAuthError::Over)?;
        open.link = None;
        open.inside = Some(PageSession {
            cookie: hmac::sign(&self.key, value.as_bytes()),
            key: hmac::sign(&self.key, key.as_bytes()),
            seen_ms: self.clock.now_ms(),
        });
        let cookie = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict", self.cookie);
        Ok(PageCookie { cookie, key })
    }

    /// Whether the request names this server's host. Other names that resolve to this machine are
    /// refused.
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
        which: impl Fn(&PageSession) -> hmac::Tag,
    ) -> bool {
        let Some(tag) = self.lock().inside.as_ref().map(which) else {
            return false;
        };
        values.any(|value| hmac::verify(&self.key, value.as_bytes(), tag.as_ref()).is_ok())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, AuthState> {
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
    fn closed_page_gets_new_link_and_open_page_does_not() {
        let gate = PageAuth::new(1).unwrap();
        assert!(gate.wants_link());
        let link = gate.link().unwrap();
        assert!(!gate.wants_link(), "the link is still valid");
        let part = |name: &str| {
            let rest = link.split_once(&format!("{name}=")).unwrap().1;
            rest.split('&').next().unwrap().to_owned()
        };
        let until = part("until").parse().unwrap();
        let entered = gate.enter(until, &part("once"), &part("sig")).unwrap();
        assert!(!gate.wants_link(), "the page is open");

        let long_ago = |gate: &PageAuth| {
            let mut open = gate.lock();
            let inside = open.inside.as_mut().unwrap();
            inside.seen_ms = inside.seen_ms.saturating_sub(AWAY_MS);
        };
        long_ago(&gate);
        assert!(gate.wants_link());
        let mut headers = HeaderMap::new();
        headers.insert(KEY_HEADER, entered.key.parse().unwrap());
        assert!(gate.has_key(&headers));
        assert!(!gate.wants_link(), "the page requested updates");
        headers.insert(KEY_HEADER, "somebody".parse().unwrap());
        long_ago(&gate);
        assert!(!gate.has_key(&headers));
        assert!(gate.wants_link(), "requests with other keys do not count");
    }
}
