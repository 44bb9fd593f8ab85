//! `airlock runs list`: the latest runs, with filters.

use std::collections::{BTreeSet, HashSet};

use airlock_core::id::{RunId, ToolId};
use airlock_core::journal::{Body, JournalLine, RunStartedEntry, Verdict};
use airlock_core::problem::Problem;
use airlock_core::report::Status;
use airlock_core::tool_pattern::ToolPattern;
use airlock_sandbox::clock::{Clock, utc};
use airlock_sandbox::units;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{listed, status_word};
use crate::cli::options::{StateView, usage};
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json};
use crate::config::Environment;
use crate::private_file::StateDir;
use crate::render::{counted, escape};
use crate::run_chain::{NewestRuns, ResumeError};

const SCRIPT_CHARS_SHOWN: usize = 60;
const HOST_CHARS_SHOWN: usize = 16;
const SESSION_CHARS_SHOWN: usize = 12;

#[derive(Debug, Args)]
pub(in crate::cli) struct ListOptions {
    /// Number of runs to list
    #[arg(long, short = 'n', default_value_t = 20)]
    number: usize,
    /// Only runs with this status; can be given several times
    #[arg(long, value_enum, value_name = "STATUS")]
    status: Vec<RunStatus>,
    /// Only runs of hosts whose name contains this text
    #[arg(long, value_name = "TEXT")]
    host: Option<String>,
    /// Only runs of the session whose name or id begins with this text
    #[arg(long, value_name = "TEXT")]
    session: Option<String>,
    /// Only runs whose script, or its name, contains this text
    #[arg(long, value_name = "TEXT")]
    script: Option<String>,
    /// Only runs in which a call of a matching tool was allowed, such as tickets.*
    #[arg(long, value_name = "PATTERN")]
    tool: Option<String>,
    /// Only runs that started within this time, such as 24h
    #[arg(long, value_name = "DURATION")]
    since: Option<String>,
    /// Only runs that can be resumed
    #[arg(long)]
    resumable: bool,
    #[command(flatten)]
    pub(in crate::cli) common: StateView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RunStatus {
    Done,
    Failed,
    Stopped,
    Cancelled,
    /// Waits for a person without a process
    Paused,
    /// Was suspended, and another run has resumed it
    Resumed,
    Running,
    /// The process ended before the run did
    Interrupted,
}

impl RunStatus {
    fn word(self) -> String {
        match self {
            Self::Done => status_word(Status::Done),
            Self::Failed => status_word(Status::Failed),
            Self::Stopped => status_word(Status::Stopped),
            Self::Cancelled => status_word(Status::Cancelled),
            Self::Paused => status_word(Status::Paused),
            Self::Resumed => "resumed".into(),
            Self::Running => "running".into(),
            Self::Interrupted => "interrupted".into(),
        }
    }
}

impl From<Status> for RunStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Done => Self::Done,
            Status::Failed => Self::Failed,
            Status::Stopped => Self::Stopped,
            Status::Cancelled => Self::Cancelled,
            Status::Paused => Self::Paused,
        }
    }
}

/// The filters after they were parsed.
struct Filters {
    status: Vec<RunStatus>,
    host: Option<String>,
    session: Option<String>,
    script: Option<String>,
    tool: Option<ToolPattern>,
    since_ms: Option<u64>,
    resumable: bool,
}

impl Filters {
    fn parse(options: ListOptions) -> Result<Self, Problem> {
        let tool = options.tool.as_deref().map(|text| {
            ToolPattern::parse(text).map_err(|bad| {
                let what = format!("invalid value `{text}` for `--tool`");
                usage(what, bad.to_string(), "write a pattern such as tickets.*")
            })
        });
        let since = options.since.as_deref().map(|text| {
            let ms = units::duration_ms(text).map_err(|bad| {
                let what = format!("invalid value `{text}` for `--since`");
                usage(what, bad.to_string(), "write a duration, such as `24h`")
            })?;
            Ok(Clock::start().now_ms().saturating_sub(ms))
        });
        Ok(Self {
            status: options.status,
            host: options.host.map(|text| text.to_lowercase()),
            session: options.session,
            script: options.script,
            tool: tool.transpose()?,
            since_ms: since.transpose()?,
            resumable: options.resumable,
        })
    }

    fn fit(&self, row: &Row) -> bool {
        let started = row.started();
        let is_of_host = |text: &String| {
            let host = started.and_then(|it| it.host.as_ref());
            host.is_some_and(|host| host.to_lowercase().contains(text))
        };
        let is_of_session = |text: &String| {
            let session = started.and_then(|it| it.session.as_ref());
            session.is_some_and(|session| session.starts_with(text))
        };
        let is_of_script = |text: &String| {
            started.is_some_and(|it| {
                let script = it.script.as_deref().unwrap_or_default();
                it.script_name.contains(text) || script.contains(text)
            })
        };
        (self.status.is_empty() || self.status.contains(&row.status))
            && self.host.as_ref().is_none_or(is_of_host)
            && self.session.as_ref().is_none_or(is_of_session)
            && self.script.as_ref().is_none_or(is_of_script)
            && self
                .since_ms
                .is_none_or(|ms| row.at_ms().is_some_and(|at| at >= ms))
            && (!self.resumable || row.can_resume())
    }
}

