//! `airlock descriptions check`: checks that tool files are valid and match the servers' current
//! descriptions.

use std::collections::BTreeSet;
use std::path::PathBuf;

use airlock_core::problem::Problem;
use clap::Args;
use codegen::tool_file::check::against;
use codegen::validate::Severity;
use serde_json::json;

use super::{ServerDescriptions, ask, files};
use crate::cli::options::ServerView;
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json};
use crate::config::Environment;
use crate::render::escape;
use crate::tool_files::{self, LoadableToolFile, LoadedToolFiles};

#[derive(Debug, Args)]
pub(in crate::cli) struct DescriptionsCheckOptions {
    /// Folder to check [default: the configured folder, else tool_descriptions]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    pub(super) view: ServerView,
}

/// The result of the check. Errors fail the check; warnings are only reported.
#[derive(Default)]
struct CheckSummary {
    files: usize,
    unchecked: BTreeSet<String>,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

pub(super) fn run(
    options: DescriptionsCheckOptions,
    environment: &Environment,
    screen: &Screen,
) -> Outcome {
    let is_json = options.view.json;
    let (said, configured) = ask(options.view, environment, screen)?;
    let loaded = files(options.folder, configured, said.configured.clone()).load()?;
    let mut found = CheckSummary {
        errors: loaded.problems.clone(),
        ..CheckSummary::default()
    };
    for server in loaded.servers() {
        found.server(server, &loaded, &said);
    }
    found.warnings.iter().for_each(|it| screen.warning(it));
    found.errors.iter().for_each(|it| screen.problem(it));
    if is_json {
        print_json(&json!({
            "files": found.files, "errors": found.errors, "warnings": found.warnings,
            "unchecked_servers": found.unchecked,
        }))?;
    } else {
        print(&escape::line(&found.summary()))?;
        print("\n")?;
    }
    Ok(if found.errors.is_empty() {
        exit::DONE
    } else {
        exit::CONFIGURATION
    })
}

impl CheckSummary {
    fn server(&mut self, server: &str, loaded: &LoadedToolFiles, said: &ServerDescriptions) {
        let tools: BTreeSet<String> = said.of_server(server).map(|it| it.name.clone()).collect();
        let all = said.descriptions.iter();
        let all: BTreeSet<String> = all.map(|it| format!("{}.{}", it.server, it.name)).collect();
        for (tool, file) in loaded.of_server(server) {
            self.files += 1;
            if !said.servers.iter().any(|it| it == server) {
                self.unchecked.insert(server.to_owned());
            } else if let Some(description) = said.tool(server, tool) {
                let faults = against(&file.read, description, &tools, &all);
                for fault in faults {
                    self.note(file, &fault);
                }
            } else {
                let offered: Vec<String> = tools.iter().cloned().collect();
                let stranger = tool_files::stranger(&file.name, server, tool, &offered);
                self.errors.push(stranger);
            }
        }
    }

    fn note(&mut self, file: &LoadableToolFile, fault: &codegen::tool_file::ToolFileFault) {
        let problem = tool_files::problem(&file.name, fault);
        match fault.severity {
            Severity::Error => self.errors.push(problem),
            Severity::Warning => self.warnings.push(problem),
        }
    }

    fn summary(&self) -> String {
        let count = |number: usize, word: &str| match number {
            1 => format!("1 {word}"),
            _ => format!("{number} {word}s"),
        };
        let mut text = format!(
            "{}, {}, {}",
            count(self.files, "file"),
            count(self.errors.len(), "error"),
            count(self.warnings.len(), "warning")
        );
        if !self.unchecked.is_empty() {
            let names: Vec<&str> = self.unchecked.iter().map(String::as_str).collect();
            let names = names.join(", ");
            text.push_str(&format!(
                "; not compared with {names}: no such server is configured"
            ));
        }
        text
    }
}
