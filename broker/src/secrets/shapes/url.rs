//! Finds the password in the address of a service: `scheme://user:password@host`.

use std::ops::Range;

const SCHEME_BYTES_MAX: usize = 32;

/// Schemes of services that take a password in their address. The name of a driver may follow, as
/// in `postgresql+psycopg2`.
const SERVICES: [&str; 47] = [
    "http",
    "https",
    "ws",
    "wss",
    "ftp",
    "ftps",
    "sftp",
    "ssh",
    "git",
    "svn",
    "ldap",
    "ldaps",
    "smtp",
    "smtps",
    "imap",
    "imaps",
    "pop3",
    "redis",
    "rediss",
    "valkey",
    "postgres",
    "postgresql",
    "mysql",
    "mysql2",
    "mariadb",
    "mongodb",
    "mssql",
    "sqlserver",
    "oracle",
    "clickhouse",
    "cockroachdb",
    "couchbase",
    "couchdb",
    "cassandra",
    "neo4j",
    "bolt",
    "amqp",
    "amqps",
    "mqtt",
    "mqtts",
    "nats",
    "kafka",
    "influxdb",
    "smb",
    "socks5",
    "rtsp",
    "tcp",
];

/// Returns the place of the password, given the place of `://`.
pub(super) fn password(text: &[u8], start: Range<usize>) -> Option<Range<usize>> {
    let rest = text.get(start.end..)?;
    let authority = rest
        .iter()
        .take_while(|byte| !ends_authority(**byte))
        .count();
    let authority = rest.get(..authority)?;
    // A password can itself contain an `@`.
    let at = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority.iter().position(|byte| *byte == b':')?;
    let (password, host) = (
        authority.get(colon + 1..at)?,
        name(authority.get(at + 1..)?),
    );
    let is_secret = !password.is_empty() && !is_placeholder(password);
    let is_host = match is_service(scheme(text, start.start)?) {
        true => host.first().is_some_and(|it| !b".,:;)]".contains(it)),
        // Other schemes use the same form for names and versions of packages.
        false => is_full_name(host),
    };
    let from = start.end + colon + 1;
    (is_secret && is_host).then(|| from..start.end + at)
}

fn ends_authority(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte.is_ascii_control() || b"/?#\"'<>`\\".contains(&byte)
}

/// Returns the scheme in front of `://`.
fn scheme(text: &[u8], end: usize) -> Option<&[u8]> {
    let before = text.get(end.saturating_sub(SCHEME_BYTES_MAX)..end)?;
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let bytes = before.iter().rev().take_while(is_part).count();
    let (around, scheme) = before.split_at_checked(before.len() - bytes)?;
    // The first characters may belong to an escape, such as `\n` or `%3D`.
    let escape = match around.last() {
        Some(b'\\') => 1,
        Some(b'%') => 2,
        _ => 0,
    };
    scheme.get(escape..).filter(|it| !it.is_empty())
}

fn is_service(scheme: &[u8]) -> bool {
    let mut parts = scheme.split(|byte| *byte == b'+');
    parts.any(|part| {
        SERVICES
            .iter()
            .any(|it| part.eq_ignore_ascii_case(it.as_bytes()))
    })
}

/// Returns whether a password is a placeholder of a template, such as `${PASSWORD}`.
fn is_placeholder(password: &[u8]) -> bool {
    let is_between =
        |open: &[u8], close: &[u8]| password.starts_with(open) && password.ends_with(close);
    is_between(b"${", b"}") || is_between(b"{{", b"}}") || is_between(b"$(", b")")
}

/// Returns the host or the list of hosts at the beginning of a text.
fn name(text: &[u8]) -> &[u8] {
    let is_part = |byte: &&u8| {
        !byte.is_ascii() || byte.is_ascii_alphanumeric() || b"._-~%[]:,;!$&()*+=".contains(byte)
    };
    let bytes = text.iter().take_while(is_part).count();
    text.get(..bytes).unwrap_or_default()
}

/// Returns whether a host is a domain, an address, or has a port.
fn is_full_name(host: &[u8]) -> bool {
    let (name, port) = match host.iter().position(|byte| *byte == b':') {
        Some(colon) => (host.get(..colon), host.get(colon + 1..)),
        None => (Some(host), None),
    };
    let (name, port) = (name.unwrap_or_default(), port.unwrap_or_default());
    let mut labels = name.rsplit(|byte| *byte == b'.');
    let last = labels.next().unwrap_or_default();
    let others = labels.count();
    let is_domain = others > 0 && last.len() > 1 && last.iter().all(u8::is_ascii_alphabetic);
    let is_address = others == 3 && name.iter().all(|it| it.is_ascii_digit() || *it == b'.');
    let has_port = !port.is_empty() && port.iter().all(u8::is_ascii_digit);
    is_domain || is_address || has_port || name == b"localhost"
}