pub(super) fn run(options: ListOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let (number, is_json) = (options.number, options.common.json);
    let shown = (!options.common.json).then_some(screen);
    let state = options
        .common
        .state
        .clone()
        .open_existing(environment, shown)?;
    let filters = Filters::parse(options)?;
    let runs = listed(&state, is_json, screen)?;
    let found = NewestRuns::find(&state).map_err(ResumeError::into_problem)?;
    let newest: BTreeSet<&RunId> = found.runs.iter().collect();
    let damaged = found.damaged.into_iter();
    let problems: Vec<Problem> = damaged.map(|(_, error)| error.into_problem()).collect();
    let (mut rows, mut total) = (Vec::new(), 0);
    for run in &runs {
        let row = Row::read(&state, run, newest.contains(run));
        if !filters.fit(&row) {
            continue;
        }
        // The calls are in the whole journal, which is read only if the list shows or needs them.
        let is_shown = total < number;
        let calls = (is_shown || filters.tool.is_some()).then(|| Calls::read(&state, &row));
        let has_called = |pattern: &ToolPattern| {
            let calls = calls.as_ref();
            calls.is_some_and(|calls| calls.tools.iter().any(|tool| pattern.matches(tool)))
        };
        if !filters.tool.as_ref().is_none_or(has_called) {
            continue;
        }
        total += 1;
        if is_shown && let Some(calls) = calls {
            rows.push((row, calls));
        }
    }
    if is_json {
        let rows: Vec<Value> = rows.iter().map(|(row, calls)| row.json(calls)).collect();
        print_json(&json!({ "runs": rows, "total": total, "problems": problems }))?;
        return Ok(exit::DONE);
    }
    let widths = Widths::of(&rows);
    let text = rows.iter().map(|(row, calls)| row.text(calls, &widths));
    print(&text.collect::<String>())?;
    problems.iter().for_each(|problem| screen.warning(problem));
    if rows.len() < total {
        let shown = rows.len();
        screen.remark(&format!(
            "{shown} of {total} runs; use --number to list more\n"
        ));
    } else if total == 0 && !runs.is_empty() {
        screen.remark(&format!(
            "no run matches the filters ({} in all)\n",
            runs.len()
        ));
    }
    Ok(exit::DONE)
}

/// One run in a list, from the first and last entries of its journal.
struct Row {
    run: RunId,
    first: Option<JournalLine>,
    ended: Option<JournalLine>,
    status: RunStatus,
    /// Whether the run is the newest of its chain.
    is_newest: bool,
}

impl Row {
    fn read(state: &StateDir, run: &RunId, is_newest: bool) -> Self {
        let line = |bytes: &[u8]| serde_json::from_slice::<JournalLine>(bytes).ok();
        // The lock is checked before the last entry is read, so a run that ends in between counts as
        // ended.
        let is_running = state.is_running(run);
        let ends = state.ends(run).ok();
        let last = ends.as_ref().and_then(|ends| line(&ends.last));
        let status = match last.as_ref().map(|line| &line.body) {
            Some(Body::Ended(ended)) => ended.status.into(),
            _ if is_running => RunStatus::Running,
            Some(Body::Suspended(_)) if is_newest => RunStatus::Paused,
            Some(Body::Suspended(_)) => RunStatus::Resumed,
            _ => RunStatus::Interrupted,
        };
        Self {
            status,
            is_newest,
            run: run.clone(),
            first: ends.as_ref().and_then(|ends| line(&ends.first)),
            ended: last.filter(|line| matches!(line.body, Body::Ended(_))),
        }
    }

    fn started(&self) -> Option<&RunStartedEntry> {
        match &self.first.as_ref()?.body {
            Body::RunStarted(started) => Some(started),
            _ => None,
        }
    }

    fn at_ms(&self) -> Option<u64> {
        self.first.as_ref().map(|line| line.at_ms)
    }

    /// Whether the run can be resumed: it is the newest of its chain, has a header, and is neither
    /// running nor done.
    fn can_resume(&self) -> bool {
        let is_over = matches!(self.status, RunStatus::Running | RunStatus::Done);
        self.is_newest && !is_over && self.started().is_some()
    }

    /// Returns the first line of the script that is not empty.
    fn first_line(&self) -> Option<&str> {
        let script = self.started()?.script.as_deref()?;
        script.lines().map(str::trim).find(|line| !line.is_empty())
    }

