//! Converts a configured server to a [`ServerSpec`]: resolves placeholders, and checks names and
//! addresses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlock_core::id::ServerName;
use airlock_core::problem::Problem;
use airlock_core::tool_pattern::is_match;
use codegen::closest::closest;

use super::choice::Choice;
use super::login_flags::LoginFlags;
use super::oauth::{OauthTable, ResolvedClient};
use super::policies::UnmatchedPattern;
use super::{invalid_at, placeholder};
use crate::command_source::CommandSource;
use crate::environment::Environment;
use crate::login::keyring::Keyring;
use crate::login::{LoginSettings, LoginStore, OauthConfig, ServerLogin};
use crate::shell_words;
use crate::upstream::{EraChoice, Secret, ServerSpec, ServerUrl, Transport};

/// A server as written in a flag or a file, with unresolved placeholders.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredServer {
    pub(crate) name: String,
    /// The place of the definition, such as `airlock.toml:12` or `--server`.
    pub(crate) origin: String,
    pub(crate) target: ServerTarget,
    pub(crate) tuning: ServerTuning,
    pub(crate) trust: ToolTrust,
}

#[derive(Debug, Clone)]
pub(crate) enum ServerTarget {
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        cwd: Option<PathBuf>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ServerTuning {
    pub(crate) era: Option<EraChoice>,
    pub(crate) in_flight_max: Option<usize>,
    pub(crate) connect_timeout_ms: Option<u64>,
    /// For an on-demand server, the time without a call after which it is disconnected, in
    /// milliseconds.
    pub(crate) idle_ms: Option<u64>,
    pub(crate) about: Option<String>,
    /// Whether credentials of known shapes are masked in the server's results. `None` means that
    /// they are masked.
    pub(crate) mask_credentials: Option<bool>,
    /// How airlock logs in to the server.
    pub(crate) oauth: Option<OauthTable>,
    pub(crate) credentials: Option<CredentialOwner>,
}

/// Whose login is used for the calls of a caller, if `airlock serve` tells callers apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CredentialOwner {
    /// Each caller has its own login, connection and list of tools.
    Caller,
    /// All callers use one login.
    Shared,
}

impl Choice for CredentialOwner {
    const ALL: &'static [Self] = &[Self::Caller, Self::Shared];

    fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Shared => "shared",
        }
    }
}

/// The tools of a server that only read, and the tools that are destructive, as configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolTrust {
    /// Whether the server's own annotations are trusted.
    pub annotations: bool,
    /// Patterns for the names of read-only tools, with `*` for any text.
    pub read_only: Vec<String>,
    /// Patterns for the names of destructive tools.
    pub destructive: Vec<String>,
    /// Patterns for the names of tools that can be called twice with the same arguments without a
    /// further effect.
    pub idempotent: Vec<String>,
    /// File and line of the server's table.
    pub origin: String,
}

impl ToolTrust {
    /// Returns the trust for the tools of this program or of the embedding program.
    #[must_use]
    pub fn own() -> Self {
        Self {
            annotations: true,
            ..Self::default()
        }
    }

    /// Returns the patterns that match none of the server's tools. A rule about destructive tools
    /// does not apply to a tool whose name is misspelt here.
    pub(crate) fn unmatched(&self, server: &str, tools: &[&str]) -> Vec<UnmatchedPattern> {
        let all = [
            ("`read_only` pattern", &self.read_only),
            ("`destructive` pattern", &self.destructive),
            ("`idempotent` pattern", &self.idempotent),
        ];
        let all = all.into_iter().flat_map(|(kind, patterns)| {
            let of_kind = patterns.iter().map(move |pattern| (kind, pattern));
            of_kind.filter(move |(_, pattern)| !tools.iter().any(|tool| is_match(pattern, tool)))
        });
        let unmatched = all.map(|(kind, pattern)| UnmatchedPattern {
            origin: self.origin.clone(),
            kind,
            pattern: pattern.clone(),
            of: format!("tool of `{server}`"),
            closest: closest(pattern, tools.iter().copied()).map(str::to_owned),
        });
        unmatched.collect()
    }
}

/// A server that is ready to be connected.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub spec: ServerSpec,
    pub trust: ToolTrust,
    /// For an on-demand server, the time without a call after which it is disconnected.
    pub idle: Option<Duration>,
    /// A description of the server in one line.
    pub about: Option<String>,
    pub(crate) credentials: Option<CredentialOwner>,
}

