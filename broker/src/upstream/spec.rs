//! The configuration of one server.

use std::fmt;
use std::time::Duration;

use airlock_core::id::{Digest, ServerName};
use serde_json::{Value, json};

use super::era::EraChoice;
use crate::login::ServerLogin;
use crate::secret::Secret;
use crate::secrets::Secrets;
use crate::server_url::ServerUrl;

#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub name: ServerName,
    pub transport: Transport,
    pub era: EraChoice,
    pub timeouts: Timeouts,
    /// Maximum number of calls in progress at this server; further calls wait.
    pub concurrency_max: usize,
    /// Whether credentials of known shapes are masked in the server's results.
    pub mask_credentials: bool,
    /// Texts in the transport that must not be shown, such as parts of an argument or address.
    /// Values of variables and headers are always hidden.
    pub hidden: Vec<Secret>,
    /// The login of an HTTP server.
    pub(crate) login: Option<ServerLogin>,
}

#[derive(Clone)]
pub enum Transport {
    /// A child process with MCP over its stdin and stdout.
    Stdio {
        command: String,
        args: Vec<String>,
        /// Variables in addition to those of every child
        /// ([`UpstreamSettings::base_env`](super::UpstreamSettings)).
        env: Vec<(String, Secret)>,
        cwd: Option<std::path::PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        url: ServerUrl,
        headers: Vec<(String, Secret)>,
    },
}

/// Omits the arguments of the command, because they may contain a token.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio {
                command,
                args,
                env,
                cwd,
            } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &format_args!("{} of them", args.len()))
                .field("env", env)
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers } => f
                .debug_struct("Http")
                .field("url", url)
                .field("headers", headers)
                .finish(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Maximum time of `server/discover` before `initialize` is tried.
    pub probe: Duration,
    /// Maximum time to start or reach the server and complete the handshake, probe included.
    pub connect: Duration,
    /// Maximum time for all pages of `tools/list`; pages that arrived until then are kept.
    pub list: Duration,
    /// Maximum time for a child to end after its stdin was closed, and again after SIGTERM.
    pub close_grace: Duration,
}

impl Timeouts {
    /// Returns the maximum time to stop a server. Each of the four stages may take the grace time:
    /// closing stdin, SIGTERM, SIGKILL, and processes that the leader left behind.
    pub(super) fn stop_max(&self) -> Duration {
        const STAGES: u32 = 4;
        self.close_grace.saturating_mul(STAGES)
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(3),
            connect: Duration::from_secs(60),
            list: Duration::from_secs(30),
            close_grace: Duration::from_millis(500),
        }
    }
}

impl ServerSpec {
    #[must_use]
    pub fn new(name: &str, transport: Transport) -> Self {
        const CONCURRENCY_MAX: usize = 16;
        Self {
            name: ServerName(name.into()),
            transport,
            era: EraChoice::Auto,
            timeouts: Timeouts::default(),
            concurrency_max: CONCURRENCY_MAX,
            mask_credentials: true,
            hidden: Vec::new(),
            login: None,
        }
    }

