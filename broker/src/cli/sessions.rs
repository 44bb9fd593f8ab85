//! `airlock sessions`: a person declassifies what a session has read.

use airlock_core::flow::Declassification;
use airlock_core::labels::Label;
use clap::Subcommand;
use serde_json::json;

use super::grants::{session_name, unreadable};
use super::options::{StateView, usage};
use super::{Outcome, exit, print, print_json};
use crate::config::Environment;
use crate::shared_file::SharedFile;
use airlock_sandbox::clock::Clock;

const NAME_CHARS_MAX: usize = 200;

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// State that nothing that a session has read so far has these labels. Runs that begin later
    /// start without them; each of their journals names the person
    Declassify {
        /// Name of the session, as in `airlock run --session NAME`
        #[arg(value_name = "SESSION")]
        session: String,
        /// Labels to remove: untrusted, private (with all its classes) or private:CLASS
        #[arg(value_name = "LABEL", required = true)]
        labels: Vec<String>,
        /// Name of the person who declassifies
        #[arg(long, value_name = "PERSON")]
        by: String,
        #[command(flatten)]
        common: StateView,
    },
}

impl SessionsCommand {
    pub(super) fn is_json(&self) -> bool {
        let Self::Declassify { common, .. } = self;
        common.json
    }
}

pub(super) fn run(command: SessionsCommand, environment: &Environment) -> Outcome {
    let SessionsCommand::Declassify {
        session,
        labels,
        by,
        common,
    } = command;
    let name = session_name(&session)?;
    let labels: Result<Vec<Label>, _> = labels.iter().map(|it| Label::parse(it)).collect();
    let labels = labels.map_err(|bad| {
        let next = "write untrusted, private or private:CLASS";
        usage("invalid label", bad.to_string(), next)
    })?;
    let by = by.trim();
    if by.is_empty() || by.chars().count() > NAME_CHARS_MAX {
        let why = format!("expected the name of a person, at most {NAME_CHARS_MAX} characters");
        let next = "write your name, such as --by \"Ann Example\"";
        return Err(usage("invalid value for `--by`", why, next));
    }
    let declassification = Declassification {
        labels,
        by: by.to_owned(),
        at_ms: Clock::start().now_ms(),
    };
    let state_dir = common.state.load(environment)?.state_dir;
    let file = SharedFile::session(&state_dir, &name);
    let (before, after) = file
        .change(|shared| {
            let before = shared.carried.labels.clone();
            // A session that has read nothing has nothing to declassify.
            if !before.is_empty() {
                shared.carried.declassify(declassification);
            }
            (before, shared.carried.labels.clone())
        })
        .map_err(|error| unreadable(&error))?;
    if before.is_empty() {
        let why = format!("no run of the session `{name}` has ended with labels");
        let next = "`airlock run --json` shows the labels of a run in `flow`";
        return Err(usage("there is nothing to declassify", why, next));
    }
    if common.json {
        print_json(&json!({"session": name, "before": before, "labels": after}))?;
    } else {
        let words = |labels: Vec<String>| match labels.is_empty() {
            true => "none".to_owned(),
            false => labels.join(", "),
        };
        let (before, after) = (words(before.to_texts()), words(after.to_texts()));
        print(&format!("labels of {name}: {after} (before: {before})\n"))?;
    }
    Ok(exit::DONE)
}
