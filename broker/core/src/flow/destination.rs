//! Parses the text of a destination: a web address, mail addresses, or a name.
//!
//! The tool that gets the text reads it with a parser of its own. So a text has a meaning here only
//! if every common parser reads the same host or recipients in it. Every other text becomes
//! [`Destination::Unclear`], which never counts as explained, and which is in no set of hosts,
//! addresses or domains.

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
        return mail(rest);
    }
    if has_scheme(trimmed) || trimmed.starts_with("//") || trimmed.starts_with("\\\\") {
        return web(trimmed);
    }
    if let Some(handle) = trimmed.strip_prefix(['@', '#']) {
        // With more than a name, this may be a route such as `@a:b@c`.
        return match handle.contains(['@', ',', ';', '<']) {
            true => Destination::Unclear,
            false => Destination::Name(trimmed.to_owned()),
        };
    }
    if trimmed.contains('@') {
        return mail(trimmed);
    }
    match looks_like_host(trimmed) {
        // Without a scheme the text can also be read as a path, and its dots can be folded.
        true if has_dot_segment(trimmed) || trimmed.contains("//") => Destination::Unclear,
        true => web(&format!("https://{trimmed}")),
        false => Destination::Name(trimmed.to_owned()),
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

/// Returns a web address for which `dest_hosts` contains exactly this text, if there is one. Each
/// scheme has its own default port, which a host never names.
pub(crate) fn web_address_of(host: &str) -> Option<String> {
    let schemes = ["https", "http", "ftp"].into_iter();
    let mut addresses = schemes.map(|scheme| format!("{scheme}://{host}/"));
    addresses.find(|it| matches!(read(it), Destination::Web(web) if web.host == host))
}

/// Whether `dest_addresses` of a call can contain this text.
pub(crate) fn can_be_address(text: &str) -> bool {
    matches!(read(text), Destination::Mail(all) if matches!(&*all, [one] if one.text == text))
}

/// Whether `dest_domains` of a call can contain this text.
pub(crate) fn can_be_domain(text: &str) -> bool {
    can_be_address(&format!("someone@{text}"))
}

/// Returns the domain of a mail address as `dest_domains` contains it.
pub(crate) fn domain_of(address: &str) -> Option<&str> {
    can_be_address(address)
        .then(|| address.rsplit_once('@'))?
        .map(|(_, domain)| domain)
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

/// Reads a web address as the WHATWG URL parser does, if other parsers find the same host and path
/// in it.
fn web(text: &str) -> Destination {
    let found = written_host(text).and_then(|written| {
        let mut url = Url::parse(text).ok()?;
        let is_web = matches!(url.scheme(), "http" | "https" | "ws" | "wss" | "ftp");
        // Another spelling of the host, such as `0x7f000001` or `%64ocs.rs`, is read in several
        // ways.
        let is_plain = url.host_str() == Some(&*written.to_ascii_lowercase())
            && !written.ends_with('.')
            && url.username().is_empty()
            && url.password().is_none();
        if !is_web || !is_plain {
            return None;
        }
        url.set_fragment(None);
        let host = match url.port() {
            Some(port) => format!("{}:{port}", url.host_str()?),
            None => url.host_str()?.to_owned(),
        };
        Some(Web {
            host,
            url: url.into(),
        })
    });
    found.map_or(Destination::Unclear, Destination::Web)
}

/// Returns the host of a web address as RFC 3986 finds it, without any repair. Returns `None` if a
/// parser could split the address in another way, or change its path.
fn written_host(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let is_odd = |c: char| c == '\\' || c.is_whitespace() || c.is_control();
    if text.contains(is_odd) {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, after) = rest.split_at_checked(end)?;
    // Some parsers look for an `@` beyond a `?` or `#` that directly follows the host.
    if authority.contains(['@', '%']) || (!after.starts_with('/') && after.contains('@')) {
        return None;
    }
    let path = after.split(['?', '#']).next().unwrap_or_default();
    if path.starts_with("//") || has_dot_segment(path) || has_encoded_separator(path) {
        return None;
    }
    let host_end = match authority.starts_with('[') {
        true => authority.find(']')? + 1,
        false => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at_checked(host_end)?;
    let is_number = |port: &str| {
        port.len() <= 5
            && port.starts_with(|c: char| matches!(c, '1'..='9'))
            && port.chars().all(|c| c.is_ascii_digit())
    };
    let has_fitting_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_number);
    (has_fitting_port && !host.is_empty()).then_some(host)
}

/// Whether a segment leads to another folder: `..`, `.`, also with a parameter as in `..;x`.
fn has_dot_segment(path: &str) -> bool {
    path.split(['/', '\\', '?', '#']).any(|segment| {
        let name = segment.split(';').next().unwrap_or_default();
        matches!(name, "." | "..")
    })
}

/// Whether a path contains a code for a dot, a separator, a control character or a percent sign.
/// Parsers and servers decode these at different times.
fn has_encoded_separator(path: &str) -> bool {
    path.match_indices('%').any(|(at, _)| {
        let code = path.get(at + 1..at + 3).unwrap_or_default();
        let code = u8::from_str_radix(code, 16).unwrap_or_default();
        code < b' ' || matches!(code, b'.' | b'/' | b'\\' | b'%' | 0x7f)
    })
}

/// Whether a text without a scheme is a host, perhaps with a port and a path: `docs.rs`,
/// `docs.rs:8080/x`, `[::1]`, `127.0.0.1`.
fn looks_like_host(text: &str) -> bool {
    let authority = text.split(['/', '?', '#', '\\']).next();
    let authority = authority.unwrap_or_default();
    let host = authority.split([':', '%']).next().unwrap_or_default();
    authority.starts_with('[')
        || (host.contains('.')
            && !host.starts_with('.')
            && host
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_')))
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

/// Parses one address. The local part has only characters that no mail system reads as a route to
/// another host, as it does in `evil!x@ok`, `x%evil@ok` and `"x@evil"@ok`.
fn address(text: &str) -> Option<Address> {
    let bare = match text.split_once('<') {
        Some((name, rest)) if is_plain_name(name.trim()) => rest.strip_suffix('>')?,
        Some(_) => return None,
        None => text,
    };
    let (local, domain) = bare.split_once('@')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-' | '\'');
    let fits = local.len() <= 64
        && local.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && local.chars().all(is_plain)
        && !local.ends_with('.')
        && !local.contains("..");
    let is_domain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let domain_fits = domain.chars().all(is_domain) && domain.split('.').all(|it| !it.is_empty());
    match (fits && domain_fits).then(|| Host::parse(domain))? {
        Ok(Host::Domain(domain)) => Some(Address {
            text: format!("{local}@{domain}"),
            domain,
        }),
        _ => None,
    }
}

/// Whether a display name is one for every parser: it has no address, comment, group or code.
fn is_plain_name(name: &str) -> bool {
    let quoted = name.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | '-' | '_' | '\'');
    quoted.unwrap_or(name).chars().all(is_plain)
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
    fn web_destination_has_the_host_that_every_parser_reads() {
        check("https://docs.rs/serde", "web docs.rs");
        check("HTTPS://DOCS.RS:443/", "web docs.rs");
        check("https://docs.rs:8443/", "web docs.rs:8443");
        check("http://127.0.0.1/", "web 127.0.0.1");
        check(
            "https://xn--bcher-kva.example/",
            "web xn--bcher-kva.example",
        );
        check("https://docs.rs/@ann/x..y?a=../b#c", "web docs.rs");
        check(
            "https://archive.example/2020/https://docs.rs/",
            "web archive.example",
        );
        check("https://docs.rs/a%20b", "web docs.rs");
        check("docs.rs", "web docs.rs");
        check("docs.rs/serde", "web docs.rs");
        check("evil.com:80/x", "web evil.com:80");
        check("[::1]:8080", "web [::1]:8080");
    }

    #[test]
    fn web_destination_that_parsers_read_differently_is_unclear() {
        for text in [
            // The host.
            "http://0x7f000001/",
            "http://2130706433/",
            "http://127.1/",
            "http://0177.0.0.1/",
            "https://ｅｖｉｌ.example/",
            "https://еvil.example/",
            "https://docs\u{ad}.rs/",
            "https://docs。rs/",
            "https://%64ocs.rs/",
            "https://docs%2ers/",
            "https://docs.rs%00.evil.example/",
            "https://docs.rs./",
            "https://[0:0::1]/",
            "https://[fe80::1%25eth0]/",
            "еvil.example",
            // User names, and what passes for them.
            "https://docs.rs@evil.example/",
            "https://user:pw@docs.rs/",
            "https://@docs.rs/",
            "https://docs.rs#@evil.example/",
            "https://docs.rs?@evil.example/",
            "https://docs.rs\\@evil.example/",
            "docs.rs\\@evil.example",
            // Slashes and dots.
            "https:\\\\evil.example\\x",
            "https:docs.rs",
            "https:/docs.rs/",
            "https:///docs.rs/",
            "https://docs.rs//evil.example",
            "docs.rs/../evil.example",
            "docs.rs/..",
            "docs.rs/./x",
            "docs.rs\\..\\evil.example",
            "docs.rs//evil.example",
            "docs.rs/..;/evil.example",
            "docs.rs/%2e%2e/evil.example",
            "docs.rs/.%2e/evil.example",
            "docs.rs%2f..%2fevil.example",
            "https://docs.rs/a/../b",
            "https://docs.rs/a/%2E%2E/b",
            "https://docs.rs/a/..%2fb",
            "https://docs.rs/a%5c..%5cb",
            "https://docs.rs/%252e%252e/b",
            // Ports and spaces.
            "https://docs.rs:/",
            "https://docs.rs:0443/",
            "https://docs.rs:99999/",
            "https://docs.rs:80:90/",
            "https://docs.rs /x",
            "https://docs.rs/a b",
            "https://docs.rs\t.evil.example/",
            "https://docs\n.rs/",
        ] {
            check(text, "unclear");
        }
        // Not a host at all.
        check("docs.rs .evil.example", "name docs.rs .evil.example");
    }

    #[test]
    fn ambiguous_destination_is_unclear() {
        for text in [
            "javascript:alert(1)",
            "data:text/html,x",
            "ssh://docs.rs/",
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
        check(
            "o'neil+list_1@corp.example",
            "mail o'neil+list_1@corp.example",
        );
        check(
            "\"Ann\" <a@corp.example>, b@x.example",
            "mail a@corp.example b@x.example",
        );
    }

    #[test]
    fn mail_address_that_systems_route_differently_is_unclear() {
        for text in [
            // Routes in the local part.
            "evil!evil.example!x@ok.example",
            "x%evil.example@ok.example",
            "@evil.example:x@ok.example",
            "@a:b@ok.example",
            "@a, b@ok.example",
            "<@evil.example:x@ok.example>",
            "evil.example::x@ok.example",
            "SRS0=HHH=TT=evil.example=x@ok.example",
            "/C=x/ADMD=y/@ok.example",
            "|cmd@ok.example",
            "-x@ok.example",
            // Quotes, comments and groups.
            "\"a b\"@corp.example",
            "\"x@evil.example\"@ok.example",
            "x(@evil.example)@ok.example",
            "x@ok.example(@evil.example)",
            "Friends: x@ok.example, y@ok.example;",
            "Friends:<x@ok.example>",
            "a\\@evil.example@ok.example",
            // Several recipients that look like one.
            "a@b@c.example",
            "x@evil.example@ok.example",
            "x@evil.example x@ok.example",
            "boss@corp.example <b@evil.example>",
            "=?utf-8?q?b=40evil.example?= <x@ok.example>",
            "x@ok.example <x@ok.example> <b@evil.example>",
            "a@corp.example, nobody",
            // Domains with several spellings.
            "a@127.0.0.1",
            "a@[127.0.0.1]",
            "a@ok.example.",
            "a@ok..example",
            "a@öк.example",
            "a@ｏk.example",
            "a@ok%2eexample",
            "ä@ok.example",
            ".a@ok.example",
            "a..b@ok.example",
            "mailto:x%40evil.example@ok.example",
            "mailto:x@ok.example?cc=b@evil.example",
            "mailto://x@ok.example",
        ] {
            check(text, "unclear");
        }
    }

    #[test]
    fn other_text_is_a_name() {
        check("#general", "name #general");
        check("@ann", "name @ann");
        check("@ann:chat.example", "name @ann:chat.example");
        check("13", "name 13");
        check("/srv/data/x.txt", "name /srv/data/x.txt");
        check("owner/repo", "name owner/repo");
    }
}
