//! The two documents of discovery: protected resource metadata (RFC 9728) and authorization server
//! metadata (RFC 8414 and OpenID Connect Discovery).

use serde_json::{Map, Value};
use url::Url;

use super::address::{Network, checked};
use super::error::{LoginError, shown};
use super::request::Answer;
use super::scopes::ScopeSet;
use super::{ANSWER_BYTES_MAX, DEVICE_GRANT};
use crate::json::{self, Bounds};

const BOUNDS: Bounds = Bounds {
    bytes_max: ANSWER_BYTES_MAX as u32,
    depth_max: 16,
    nodes_max: 10_000,
};
const RESOURCE: &str = "oauth-protected-resource";
const SERVER: &str = "oauth-authorization-server";
const OPENID: &str = "openid-configuration";

/// What the MCP server says about its authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceMetadata {
    pub(super) resource: String,
    pub(super) issuer: String,
    pub(super) scopes: ScopeSet,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) revocation_endpoint: Option<Url>,
    device_endpoint: Option<Url>,
    pub(super) scopes: ScopeSet,
    pub(super) auth_methods: Option<Vec<String>>,
    /// The algorithms of assertions at the token endpoint.
    signing_algorithms: Option<Vec<String>>,
    pub(super) has_client_metadata_documents: bool,
    pub(super) names_issuer: bool,
    has_s256: bool,
    grants: Option<Vec<String>>,
}

/// Returns the object of an answer, or `None` if there is no document at this place.
fn document(
    answer: &Answer<'_>,
    what: &'static str,
) -> Result<Option<Map<String, Value>>, LoginError> {
    match answer.status {
        200 => {}
        300..=399 => return Err(LoginError::Redirected { what }),
        status @ (429 | 500..=599) => return Err(LoginError::Unavailable { status }),
        _ => return Ok(None),
    }
    // Some sites answer every address with a page.
    let is_object = answer.body.trim_ascii_start().first() == Some(&b'{');
    if !is_object {
        return Ok(None);
    }
    object(answer.body).map(Some).map_err(|why| match what {
        "protected resource metadata" => LoginError::ResourceMetadata(why),
        _ => LoginError::ServerMetadata(why),
    })
}

/// Parses a bounded JSON object. A text with two equal keys is refused, because two readers could
/// understand it differently.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, String> {
    match json::parse_strict(body, BOUNDS) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("it is not a JSON object".to_owned()),
        Err(bad) => Err(bad.to_string()),
    }
}

pub(super) fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

fn texts(object: &Map<String, Value>, name: &str) -> Option<Vec<String>> {
    let items = object.get(name)?.as_array()?;
    let texts = items.iter().filter_map(Value::as_str);
    Some(texts.map(str::to_owned).collect())
}

fn flag(object: &Map<String, Value>, name: &str) -> bool {
    object.get(name) == Some(&Value::Bool(true))
}