    /// Returns a digest of the server's program or address, and of the caller whose login is used,
    /// without any credential.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut identity = match &self.transport {
            Transport::Stdio {
                command, args, cwd, ..
            } => json!({
                "command": command,
                "args": args,
                "cwd": cwd.as_ref().map(|path| path.to_string_lossy()),
            }),
            Transport::Http { url, .. } => json!({ "url": url.to_string() }),
        };
        if let Some(caller) = self.caller() {
            identity = json!([identity, caller]);
        }
        // Only configured secrets are masked: the digest must not change when airlock recognises
        // more kinds of credentials.
        let secrets = Secrets::new(self.hidden.iter().map(Secret::expose)).known_only();
        secrets.redact_value(&mut identity);
        codegen::canonical::digest(&identity)
    }

    /// Returns everything that the configuration says about how the server is reached, credentials
    /// included. Only a keyed digest of it may be stored.
    #[must_use]
    pub(crate) fn target_with_credentials(&self) -> Vec<u8> {
        let named = |named: &[(String, Secret)]| -> Vec<Value> {
            let each = named.iter();
            each.map(|(name, value)| json!([name, value.expose()]))
                .collect()
        };
        let target = match &self.transport {
            Transport::Stdio {
                command,
                args,
                env,
                cwd,
            } => json!({
                "command": command,
                "args": args,
                "env": named(env),
                "cwd": cwd.as_ref().map(|path| path.to_string_lossy()),
            }),
            Transport::Http { url, headers } => json!({
                "url": url.url().as_str(),
                "headers": named(headers),
            }),
        };
        let target = match self.caller() {
            Some(caller) => json!([target, caller]),
            None => target,
        };
        codegen::canonical::canonical(&target)
    }

    /// Returns the caller of `airlock serve` whose own login is used.
    fn caller(&self) -> Option<&str> {
        self.login.as_ref().and_then(ServerLogin::caller)
    }

    /// Returns the program with its arguments, or the address, for a lock file. The text contains
    /// no credential. It does not contain the program's folder, which differs between machines.
    #[must_use]
    pub fn target(&self) -> String {
        let mut target = match &self.transport {
            Transport::Stdio { command, args, .. } => {
                let program = command.rsplit('/').next().unwrap_or(command);
                let words: Vec<&str> = [program]
                    .into_iter()
                    .chain(args.iter().map(String::as_str))
                    .collect();
                words.join(" ")
            }
            Transport::Http { url, .. } => url.to_string(),
        };
        Secrets::new(self.secrets().iter().map(Secret::expose)).redact_text(&mut target);
        target
    }

    /// Returns the credentials to mask in the server's results.
    #[must_use]
    pub(crate) fn secrets_in_results(&self, secrets: &Secrets) -> Secrets {
        match self.mask_credentials {
            true => secrets.clone(),
            false => secrets.known_only(),
        }
    }

    /// Returns everything that must not appear in a text about this server. Short values (`true`,
    /// `info`) are not included: they are not secrets, and masking them would make texts
    /// unreadable.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        const SECRET_BYTES_MIN: usize = 8;
        let values = |named: &[(String, Secret)]| -> Vec<Secret> {
            let long = |secret: &&Secret| secret.expose().len() >= SECRET_BYTES_MIN;
            let values = named.iter().map(|(_, secret)| secret);
            values.filter(long).cloned().collect()
        };
        let named = match &self.transport {
            Transport::Stdio { env, .. } => values(env),
            Transport::Http { url, headers } => {
                let asked = url.url().query_pairs();
                let query: Vec<_> = asked
                    .map(|(name, value)| (name.into_owned(), Secret::new(&*value)))
                    .collect();
                [values(headers), values(&query)].concat()
            }
        };
        [named, self.hidden.clone()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_displays_without_arguments_or_query() {
        let stdio = Transport::Stdio {
            command: "run".into(),
            args: vec!["--token".into(), "s3cret-token".into()],
            env: vec![("KEY".into(), Secret::new("s3cret-key"))],
            cwd: None,
        };
        let shown = format!("{:?}", ServerSpec::new("a", stdio));
        assert!(
            !shown.contains("s3cret") && shown.contains("run"),
            "{shown}"
        );

        let url = ServerUrl::parse("https://mcp.example/mcp?v=2&key=s3cret%20key").unwrap();
        let headers = vec![("A".to_owned(), Secret::new("s3cret-header"))];
        let secrets = ServerSpec::new("a", Transport::Http { url, headers }).secrets();
        let secrets: Vec<&str> = secrets.iter().map(Secret::expose).collect();
        assert_eq!(secrets, ["s3cret-header", "s3cret key"]);
    }

    #[test]
    fn spec_digest_ignores_credentials() {
        let with = |token: &str| {
            let headers = vec![("Authorization".to_owned(), Secret::new(token))];
            let url = ServerUrl::parse("http://localhost/mcp").unwrap();
            ServerSpec::new("a", Transport::Http { url, headers }).digest()
        };
        assert_eq!(with("one"), with("two"));

        let with = |token: &str| {
            let transport = Transport::Stdio {
                command: "run".into(),
                args: vec![format!("--token={token}")],
                env: vec![],
                cwd: None,
            };
            let mut spec = ServerSpec::new("a", transport);
            spec.hidden = vec![Secret::new(token)];
            spec.digest()
        };
        assert_eq!(with("tok-1"), with("another"));
    }
}
