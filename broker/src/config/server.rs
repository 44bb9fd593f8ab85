//! What flags and files say about a server, made into one [`ServerSpec`]:
//! placeholders resolved, names and addresses checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlock_core::id::ServerName;
use airlock_core::problem::Problem;

use super::environment::Environment;
use super::{invalid_at, placeholder, words};
use crate::upstream::{EraChoice, Secret, ServerSpec, ServerUrl, Transport};

/// A server as somebody wrote it down.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    pub(crate) name: String,
    /// Where it is written, such as `airlock.toml:12` or `--server`.
    pub(crate) origin: String,
    pub(crate) target: Target,
    pub(crate) tuning: Tuning,
    pub(crate) trust: Trust,
}

#[derive(Debug, Clone)]
pub(crate) enum Target {
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
pub(crate) struct Tuning {
    pub(crate) era: Option<EraChoice>,
    pub(crate) in_flight_max: Option<usize>,
    pub(crate) connect_timeout_ms: Option<u64>,
    /// On demand, and left after so long without a call.
    pub(crate) idle_ms: Option<u64>,
    pub(crate) about: Option<String>,
}

/// Which of a server's tools only read and which destroy, as our configuration has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// Whether the server's own annotations are believed.
    pub annotations: bool,
    /// Patterns over the names of its tools, `*` for anything.
    pub read_only: Vec<String>,
    /// Likewise, of those that destroy something.
    pub destructive: Vec<String>,
}

impl Trust {
    /// For what is part of this program or of its host.
    #[must_use]
    pub fn own() -> Self {
        Self {
            annotations: true,
            ..Self::default()
        }
    }
}

/// A server that is ready to be connected to.
#[derive(Debug, Clone)]
pub struct Server {
    pub spec: ServerSpec,
    pub trust: Trust,
    /// It is connected to only when needed, and left again after so long without a call.
    pub idle: Option<Duration>,
    /// What it is good for, in a line.
    pub about: Option<String>,
}

impl Server {
    /// Connected to at the start, with no annotation believed.
    #[must_use]
    pub fn new(spec: ServerSpec) -> Self {
        Self {
            spec,
            trust: Trust::default(),
            idle: None,
            about: None,
        }
    }
}

/// `NAME=COMMAND…` or `NAME=URL`.
pub(crate) fn from_flag(flag: &str) -> Result<Declared, Problem> {
    let problem = |why: String| {
        let begin = flag.split_whitespace().next().unwrap_or_default();
        let example = "--server 'fs=npx -y @modelcontextprotocol/server-filesystem .'";
        let next = format!("write NAME=COMMAND or NAME=https://…, such as {example}");
        invalid_at(
            "--server",
            format!("`--server {begin}` cannot be read"),
            why,
            next,
        )
    };
    let (name, target) = flag
        .split_once('=')
        .ok_or_else(|| problem("it has no `=`".into()))?;
    let target = target.trim();
    if let Some(scheme) = other_scheme(target) {
        let why = format!("unsupported URL scheme `{scheme}://`; expected http:// or https://");
        return Err(problem(why));
    }
    let target = if is_web_address(target) {
        Target::Http {
            url: target.to_owned(),
            headers: BTreeMap::new(),
        }
    } else {
        let words =
            words::split(target).map_err(|bad| problem(format!("in its command, {bad}")))?;
        let (command, args) = words
            .split_first()
            .ok_or_else(|| problem("its command is empty".into()))?;
        Target::Stdio {
            command: command.clone(),
            args: args.to_vec(),
            env: BTreeMap::new(),
            cwd: None,
        }
    };
    Ok(Declared {
        name: name.trim().to_owned(),
        origin: "--server".into(),
        target,
        tuning: Tuning::default(),
        trust: Trust::default(),
    })
}

fn is_web_address(target: &str) -> bool {
    target.starts_with("http://") || target.starts_with("https://")
}

/// Of a target that is an address, and one that nobody here speaks to.
fn other_scheme(target: &str) -> Option<&str> {
    let (scheme, _) = target.split_once("://")?;
    let is_scheme = !scheme.is_empty() && scheme.bytes().all(|it| it.is_ascii_alphanumeric());
    (is_scheme && !is_web_address(target)).then_some(scheme)
}

impl Declared {
    /// A working folder that is named from this folder on.
    pub(super) fn beside(mut self, folder: &Path) -> Self {
        if let Target::Stdio { cwd: Some(cwd), .. } = &mut self.target {
            *cwd = folder.join(&cwd);
        }
        self
    }

