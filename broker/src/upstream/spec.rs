//! What our configuration says about one server.

use std::fmt;
use std::time::Duration;

use airlock_core::id::{Digest, ServerName};
use serde_json::json;

use super::era::EraChoice;
use super::secret::Secret;
use crate::config::Secrets;

#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub name: ServerName,
    pub transport: Transport,
    pub era: EraChoice,
    pub timeouts: Timeouts,
    /// Calls that may be with this server at once; further ones wait their turn.
    pub concurrency_max: usize,
    /// What stands in the transport, be it part of an argument or of the address,
    /// and must not be shown. Values of variables and headers are hidden anyway.
    pub hidden: Vec<Secret>,
}

#[derive(Clone)]
pub enum Transport {
    /// A child process that speaks on its stdin and stdout.
    Stdio {
        command: String,
        args: Vec<String>,
        /// Added to what every child gets ([`Surroundings::base_env`](super::Surroundings)).
        env: Vec<(String, Secret)>,
        cwd: Option<std::path::PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        url: ServerUrl,
        headers: Vec<(String, Secret)>,
    },
}

/// Without the arguments of the command: a token may stand among them.
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
    /// How long `server/discover` may take before `initialize` is tried.
    pub probe: Duration,
    /// Starting or reaching the server and agreeing on a revision, probe included.
    pub connect: Duration,
    /// All pages of `tools/list`; what has come by then is kept.
    pub list: Duration,
    /// How long a child may take to end by itself after its stdin was closed, and again after SIGTERM.
    pub close_grace: Duration,
}

impl Timeouts {
    /// Stdin closed, SIGTERM, SIGKILL, and what the leader left behind: each may take the grace.
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
            hidden: Vec::new(),
        }
    }

    /// What identifies the server's program or address, without any credential.
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
        Secrets::new(self.hidden.iter().map(Secret::expose)).strike_value(&mut identity);
        codegen::canonical::digest(&identity)
    }

    /// The program with its arguments, or the address, as a lock file has it: without any
    /// credential, and without the folder of the program, which differs from machine to machine.
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
        Secrets::new(self.secrets().iter().map(Secret::expose)).strike_text(&mut target);
        target
    }

    /// Everything that must not appear in a text about this server. A short
    /// value (`true`, `info`) is no secret and would only make texts unreadable.
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

/// An `http` or `https` address. Printing it leaves out the query, where
/// credentials may stand; the path is for texts that are masked.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl(reqwest::Url);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    #[error("it is not a URL: {0}")]
    NotUrl(String),
    #[error("it begins with `{0}:`, and only http and https are spoken")]
    Scheme(String),
    #[error("it carries a user name or password; put credentials into a header")]
    Credentials,
}

impl ServerUrl {
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let url = reqwest::Url::parse(text).map_err(|error| BadUrl::NotUrl(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadUrl::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadUrl::Credentials);
        }
        Ok(Self(url))
    }

    pub(crate) fn url(&self) -> &reqwest::Url {
        &self.0
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}",
            self.0.origin().ascii_serialization(),
            self.0.path()
        )
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.origin().ascii_serialization())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_query_and_refused_with_a_password() {
        let url = ServerUrl::parse("https://mcp.example/v1/mcp?key=s3cret").unwrap();
        assert_eq!(
            format!("{url} {url:?}"),
            "https://mcp.example/v1/mcp https://mcp.example"
        );
        assert_eq!(
            ServerUrl::parse("https://a:b@mcp.example"),
            Err(BadUrl::Credentials)
        );
        assert_eq!(
            ServerUrl::parse("ftp://x"),
            Err(BadUrl::Scheme("ftp".into()))
        );
        assert!(matches!(ServerUrl::parse("nope"), Err(BadUrl::NotUrl(_))));
    }

    #[test]
    fn a_spec_is_shown_without_arguments_and_hides_what_the_query_holds() {
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
    fn the_digest_of_a_spec_does_not_depend_on_its_credentials() {
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
