//! Flags, files and the environment, made into one validated [`Config`]. The
//! only reader of the environment and of configuration files.

mod approver;
mod engine;
mod environment;
mod extract;
mod file;
mod flags;
pub mod grants;
pub(crate) mod labels;
mod limits;
mod mcp_json;
mod passing;
mod placeholder;
pub(crate) mod policies;
pub(crate) mod rule_folder;
mod secrets;
mod server;
mod server_table;
mod tsc;
pub(crate) mod units;
mod unknown_keys;
pub(crate) mod words;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use airlock_core::limits::Limits;
use airlock_core::problem::Problem;
use airlock_core::rules::{Level, Pattern, Rule};
use airlock_core::run::Fsync;

pub use approver::Who;
pub use environment::Environment;
pub use extract::ExtractCommand;
pub use flags::Flags;
pub use labels::FlowConfig;
pub use limits::{BadLimit, LimitSet, SETTINGS, Setting};
pub use passing::Passing;
pub use policies::PolicyConfig;
pub use secrets::Secrets;
pub use server::{Server, Trust};
pub use tsc::TscChoice;
pub use unknown_keys::UnknownKeys;

use extract::FileExtract;
use file::{FileConfig, Located};
use labels::{AbsentRoot, FileFlow};
use policies::{Groups, PolicyPath};
use server::Declared;

use crate::budget::BudgetLimits;
use crate::sandbox::JsEngine;
use crate::serve::Offers;
use crate::telemetry::TelemetryConfig;

/// More than any configuration that somebody wrote.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const CODE: &str = "config-invalid";
const USAGE: &str = "usage";
/// Where a limit is written that one flag or another sets.
const COMMAND_LINE: &str = "the command line";

/// Everything that a broker needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    pub servers: Vec<Server>,
    pub rules: Vec<Rule>,
    pub policies: PolicyConfig,
    pub flow: FlowConfig,
    pub limits: Limits,
    /// What all runs may take together.
    pub budget: BudgetLimits,
    pub state_dir: PathBuf,
    /// The folder of tool files, when one is named.
    pub descriptions: Option<PathBuf>,
    /// The lock file that servers are held against.
    pub lock: Option<PathBuf>,
    /// The folder of an embedding model, when one is named.
    pub embeddings: Option<PathBuf>,
    pub fsync: Fsync,
    pub unknown_keys: UnknownKeys,
    pub engine: JsEngine,
    pub tsc: TscChoice,
    /// Who is asked, where the file says so and no flag does.
    pub approver: Option<Who>,
    /// The program that reads values for scripts.
    pub extract: Option<ExtractCommand>,
    pub secrets: Secrets,
    /// What a server's process finds in its environment besides what is configured for it.
    pub base_env: Vec<(String, String)>,
    /// Where traces and metrics go, when somebody says so.
    pub telemetry: Option<TelemetryConfig>,
    /// What passes from servers to hosts in the middle of a call.
    pub pass: Passing,
    /// Servers whose prompts and resources hosts get.
    pub offers: Offers,
    pub warnings: Vec<Problem>,
}

impl Config {
    pub fn load(flags: Flags, environment: &Environment) -> Result<Self, Problem> {
        let mut gathered = Gathered::default();
        if let Some(path) = environment.config_file().filter(|path| is_there(path)) {
            gathered.take_file(read_file(&path)?, &path);
        }
        if let Some(path) = &flags.config {
            gathered.take_file(read_file(path)?, path);
        }
        for path in &flags.mcp_configs {
            let config = mcp_json::parse(&shown(path), &read_text(path)?)?;
            gathered.servers.extend(config.servers);
            gathered.warnings.extend(config.warnings);
        }
        for path in &flags.labels {
            let flow = labels::parse(&shown(path), &read_text(path)?)?;
            gathered.flows.push(flow.beside(folder_of(path)));
        }
        gathered.take_flags(flags)?;
        gathered.finish(environment)
    }
}

