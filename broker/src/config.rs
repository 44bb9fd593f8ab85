//! Merges flags, files and environment variables into one validated [`Config`]. No other module
//! reads configuration files.

mod anchor;
mod approver;
mod browser;
pub(crate) mod choice;
mod extract;
mod file;
mod flags;
pub mod grants;
pub(crate) mod labels;
mod limits;
mod located;
mod login_flags;
pub(crate) mod mcp_json;
mod oauth;
mod offers;
mod pass_through;
mod placeholder;
pub(crate) mod policies;
pub(crate) mod rule_folder;
pub(crate) mod server;
mod server_table;
mod settings;
pub(crate) mod telemetry;
mod tsc;
mod unknown_keys;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlock_core::level::Level;
use airlock_core::limits::Limits;
use airlock_core::problem::Problem;
use airlock_core::rules::PatternRule;
use airlock_core::tool_pattern::ToolPattern;

pub use crate::environment::Environment;
pub use anchor::AnchorCommand;
pub use approver::ApproverChoice;
pub use browser::BrowserCommand;
pub use extract::ExtractCommand;
pub use flags::Flags;
pub use labels::FlowConfig;
pub use limits::{BadLimitSetting, LimitSet, LimitSetting, settings as limit_settings};
pub(crate) use offers::OfferKind;
pub use offers::{BadOffer, Offer, Offers};
pub use pass_through::PassThrough;
pub(crate) use policies::UnmatchedPattern;
pub use policies::{GroupPattern, PolicyConfig};
pub(crate) use server::{CredentialOwner, names_a_secret};
pub use server::{ServerConfig, ToolTrust};
pub use settings::{
    BrokerSettings, CompilerSettings, EngineSettings, RunSettings, Settings, StateSettings,
    ToolSettings,
};
pub use telemetry::TelemetryConfig;
pub use tsc::TscChoice;
pub use unknown_keys::UnknownKeys;

use extract::FileExtract;
use file::FileConfig;
use labels::{FileFlow, MissingRoot};
use located::LocatedText;
use login_flags::LoginFlags;
use policies::{PolicyPath, ToolGroups};
use server::{DeclaredServer, LoginContext};

use crate::secrets::Secrets;
use airlock_sandbox::JsEngine;
use airlock_sandbox::budget::BudgetLimits;
use airlock_sandbox::units;

/// Maximum size of a configuration file in bytes. Files that people write are much smaller.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum number of servers in all files and flags together. airlock starts a process or a
/// connection for each of them, all at once.
const SERVERS_MAX: usize = 250;
const CODE: &str = "config-invalid";
const USAGE: &str = "usage";
/// The origin in messages about a limit that was set by a flag.
const COMMAND_LINE: &str = "the command line";

/// When a run of a host that waits for people only is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspendAfter {
    Never,
    Wait(Duration),
}

/// The complete configuration of a broker.
#[derive(Debug, Clone)]
pub struct Config {
    pub servers: Vec<ServerConfig>,
    pub rules: Vec<PatternRule>,
    pub policies: PolicyConfig,
    pub flow: FlowConfig,
    pub limits: Limits,
    /// The budget that all runs share.
    pub budget: BudgetLimits,
    pub state_dir: PathBuf,
    /// How long the labels of a host are kept after its last session, if it is configured.
    pub labels_keep: Option<Duration>,
    /// When `airlock serve` suspends a run that waits for people only, if it is configured.
    pub suspend_after: Option<SuspendAfter>,
    /// How long the journals of a run chain are kept. `None`: until they are deleted by hand.
    pub journals_keep: Option<Duration>,
    pub settings: Settings,
    /// The approver that the configuration file names. A flag overrides it.
    pub approver: Option<ApproverChoice>,
    /// Opens the approval page, if this machine has a browser.
    pub browser: Option<BrowserCommand>,
    /// The program that receives the signed heads of runs.
    pub anchor: Option<AnchorCommand>,
    /// The program that extracts values for scripts.
    pub extract: Option<ExtractCommand>,
    pub secrets: Secrets,
    /// The variables that the processes of all servers get, in addition to the variables that are
    /// configured for each server.
    pub base_env: Vec<(String, String)>,
    /// Where traces and metrics are sent, if telemetry is configured.
    pub telemetry: Option<TelemetryConfig>,
    /// The requests and messages that servers may send to hosts during a call.
    pub pass: PassThrough,
    /// The servers whose prompts and resources hosts can use.
    pub offers: Offers,
    pub warnings: Vec<Problem>,
}

