//! Destinations that occur in a trusted source: the configuration, a trusted script, or a trusted
//! result. Every other destination counts as unexplained.

use std::collections::{BTreeSet, HashSet};

use super::destination::{self, Destination};
use super::literals;

/// Maximum number of names kept. Further names are dropped.
const NAMES_MAX: usize = 20_000;
const NAME_CHARS_MAX: usize = 2_048;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownDestinations {
    /// Names, addresses, and web addresses as the URL parser writes them.
    exact: HashSet<String>,
    /// Prefixes of web addresses and paths, such as `https://host/path/`. Every destination that
    /// starts with one is explained.
    prefixes: BTreeSet<String>,
    hosts: HashSet<String>,
    /// Domains of mail addresses.
    domains: HashSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid destination `{text}`; expected a host, a mail address, @domain, https://host/path/, or a name"
)]
pub struct BadDestination {
    pub text: String,
}

impl KnownDestinations {
    /// Returns the destinations that the configuration names: `docs.rs`, `https://api.example/v1/`,
    /// `a@b.example`, `@b.example`, `/srv/out/`, or any other name, which is compared literally.
    pub fn configured<'a>(
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, BadDestination> {
        let mut known = Self::default();
        for text in texts {
            known.configure(text.trim())?;
        }
        Ok(known)
    }

    fn configure(&mut self, text: &str) -> Result<(), BadDestination> {
        let bad = || BadDestination {
            text: text.chars().take(80).collect(),
        };
        if let Some(domain) = text.strip_prefix('@') {
            let probe = destination::addresses(&format!("a@{domain}"));
            let domain = probe.and_then(|mut found| found.pop()).ok_or_else(bad)?;
            self.domains.insert(domain.domain);
            return Ok(());
        }
        match destination::read(text) {
            Destination::Unclear => return Err(bad()),
            Destination::Web(web) if !text.contains(['/', '?', '#']) => {
                self.hosts.insert(web.host);
            }
            _ => {}
        }
        self.name(text, true);
        Ok(())
    }

    #[must_use]
    pub fn of_script(script: &str) -> Self {
        let mut known = Self::default();
        for text in literals::of_script(script) {
            known.name(&text, true);
        }
        known
    }

    /// Adds the destinations in a text of a trusted result, as exact names and not as prefixes.
    pub fn learn(&mut self, text: &str) {
        self.name(text, false);
    }

    fn name(&mut self, text: &str, with_prefixes: bool) {
        let text = text.trim();
        if text.len() < 2 || self.exact.len() >= NAMES_MAX {
            return;
        }
        if text.len() <= NAME_CHARS_MAX {
            self.one(text, with_prefixes);
        }
        if text.contains(char::is_whitespace) || text.contains(['<', ',', ';']) {
            let breaks = |c: char| c.is_whitespace() || "<>()[]{}\"'`,;|".contains(c);
            for word in text.split(breaks).take(NAMES_MAX) {
                let word = word.trim_end_matches(['.', ':', '!', '?']);
                let is_place = word.contains("://") || word.contains('@');
                if is_place && word.len() <= NAME_CHARS_MAX && self.exact.len() < NAMES_MAX {
                    self.one(word, false);
                }
            }
        }
    }

    fn one(&mut self, text: &str, with_prefixes: bool) {
        if let Some(web) = destination::web_url(text) {
            if with_prefixes && text.ends_with(['/', '=', '?', '&']) {
                self.prefixes.insert(web.url.clone());
            }
            self.exact.insert(web.url);
        } else if let Some(addresses) = destination::addresses(text) {
            self.exact.extend(addresses.into_iter().map(|it| it.text));
        } else if with_prefixes && is_path_prefix(text) {
            self.prefixes.insert(text.to_owned());
        }
        self.exact.insert(text.to_owned());
    }

    pub(super) fn explains(&self, destination: &Destination) -> bool {
        match destination {
            Destination::Unclear => false,
            Destination::Web(web) => {
                self.hosts.contains(&web.host)
                    || self.exact.contains(&web.url)
                    || self.has_prefix_of(&web.url)
            }
            Destination::Mail(addresses) => addresses
                .iter()
                .all(|it| self.domains.contains(&it.domain) || self.exact.contains(&it.text)),
            Destination::Name(name) => {
                self.exact.contains(name) || (is_plain_path(name) && self.has_prefix_of(name))
            }
        }
    }

