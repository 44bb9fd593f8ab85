//! Sends the requests of a login. No redirect is followed, no configured header is sent, and a
//! public server cannot name an address in a private network, also not through DNS.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airlock_core::login::{
    ANSWER_BYTES_MAX, Body, ClientProof, Network, Request, network_of_host, network_of_ip,
};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE};

use super::client_key::ClientKey;
use super::wall_clock::now_ms;
use crate::http_client;

/// Maximum time of one request.
const REQUEST_WALL: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    #[error("{origin} cannot be reached: {why}")]
    Unreachable { origin: String, why: String },
    #[error("{origin} did not answer within {} s", REQUEST_WALL.as_secs())]
    TimedOut { origin: String },
    #[error("the request to {origin} could not be made: {why}")]
    Proof { origin: String, why: &'static str },
    #[error("the answer of {origin} is larger than {} KiB", ANSWER_BYTES_MAX / 1024)]
    TooLarge { origin: String },
}

/// Returns the network in which a server is found. A server of which one address is public counts
/// as public. Only a literal address or `localhost` counts as this machine: who controls a name can
/// let it lead anywhere.
pub(super) async fn network_of(url: &reqwest::Url) -> Network {
    if let Some(network) = url.host().and_then(|host| network_of_host(&host)) {
        return network;
    }
    let (host, port) = (
        url.host_str().unwrap_or_default(),
        url.port_or_known_default(),
    );
    let found = tokio::net::lookup_host((host, port.unwrap_or(443)));
    let found = tokio::time::timeout(REQUEST_WALL, found).await;
    let addresses = found.into_iter().flatten().flatten();
    network_of_name(addresses.map(|it| it.ip()))
}

/// Returns the network of a name that leads to these addresses.
fn network_of_name(addresses: impl Iterator<Item = IpAddr>) -> Network {
    let nearest = addresses.map(network_of_ip).min();
    nearest.map_or(Network::Public, |it| it.min(Network::Private))
}

/// Sends a request, and returns the status and the body of the answer. `key` signs the assertion of
/// the client.
pub(super) async fn send(
    request: &Request,
    network: Network,
    key: Option<&ClientKey>,
) -> Result<(u16, Vec<u8>), SendError> {
    let origin = request.url.origin().ascii_serialization();
    let form = form(request, key).map_err(|why| SendError::Proof {
        origin: origin.clone(),
        why,
    })?;
    let exchanging = exchange(request, form, network, &origin);
    match tokio::time::timeout(REQUEST_WALL, exchanging).await {
        Ok(answer) => answer,
        Err(_) => Err(SendError::TimedOut { origin }),
    }
}

/// Returns the form of a request, with the assertion of the client. Empty for other bodies.
fn form(request: &Request, key: Option<&ClientKey>) -> Result<String, &'static str> {
    const KIND: &str = "urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer";
    let Body::Form(form) = &request.body else {
        return Ok(String::new());
    };
    let ClientProof::Assertion {
        client_id,
        audience,
    } = &request.proof
    else {
        return Ok(form.clone());
    };
    let key = key.ok_or("the private key of the client is not configured")?;
    let assertion = key.assertion(client_id, audience, now_ms())?;
    Ok(format!(
        "{form}&client_assertion_type={KIND}&client_assertion={assertion}"
    ))
}

async fn exchange(
    request: &Request,
    form: String,
    network: Network,
    origin: &str,
) -> Result<(u16, Vec<u8>), SendError> {
    let failed = |error: &reqwest::Error| SendError::Unreachable {
        origin: origin.to_owned(),
        why: http_client::innermost_cause(error),
    };
    let client = http_client::builder(&request.url, REQUEST_WALL)
        .dns_resolver(GuardedResolver { network })
        .build()
        .map_err(|error| failed(&error))?;
    let url = request.url.clone();
    let sent = match &request.body {
        Body::None => client.get(url),
        Body::Form(_) => client
            .post(url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form),
        Body::Json(json) => client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .body(json.clone()),
    };
    let sent = match &request.proof {
        ClientProof::Basic(id, secret) => sent.basic_auth(id, Some(secret)),
        ClientProof::None | ClientProof::Assertion { .. } => sent,
    };
    let sent = sent.header(ACCEPT, "application/json").send().await;
    let mut response = sent.map_err(|error| failed(&error))?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(SendError::TooLarge {
                origin: origin.to_owned(),
            });
        }
        body.extend_from_slice(&chunk);
    }
    Ok((status, body))
}

/// Refuses names that lead into a network which the server must not name.
struct GuardedResolver {
    network: Network,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let network = self.network;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            if found.iter().any(|it| network_of_ip(it.ip()) > network) {
                return Err("its name leads into a private network".into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_public_if_one_address_is_and_never_this_machine() {
        for (addresses, expected) in [
            (&["127.0.0.1"][..], Network::Private),
            (&["::1", "127.0.0.1"], Network::Private),
            (&["10.0.0.1", "127.0.0.1"], Network::Private),
            (&["10.0.0.1", "93.184.215.14"], Network::Public),
            (&[], Network::Public),
        ] {
            let parsed = addresses.iter().map(|it| it.parse().unwrap());
            assert_eq!(network_of_name(parsed), expected, "{addresses:?}");
        }
    }

    #[tokio::test]
    async fn name_that_leads_to_this_machine_is_refused_to_other_servers() {
        for (network, is_allowed) in [
            (Network::Public, false),
            (Network::Private, false),
            (Network::Loopback, true),
        ] {
            let name = "localhost".parse().unwrap();
            let found = GuardedResolver { network }.resolve(name).await;
            assert_eq!(found.is_ok(), is_allowed, "{network:?}");
        }
        let url = reqwest::Url::parse("https://localhost:1/token").unwrap();
        let request = Request {
            url,
            body: Body::None,
            proof: ClientProof::None,
        };
        let refused = send(&request, Network::Public, None).await.unwrap_err();
        let why = refused.to_string();
        assert!(why.contains("leads into a private network"), "{why}");
    }
}