impl Config {
    pub fn load(flags: Flags, environment: &Environment) -> Result<Self, Problem> {
        let mut gathered = MergedConfig::default();
        if let Some(path) = environment.config_file().filter(|path| is_there(path)) {
            gathered.take_file(read_file(&path)?, &path);
        }
        if let Some(path) = &flags.config {
            gathered.take_file(read_file(path)?, path);
        }
        for path in &flags.mcp_configs {
            let config = mcp_json::parse(&display_path(path), &read_text(path)?)?;
            gathered.servers.extend(config.servers);
            gathered.warnings.extend(config.warnings);
        }
        for path in &flags.labels {
            let flow = labels::parse(&display_path(path), &read_text(path)?)?;
            gathered.flows.push(flow.beside(folder_of(path)));
        }
        gathered.take_flags(flags)?;
        gathered.finish(environment)
    }

    /// Returns the configuration that a file with this text at this place would give, together with
    /// the user's own file.
    pub(crate) fn of_text(
        text: &str,
        at: &Path,
        environment: &Environment,
    ) -> Result<Self, Problem> {
        let mut gathered = MergedConfig::default();
        if let Some(path) = environment.config_file().filter(|path| is_there(path)) {
            gathered.take_file(read_file(&path)?, &path);
        }
        gathered.take_file(file::parse(&display_path(at), text)?, at);
        gathered.finish(environment)
    }
}

/// The combined settings of all sources. For a setting with one value, the later source wins.
#[derive(Default)]
struct MergedConfig {
    servers: Vec<DeclaredServer>,
    rules: Vec<(Level, LocatedText)>,
    flows: Vec<FileFlow>,
    policies: Vec<PolicyPath>,
    /// The folders of rules that files name and that do not count.
    policies_ignored: Vec<PathBuf>,
    groups: ToolGroups,
    limits: Vec<(String, LocatedText)>,
    settings: Settings,
    labels_keep: Option<LocatedText>,
    suspend_after: Option<LocatedText>,
    journals_keep: Option<LocatedText>,
    approver: Option<LocatedText>,
    anchor: Option<LocatedText>,
    extract: Option<(FileExtract, String)>,
    oauth: Option<(oauth::FileOauth, String)>,
    pass: Option<Vec<LocatedText>>,
    offer: Vec<LocatedText>,
    roots_absent: bool,
    login_flags: LoginFlags,
    warnings: Vec<Problem>,
}

impl MergedConfig {
    /// Adds a file. The paths in it are relative to its folder.
    fn take_file(&mut self, file: FileConfig, at: &Path) {
        let folder = folder_of(at);
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
        self.overlay(file.settings.beside(folder));
        self.labels_keep = file.labels_keep.or(self.labels_keep.take());
        self.suspend_after = file.suspend_after.or(self.suspend_after.take());
        self.journals_keep = file.journals_keep.or(self.journals_keep.take());
        self.approver = file.approver.or(self.approver.take());
        self.anchor = file.anchor.or(self.anchor.take());
        self.extract = file.extract.or(self.extract.take());
        self.oauth = file.oauth.or(self.oauth.take());
        self.pass = file.pass.or(self.pass.take());
        self.offer.extend(file.offer);
    }

