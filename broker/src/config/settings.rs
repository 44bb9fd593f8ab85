//! The settings that are both a key of `airlock.toml` and a flag. A field declares the two, with the
//! type, the help text and the default: `fsync` is the key `fsync` and the flag `--fsync`.
//!
//! A struct holds the settings that the same commands take as flags. docs/configuration.md lists all
//! settings, and a test compares it with this file.

use std::path::{Path, PathBuf};

use airlock_core::run::Fsync;
use airlock_sandbox::JsEngine;
use clap::builder::{PathBufValueParser, TypedValueParser as _};
use clap::{Args, Command};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, Deserializer, Error};

use super::choice::{self, Choice};
use super::{TscChoice, UnknownKeys};

/// Settings of all commands that use the state directory.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateSettings {
    /// Folder for journals and other state [default: the XDG state directory]
    #[arg(long, value_name = "FOLDER")]
    pub state_dir: Option<PathBuf>,
}

/// Settings of all commands that use servers.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSettings {
    /// Read a folder of tool files (SERVER/TOOL.json), which add information to the servers'
    /// descriptions
    #[arg(long, value_name = "FOLDER")]
    pub descriptions: Option<PathBuf>,
    /// Refuse to call tools whose description differs from the one in this lock file
    #[arg(long, value_name = "FILE")]
    pub lock: Option<PathBuf>,
}

/// Settings of `airlock run`, `airlock serve` and `airlock check`.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSettings {
    /// Script engine: boa or quickjs [default: boa]
    #[arg(long, value_name = "NAME", help_heading = "Run", hide_possible_values = true, value_parser = choice::parser::<JsEngine>())]
    #[serde(deserialize_with = "choice::of_file")]
    pub engine: Option<JsEngine>,
}

/// Settings of `airlock run` and `airlock check`.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompilerSettings {
    /// TypeScript compiler that checks the script [default: `tsc` 7 or newer on PATH]
    #[arg(long, value_name = "PATH", conflicts_with = "no_tsc", value_parser = PathBufValueParser::new().map(TscChoice::At))]
    pub tsc: Option<TscChoice>,
    /// Do not run a TypeScript compiler
    #[arg(long)]
    #[serde(skip)]
    pub no_tsc: bool,
}

/// Settings of `airlock run` and `airlock serve`.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrokerSettings {
    /// When to sync the journal to disk: always (after each entry), writes (before each call that
    /// may write, at the end of a run with such a call, and before a grant for several runs
    /// becomes valid) or never [default: writes]
    #[arg(long, value_name = "WHEN", help_heading = "Journal", hide_possible_values = true, value_parser = choice::parser::<Fsync>())]
    #[serde(deserialize_with = "choice::of_file")]
    pub fsync: Option<Fsync>,
    /// Use the model2vec model in this folder, so that search also finds synonyms
    #[arg(long, value_name = "FOLDER", help_heading = "Tools")]
    pub embeddings: Option<PathBuf>,
}

/// Settings of `airlock run`.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunSettings {
    /// What to do with arguments that a tool's schema neither names nor forbids: warn or refuse
    /// [default: warn]
    #[arg(long, value_name = "WHAT", help_heading = "Run", hide_possible_values = true, value_parser = choice::parser::<UnknownKeys>())]
    #[serde(deserialize_with = "choice::of_file")]
    pub unknown_keys: Option<UnknownKeys>,
}

impl CompilerSettings {
    pub(crate) fn choice(&self) -> TscChoice {
        self.tsc.clone().unwrap_or(TscChoice::OnPath)
    }
}

/// The settings of one source, or of all sources together. `None` means the default.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub state: StateSettings,
    pub tools: ToolSettings,
    pub engine: EngineSettings,
    pub compiler: CompilerSettings,
    pub broker: BrokerSettings,
    pub run: RunSettings,
}

impl Settings {
    /// Takes the keys of all settings out of the table of a file.
    pub(super) fn take(table: &mut DeTable<'_>) -> Result<Self, Error> {
        Ok(Self {
            state: take(table)?,
            tools: take(table)?,
            engine: take(table)?,
            compiler: take(table)?,
            broker: take(table)?,
            run: take(table)?,
        })
    }

    /// The flags of all settings. The name of each is the key.
    pub(super) fn flags() -> Command {
        let all = StateSettings::augment_args(Command::new("settings"));
        let all = EngineSettings::augment_args(ToolSettings::augment_args(all));
        let all = BrokerSettings::augment_args(CompilerSettings::augment_args(all));
        RunSettings::augment_args(all)
    }

    /// Returns these settings, except where `later` has others.
    pub(super) fn overlaid_by(self, later: Self) -> Self {
        let no_tsc = later.compiler.no_tsc.then_some(TscChoice::Never);
        Self {
            state: StateSettings {
                state_dir: later.state.state_dir.or(self.state.state_dir),
            },
            tools: ToolSettings {
                descriptions: later.tools.descriptions.or(self.tools.descriptions),
                lock: later.tools.lock.or(self.tools.lock),
            },
            engine: EngineSettings {
                engine: later.engine.engine.or(self.engine.engine),
            },
            compiler: CompilerSettings {
                tsc: no_tsc.or(later.compiler.tsc).or(self.compiler.tsc),
                no_tsc: false,
            },
            broker: BrokerSettings {
                fsync: later.broker.fsync.or(self.broker.fsync),
                embeddings: later.broker.embeddings.or(self.broker.embeddings),
            },
            run: RunSettings {
                unknown_keys: later.run.unknown_keys.or(self.run.unknown_keys),
            },
        }
    }