/// What all sources say together; a later source wins where only one can.
#[derive(Default)]
struct Gathered {
    servers: Vec<Declared>,
    rules: Vec<(Level, Located)>,
    flows: Vec<FileFlow>,
    policies: Vec<PolicyPath>,
    groups: Groups,
    limits: Vec<(String, Located)>,
    state_dir: Option<PathBuf>,
    descriptions: Option<PathBuf>,
    lock: Option<PathBuf>,
    embeddings: Option<PathBuf>,
    fsync: Option<Located>,
    unknown_keys: Option<Located>,
    engine: Option<Located>,
    tsc: Option<TscChoice>,
    approver: Option<Located>,
    extract: Option<(FileExtract, String)>,
    pass: Option<Vec<Located>>,
    offer: Vec<Located>,
    roots_absent: bool,
    warnings: Vec<Problem>,
}

impl Gathered {
    /// What a file names lies beside it.
    fn take_file(&mut self, file: FileConfig, at: &Path) {
        let folder = folder_of(at);
        let path = |path: PathBuf| folder.join(path);
        let beside = |policy: PolicyPath| PolicyPath {
            path: folder.join(policy.path),
            ..policy
        };
        self.policies.extend(file.policies.into_iter().map(beside));
        self.groups.extend(file.groups);
        let servers = file.servers.into_iter();
        self.servers.extend(servers.map(|it| it.beside(folder)));
        self.rules.extend(file.rules);
        self.flows.push(file.flow.beside(folder));
        self.limits.extend(file.limits);
        self.state_dir = file.state_dir.map(path).or(self.state_dir.take());
        self.descriptions = file.descriptions.map(path).or(self.descriptions.take());
        self.lock = file.lock.map(path).or(self.lock.take());
        self.embeddings = file.embeddings.map(path).or(self.embeddings.take());
        self.fsync = file.fsync.or(self.fsync.take());
        self.unknown_keys = file.unknown_keys.or(self.unknown_keys.take());
        self.engine = file.engine.or(self.engine.take());
        let tsc = file.tsc.map(|tsc| tsc.beside(folder));
        self.tsc = tsc.or(self.tsc.take());
        self.approver = file.approver.or(self.approver.take());
        self.extract = file.extract.or(self.extract.take());
        self.pass = file.pass.or(self.pass.take());
        self.offer.extend(file.offer);
    }

    fn take_flags(&mut self, flags: Flags) -> Result<(), Problem> {
        for flag in &flags.servers {
            self.servers.push(server::from_flag(flag)?);
        }
        self.servers.extend(flags.demo.map(Declared::demo));
        let policy = |path, tightens| PolicyPath { path, tightens };
        let permitting = flags.policies.into_iter().map(|path| policy(path, false));
        self.policies.extend(permitting);
        let tightening = flags.tighten.into_iter().map(|path| policy(path, true));
        self.policies.extend(tightening);
        let levels = [
            (Level::Allow, flags.allow),
            (Level::AskRun, flags.ask),
            (Level::Deny, flags.deny),
        ];
        for (level, patterns) in levels {
            let located = |text| {
                (
                    level,
                    Located {
                        text,
                        origin: String::new(),
                    },
                )
            };
            self.rules.extend(patterns.into_iter().map(located));
        }
        let located = |(name, text)| {
            (
                name,
                Located {
                    text,
                    origin: COMMAND_LINE.into(),
                },
            )
        };
        self.limits.extend(flags.limits.into_iter().map(located));
        self.state_dir = flags.state_dir.or(self.state_dir.take());
        self.descriptions = flags.descriptions.or(self.descriptions.take());
        self.lock = flags.lock.or(self.lock.take());
        self.embeddings = flags.embeddings.or(self.embeddings.take());
        self.fsync = flags
            .fsync
            .map(|text| Located {
                text,
                origin: "--fsync".into(),
            })
            .or(self.fsync.take());
        self.unknown_keys = flags
            .unknown_keys
            .map(|text| Located {
                text,
                origin: "--unknown-keys".into(),
            })
            .or(self.unknown_keys.take());
        self.engine = flags
            .engine
            .map(|text| Located {
                text,
                origin: "--engine".into(),
            })
            .or(self.engine.take());
        self.roots_absent = flags.roots_absent;
        self.pass = flags.pass.map(passing::of_flag).or(self.pass.take());
        let offers = flags.offer.into_iter().map(passing::of_offer);
        self.offer.extend(offers);
        self.tsc = tsc::of_flags(flags.tsc, flags.no_tsc).or(self.tsc.take());
        Ok(())
    }

