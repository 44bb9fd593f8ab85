//! `airlock runs verify`: checks whether journals are intact.

use airlock_core::journal::{VerifiedJournal, read};
use airlock_core::problem::Problem;
use serde_json::{Value, json};

use super::{broken_journal, bytes_of, in_doubt, listed, started, uses_in_doubt};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json};
use crate::private_file::StateDir;
use crate::render::{self, counted, escape};

/// Verifies one run, or the journal in a file.
pub(super) fn one(state: &StateDir, id: &str, is_json: bool) -> Outcome {
    let (name, bytes) = bytes_of(state, id)?;
    let journal = read(&bytes).map_err(|broken| broken_journal(&name, &broken.to_string()))?;
    if is_json {
        print_json(&intact(&journal))?;
    } else {
        let name = escape::line(&name);
        print(&format!("{name}: {}", render::verification(&journal)))?;
    }
    Ok(exit::DONE)
}

/// Verifies every run of the state directory, newest first, with one line each.
pub(super) fn all(state: &StateDir, is_json: bool, screen: &Screen) -> Outcome {
    let runs = listed(state, is_json, screen)?;
    let (mut broken, mut rows) = (0_usize, Vec::new());
    for run in &runs {
        // Journals can be long, so only one is held in memory at a time.
        let journal = state
            .read(run)
            .map_err(|error| error.to_string())
            .and_then(|bytes| read(&bytes).map_err(|broken| broken.to_string()));
        broken += usize::from(journal.is_err());
        if is_json {
            rows.push(match journal {
                Ok(journal) => intact(&journal),
                Err(why) => json!({ "run": run, "intact": false, "why": why }),
            });
        } else {
            print(&match journal {
                Ok(journal) => format!("{}: {}\n", run.0, in_short(&journal)),
                Err(why) => format!("{}: does not verify: {}\n", run.0, escape::line(&why)),
            })?;
        }
    }
    if is_json {
        print_json(&json!({ "runs": rows, "broken": broken }))?;
    }
    match broken {
        0 => Ok(exit::DONE),
        _ if is_json => Ok(exit::JOURNAL),
        _ => Err(some_broken(broken, runs.len())),
    }
}

fn in_short(journal: &VerifiedJournal) -> String {
    let mut text = format!("intact, {} entries", journal.lines.len());
    if journal.ended().is_none() {
        text.push_str(", the run was interrupted or is still running");
    }
    if !journal.in_doubt.is_empty() {
        let calls = counted(journal.in_doubt.len(), "call");
        text.push_str(&format!(", {calls} in doubt"));
    }
    text
}

fn intact(journal: &VerifiedJournal) -> Value {
    json!({
        "run": started(journal).map(|started| started.run.clone()), "entries": journal.lines.len(),
        "intact": true, "head": journal.head, "ended": journal.ended().is_some(),
        "cut": journal.cut.map(|cut| json!({ "after_entry": cut.after_line, "bytes": cut.bytes })),
        "in_doubt": in_doubt(journal), "uses_in_doubt": uses_in_doubt(journal),
    })
}

fn some_broken(broken: usize, all: usize) -> Problem {
    Problem::new(
        "journal-broken",
        format!("{broken} of {all} journals do not verify"),
        "the lines above name the journals and their first bad lines",
        "`airlock runs verify RUN` shows the details of one run",
    )
}
