//! Parses the text of a destination: a web address, mail addresses, or a name.
//!
//! The tool that gets the text reads it with a parser of its own. So a text has a meaning here only
//! if every common parser reads the same host or recipients in it. Every other text becomes
//! [`Destination::Unclear`], which never counts as explained, and which is in no set of hosts,
//! addresses or domains.

use std::net::Ipv6Addr;

use codegen::text::is_invisible;
use unicode_normalization::UnicodeNormalization as _;
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
/// Maximum number of rounds in which a text is decoded and normalised.
const REPAIRS_MAX: usize = 8;
/// Maximum number of digits of a number that is an id before a slash.
const ID_DIGITS_MAX: usize = 7;

pub(super) fn read(text: &str) -> Destination {
    let found = read_as_written(text);
    if !matches!(found, Destination::Name(_)) {
        return found;
    }
    // A name must also be one for a tool that decodes or normalises the text first.
    match repaired(text).map(|it| read_as_written(&it)) {
        Some(Destination::Name(_)) => found,
        _ => Destination::Unclear,
    }
}

fn read_as_written(text: &str) -> Destination {
    let trimmed = text.trim_matches(' ');
    if trimmed.is_empty() || trimmed.len() > CHARS_MAX || trimmed.chars().any(char::is_control) {
        return Destination::Unclear;
    }
    if let Some(rest) = strip_scheme(trimmed, "mailto:") {
        return mail(rest);
    }
    if has_scheme(trimmed) {
        return web(trimmed);
    }
    // Parsers read `//host`, `/\host` and `a://host` as addresses. Others read a path.
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    let pairs = trimmed.as_bytes().windows(2);
    if pairs.into_iter().any(|pair| pair.iter().all(is_slash)) {
        return Destination::Unclear;
    }
    if let Some(handle) = trimmed.strip_prefix(['@', '#']) {
        // With more than a name, this may be a route such as `@a:b@c`, or a host after an empty
        // user name.
        let host = handle.split(':').next().unwrap_or_default();
        let is_host = trimmed.starts_with('@') && may_name_host(host);
        return match is_host || handle.contains(['@', ',', ';', '<']) {
            true => Destination::Unclear,
            false => Destination::Name(trimmed.to_owned()),
        };
    }
    if trimmed.contains('@') {
        return mail(trimmed);
    }
    match may_name_host(trimmed) {
        // Without a scheme the text can also be read as a path, and its dots can be folded.
        true if has_dot_segment(trimmed) => Destination::Unclear,
        true => web(&format!("https://{trimmed}")),
        false => Destination::Name(trimmed.to_owned()),
    }
}

/// Returns what lenient parsers make of a text: percent codes are decoded, invisible characters
/// are removed, and variants of characters are replaced by the plain ones. Returns `None` for a
/// text that is encoded more than a few times.
fn repaired(text: &str) -> Option<String> {
    let mut repaired = text.to_owned();
    for _ in 0..REPAIRS_MAX {
        let is_kept = |c: &char| c.is_control() || !is_invisible(*c);
        let decoded = decoded(&repaired);
        let plain = decoded.nfkc().filter(is_kept);
        let plain: String = plain.map(|c| if c == '。' { '.' } else { c }).collect();
        if plain == repaired {
            return Some(plain);
        }
        repaired = plain;
    }
    None
}

