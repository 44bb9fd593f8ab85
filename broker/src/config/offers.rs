//! The servers whose prompts and resources hosts can use. The default is none, because no rule
//! decides about a resource that a host reads.

use airlock_core::id::ServerName;

/// An offer, written as `SERVER`, `SERVER.prompts` or `SERVER.resources`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    server: String,
    /// The offered kind, or `None` for prompts and resources.
    what: Option<OfferKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfferKind {
    Prompts,
    Resources,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid offer `{0}`; expected SERVER, SERVER.prompts or SERVER.resources")]
pub struct BadOffer(String);

/// All offers.
#[derive(Debug, Clone, Default)]
pub struct Offers(pub Vec<Offer>);

impl Offer {
    pub fn parse(text: &str) -> Result<Self, BadOffer> {
        let bad = || BadOffer(text.chars().take(80).collect());
        let (server, what) = match text.split_once('.') {
            None => (text, None),
            Some((server, "prompts")) => (server, Some(OfferKind::Prompts)),
            Some((server, "resources")) => (server, Some(OfferKind::Resources)),
            Some(_) => return Err(bad()),
        };
        let name = ServerName::parse(server).map_err(|_| bad())?;
        Ok(Self {
            server: name.0.to_string(),
            what,
        })
    }

    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }
}

impl Offers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, server: &str, what: OfferKind) -> bool {
        let fits = |offer: &Offer| {
            offer.server == server && offer.what.is_none_or(|offered| offered == what)
        };
        self.0.iter().any(fits)
    }

    /// Returns whether this kind is offered for any server.
    pub(crate) fn any(&self, what: OfferKind) -> bool {
        let fits = |offer: &Offer| offer.what.is_none_or(|offered| offered == what);
        self.0.iter().any(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offer_parses_server_and_kind() {
        let offers = ["fs.resources", "git"].map(|text| Offer::parse(text).unwrap());
        let offers = Offers(offers.to_vec());
        for (server, what, expected) in [
            ("fs", OfferKind::Resources, true),
            ("fs", OfferKind::Prompts, false),
            ("git", OfferKind::Prompts, true),
            ("git", OfferKind::Resources, true),
            ("g", OfferKind::Prompts, false),
        ] {
            assert_eq!(offers.has(server, what), expected, "{server} {what:?}");
        }
        for bad in [
            "",
            "*",
            "fs.tools",
            "fs.",
            ".prompts",
            "fs.prompts.x",
            "2fs",
        ] {
            assert!(Offer::parse(bad).is_err(), "{bad}");
        }
    }
}
