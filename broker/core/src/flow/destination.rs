//! Parses the text of a destination: a web address as the WHATWG URL parser reads it, mail
//! addresses, or a name. An ambiguous text becomes [`Destination::Unclear`], which never counts as
//! explained.

use url::{Host, Url};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    Web(Web),
    Mail(Vec<Address>),
    /// Any text that only the tool can interpret, such as a channel, an id or a path.
    Name(String),
    Unclear,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Web {
    /// `host`, or `host:port` if the port is not the scheme's default.
    pub(super) host: String,
    /// The address as the parser writes it, without the fragment, which is never sent.
    pub(super) url: String,
}

/// A mail address `local@domain`, with the domain in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) text: String,
    pub(super) domain: String,
}

const CHARS_MAX: usize = 4_096;

pub(super) fn read(text: &str) -> Destination {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed.len() > CHARS_MAX || trimmed.chars().any(char::is_control) {
        return Destination::Unclear;
    }
    if let Some(rest) = strip_scheme(trimmed, "mailto:") {
        // The part after the `?` may name more recipients.
        return if rest.contains(['?', '%']) {
            Destination::Unclear
        } else {
            mail(rest)
        };
    }
    if has_scheme(trimmed) || trimmed.starts_with("//") || trimmed.starts_with("\\\\") {
        return web(trimmed);
    }
    if trimmed.contains('@') && !trimmed.starts_with(['@', '#']) {
        return mail(trimmed);
    }
    match bare_host(trimmed) {
        Some(web) => Destination::Web(web),
        None => Destination::Name(trimmed.to_owned()),
    }
}

/// Returns the web address if the text is one. Used for names in scripts and results.
pub(super) fn web_url(text: &str) -> Option<Web> {
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    match is_web.then(|| web(text))? {
        Destination::Web(web) => Some(web),
        _ => None,
    }
}

pub(super) fn addresses(text: &str) -> Option<Vec<Address>> {
    match text.contains('@').then(|| mail(text.trim()))? {
        Destination::Mail(addresses) => Some(addresses),
        _ => None,
    }
}

fn strip_scheme<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let begin = text.get(..scheme.len())?;
    begin
        .eq_ignore_ascii_case(scheme)
        .then(|| text.get(scheme.len()..))?
}

/// Whether the text starts with a scheme as the URL parser reads it; `host:80` has no scheme.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let is_name = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let is_port = {
        let digits: &str = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()) && scheme.contains('.')
    };
    is_name && !is_port
}

fn web(text: &str) -> Destination {
    let Ok(mut url) = Url::parse(text) else {
        return Destination::Unclear;
    };
    let is_web = matches!(url.scheme(), "http" | "https" | "ws" | "wss" | "ftp");
    // Servers interpret the part before an `@` in different ways.
    if !is_web || !url.username().is_empty() || url.password().is_some() {
        return Destination::Unclear;
    }
    url.set_fragment(None);
    match host_of(&url) {
        Some(host) => Destination::Web(Web {
            host,
            url: url.into(),
        }),
        None => Destination::Unclear,
    }
}

fn host_of(url: &Url) -> Option<String> {
    let host = url.host_str()?.trim_end_matches('.');
    if host.is_empty() {
        return None;
    }
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

/// Parses hosts without a scheme: `docs.rs`, `docs.rs:8080/x`, `[::1]`, `127.0.0.1`.
fn bare_host(text: &str) -> Option<Web> {
    let authority = text.split(['/', '?', '#', '\\']).next()?;
    let host = authority.split(':').next()?;
    let is_host = authority.starts_with('[')
        || (host.contains('.')
            && !host.starts_with('.')
            && !host.ends_with('.')
            && host
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '-' | '.')));
    let url = is_host.then(|| format!("https://{text}"))?;
    match web(&url) {
        Destination::Web(web) => Some(web),
        _ => None,
    }
}

/// Parses `a@x`, `Ann <a@x>`, and lists of these. One unreadable address makes the whole text
/// unclear.
fn mail(text: &str) -> Destination {
    let parsed: Option<Vec<_>> = text
        .split([',', ';'])
        .filter(|part| !part.trim().is_empty())
        .map(|part| address(part.trim()))
        .collect();
    match parsed {
        Some(addresses) if !addresses.is_empty() => Destination::Mail(addresses),
        _ => Destination::Unclear,
    }
}

fn address(text: &str) -> Option<Address> {
    let bare = match text.split_once('<') {
        // A display name that contains an address may be a trick, so it is refused.
        Some((name, rest)) if !name.contains(['@', '<', '>']) => rest.strip_suffix('>')?,
        Some(_) => return None,
        None => text,
    };
    let (local, domain) = bare.split_once('@')?;
    let is_atom = |c: char| c.is_ascii_alphanumeric() || "!#$&'*+-/=?^_`{|}~.".contains(c);
    let fits = !local.is_empty()
        && local.len() <= 64
        && local.chars().all(is_atom)
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !domain.contains('@');
    let domain = match fits.then(|| Host::parse(domain))? {
        Ok(Host::Domain(domain)) => domain.trim_end_matches('.').to_owned(),
        _ => return None,
    };
    (!domain.is_empty()).then(|| Address {
        text: format!("{local}@{domain}"),
        domain,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = match read(text) {
            Destination::Web(web) => format!("web {}", web.host),
            Destination::Mail(addresses) => {
                let texts: Vec<_> = addresses.iter().map(|it| it.text.as_str()).collect();
                format!("mail {}", texts.join(" "))
            }
            Destination::Name(name) => format!("name {name}"),
            Destination::Unclear => "unclear".into(),
        };
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn web_destination_is_parsed_by_whatwg_rules() {
        check("https://docs.rs/serde", "web docs.rs");
        check("HTTPS://DOCS.RS:443/", "web docs.rs");
        check("https://docs.rs:8443/", "web docs.rs:8443");
        check("http://0x7f000001/", "web 127.0.0.1");
        check("https:\\\\evil.example\\x", "web evil.example");
        check("https://ｅｖｉｌ.example/", "web evil.example");
        check("https://еvil.example/", "web xn--vil-qdd.example");
        check("https://docs.rs./", "web docs.rs");
        check("docs.rs", "web docs.rs");
        check("evil.com:80/x", "web evil.com:80");
        check("[::1]:8080", "web [::1]:8080");
    }

    #[test]
    fn ambiguous_destination_is_unclear() {
        for text in [
            "https://docs.rs@evil.example/",
            "https://user:pw@docs.rs/",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "//evil.example/x",
            "https://",
            "a@corp\r\nBcc: b@evil",
            "mailto:a@corp.example?bcc=b@evil.example",
            "",
        ] {
            check(text, "unclear");
        }
    }

    #[test]
    fn mail_addresses_are_parsed_individually() {
        check("a@Corp.Example", "mail a@corp.example");
        check(
            "Ann B. <a@corp.example>; b@x.example",
            "mail a@corp.example b@x.example",
        );
        check("mailto:a@corp.example", "mail a@corp.example");
        for text in [
            "boss@corp.example <b@evil.example>",
            "a@b@c.example",
            "\"a b\"@corp.example",
            "a@corp.example, nobody",
            "a@127.0.0.1",
        ] {
            check(text, "unclear");
        }
    }

    #[test]
    fn other_text_is_a_name() {
        check("#general", "name #general");
        check("@ann", "name @ann");
        check("13", "name 13");
        check("/srv/data/x.txt", "name /srv/data/x.txt");
        check("owner/repo", "name owner/repo");
    }
}
