//! Which servers are offered with what: nothing unless somebody says so. A resource
//! that is read leaves its server for the model without any rule.

use airlock_core::id::ServerName;

use crate::serve::shelf::Shelf;

/// `SERVER`, `SERVER.prompts` or `SERVER.resources`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    server: String,
    /// Only this; none for everything that there is.
    what: Option<What>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::serve) enum What {
    Prompts,
    Resources,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an offer: write SERVER, SERVER.prompts or SERVER.resources")]
pub struct BadOffer(String);

/// All that is offered.
#[derive(Debug, Clone, Default)]
pub struct Offers(pub Vec<Offer>);

impl Offer {
    pub fn parse(text: &str) -> Result<Self, BadOffer> {
        let bad = || BadOffer(text.chars().take(80).collect());
        let (server, what) = match text.split_once('.') {
            None => (text, None),
            Some((server, "prompts")) => (server, Some(What::Prompts)),
            Some((server, "resources")) => (server, Some(What::Resources)),
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
    pub(in crate::serve) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::serve) fn has(&self, server: &str, what: What) -> bool {
        let fits = |offer: &Offer| {
            offer.server == server && offer.what.is_none_or(|offered| offered == what)
        };
        self.0.iter().any(fits)
    }

    /// Some server is offered with this.
    pub(in crate::serve) fn any(&self, what: What) -> bool {
        let fits = |offer: &Offer| offer.what.is_none_or(|offered| offered == what);
        self.0.iter().any(fits)
    }

    /// The configured servers that are offered with this, in their order.
    pub(in crate::serve) fn of(&self, shelf: &Shelf, what: What) -> Vec<ServerName> {
        let servers = shelf.known.servers.iter();
        let offered = servers.filter(|it| self.has(&it.name, what));
        offered
            .map(|it| ServerName(it.name.as_str().into()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_names_a_server_and_what_of_it() {
        let offers = ["fs.resources", "git"].map(|text| Offer::parse(text).unwrap());
        let offers = Offers(offers.to_vec());
        for (server, what, expected) in [
            ("fs", What::Resources, true),
            ("fs", What::Prompts, false),
            ("git", What::Prompts, true),
            ("git", What::Resources, true),
            ("g", What::Prompts, false),
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