    /// Makes the paths relative to the folder of their file.
    pub(super) fn beside(mut self, folder: &Path) -> Self {
        let tsc = match &mut self.compiler.tsc {
            Some(TscChoice::At(path)) => Some(path),
            _ => None,
        };
        let paths = [
            self.state.state_dir.as_mut(),
            self.tools.descriptions.as_mut(),
            self.tools.lock.as_mut(),
            self.broker.embeddings.as_mut(),
            tsc,
        ];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&path);
        }
        self
    }
}

/// Takes the keys of a group of settings out of the table of a file.
fn take<T: Args + DeserializeOwned>(table: &mut DeTable<'_>) -> Result<T, Error> {
    let flags = T::augment_args(Command::new("settings"));
    let keys = flags.get_arguments().map(|flag| flag.get_id().as_str());
    let own: DeTable<'_> = keys.filter_map(|key| table.remove_entry(key)).collect();
    T::deserialize(Deserializer::from(Spanned::new(0..0, own)))
}

impl Choice for Fsync {
    const ALL: &'static [Self] = &[Self::Always, Self::Writes, Self::Never];

    fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Writes => "writes",
            Self::Never => "never",
        }
    }
}

impl Choice for JsEngine {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }
}

impl Choice for UnknownKeys {
    const ALL: &'static [Self] = &[Self::Warn, Self::Refuse];

    fn name(self) -> &'static str {
        match self {
            Self::Warn => "warn",
            Self::Refuse => "refuse",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removes links and marks of code.
    fn plain(row: &str) -> String {
        let mut text = String::new();
        let mut rest = row;
        while let Some((before, link)) = rest.split_once("](") {
            text.push_str(before);
            rest = link.split_once(')').unwrap().1;
        }
        text.push_str(rest);
        text.replace(['[', '`'], "")
    }

    /// Each setting has a row with its key, its help text, its flag and its default.
    #[test]
    fn configuration_page_lists_every_setting_as_its_help_does() {
        let page = include_str!("../../../docs/configuration.md");
        let rows: Vec<String> = page.lines().map(plain).collect();
        for flag in Settings::flags().get_arguments() {
            let (key, help) = (flag.get_id(), flag.get_help().unwrap().to_string());
            let (meaning, default) = help
                .split_once(" [default: ")
                .unwrap_or((help.as_str(), "none]"));
            let (long, default) = (flag.get_long().unwrap(), default.trim_end_matches(']'));
            // A flag that only negates another one shares its row.
            if long.starts_with("no-") {
                assert!(rows.iter().any(|row| row.contains(&format!("--{long} "))));
                continue;
            }
            let start = plain(&format!("| {key} | {meaning} | --{long}"));
            let end = plain(&format!(" | {default} |"));
            let is_row = |row: &&String| row.starts_with(&start) && row.ends_with(&end);
            assert!(rows.iter().any(|row| is_row(&row)), "{start} …{end}");
        }
    }

    #[test]
    fn default_in_help_is_the_default() {
        fn check<T: Choice + Default>(key: &str) {
            let flags = Settings::flags();
            let flag = flags.get_arguments().find(|it| it.get_id() == key).unwrap();
            let help = flag.get_help().unwrap().to_string();
            let expected = format!("[default: {}]", T::default().name());
            assert!(help.ends_with(&expected), "{help}");
        }
        check::<Fsync>("fsync");
        check::<JsEngine>("engine");
        check::<UnknownKeys>("unknown_keys");
    }

    #[test]
    fn later_source_overrides_each_setting() {
        let parse = |text: &str| {
            let mut table = DeTable::parse(text).unwrap();
            let settings = Settings::take(table.get_mut()).unwrap();
            assert!(table.get_ref().is_empty(), "{table:?}");
            settings.beside(Path::new("/etc"))
        };
        let all = |value: &str, tsc: &str| {
            format!(
                "state_dir = '{value}'\ndescriptions = '{value}'\nlock = '{value}'\n\
                 embeddings = '{value}'\ntsc = {tsc}\nengine = 'quickjs'\n\
                 fsync = 'never'\nunknown_keys = 'refuse'"
            )
        };
        let (first, second) = (parse(&all("a", "true")), parse(&all("b", "'b'")));
        assert_eq!(format!("{first:?}").matches("None").count(), 0);
        let shown = format!("{second:?}");
        assert_eq!(format!("{:?}", first.clone().overlaid_by(second)), shown);
        let kept = first.clone().overlaid_by(Settings::default());
        assert_eq!(format!("{kept:?}"), format!("{first:?}"));
        assert_eq!(shown.matches("\"/etc/b\"").count(), 5, "{shown}");
    }
}
