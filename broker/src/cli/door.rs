//! Where hosts come in, and what they have to show there.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use airlock_core::problem::Problem;
use clap::Args;

use super::input;
use super::options::usage;
use crate::config::Environment;
use crate::serve::{BadOauth, BadToken, Gate, OauthSettings, ResourceServer};
use crate::upstream::Secret;

#[derive(Debug, Args)]
pub(super) struct DoorOptions {
    /// Serve hosts over streamable HTTP at this address, for example 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// File with the bearer token that hosts must send; or set AIRLOCK_HTTP_TOKEN
    #[arg(long, value_name = "FILE", requires = "http")]
    http_token_file: Option<PathBuf>,
    /// Public URL of this server; OAuth tokens must be issued for it
    #[arg(
        long,
        value_name = "URL",
        requires = "http",
        requires = "oauth_issuer",
        requires = "oauth_introspection",
        requires = "oauth_client",
        conflicts_with = "http_token_file"
    )]
    oauth_resource: Option<String>,
    /// Authorization server that issues tokens to hosts
    #[arg(long, value_name = "URL", requires = "oauth_resource")]
    oauth_issuer: Option<String>,
    /// Token introspection endpoint (RFC 7662)
    #[arg(long, value_name = "URL", requires = "oauth_resource")]
    oauth_introspection: Option<String>,
    /// Client id for token introspection
    #[arg(long, value_name = "ID", requires = "oauth_resource")]
    oauth_client: Option<String>,
    /// File with the client secret for token introspection; or set AIRLOCK_OAUTH_SECRET
    #[arg(long, value_name = "FILE", requires = "oauth_resource")]
    oauth_secret_file: Option<PathBuf>,
    /// Scope that every token needs; may be repeated
    #[arg(long, value_name = "NAME", requires = "oauth_resource")]
    oauth_scope: Vec<String>,
}

/// Where hosts come in.
pub(super) enum Door {
    Stdio,
    Http(SocketAddr, Gate),
}

impl Door {
    pub(super) fn of(options: &DoorOptions, environment: &Environment) -> Result<Self, Problem> {
        let Some(address) = options.http else {
            return Ok(Self::Stdio);
        };
        let gate = match oauth(options, environment)? {
            Some(server) => Gate::with_oauth(address, server),
            None => with_token(address, options.http_token_file.as_deref(), environment)?,
        };
        Ok(Self::Http(address, gate))
    }
}

fn with_token(
    address: SocketAddr,
    file: Option<&Path>,
    environment: &Environment,
) -> Result<Gate, Problem> {
    let token = match file {
        Some(file) => Some(input::secret(file)?),
        None => environment.text("AIRLOCK_HTTP_TOKEN").map(str::to_owned),
    };
    Gate::new(address, token.as_deref()).map_err(|bad| {
        let next = match bad {
            BadToken::Missing(_) => {
                "set AIRLOCK_HTTP_TOKEN, give --http-token-file or --oauth-resource, or listen on \
                 127.0.0.1"
            }
            BadToken::Length | BadToken::Characters => {
                "use 16 random bytes or more, written in letters and digits"
            }
        };
        usage("hosts cannot be let in", bad.to_string(), next)
    })
}

fn oauth(
    options: &DoorOptions,
    environment: &Environment,
) -> Result<Option<ResourceServer>, Problem> {
    let text = |option: &Option<String>| option.clone().unwrap_or_default();
    let Some(resource) = options.oauth_resource.clone() else {
        return Ok(None);
    };
    let secret = match &options.oauth_secret_file {
        Some(file) => Some(input::secret(file)?),
        None => environment.text("AIRLOCK_OAUTH_SECRET").map(str::to_owned),
    };
    let Some(secret) = secret.filter(|it| !it.is_empty()) else {
        let why = "nothing says by which secret we are known to the authorization server";
        let next = "set AIRLOCK_OAUTH_SECRET, or give --oauth-secret-file";
        return Err(usage("tokens cannot be looked up", why, next));
    };
    let settings = OauthSettings {
        resource,
        issuer: text(&options.oauth_issuer),
        introspection: text(&options.oauth_introspection),
        client_id: text(&options.oauth_client),
        client_secret: Secret::new(secret),
        scopes: options.oauth_scope.clone(),
    };
    let server = ResourceServer::new(settings).map_err(|bad| {
        let next = match bad {
            BadOauth::Url { .. } => "write a whole URL, such as https://login.example/introspect",
            BadOauth::Plain(_) => "use https; tokens and secrets would travel in the open",
            BadOauth::Scope => "write scopes one by one, as the authorization server has them",
        };
        usage("hosts cannot be let in", bad.to_string(), next)
    })?;
    Ok(Some(server))
}