impl ServerConfig {
    /// Returns a server that is connected at the start and whose annotations are not trusted.
    #[must_use]
    pub fn new(spec: ServerSpec) -> Self {
        Self {
            spec,
            trust: ToolTrust::default(),
            idle: None,
            about: None,
            credentials: None,
        }
    }
}

/// Parses `NAME=COMMAND…` or `NAME=URL`.
pub(crate) fn from_flag(flag: &str) -> Result<DeclaredServer, Problem> {
    let problem = |why: String| {
        let begin = flag.split_whitespace().next().unwrap_or_default();
        let example = "--server 'fs=npx -y @modelcontextprotocol/server-filesystem .'";
        let next = format!("write NAME=COMMAND or NAME=https://…, such as {example}");
        invalid_at(
            "--server",
            format!("invalid value `{begin}` for `--server`"),
            why,
            next,
        )
    };
    let (name, target) = flag
        .split_once('=')
        .ok_or_else(|| problem("the value has no `=`".into()))?;
    let target = target.trim();
    if let Some(scheme) = other_scheme(target) {
        let why = format!("unsupported URL scheme `{scheme}://`; expected http:// or https://");
        return Err(problem(why));
    }
    let target = if is_web_address(target) {
        ServerTarget::Http {
            url: target.to_owned(),
            headers: BTreeMap::new(),
        }
    } else {
        let words =
            shell_words::split(target).map_err(|bad| problem(format!("invalid command: {bad}")))?;
        let (command, args) = words
            .split_first()
            .ok_or_else(|| problem("the command is empty".into()))?;
        ServerTarget::Stdio {
            command: command.clone(),
            args: args.to_vec(),
            env: BTreeMap::new(),
            cwd: None,
        }
    };
    Ok(DeclaredServer {
        name: name.trim().to_owned(),
        origin: "--server".into(),
        target,
        tuning: ServerTuning::default(),
        trust: ToolTrust::default(),
    })
}

fn is_web_address(target: &str) -> bool {
    target.starts_with("http://") || target.starts_with("https://")
}

/// Returns the scheme of a target that is a URL with an unsupported scheme.
fn other_scheme(target: &str) -> Option<&str> {
    let (scheme, _) = target.split_once("://")?;
    let is_scheme = !scheme.is_empty() && scheme.bytes().all(|it| it.is_ascii_alphanumeric());
    (is_scheme && !is_web_address(target)).then_some(scheme)
}

impl DeclaredServer {
    /// Resolves the working folder relative to `folder`.
    pub(super) fn beside(mut self, folder: &Path) -> Self {
        if let ServerTarget::Stdio { cwd: Some(cwd), .. } = &mut self.target {
            *cwd = folder.join(&cwd);
        }
        self
    }

    /// Returns the demo server inside this program.
    pub(crate) fn demo(program: PathBuf) -> Self {
        let command = program.to_string_lossy().into_owned();
        Self {
            name: "demo".into(),
            origin: "--demo".into(),
            target: ServerTarget::Stdio {
                command,
                args: vec!["demo-server".into()],
                env: BTreeMap::new(),
                cwd: None,
            },
            tuning: ServerTuning::default(),
            trust: ToolTrust::own(),
        }
    }

    /// Resolves the placeholders. Returns the server, and its values that must never be shown.
    pub(crate) fn resolve(
        self,
        environment: &Environment,
        logins: &LoginContext,
    ) -> Result<(ServerConfig, Vec<String>), Problem> {
        let what = format!("invalid server `{}` ({})", self.name, self.origin);
        let name = ServerName::parse(&self.name).map_err(|bad| {
            invalid_at(
                &self.origin,
                what.clone(),
                bad.to_string(),
                format!("rename the server to `{}`", renamed(&self.name)),
            )
        })?;
        let mut resolver = Resolver {
            environment,
            secrets: Vec::new(),
            origin: self.origin,
            what,
        };
        let transport = resolver.transport(self.target)?;
        let login = resolver.login(&transport, self.tuning.oauth)?;
        let mut spec = ServerSpec::new(&name.0, transport);
        spec.era = self.tuning.era.unwrap_or(spec.era);
        spec.concurrency_max = self.tuning.in_flight_max.unwrap_or(spec.concurrency_max);
        if let Some(ms) = self.tuning.connect_timeout_ms {
            spec.timeouts.connect = Duration::from_millis(ms);
        }
        if let (Some(settings), Transport::Http { url, .. }) = (login, &spec.transport) {
            let (metadata, store) = (logins.oauth.client_metadata.clone(), logins.store.clone());
            let flags = logins.flags.of(&name.0);
            let login = ServerLogin::new(name, url.clone(), settings, metadata, store, flags);
            spec.login = Some(login);
        }
        if self.tuning.credentials.is_some() && spec.login.is_none() {
            let why = "`credentials` says whose login is used, and this server has no login";
            let next = "remove `credentials`; or configure `url`, and no header `Authorization`";
            return Err(invalid_at(&resolver.origin, resolver.what, why, next));
        }
        spec.mask_credentials = self.tuning.mask_credentials.unwrap_or(true);
        spec.hidden = resolver
            .secrets
            .iter()
            .map(|value| Secret::new(value.as_str()))
            .collect();
        Ok((
            ServerConfig {
                trust: self.trust,
                idle: self.tuning.idle_ms.map(Duration::from_millis),
                about: self.tuning.about,
                credentials: self.tuning.credentials,
                ..ServerConfig::new(spec)
            },
            resolver.secrets,
        ))
    }
}