/// Returns an address of the same origin.
fn at(origin: &Url, path: &str) -> Url {
    let mut url = origin.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// Returns the addresses at which the metadata of a server may lie, in order.
pub(super) fn resource_places(server: &Url, named: Option<Url>) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut places: Vec<Url> = named.into_iter().collect();
    for path in [
        format!("/.well-known/{RESOURCE}{path}"),
        format!("/.well-known/{RESOURCE}"),
    ] {
        let place = at(server, &path);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Returns the addresses at which the metadata of an issuer may lie, in order.
pub(super) fn server_places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let paths = match path.is_empty() {
        true => vec![
            format!("/.well-known/{SERVER}"),
            format!("/.well-known/{OPENID}"),
        ],
        false => vec![
            format!("/.well-known/{SERVER}{path}"),
            format!("/.well-known/{OPENID}{path}"),
            format!("{path}/.well-known/{OPENID}"),
        ],
    };
    paths.iter().map(|path| at(issuer, path)).collect()
}

impl ResourceMetadata {
    /// Returns `None` if there is no document at this place.
    pub(super) fn read(
        answer: &Answer<'_>,
        server: &Url,
        network: Network,
    ) -> Result<Option<Self>, LoginError> {
        let Some(object) = document(answer, "protected resource metadata")? else {
            return Ok(None);
        };
        let missing = |name: &str| LoginError::ResourceMetadata(format!("it has no `{name}`"));
        let resource = text(&object, "resource").ok_or_else(|| missing("resource"))?;
        if !is_resource_of(resource, server) {
            return Err(LoginError::ResourceMismatch {
                named: shown(resource),
            });
        }
        let issuers = texts(&object, "authorization_servers").unwrap_or_default();
        // Nothing says which of several issuers is better; the first one is the server's choice.
        let issuer = issuers.into_iter().next();
        let issuer = issuer.ok_or_else(|| missing("authorization_servers"))?;
        check_issuer(&issuer, network)?;
        let scopes = texts(&object, "scopes_supported").unwrap_or_default();
        Ok(Some(Self {
            resource: resource.to_owned(),
            issuer,
            scopes: scopes.iter().map(String::as_str).collect(),
        }))
    }

    /// Returns what a server without metadata implies: its own origin is its authorization server.
    /// The metadata of that issuer is checked like any other.
    pub(super) fn implied(server: &Url) -> Self {
        let mut resource = server.clone();
        resource.set_fragment(None);
        Self {
            resource: resource.to_string(),
            issuer: server.origin().ascii_serialization(),
            scopes: ScopeSet::default(),
        }
    }
}

fn check_issuer(issuer: &str, network: Network) -> Result<Url, LoginError> {
    let what = "authorization server";
    let url = checked(issuer, network).map_err(|why| LoginError::Address { what, why })?;
    match url.query() {
        Some(_) => Err(LoginError::ResourceMetadata(
            "the address of the authorization server has a query".to_owned(),
        )),
        None => Ok(url),
    }
}

/// Whether a resource identifier covers the server: the same origin, and a path that is the
/// server's path or a folder above it.
fn is_resource_of(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let is_clean = resource.username().is_empty()
        && resource.password().is_none()
        && resource.fragment().is_none();
    let folder = resource.path().trim_end_matches('/');
    let path = server.path().trim_end_matches('/');
    let is_above = path
        .strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let has_same_query = resource.query().is_none() || resource.query() == server.query();
    is_clean && resource.origin() == server.origin() && is_above && has_same_query
}

impl ServerMetadata {
    /// Returns `None` if there is no document at this place.
    pub(super) fn read(
        answer: &Answer<'_>,
        issuer: &str,
        network: Network,
    ) -> Result<Option<Self>, LoginError> {
        let Some(object) = document(answer, "metadata of the authorization server")? else {
            return Ok(None);
        };
        let missing = |name: &str| LoginError::ServerMetadata(format!("it has no `{name}`"));
        let named = text(&object, "issuer").ok_or_else(|| missing("issuer"))?;
        if named != issuer {
            return Err(LoginError::IssuerMismatch {
                named: shown(named),
                expected: shown(issuer),
            });
        }
        let endpoint = |name: &'static str| match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => checked(text, network)
                .map(Some)
                .map_err(|why| LoginError::Address { what: name, why }),
            Some(_) => Err(LoginError::ServerMetadata(format!(
                "`{name}` is not a string"
            ))),
        };
        let challenges = texts(&object, "code_challenge_methods_supported");
        let scopes = texts(&object, "scopes_supported").unwrap_or_default();
        Ok(Some(Self {
            issuer: named.to_owned(),
            authorization_endpoint: endpoint("authorization_endpoint")?,
            token_endpoint: endpoint("token_endpoint")?.ok_or_else(|| missing("token_endpoint"))?,
            registration_endpoint: endpoint("registration_endpoint")?,
            revocation_endpoint: endpoint("revocation_endpoint")?,
            device_endpoint: endpoint("device_authorization_endpoint")?,
            scopes: scopes.iter().map(String::as_str).collect(),
            auth_methods: texts(&object, "token_endpoint_auth_methods_supported"),
            signing_algorithms: texts(&object, "token_endpoint_auth_signing_alg_values_supported"),
            has_client_metadata_documents: flag(&object, "client_id_metadata_document_supported"),
            names_issuer: flag(&object, "authorization_response_iss_parameter_supported"),
            has_s256: challenges.is_some_and(|it| it.iter().any(|it| it == "S256")),
            grants: texts(&object, "grant_types_supported"),
        }))
    }

    /// Returns the address for the person, if the server can log a person in with PKCE.
    pub(super) fn authorization_endpoint(&self) -> Result<&Url, LoginError> {
        let endpoint = self.authorization_endpoint.as_ref();
        let endpoint = endpoint.ok_or_else(|| {
            LoginError::ServerMetadata("it has no `authorization_endpoint`".to_owned())
        })?;
        if !self.has_s256 {
            return Err(LoginError::NoPkce);
        }
        self.check_grant("authorization_code", "authorization code grant")?;
        Ok(endpoint)
    }

    /// Returns the address that gives out device codes.
    pub(super) fn device_endpoint(&self) -> Result<&Url, LoginError> {
        const WHAT: &str = "device authorization grant";
        self.check_grant(DEVICE_GRANT, WHAT)?;
        self.device_endpoint
            .as_ref()
            .ok_or(LoginError::NoGrant(WHAT))
    }

    /// Checks that the token endpoint accepts assertions that are signed with this algorithm.
    pub(super) fn check_private_key_jwt(&self, algorithm: &'static str) -> Result<(), LoginError> {
        let lists = |list: &Option<Vec<String>>, word: &str| match list {
            Some(list) => list.iter().any(|it| it == word),
            None => true,
        };
        let is_accepted = lists(&self.auth_methods, "private_key_jwt")
            && lists(&self.signing_algorithms, algorithm);
        match is_accepted {
            true => Ok(()),
            false => Err(LoginError::NoPrivateKeyJwt { algorithm }),
        }
    }

    pub(super) fn check_grant(&self, grant: &str, what: &'static str) -> Result<(), LoginError> {
        match &self.grants {
            Some(grants) if !grants.iter().any(|it| it == grant) => Err(LoginError::NoGrant(what)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(places: &[Url]) -> Vec<&str> {
        places.iter().map(Url::as_str).collect()
    }

    #[test]
    fn metadata_is_looked_for_in_all_places() {
        let url = |text: &str| Url::parse(text).unwrap();
        let server = url("https://mcp.example/v1/mcp?x=1");
        assert_eq!(
            places(&resource_places(
                &server,
                Some(url("https://mcp.example/m"))
            )),
            [
                "https://mcp.example/m",
                "https://mcp.example/.well-known/oauth-protected-resource/v1/mcp",
                "https://mcp.example/.well-known/oauth-protected-resource",
            ]
        );
        let root = url("https://mcp.example/");
        assert_eq!(
            places(&resource_places(&root, None)),
            ["https://mcp.example/.well-known/oauth-protected-resource"]
        );
        assert_eq!(
            places(&server_places(&url("https://as.example/tenant/"))),
            [
                "https://as.example/.well-known/oauth-authorization-server/tenant",
                "https://as.example/.well-known/openid-configuration/tenant",
                "https://as.example/tenant/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            places(&server_places(&url("https://as.example"))),
            [
                "https://as.example/.well-known/oauth-authorization-server",
                "https://as.example/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn resource_must_cover_the_server() {
        let server = Url::parse("https://mcp.example/v1/mcp").unwrap();
        for (resource, fits) in [
            ("https://mcp.example/v1/mcp", true),
            ("https://mcp.example/v1/mcp/", true),
            ("https://mcp.example", true),
            ("https://MCP.example:443/v1", true),
            ("https://mcp.example/v1/mc", false),
            ("https://mcp.example/v1/mcp/x", false),
            ("https://mcp.example:444/v1", false),
            ("http://mcp.example/v1", false),
            ("https://evil.example/v1/mcp", false),
            ("https://u@mcp.example/v1/mcp", false),
            ("https://mcp.example/v1/mcp#x", false),
            ("mcp", false),
        ] {
            assert_eq!(is_resource_of(resource, &server), fits, "{resource}");
        }
    }
}