    /// The demo server inside this program.
    pub(crate) fn demo(program: PathBuf) -> Self {
        let command = program.to_string_lossy().into_owned();
        Self {
            name: "demo".into(),
            origin: "--demo".into(),
            target: Target::Stdio {
                command,
                args: vec!["demo-server".into()],
                env: BTreeMap::new(),
                cwd: None,
            },
            tuning: Tuning::default(),
            trust: Trust::own(),
        }
    }

    /// The server, and the values in it that must never be shown.
    pub(crate) fn resolve(
        self,
        environment: &Environment,
    ) -> Result<(Server, Vec<String>), Problem> {
        let what = format!(
            "the server `{}` ({}) cannot be used",
            self.name, self.origin
        );
        let name = ServerName::parse(&self.name).map_err(|bad| {
            invalid_at(
                &self.origin,
                what.clone(),
                bad.to_string(),
                format!("call it `{}`", renamed(&self.name)),
            )
        })?;
        let mut resolver = Resolver {
            environment,
            secrets: Vec::new(),
            origin: self.origin,
            what,
        };
        let transport = resolver.transport(self.target)?;
        let mut spec = ServerSpec::new(&name.0, transport);
        spec.era = self.tuning.era.unwrap_or(spec.era);
        spec.concurrency_max = self.tuning.in_flight_max.unwrap_or(spec.concurrency_max);
        if let Some(ms) = self.tuning.connect_timeout_ms {
            spec.timeouts.connect = Duration::from_millis(ms);
        }
        spec.hidden = resolver
            .secrets
            .iter()
            .map(|value| Secret::new(value.as_str()))
            .collect();
        Ok((
            Server {
                trust: self.trust,
                idle: self.tuning.idle_ms.map(Duration::from_millis),
                about: self.tuning.about,
                ..Server::new(spec)
            },
            resolver.secrets,
        ))
    }
}

struct Resolver<'a> {
    environment: &'a Environment,
    secrets: Vec<String>,
    origin: String,
    what: String,
}

impl Resolver<'_> {
    fn transport(&mut self, target: Target) -> Result<Transport, Problem> {
        match target {
            Target::Stdio {
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
            Target::Http { url, headers } => {
                let resolved = self.text("the address", &url)?;
                let url = ServerUrl::parse(&resolved).map_err(|bad| {
                    let next = "write an http or https address, and put credentials into `headers`";
                    let why = format!("its address: {bad}");
                    invalid_at(&self.origin, self.what.clone(), why, next)
                })?;
                Ok(Transport::Http {
                    url,
                    headers: self.named("the header", headers)?,
                })
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
                format!("{place}: {bad}"),
                "set the variable, or correct the placeholder",
            )
        })?;
        self.secrets.extend(resolved.secrets);
        Ok(resolved.text)
    }
}

/// A value written plainly under such a name is treated as a secret all the same.
fn names_a_secret(name: &str) -> bool {
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

/// A name that would do, made from one that does not.
fn renamed(name: &str) -> String {
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

    fn resolve(flag: &str) -> Result<Server, Problem> {
        from_flag(flag)?
            .resolve(&Environment::from([("TOKEN", "t0ken-1")]))
            .map(|(server, _)| server)
    }

    #[test]
    fn a_flag_is_a_command_line_or_an_address() {
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
    fn a_flag_that_cannot_be_read_says_why() {
        for (flag, why) in [
            ("fs", "it has no `=`"),
            ("fs=", "its command is empty"),
            ("fs=a 'b", "in its command, the quote ' is never closed"),
            (
                "my.fs=npx",
                "`my.fs` is not a server name: a letter, then at most 63 letters, digits, `_` or `-`",
            ),
            (
                "fs=https://u:p@h/",
                "its address: it carries a user name or password; put credentials into a header",
            ),
            (
                "fs=x ${env:NOPE}",
                "an argument: the variable NOPE is not set, or is empty",
            ),
        ] {
            let problem = resolve(flag).map(|_| ()).unwrap_err();
            assert_eq!((problem.why.as_str(), &*problem.code), (why, "usage"));
        }
        assert_eq!(resolve("my.fs=npx").unwrap_err().next, "call it `my_fs`");
    }

    #[test]
    fn what_a_placeholder_resolves_to_and_what_is_called_a_secret_are_secrets() {
        let declared = Declared {
            name: "a".into(),
            origin: "test".into(),
            target: Target::Stdio {
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
            tuning: Tuning::default(),
            trust: Trust::default(),
        };
        let (_, secrets) = declared
            .resolve(&Environment::from([("TOKEN", "t0ken-1")]))
            .unwrap();
        assert_eq!(secrets, ["t0ken-1", "plain-one"]);
    }
}