    fn take_flags(&mut self, mut flags: Flags) -> Result<(), Problem> {
        let state = &mut flags.settings.state.state_dir;
        *state = flags.state_dir.take().or(state.take());
        self.login_flags = LoginFlags::new(&flags);
        for flag in &flags.servers {
            self.servers.push(server::from_flag(flag)?);
        }
        self.servers.extend(flags.demo.map(DeclaredServer::demo));
        if flags.policies_only {
            let ignored = std::mem::take(&mut self.policies).into_iter();
            self.policies_ignored = ignored.map(|it| it.path).collect();
        }
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
                    LocatedText {
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
                LocatedText {
                    text,
                    origin: COMMAND_LINE.into(),
                },
            )
        };
        self.limits.extend(flags.limits.into_iter().map(located));
        self.overlay(flags.settings);
        self.roots_absent = flags.roots_absent;
        self.pass = flags.pass.map(pass_through::of_flag).or(self.pass.take());
        let offers = flags.offer.into_iter().map(pass_through::of_offer);
        self.offer.extend(offers);
        Ok(())
    }

    fn overlay(&mut self, later: Settings) {
        self.settings = std::mem::take(&mut self.settings).overlaid_by(later);
    }

    fn finish(self, environment: &Environment) -> Result<Config, Problem> {
        let mut limits = LimitSet::default();
        for (name, LocatedText { text, origin }) in &self.limits {
            limits::set(&mut limits, name, text).map_err(|bad| {
                invalid_at(
                    origin,
                    format!("invalid limit from {origin}"),
                    bad.to_string(),
                    bad.next(),
                )
            })?;
        }
        let rules = self
            .rules
            .into_iter()
            .map(|(level, at)| rule(level, at))
            .collect::<Result<_, _>>()?;
        let extract = self.extract.map(extract::read).transpose()?;
        let pass = self.pass.as_deref().map(pass_through::parse).transpose()?;
        let mut settings = self.settings;
        if settings.engine.engine.is_none() {
            let engine = environment.text("AIRLOCK_ENGINE").map(engine_of_variable);
            settings.engine.engine = engine.transpose()?;
        }
        let approver = self.approver.as_ref().map(approver::parse).transpose()?;
        let anchor = self.anchor.as_ref().map(anchor::parse).transpose()?;
        let state_dir = settings
            .state
            .state_dir
            .clone()
            .or_else(|| environment.state_dir())
            .ok_or_else(|| {
                let why = environment.no_state_dir();
                let next = "add `--state-dir FOLDER`, or set HOME to an absolute path";
                invalid("there is no folder for the journal", why, next)
            })?;
        let labels_keep = self.labels_keep.as_ref();
        let labels_keep = labels_keep.map(|at| time("labels_keep", at)).transpose()?;
        let suspend_after = self.suspend_after.as_ref();
        let suspend_after = suspend_after.map(suspends_after).transpose()?;
        let journals_keep = self.journals_keep.as_ref();
        let journals_keep = journals_keep.map(|at| time("journals_keep", at));
        let journals_keep = journals_keep.transpose()?;
        let oauth = self
            .oauth
            .map(oauth::parse)
            .transpose()?
            .unwrap_or_default();
        let logins = LoginContext {
            flags: self.login_flags,
            ..LoginContext::new(&state_dir, oauth, environment)
        };
        let (servers, secrets) = resolve(self.servers, environment, &logins)?;
        let offers = pass_through::offers(&self.offer, &servers)?;
        let passed_on = |name: &str| Some((name.to_owned(), environment.text(name)?.to_owned()));
        let mut warnings = self.warnings;
        if secrets
            .iter()
            .any(|secret| secret.len() < Secrets::BYTES_MIN)
        {
            warnings.push(short_secret());
        }
        // The telemetry variables may be meant for other programs, so an invalid one is a warning.
        let telemetry = TelemetryConfig::from_environment(environment).unwrap_or_else(|problem| {
            warnings.push(problem);
            None
        });
        let base_env = ["PATH", "HOME"].into_iter().filter_map(passed_on).collect();
        let absent = match self.roots_absent {
            true => MissingRoot::Remarked,
            false => MissingRoot::Refused,
        };
        let (flow, root_warnings) = labels::gather(self.flows, absent)?;
        warnings.extend(root_warnings);
        let mut policies = PolicyConfig::gather(&self.policies, self.groups)?;
        policies.words = flow.words();
        policies.ignored = self.policies_ignored;
        Ok(Config {
            servers,
            rules,
            policies,
            flow,
            limits: limits.run,
            budget: limits.budget,
            state_dir,
            labels_keep,
            suspend_after,
            journals_keep,
            settings,
            approver,
            browser: BrowserCommand::find(environment),
            anchor,
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
    declared: Vec<DeclaredServer>,
    environment: &Environment,
    logins: &LoginContext,
) -> Result<(Vec<ServerConfig>, Vec<String>), Problem> {
    if declared.len() > SERVERS_MAX {
        let count = declared.len();
        let why = format!("{count} servers are configured; the maximum is {SERVERS_MAX}");
        let next = "remove servers, or run several airlocks";
        return Err(invalid("too many servers are configured", why, next));
    }
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
            let next = "remove or rename one of them; `~/.config/airlock/config.toml` is read in \
                        addition to `--config`";
            return Err(invalid_at(file, what, why, next));
        }
    }
    let mut secrets = Vec::new();
    let mut servers = Vec::new();
    for declared in declared {
        let (server, hidden) = declared.resolve(environment, logins)?;
        servers.push(server);
        secrets.extend(hidden);
    }
    Ok((servers, secrets))
}

