//! `airlock runs prune`: deletes the journals of old run chains.

use std::time::Duration;

use airlock_core::problem::Problem;
use airlock_sandbox::clock::Clock;
use airlock_sandbox::units;
use clap::Args;
use serde_json::json;

use crate::cli::options::{StateView, usage};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json};
use crate::config::Environment;
use crate::prune::{PruneRule, prune};
use crate::render::{counted, escape};
use crate::run_chain::ResumeError;

#[derive(Debug, Args)]
pub(in crate::cli) struct PruneOptions {
    /// Keep chains that were used within this time, such as 720h [default: `journals_keep` in the
    /// configuration file]
    #[arg(long, value_name = "DURATION")]
    keep: Option<String>,
    /// Also delete chains with a run whose end is not signed with the key of this state directory
    #[arg(long)]
    unsigned: bool,
    /// List what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(in crate::cli) common: StateView,
}

pub(super) fn run(options: PruneOptions, environment: &Environment) -> Outcome {
    let keep = options.keep.as_deref().map(duration).transpose()?;
    let config = options.common.state.clone().load(environment)?;
    let keep = keep.or(config.journals_keep).ok_or_else(|| {
        let why = "`journals_keep` is not set in the configuration file";
        let next = "add `--keep 720h`, or another duration";
        usage("missing --keep", why, next)
    })?;
    let screen = Screen::of_process(environment, false);
    let shown = (!options.common.json).then_some(&screen);
    let state = options
        .common
        .state
        .clone()
        .open_existing(environment, shown)?;
    let rule = PruneRule {
        keep,
        unsigned: options.unsigned,
        dry_run: options.dry_run,
    };
    let pruned = prune(&state, rule, Clock::start().now_ms());
    let pruned = pruned.map_err(ResumeError::into_problem)?;
    if options.common.json {
        let kept = pruned.kept.iter();
        let kept = kept.map(|(run, why)| json!({ "run": run, "why": why }));
        print_json(&json!({ "deleted": pruned.deleted, "kept": kept.collect::<Vec<_>>() }))?;
        return Ok(exit::DONE);
    }
    let rows = pruned.deleted.iter().map(|run| format!("{}\n", run.0));
    print(&rows.collect::<String>())?;
    for (run, why) in &pruned.kept {
        screen.remark(&escape::block(&format!("kept {}: {why}\n", run.0)));
    }
    let verb = if options.dry_run {
        "would be deleted"
    } else {
        "deleted"
    };
    screen.remark(&format!(
        "{} {verb}\n",
        counted(pruned.deleted.len(), "journal")
    ));
    Ok(exit::DONE)
}

fn duration(text: &str) -> Result<Duration, Problem> {
    let ms = units::duration_ms(text).map_err(|bad| {
        let what = format!("invalid value `{text}` for `--keep`");
        usage(what, bad.to_string(), "write a duration, such as `720h`")
    })?;
    Ok(Duration::from_millis(ms))
}
