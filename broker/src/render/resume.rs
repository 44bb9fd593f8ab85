//! Says how a run that did not finish can be resumed.

use airlock_core::code::Code;
use airlock_core::journal::StartedCommand;
use airlock_core::report::{CanResume, Report, ReportedCallRef, Status};

use super::{counted, escape};
use crate::shell_words::quote;

/// Maximum number of indeterminate calls that a text names.
const CALLS_SHOWN: usize = 5;

/// Returns the command that resumes a run with the servers and rules of the command that started it.
/// If a flag has to be added, a note after the command says so.
#[must_use]
pub fn resume_command(run: &str, started: Option<&StartedCommand>) -> String {
    let mut words = vec!["airlock", "run", "--resume", run];
    let Some(started) = started else {
        return words.join(" ");
    };
    words.extend(started.flags.iter().map(String::as_str));
    let words = words.into_iter().map(quote);
    let mut text = words.collect::<Vec<_>>().join(" ");
    let folder = std::env::current_dir().unwrap_or_default();
    if folder.to_string_lossy() != started.folder {
        text = format!("cd {} && {text}", quote(&started.folder));
    }
    let mut text = escape::line(&text).into_owned();
    if !started.left_out.is_empty() {
        text.push_str(&format!(
            " # add {}, which was not recorded because it may contain a credential",
            escape::line(&started.left_out.join(" "))
        ));
    }
    text
}

/// Returns what a person can do to resume a run that this command started.
#[must_use]
pub fn how_to_resume(report: &Report, started: &StartedCommand) -> Option<String> {
    let resumable = report.can_resume.as_ref()?;
    let mut command = resume_command(&resumable.run, Some(started));
    let first = match (report.status, report.code) {
        (Status::Failed, Some(Code::ScriptError)) => {
            command = command.replacen("airlock run ", "airlock run FILE ", 1);
            "correct the script, save it as FILE, and "
        }
        (Status::Stopped, _) => "raise the limit and ",
        _ => "",
    };
    let them = if resumable.recorded == 1 {
        "it"
    } else {
        "them"
    };
    let mut text = String::new();
    if was_not_resumed(report) {
        text.push_str(&format!(
            "run {} was not resumed and stays as it was; once this is corrected, resume it with: {command}\n",
            resumable.run
        ));
    } else if resumable.recorded > 0 {
        text.push_str(&format!(
            "{}; to go on without repeating {them}, {first}run: {command}\n",
            recorded(report, resumable),
        ));
    }
    for call in report.indeterminate.iter().take(CALLS_SHOWN) {
        text.push_str(&format!(
            "the outcome of call {} ({}) is unknown, so the call is not made again. State what became of \
             it: `airlock runs resolve {} happened`, or `did-not-happen`\n",
            call.at, call.tool, call.at
        ));
    }
    (!text.is_empty()).then_some(text)
}

/// Returns what a model can do to resume a run, in one line.
#[must_use]
pub(crate) fn advice_to_resume(report: &Report) -> Option<String> {
    let resumable = report.can_resume.as_ref()?;
    if was_not_resumed(report) {
        return Some(format!(
            "Run \"{0}\" was not resumed and stays as it was. Correct the script and call run_script with resume \"{0}\" again.",
            resumable.run
        ));
    }
    let mut text = format!(
        "{}. Correct the script and call run_script with resume \"{}\": calls that happened are not made again.",
        recorded(report, resumable),
        resumable.run
    );
    if !report.indeterminate.is_empty() {
        let shown = report.indeterminate.iter().take(CALLS_SHOWN);
        let names: Vec<_> = shown.map(name).collect();
        let more = report.indeterminate.len() - names.len();
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        text.push_str(&format!(
            " The outcome of these calls is unknown, so they are not made again: {}{more}. Only a person can settle them, with `airlock runs resolve`.",
            names.join(", ")
        ));
    }
    Some(text)
}

/// Whether the script had definite errors, so that it did not resume the run.
fn was_not_resumed(report: &Report) -> bool {
    report.run.is_empty()
}

fn name(call: &ReportedCallRef) -> String {
    format!("{} (call {})", call.tool, call.at)
}

fn recorded(report: &Report, resumable: &CanResume) -> String {
    let verb = if resumable.recorded == 1 { "is" } else { "are" };
    let reused = match report.reused {
        0 => String::new(),
        reused => format!(" ({reused} reused from earlier runs)"),
    };
    let calls = counted(resumable.recorded, "call");
    format!("{calls} {verb} recorded{reused}")
}