    fn finish(self, environment: &Environment) -> Result<Config, Problem> {
        let mut limits = LimitSet::default();
        for (name, Located { text, origin }) in &self.limits {
            limits::set(&mut limits, name, text).map_err(|bad| {
                invalid_at(
                    origin,
                    format!("a limit from {origin} cannot be used"),
                    bad.to_string(),
                    "correct the limit",
                )
            })?;
        }
        let rules = self
            .rules
            .into_iter()
            .map(|(level, at)| rule(level, at))
            .collect::<Result<_, _>>()?;
        let fsync = self.fsync.map_or(Ok(Fsync::default()), |at| fsync(&at))?;
        let unknown_keys = self.unknown_keys.as_ref().map(unknown_keys::parse);
        let unknown_keys = unknown_keys.transpose()?.unwrap_or_default();
        let extract = self.extract.map(extract::read).transpose()?;
        let pass = self.pass.as_deref().map(passing::parse).transpose()?;
        let named = |text: &str| Located {
            text: text.to_owned(),
            origin: "AIRLOCK_ENGINE".into(),
        };
        let engine = self
            .engine
            .or_else(|| environment.text("AIRLOCK_ENGINE").map(named));
        let engine = engine.as_ref().map(engine::parse).transpose()?;
        let approver = self.approver.as_ref().map(approver::parse).transpose()?;
        let state_dir = self
            .state_dir
            .or_else(|| environment.state_dir())
            .ok_or_else(|| {
                let why = "neither AIRLOCK_STATE_DIR nor XDG_STATE_HOME nor HOME is set";
                invalid(
                    "there is no folder for the journal",
                    why,
                    "write --state-dir FOLDER",
                )
            })?;
        let (servers, secrets) = resolve(self.servers, environment)?;
        let offers = passing::offers(&self.offer, &servers)?;
        let passed_on = |name: &str| Some((name.to_owned(), environment.text(name)?.to_owned()));
        let mut warnings = self.warnings;
        if secrets
            .iter()
            .any(|secret| secret.len() < Secrets::BYTES_MIN)
        {
            warnings.push(short_secret());
        }
        // These variables are often meant for somebody else who was started from the same place.
        let telemetry = TelemetryConfig::of(environment).unwrap_or_else(|problem| {
            warnings.push(problem);
            None
        });
        let base_env = ["PATH", "HOME"].into_iter().filter_map(passed_on).collect();
        let absent = match self.roots_absent {
            true => AbsentRoot::Remarked,
            false => AbsentRoot::Refused,
        };
        let (flow, remarks) = labels::gather(self.flows, absent)?;
        warnings.extend(remarks);
        let mut policies = PolicyConfig::gather(&self.policies, self.groups)?;
        policies.roots = flow.roots.keys().cloned().collect();
        Ok(Config {
            servers,
            rules,
            policies,
            flow,
            limits: limits.run,
            budget: limits.budget,
            state_dir,
            descriptions: self.descriptions,
            lock: self.lock,
            embeddings: self.embeddings,
            fsync,
            unknown_keys,
            engine: engine.unwrap_or_default(),
            tsc: self.tsc.unwrap_or(TscChoice::OnPath),
            approver,
            extract,
            secrets: Secrets::new(secrets),
            base_env,
            telemetry,
            pass: pass.unwrap_or_default(),
            offers,
            warnings,
        })
    }
}