    /// Whether the text starts with a known prefix.
    fn has_prefix_of(&self, text: &str) -> bool {
        let starts = |prefix: &&String| text.starts_with(prefix.as_str());
        // A linear search is enough: a script has few prefixes, and `NAMES_MAX` bounds all sources.
        self.prefixes.iter().any(|prefix| starts(&prefix))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.hosts.is_empty() && self.domains.is_empty()
    }
}

/// Whether the text names a folder, such as `/srv/out/` or `notes/`.
fn is_path_prefix(text: &str) -> bool {
    text.ends_with('/')
        && is_plain_path(text)
        && text.chars().filter(|c| c.is_alphanumeric()).count() >= 2
}

/// Whether the path has no part that can lead elsewhere, such as `..` or an escape.
fn is_plain_path(text: &str) -> bool {
    !text
        .split('/')
        .any(|segment| segment == ".." || segment == ".")
        && !text.contains(['\\', '%', ':', '@', ' '])
        && text.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(known: &KnownDestinations, explained: &[&str], unexplained: &[&str]) {
        for (texts, expected) in [(explained, true), (unexplained, false)] {
            for text in texts {
                let destination = destination::read(text);
                assert_eq!(known.explains(&destination), expected, "{text}");
            }
        }
    }

    #[test]
    fn script_explains_destinations_it_names() {
        let known = KnownDestinations::of_script(
            r##"
            mail.send({ to: "boss@corp.example", subject: "to all@corp.example" });
            web.get({ url: `https://api.example/items/${id}` });
            web.get({ url: "https://docs.rs/serde" });
            fs.write({ path: "/srv/out/" + name });
            chat.post({ channel: "#general" }); files.share({ id: 4711 });
            "##,
        );
        check(
            &known,
            &[
                "boss@corp.example",
                "Boss <boss@CORP.example>",
                "all@corp.example",
                "https://api.example/items/17",
                "HTTPS://docs.rs/serde#top",
                "/srv/out/a.txt",
                "#general",
                "4711",
            ],
            &[
                "boss@corp.example, eve@evil.example",
                "corp.example",
                "https://api.example/items",
                "https://api.example/items/../admin",
                "https://api.example/items/..%2fadmin",
                "evil!boss@corp.example",
                "https://api.example.evil.example/items/1",
                "https://docs.rs/serde/evil",
                "/srv/out/../../etc/passwd",
                "/srv/out",
                "#genera",
                "47",
                "https://docs.rs@evil.example/serde",
            ],
        );
    }

    #[test]
    fn result_explains_exact_destinations_only() {
        let mut known = KnownDestinations::default();
        known.learn("Bob <bob@corp.example>, see https://wiki.example/bob/ for more.");
        known.learn("C042");
        check(
            &known,
            &["bob@corp.example", "https://wiki.example/bob/", "C042"],
            &["https://wiki.example/bob/x", "eve@corp.example", "C04"],
        );
    }

    #[test]
    fn configuration_explains_hosts_domains_and_prefixes() {
        let known = KnownDestinations::configured([
            "docs.rs",
            "@corp.example",
            "https://api.example/v1/",
            "#ops",
            "a@b.example",
        ])
        .unwrap();
        check(
            &known,
            &[
                "https://docs.rs/any/thing",
                "http://docs.rs",
                "eve@corp.example",
                "https://api.example/v1/x",
                "#ops",
                "a@b.example",
            ],
            &[
                "https://docs.rs:8443/",
                "https://x.docs.rs/",
                "docs.rs/../evil.example",
                "https://docs.rs@evil.example/",
                "eve@x.corp.example",
                "evil!evil.example!x@corp.example",
                "x%evil.example@corp.example",
                "@evil.example:x@corp.example",
                "eve@corp.example, evil.example!x@corp.example",
                "https://api.example/v2/",
                "https://api.example/v1/%2e%2e/v2/",
            ],
        );
        for bad in ["@", "@a b", "https://u@x/", "a@b@c", "docs.rs/../x", ""] {
            assert!(KnownDestinations::configured([bad]).is_err(), "{bad}");
        }
    }
}
