//! Which addresses a login may use. A server that is reached over the public network cannot make
//! airlock send requests into a private network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    Public,
    Private,
    Loopback,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("it is not a URL")]
    NotUrl,
    #[error("its scheme is `{0}`; expected https")]
    Scheme(String),
    #[error("it is plain http; only servers on this machine may use http")]
    PlainHttp,
    #[error("it contains a user name or password")]
    Credentials,
    #[error("it has a fragment")]
    Fragment,
    #[error("it leads into a private network, and the server is public")]
    Private,
    #[error("it leads to this machine, and the server is on another machine")]
    Loopback,
}

/// Parses an address that a server named. `server` is the network of the MCP server itself.
pub fn checked(text: &str, server: Network) -> Result<Url, AddressError> {
    let url = Url::parse(text).map_err(|_| AddressError::NotUrl)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(AddressError::Scheme(
            url.scheme().chars().take(32).collect(),
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::Credentials);
    }
    if url.fragment().is_some() {
        return Err(AddressError::Fragment);
    }
    let host = url.host();
    let network = host.as_ref().and_then(network_of_host);
    let leads_here = network == Some(Network::Loopback) || host.as_ref().is_some_and(is_local_name);
    match server {
        Network::Public | Network::Private if leads_here => return Err(AddressError::Loopback),
        Network::Public if network == Some(Network::Private) => return Err(AddressError::Private),
        _ => {}
    }
    let is_local = network == Some(Network::Loopback) && server == Network::Loopback;
    if url.scheme() == "http" && !is_local {
        return Err(AddressError::PlainHttp);
    }
    Ok(url)
}

/// Returns the network of a host, or `None` for a name that must be resolved. Only literal addresses
/// and `localhost` count as this machine: other names can lead to another one.
#[must_use]
pub fn network_of_host(host: &Host<&str>) -> Option<Network> {
    match host {
        Host::Ipv4(ip) => Some(network_of_ip((*ip).into())),
        Host::Ipv6(ip) => Some(network_of_ip((*ip).into())),
        Host::Domain(name) => (*name == "localhost").then_some(Network::Loopback),
    }
}

/// Whether a browser takes the name for this machine, without resolving it (RFC 6761).
fn is_local_name(host: &Host<&str>) -> bool {
    let Host::Domain(name) = host else {
        return false;
    };
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

#[must_use]
pub fn network_of_ip(ip: IpAddr) -> Network {
    match ip {
        IpAddr::V4(ip) => network_of_v4(ip),
        IpAddr::V6(ip) => network_of_v6(ip),
    }
}

fn network_of_v4(ip: Ipv4Addr) -> Network {
    let [a, b, c, _] = ip.octets();
    let is_private = ip.is_private()
        || ip.is_link_local()
        || ip.is_broadcast()
        || ip.is_multicast()
        || ip.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b));
    match (ip.is_loopback(), is_private) {
        (true, _) => Network::Loopback,
        (_, true) => Network::Private,
        _ => Network::Public,
    }
}

fn network_of_v6(ip: Ipv6Addr) -> Network {
    if let Some(inner) = embedded_v4(ip) {
        return network_of_v4(inner);
    }
    // Only 2000::/3 is assigned to the public internet.
    let [first, second, ..] = ip.segments();
    let is_public = first & 0xe000 == 0x2000 && !(first == 0x2001 && second == 0x0db8);
    match (ip.is_loopback(), is_public) {
        (true, _) => Network::Loopback,
        (_, false) => Network::Private,
        _ => Network::Public,
    }
}

/// Returns the IPv4 address that a gateway would take out of an IPv6 address: mapped addresses,
/// NAT64 and 6to4.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match ip.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(v4(high, low))
        }
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, server: Network, expected: Option<AddressError>) {
        assert_eq!(checked(text, server).err(), expected, "{text} {server:?}");
    }

    #[test]
    fn addresses_are_https_and_stay_in_the_network_of_the_server() {
        use Network::{Loopback, Private, Public};
        check("https://as.example/x", Public, None);
        check("https://10.0.0.1/x", Private, None);
        check("http://127.0.0.1:8080/x", Loopback, None);
        check("http://localhost/x", Loopback, None);
        check("http://[::1]/x", Loopback, None);
        check("https://as.example", Loopback, None);
        for (text, server, error) in [
            ("as.example", Public, AddressError::NotUrl),
            (
                "javascript:alert(1)",
                Public,
                AddressError::Scheme("javascript".into()),
            ),
            (
                "file:///etc/passwd",
                Loopback,
                AddressError::Scheme("file".into()),
            ),
            ("http://as.example", Public, AddressError::PlainHttp),
            ("http://as.example", Loopback, AddressError::PlainHttp),
            ("http://10.0.0.1", Private, AddressError::PlainHttp),
            ("https://u:p@as.example", Public, AddressError::Credentials),
            ("https://as.example/#x", Public, AddressError::Fragment),
            ("https://10.0.0.1/", Public, AddressError::Private),
            ("https://169.254.169.254/", Public, AddressError::Private),
            ("https://0x0a000001/", Public, AddressError::Private),
            ("https://100.64.0.1/", Public, AddressError::Private),
            ("https://[fd00::1]/", Public, AddressError::Private),
            ("https://[fe80::1]/", Public, AddressError::Private),
            (
                "https://[::ffff:192.168.0.1]/",
                Public,
                AddressError::Private,
            ),
            ("https://[64:ff9b::a00:1]/", Public, AddressError::Private),
            ("https://0.0.0.0/", Public, AddressError::Private),
            ("https://127.1/", Public, AddressError::Loopback),
            ("https://localhost/", Public, AddressError::Loopback),
            ("https://x.localhost./", Private, AddressError::Loopback),
            ("https://localhost./", Public, AddressError::Loopback),
            ("http://x.localhost/", Loopback, AddressError::PlainHttp),
            ("http://localhost./", Loopback, AddressError::PlainHttp),
            ("https://[::1]/", Private, AddressError::Loopback),
        ] {
            check(text, server, Some(error));
        }
    }

    #[test]
    fn only_localhost_and_literal_addresses_are_this_machine() {
        for (host, expected) in [
            ("localhost", Some(Network::Loopback)),
            ("127.0.0.1", Some(Network::Loopback)),
            ("127.255.0.9", Some(Network::Loopback)),
            ("[::1]", Some(Network::Loopback)),
            ("mcp.localhost", None),
            ("localhost.", None),
            ("localhost.example", None),
            ("128.0.0.1", Some(Network::Public)),
        ] {
            let url = Url::parse(&format!("http://{host}/")).unwrap();
            let network = url.host().and_then(|it| network_of_host(&it));
            assert_eq!(network, expected, "{host}");
        }
    }
}
