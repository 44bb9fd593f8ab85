//! Flags for serving over HTTP: the address, and the credentials that hosts must send.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use airlock_core::problem::Problem;
use clap::Args;

use super::input;
use super::options::usage;
use crate::config::Environment;
use crate::serve::{AccessGuard, BadOauth, InvalidToken, OauthSettings, ResourceServer};
use crate::upstream::Secret;

#[derive(Debug, Args)]
pub(super) struct ListenOptions {
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

impl ListenOptions {
    /// Whether each caller shows who it is.
    pub(super) fn tells_callers_apart(&self) -> bool {
        self.oauth_resource.is_some()
    }
}

/// The transport for hosts.
pub(super) enum Listen {
    Stdio,
    Http(SocketAddr, AccessGuard),
}

impl Listen {
    pub(super) fn from_options(
        options: &ListenOptions,
        environment: &Environment,
    ) -> Result<Self, Problem> {
        let Some(address) = options.http else {
            return Ok(Self::Stdio);
        };
        let gate = match oauth(options, environment)? {
            Some(server) => AccessGuard::with_oauth(address, server),
            None => with_token(address, options.http_token_file.as_deref(), environment)?,
        };
        Ok(Self::Http(address, gate))
    }
}

fn with_token(
    address: SocketAddr,
    file: Option<&Path>,
    environment: &Environment,
) -> Result<AccessGuard, Problem> {
    let token = match file {
        Some(file) => Some(input::secret(file)?),
        None => environment.text("AIRLOCK_HTTP_TOKEN").map(str::to_owned),
    };
    AccessGuard::new(address, token.as_deref()).map_err(|bad| {
        let next = match bad {
            InvalidToken::Missing(_) => {
                "set AIRLOCK_HTTP_TOKEN, give --http-token-file or --oauth-resource, or listen on \
                 127.0.0.1"
            }
            InvalidToken::Length | InvalidToken::Characters => {
                "use a random token of at least 16 letters and digits"
            }
        };
        usage("cannot serve over HTTP", bad.to_string(), next)
    })
}

fn oauth(
    options: &ListenOptions,
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
        let why = "airlock needs the secret to look up tokens at the authorization server";
        let next = "set AIRLOCK_OAUTH_SECRET, or give --oauth-secret-file";
        return Err(usage("missing OAuth client secret", why, next));
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
            BadOauth::Url { .. } => "write a full URL, such as https://login.example/introspect",
            BadOauth::Plain(_) => "use https; without it, tokens and secrets are not encrypted",
            BadOauth::Scope => "write one scope for each --oauth-scope",
        };
        usage("cannot serve over HTTP", bad.to_string(), next)
    })?;
    Ok(Some(server))
}