/// Returns a warning about a credential that is too short to be masked. airlock uses the credential
/// anyway, so the user should know that it may become visible.
fn short_secret() -> Problem {
    let why = format!("the credential has fewer than {} bytes", Secrets::BYTES_MIN);
    invalid(
        "a credential is too short to be masked in output",
        why,
        "use a longer credential",
    )
}

fn rule(level: Level, at: LocatedText) -> Result<PatternRule, Problem> {
    let origin = (!at.origin.is_empty()).then_some(at.origin);
    let pattern = ToolPattern::parse(&at.text).map_err(|bad| {
        let place = origin
            .clone()
            .unwrap_or_else(|| format!("--{}", level.as_str()));
        let next = "write SERVER.TOOL, with * for any characters, such as 'fs.read_*'";
        invalid_at(
            origin.as_deref().unwrap_or_default(),
            format!("invalid rule '{}' ({place})", at.text),
            bad.to_string(),
            next,
        )
    })?;
    Ok(PatternRule {
        level,
        pattern,
        origin,
    })
}

fn engine_of_variable(text: &str) -> Result<JsEngine, Problem> {
    choice::parse(text).map_err(|why| {
        let what = "invalid value for `engine` (AIRLOCK_ENGINE)";
        invalid(
            what,
            why,
            choice::one_of(text, &choice::names::<JsEngine>()),
        )
    })
}

fn time(key: &str, at: &LocatedText) -> Result<Duration, Problem> {
    let parsed = units::duration_ms(&at.text);
    parsed.map(Duration::from_millis).map_err(|bad| {
        let what = format!("invalid value for `{key}` ({})", at.origin);
        let next = "write a time such as \"1h\" or \"0s\"";
        invalid_at(&at.origin, what, bad.to_string(), next)
    })
}

fn suspends_after(at: &LocatedText) -> Result<SuspendAfter, Problem> {
    match &*at.text {
        "never" => Ok(SuspendAfter::Never),
        _ => time("suspend_after", at).map(SuspendAfter::Wait),
    }
}

/// Returns whether a file exists. If the check fails with another error, the file counts as
/// existing, because its rules must not be skipped.
fn is_there(path: &Path) -> bool {
    !std::fs::symlink_metadata(path)
        .is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Returns the folder that contains a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn read_file(path: &Path) -> Result<FileConfig, Problem> {
    file::parse(&display_path(path), &read_text(path)?)
}

fn read_text(path: &Path) -> Result<String, Problem> {
    let failed =
        |why: String, next: &str| invalid(format!("{} cannot be read", path.display()), why, next);
    let unreadable = |error: std::io::Error| failed(error.to_string(), &choice::path(path, &error));
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > FILE_BYTES_MAX {
        let most = units::show_bytes(FILE_BYTES_MAX);
        return Err(failed(
            format!("the file is larger than {most}"),
            "name a smaller file",
        ));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes)
        .map_err(|_| failed("the file is not UTF-8".into(), "save the file as UTF-8"))
}

/// Returns the name of a file for messages and origins, without the folder, which may be private.
fn display_path(path: &Path) -> String {
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

/// Returns a problem at `origin`: a usage error for the command line, and an invalid configuration
/// for everything else.
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
