//! The output format of a command, and the paths of the files that its output refers to.

use std::path::{Path, PathBuf};

use airlock_core::problem::Problem;
use clap::{Args, ValueEnum};

use crate::cli::print_json;
use crate::config::{policies, rule_folder};
use crate::render::{self, Sarif};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum PolicyFormat {
    /// Plain text
    #[default]
    Text,
    /// One JSON object
    Json,
    /// SARIF 2.1.0
    Sarif,
}

#[derive(Debug, Clone, Copy, Default, Args)]
pub(super) struct FormatOptions {
    /// Output format
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    format: PolicyFormat,
    /// Same as --format json
    #[arg(long)]
    json: bool,
}

impl FormatOptions {
    pub(super) fn format(self) -> PolicyFormat {
        if self.json {
            PolicyFormat::Json
        } else {
            self.format
        }
    }

    /// Whether problems are printed as JSON too.
    pub(super) fn is_json(self) -> bool {
        self.format() != PolicyFormat::Text
    }
}

/// Files: the name used in messages, the path, and the contents of each.
#[derive(Debug, Default)]
pub(super) struct Files(Vec<(String, PathBuf, String)>);

impl Files {
    /// Reads the rule files of folders, and single files.
    pub(super) fn of_rules<'a>(
        paths: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Result<Self, Problem> {
        let mut files = Self::default();
        for path in paths {
            let read = policies::read(path, false)?.into_iter();
            files.add(path, read.map(|file| (file.name, file.text)));
        }
        Ok(files)
    }

    /// Adds files with another ending in these folders.
    pub(super) fn with(mut self, paths: &[PathBuf], ending: &str) -> Result<Self, Problem> {
        for path in paths {
            let read = rule_folder::read(path, ending)?.into_iter();
            self.add(path, read.filter(|(name, _)| name.ends_with(ending)));
        }
        Ok(self)
    }

    /// Adds one more file under its name in messages.
    pub(super) fn and(mut self, name: String, path: &Path, text: String) -> Self {
        self.0.push((name, path.to_owned(), text));
        self
    }

    fn add(&mut self, path: &Path, read: impl Iterator<Item = (String, String)>) {
        for (name, text) in read {
            let within = name.split_once('/').map(|(_, within)| within);
            let real = match within.filter(|_| path.is_dir()) {
                Some(within) => path.join(within),
                None => path.to_owned(),
            };
            self.0.push((name, real, text));
        }
    }

    pub(super) fn text(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(it, ..)| it == name);
        found.map_or("", |(_, _, text)| text)
    }

    pub(super) fn print_sarif(&self, log: &Sarif) -> Result<(), Problem> {
        let uri = |name: &str| {
            let found = self.0.iter().find(|(it, ..)| it == name);
            let path = found.map_or(Path::new(name), |(_, path, _)| path);
            render::uri_of(path.strip_prefix(".").unwrap_or(path))
        };
        print_json(&render::sarif(log, uri))
    }
}