    fn json(&self, calls: &Calls) -> Value {
        let (code, usage) = match self.ended.as_ref().map(|line| &line.body) {
            Some(Body::Ended(ended)) => (json!(ended.code), json!(ended.usage)),
            _ => (Value::Null, Value::Null),
        };
        let started = self.started();
        let chain = started.and_then(|it| it.chain.as_ref());
        json!({
            "run": self.run, "status": self.status.word(), "code": code,
            "script": started.map(|it| &it.script_name), "first_line": self.first_line(),
            "host": started.map(|it| &it.host), "session": started.map(|it| &it.session),
            "started_ms": self.at_ms(), "calls": calls.made, "writes": calls.writes, "usage": usage,
            "resumes": chain.map(|it| &it.predecessor.run), "can_resume": self.can_resume(),
        })
    }

    fn text(&self, calls: &Calls, widths: &Widths) -> String {
        let at = self.at_ms().map(utc).unwrap_or_default();
        let script = match (self.started(), self.first_line()) {
            (Some(started), Some(line)) => format!("{}: {line}", started.script_name),
            (Some(started), None) => started.script_name.clone(),
            (None, _) => "?".into(),
        };
        let has_work = calls.made + calls.reused > 0 || self.status == RunStatus::Paused;
        let resumable = if self.can_resume() && has_work {
            "  (can be resumed)"
        } else {
            ""
        };
        let mut text = format!(
            "{}  {at:20}  {:11}  {:width$}",
            self.run.0,
            self.status.word(),
            calls.text(),
            width = widths.calls,
        );
        let origin = self.origin();
        for (part, width) in origin.iter().zip([widths.host, widths.session]) {
            if width > 0 {
                text.push_str(&format!("  {part:width$}"));
            }
        }
        let script = escape::brief(&script, SCRIPT_CHARS_SHOWN);
        text.push_str(&format!("  {script}{resumable}\n"));
        text
    }

    /// Returns the host and the session, as the list shows them.
    fn origin(&self) -> [String; 2] {
        let started = self.started();
        let shown = |text: Option<&String>, chars_max| {
            let text = text.map(String::as_str).unwrap_or_default();
            escape::brief(text, chars_max)
        };
        [
            shown(started.and_then(|it| it.host.as_ref()), HOST_CHARS_SHOWN),
            shown(
                started.and_then(|it| it.session.as_ref()),
                SESSION_CHARS_SHOWN,
            ),
        ]
    }
}

/// The calls of one run: those that were allowed, and how many of them may write, because their tools
/// are not known to be read-only.
#[derive(Default)]
struct Calls {
    made: usize,
    denied: usize,
    unsent: usize,
    /// Calls that got the recorded outcome of an earlier run.
    reused: usize,
    writes: usize,
    tools: HashSet<ToolId>,
}

impl Calls {
    fn read(state: &StateDir, row: &Row) -> Self {
        let bytes = state.read(&row.run).unwrap_or_default();
        let tools = row.started().map_or(&[][..], |started| &started.tools);
        let reads: HashSet<&ToolId> = tools
            .iter()
            .filter(|tool| tool.read_only == Some(true))
            .map(|tool| &tool.tool)
            .collect();
        let mut calls = Self::default();
        let lines = bytes.split(|byte| *byte == b'\n');
        for line in lines.filter_map(|line| serde_json::from_slice::<JournalLine>(line).ok()) {
            match line.body {
                Body::Decided(decided) if decided.decision == Verdict::Allow => {
                    calls.made += 1;
                    calls.writes += usize::from(!reads.contains(&decided.tool));
                    calls.tools.insert(decided.tool);
                }
                Body::Decided(decided) if decided.decision == Verdict::Deny => calls.denied += 1,
                Body::Decided(_) => calls.unsent += 1,
                Body::Reused(_) => calls.reused += 1,
                _ => {}
            }
        }
        calls
    }

    fn text(&self) -> String {
        let mut text = counted(self.made + self.reused + self.denied + self.unsent, "call");
        for (count, what) in [
            (self.reused, "reused"),
            (self.denied, "denied"),
            (self.unsent, "not sent"),
            (self.writes, "not marked read-only"),
        ] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        text
    }
}

/// The widths of columns that depend on the listed runs, in characters.
struct Widths {
    calls: usize,
    host: usize,
    session: usize,
}

impl Widths {
    fn of(rows: &[(Row, Calls)]) -> Self {
        let width = |of: &dyn Fn(&Row, &Calls) -> String| {
            let widths = rows
                .iter()
                .map(|(row, calls)| of(row, calls).chars().count());
            widths.max().unwrap_or_default()
        };
        Self {
            calls: width(&|_, calls| calls.text()),
            host: width(&|row, _| row.origin()[0].clone()),
            session: width(&|row, _| row.origin()[1].clone()),
        }
    }
}