/// Decodes the percent codes of a text once.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
        let code = (*byte == b'%').then(|| Some(digit(at + 1)? * 16 + digit(at + 2)?));
        match code.flatten().and_then(|code| u8::try_from(code).ok()) {
            Some(code) => {
                decoded.push(code);
                at += 3;
            }
            None => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
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
pub fn web_address_of(host: &str) -> Option<String> {
    let schemes = ["https", "http", "ftp"].into_iter();
    let mut addresses = schemes.map(|scheme| format!("{scheme}://{host}/"));
    addresses.find(|it| matches!(read(it), Destination::Web(web) if web.host == host))
}

/// Whether `dest_addresses` of a call can contain this text.
pub fn can_be_address(text: &str) -> bool {
    matches!(read(text), Destination::Mail(all) if matches!(&*all, [one] if one.text == text))
}

/// Whether `dest_domains` of a call can contain this text.
pub fn can_be_domain(text: &str) -> bool {
    can_be_address(&format!("someone@{text}"))
}

/// Returns the domain of a mail address as `dest_domains` contains it.
pub fn domain_of(address: &str) -> Option<&str> {
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
    let is_plain = host.starts_with('[') || host.split('.').all(is_plain_label);
    (has_fitting_port && is_plain).then_some(host)
}

/// Whether a label of a host is one for every parser. The URL parser also accepts commas,
/// semicolons and other characters, at which other parsers split a list.
fn is_plain_label(label: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !label.is_empty()
        && label.len() <= 63
        && label.chars().all(is_part)
        && !label.starts_with('-')
        && !label.ends_with('-')
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

/// Whether some parser may find a host in a text without a scheme: `docs.rs`, `docs.rs:8080/x`,
/// `[::1]`, `127.0.0.1`, `0x7f000001`, but also `docs.rs,x`. A whole number such as `13` is an id,
/// and `2026/11` is a path: as an address, such a number is in the network 0.0.0.0/8.
fn may_name_host(text: &str) -> bool {
    let authority = text.split(['/', '?', '#', '\\']).next();
    let authority = authority.unwrap_or_default();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut parts = authority.split(|c| !is_part(c));
    let has_inner_dot = parts.any(|part| part.trim_matches('.').contains('.'));
    let address = authority.split('%').next().unwrap_or_default();
    let is_ip6 = authority.starts_with('[') || address.parse::<Ipv6Addr>().is_ok();
    let host = authority.split(':').next().unwrap_or_default();
    let is_id = host.chars().all(|c| c.is_ascii_digit())
        && !host.starts_with('0')
        && (host == text || host == authority && host.len() <= ID_DIGITS_MAX);
    let is_ip4 = !is_id && matches!(Host::parse(host), Ok(Host::Ipv4(_)));
    has_inner_dot || is_ip6 || is_ip4
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
            // User names, and text that looks like a user name.
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
    }

    #[test]
    fn text_without_scheme_that_some_parser_reads_as_a_host_is_unclear() {
        for text in [
            // Dots, invisible characters and codes that parsers repair.
            "evil。com",
            "evil．com",
            "evil｡com/x",
            "evil\u{2024}com",
            "ev\u{ad}il.com",
            "ev\u{200b}il.com",
            "ev\u{200d}il.com",
            "evil\u{2060}。com",
            "evil%2ecom",
            "evil%2Ecom/x",
            "evil%252ecom",
            "%65vil%25252ecom",
            "evil%E3%80%82com",
            "evil.com%2f",
            "evil.com%00.ok.example",
            "evil.com.",
            "evil.com./x",
            "evil..com",
            "-evil.com",
            "ｅvil.com",
            // Addresses without a scheme, and schemes that are repaired.
            "//evil.com",
            "\\\\evil.com",
            "/\\evil.com",
            "\\/evil.com",
            "///evil.com",
            "/.//evil.com",
            "x//evil.com",
            "／／evil.com",
            "%2f%2fevil.com",
            "/%5cevil.com",
            "／\\evil",
            "ｈttps://evil.com",
            "https%3a%2f%2fevil.com",
            "https\u{ff1a}//evil",
            "1http://evil",
            "<https://evil>",
            // User names.
            "@evil.com",
            "@evil.com:80/x",
            "user:pw@evil.com",
            "user%40evil",
            "＠evil.com",
            "user＠evil",
            // Ports.
            "evil.com:",
            "evil.com:080",
            "evil.com:80:90",
            "evil.com:٨٠",
            "2130706433:80",
            "localhost:80",
            // Other forms of IPv4 and IPv6.
            "0x7f000001",
            "0X7F.1",
            "017700000001",
            "0177.0.0.1",
            "127.1",
            "2130706433/x",
            "１27.0.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "2001:db8::1",
            "fe80::1%eth0",
            "fe80::1%25eth0",
            "[fe80::1%25eth0]",
            "[fe80::1%eth0]:80",
            "[::ffff:127.0.0.1]",
            "[0:0::1]",
            // Several hosts.
            "ok.example,evil.com",
            "ok.example;evil.com",
            "ok.example evil.com",
            "ok.example|evil.com",
            "ok.example，evil.com",
            "docs.rs .evil.example",
            "*.evil.com",
            "(evil.com)",
            "evil.com!",
            // Control characters, also at the ends.
            "evil.com\n",
            "\tgeneral",
            "general\r\n",
            "gene\u{85}ral",
            "gene%0aral",
            "gene%00ral",
        ] {
            check(text, "unclear");
        }
        for text in [
            "https://docs.rs,evil.example/",
            "https://docs.rs;x/",
            "https://docs.rs!/",
            "https://*.docs.rs/",
            "https://docs..rs/",
            "https://.docs.rs/",
            "https://-docs.rs/",
            "https://docs-.rs/",
        ] {
            check(text, "unclear");
        }
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
            "MAILTO:a@corp.example,b@x.example",
            "mail a@corp.example b@x.example",
        );
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
            "mailto:x@ok.example?to=b@evil.example",
            "mailto:?to=b@evil.example",
            "mailto:x@ok.example#b@evil.example",
            "mailto:x@ok.example,%20b%40evil.example",
            "mailto:",
            "mailto%3Ab%40evil.example",
            "\"Ann, b@evil.example\" <x@ok.example>",
            "\"Ann\\\" <b@evil.example>\" <x@ok.example>",
            "Ann <x@ok.example> Bob <b@evil.example>",
            "x@ok.example\u{200b}",
            "x@ok.example\n",
            "x@ok.example/b",
            "x@ok.example:25",
            "x@ok.example。evil.example",
            "x%40ok.example",
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
        check("owner/repo.git", "name owner/repo.git");
        check("group%2Fproject", "name group%2Fproject");
        check("50% more", "name 50% more");
        check("-1001234567", "name -1001234567");
        check("2130706433", "name 2130706433");
        check("2026/11/x", "name 2026/11/x");
        check("+49 171 2345678", "name +49 171 2345678");
        check("Büro 3", "name Büro 3");
        check("チーム", "name チーム");
        check("Dr. Ann", "name Dr. Ann");
        check("localhost", "name localhost");
        check(".env", "name .env");
        check("@scope/x.y", "name @scope/x.y");
        check(" general ", "name general");
    }
}