/// What all servers share that can be logged in to.
#[derive(Debug)]
pub(crate) struct LoginContext {
    pub(crate) oauth: OauthConfig,
    pub(crate) store: LoginStore,
    pub(super) flags: LoginFlags,
}

impl LoginContext {
    pub(super) fn new(state_dir: &Path, oauth: OauthConfig, environment: &Environment) -> Self {
        let store = LoginStore::new(
            state_dir,
            oauth.keys.clone(),
            Keyring::new(environment.clone()),
            CommandSource(environment.clone()),
        );
        Self {
            oauth,
            store,
            flags: LoginFlags::default(),
        }
    }
}

struct Resolver<'a> {
    environment: &'a Environment,
    secrets: Vec<String>,
    origin: String,
    what: String,
}

impl Resolver<'_> {
    fn transport(&mut self, target: ServerTarget) -> Result<Transport, Problem> {
        match target {
            ServerTarget::Stdio {
                command,
                args,
                env,
                cwd,
            } => Ok(Transport::Stdio {
                command: self.text("the command", &command)?,
                args: args
                    .iter()
                    .map(|arg| self.text("an argument", arg))
                    .collect::<Result<_, _>>()?,
                env: self.named("the variable", env)?,
                cwd,
            }),
            ServerTarget::Http { url, headers } => {
                let resolved = self.text("the address", &url)?;
                let url = ServerUrl::parse(&resolved).map_err(|bad| {
                    let next = "write an http or https address, and put credentials into `headers`";
                    let why = format!("invalid address: {bad}");
                    invalid_at(&self.origin, self.what.clone(), why, next)
                })?;
                Ok(Transport::Http {
                    url,
                    headers: self.named("the header", headers)?,
                })
            }
        }
    }

    /// Returns the settings of the login. A server with its own `Authorization` header needs none.
    fn login(
        &mut self,
        transport: &Transport,
        table: Option<OauthTable>,
    ) -> Result<Option<LoginSettings>, Problem> {
        let has_header = match transport {
            Transport::Stdio { .. } => true,
            Transport::Http { headers, .. } => {
                let mut names = headers.iter().map(|(name, _)| name);
                names.any(|name| name.eq_ignore_ascii_case("authorization"))
            }
        };
        match table {
            None if has_header => Ok(None),
            Some(_) if has_header => {
                let why = "`oauth` needs an address, and no header `Authorization`";
                let next = "remove `oauth` or the header";
                Err(invalid_at(&self.origin, self.what.clone(), why, next))
            }
            table => {
                let table = table.unwrap_or_default();
                let mut resolve = |name: &str, template: Option<&String>| {
                    let text = template.map(|it| self.text(name, it));
                    text.transpose()
                };
                let client = ResolvedClient {
                    id: resolve("`client_id`", table.client_id.as_ref())?,
                    secret: resolve("`client_secret`", table.client_secret.as_ref())?,
                    private_key: resolve("`private_key`", table.private_key.as_ref())?,
                };
                let secrets = [&client.secret, &client.private_key];
                self.secrets.extend(secrets.into_iter().flatten().cloned());
                let settings = table.settings(client);
                let next = "correct the table `oauth`; docs/logins.md describes it";
                settings
                    .map(Some)
                    .map_err(|why| invalid_at(&self.origin, self.what.clone(), why, next))
            }
        }
    }

    fn named(
        &mut self,
        kind: &str,
        values: BTreeMap<String, String>,
    ) -> Result<Vec<(String, Secret)>, Problem> {
        let mut resolved = Vec::with_capacity(values.len());
        for (name, template) in values {
            let value = self.text(&format!("{kind} {name}"), &template)?;
            if kind == "the header" || names_a_secret(&name) {
                self.secrets.push(value.clone());
            }
            resolved.push((name, Secret::new(value)));
        }
        Ok(resolved)
    }

    fn text(&mut self, place: &str, template: &str) -> Result<String, Problem> {
        let resolved = placeholder::resolve(template, self.environment).map_err(|bad| {
            invalid_at(
                &self.origin,
                self.what.clone(),
                format!("in {place}: {bad}"),
                "set the variable, or correct the placeholder",
            )
        })?;
        self.secrets.extend(resolved.secrets);
        Ok(resolved.text)
    }
}