fn resolve(
    declared: Vec<Declared>,
    environment: &Environment,
) -> Result<(Vec<Server>, Vec<String>), Problem> {
    let mut origins = std::collections::BTreeMap::new();
    for server in &declared {
        if let Some(earlier) = origins.insert(server.name.as_str(), server.origin.as_str()) {
            let what = format!("the server `{}` is configured twice", server.name);
            let why = format!("in {earlier} and in {}", server.origin);
            let file = if is_flag(earlier) {
                &server.origin
            } else {
                earlier
            };
            let next = "give one of them another name";
            return Err(invalid_at(file, what, why, next));
        }
    }
    let mut secrets = Vec::new();
    let mut servers = Vec::new();
    for declared in declared {
        let (server, hidden) = declared.resolve(environment)?;
        servers.push(server);
        secrets.extend(hidden);
    }
    Ok((servers, secrets))
}

/// It is passed on all the same; somebody should know that it may be seen.
fn short_secret() -> Problem {
    let why = format!("it has less than {} bytes", Secrets::BYTES_MIN);
    invalid(
        "a credential is too short to be struck out of texts",
        why,
        "use a longer one",
    )
}

fn rule(level: Level, at: Located) -> Result<Rule, Problem> {
    let origin = (!at.origin.is_empty()).then_some(at.origin);
    let pattern = Pattern::parse(&at.text).map_err(|bad| {
        let place = origin
            .clone()
            .unwrap_or_else(|| format!("--{}", level.as_str()));
        let next = "write SERVER.TOOL, with * for any characters, such as 'fs.read_*'";
        invalid_at(
            origin.as_deref().unwrap_or_default(),
            format!("the rule '{}' ({place}) cannot be read", at.text),
            bad.to_string(),
            next,
        )
    })?;
    Ok(Rule {
        level,
        pattern,
        origin,
    })
}

fn fsync(at: &Located) -> Result<Fsync, Problem> {
    match at.text.as_str() {
        "always" => Ok(Fsync::Always),
        "writes" => Ok(Fsync::Writes),
        "never" => Ok(Fsync::Never),
        other => {
            let why = format!("invalid value `{other}`; expected always, writes or never");
            Err(invalid_at(
                &at.origin,
                format!("`fsync` ({}) cannot be used", at.origin),
                why,
                "write one of the three",
            ))
        }
    }
}

/// A file that cannot be looked at is there: its rules must not be passed over.
fn is_there(path: &Path) -> bool {
    !std::fs::symlink_metadata(path)
        .is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn read_file(path: &Path) -> Result<FileConfig, Problem> {
    file::parse(&shown(path), &read_text(path)?)
}

fn read_text(path: &Path) -> Result<String, Problem> {
    let failed = |why: String| {
        invalid(
            format!("{} cannot be read", path.display()),
            why,
            "check the path",
        )
    };
    let length = std::fs::metadata(path)
        .map_err(|error| failed(error.to_string()))?
        .len();
    if length > FILE_BYTES_MAX {
        return Err(failed(format!(
            "it is larger than {}",
            units::show_bytes(FILE_BYTES_MAX)
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".into()))
}

/// A file in messages and origins: its name, since its folder is clear or private.
fn shown(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

pub(crate) fn invalid(
    what: impl Into<String>,
    why: impl Into<String>,
    next: impl Into<String>,
) -> Problem {
    Problem::new(CODE, what, why, next)
}

/// What is written on the command line is wrong usage, and everything else a wrong configuration.
pub(crate) fn invalid_at(
    origin: &str,
    what: impl Into<String>,
    why: impl Into<String>,
    next: impl Into<String>,
) -> Problem {
    let code = if is_flag(origin) { USAGE } else { CODE };
    Problem::new(code, what, why, next)
}

fn is_flag(origin: &str) -> bool {
    origin.is_empty() || origin == COMMAND_LINE || origin.starts_with("--")
}

#[cfg(test)]
mod tests;