/// Returns whether a variable or header with this name probably contains a secret. Its value then
/// counts as a secret even without a placeholder.
pub(crate) fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "CREDENTIAL",
        "API_KEY",
        "APIKEY",
        "ACCESS_KEY",
        "PRIVATE_KEY",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// Returns a valid name made from an invalid one.
pub(crate) fn renamed(name: &str) -> String {
    let fitting = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let kept: String = name
        .trim()
        .chars()
        .map(fitting)
        .take(ServerName::CHARS_MAX - 1)
        .collect();
    if kept.starts_with(|c: char| c.is_ascii_alphabetic()) {
        kept
    } else {
        format!("s{kept}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(flag: &str) -> Result<ServerConfig, Problem> {
        let environment = Environment::from([("TOKEN", "t0ken-1")]);
        from_flag(flag)?
            .resolve(
                &environment,
                &LoginContext::new(Path::new("/state"), OauthConfig::default(), &environment),
            )
            .map(|(server, _)| server)
    }

    #[test]
    fn server_flag_is_command_or_url() {
        let Transport::Stdio { command, args, .. } =
            resolve("fs=npx -y 'a b' .").unwrap().spec.transport
        else {
            panic!("not a command");
        };
        assert_eq!(
            (command.as_str(), args),
            ("npx", vec!["-y".to_owned(), "a b".into(), ".".into()])
        );
        let Transport::Http { url, .. } = resolve("docs=https://example.com/mcp")
            .unwrap()
            .spec
            .transport
        else {
            panic!("not an address");
        };
        assert_eq!(url.to_string(), "https://example.com/mcp");
    }

    #[test]
    fn invalid_server_flag_reports_reason() {
        for (flag, why) in [
            ("fs", "the value has no `=`"),
            ("fs=", "the command is empty"),
            ("fs=a 'b", "invalid command: the quote ' is never closed"),
            (
                "my.fs=npx",
                "invalid server name `my.fs`; expected a letter, then at most 63 letters, digits, `_` or `-`",
            ),
            (
                "fs=https://u:p@h/",
                "invalid address: the URL has a user name or password; put credentials into a header",
            ),
            (
                "fs=x ${env:NOPE}",
                "in an argument: the variable NOPE is not set, or is empty",
            ),
        ] {
            let problem = resolve(flag).map(|_| ()).unwrap_err();
            assert_eq!((problem.why.as_str(), &*problem.code), (why, "usage"));
        }
        assert_eq!(
            resolve("my.fs=npx").unwrap_err().next,
            "rename the server to `my_fs`"
        );
    }

    #[test]
    fn placeholder_values_and_marked_settings_are_secrets() {
        let environment = Environment::from([("TOKEN", "t0ken-1")]);
        let declared = DeclaredServer {
            name: "a".into(),
            origin: "test".into(),
            target: ServerTarget::Stdio {
                command: "x".into(),
                args: Vec::new(),
                env: [
                    ("A", "pre-${env:TOKEN}"),
                    ("MY_TOKEN", "plain-one"),
                    ("MODE", "fast"),
                ]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
                cwd: None,
            },
            tuning: ServerTuning::default(),
            trust: ToolTrust::default(),
        };
        let (_, secrets) = declared
            .resolve(
                &environment,
                &LoginContext::new(Path::new("/state"), OauthConfig::default(), &environment),
            )
            .unwrap();
        assert_eq!(secrets, ["t0ken-1", "plain-one"]);
    }
}
