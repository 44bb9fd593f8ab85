//! `airlock sessions`: shows what sessions have read, and a person declassifies it.

use airlock_core::flow::Declassification;
use airlock_core::grant::Scope;
use airlock_core::labels::{Label, Labels};
use airlock_core::problem::Problem;
use airlock_core::shared_state::SharedState;
use clap::Subcommand;
use serde_json::{Value, json};

use super::grants::{session_name, unreadable};
use super::options::{StateView, usage};
use super::screen::Screen;
use super::{Outcome, exit, print, print_json};
use crate::config::{Environment, choice};
use crate::host_record::{CallerKey, CallerStates, HostRecord, HostRecords, HostSessionId};
use crate::private_file::StateDir;
use crate::render::{self, counted, escape};
use crate::shared_file::{SharedError, SharedFile};
use airlock_sandbox::clock::Clock;

const NAME_CHARS_MAX: usize = 200;

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// List sessions of `airlock run`, and the callers of `airlock serve` with their sessions, with
    /// the labels of what they have read
    List {
        #[command(flatten)]
        common: StateView,
    },
    /// Remove labels from everything that a session has read so far. Runs that begin later start
    /// without them, and their journals name the person
    Declassify {
        /// Name of the session, as in `airlock run --session NAME`, or id of a session or caller of
        /// `airlock serve`, as in `airlock sessions list`
        #[arg(value_name = "SESSION")]
        session: String,
        /// Labels to remove: untrusted, private (with all its classes) or private:CLASS
        #[arg(value_name = "LABEL", required_unless_present = "counts")]
        labels: Vec<String>,
        /// Also count calls and bytes of the session from zero again
        #[arg(long)]
        counts: bool,
        /// Name of the person who declassifies
        #[arg(long, value_name = "PERSON")]
        by: String,
        #[command(flatten)]
        common: StateView,
    },
}

impl SessionsCommand {
    pub(super) fn is_json(&self) -> bool {
        let (Self::List { common } | Self::Declassify { common, .. }) = self;
        common.json
    }
}

pub(super) fn run(command: SessionsCommand, environment: &Environment) -> Outcome {
    match command {
        SessionsCommand::List { common } => list(common, environment),
        SessionsCommand::Declassify {
            session,
            labels,
            counts,
            by,
            common,
        } => {
            let declassification = declassification(&labels, counts, &by)?;
            declassify(&session, declassification, common, environment)
        }
    }
}

fn declassification(
    labels: &[String],
    counts: bool,
    by: &str,
) -> Result<Declassification, Problem> {
    let label = |text: &String| {
        Label::parse(text).map_err(|bad| {
            let next = choice::one_of(text, &["untrusted", "private", "private:CLASS"]);
            usage("invalid label", bad.to_string(), next)
        })
    };
    let labels: Vec<Label> = labels.iter().map(label).collect::<Result<_, _>>()?;
    let by = by.trim();
    if by.is_empty() || by.chars().count() > NAME_CHARS_MAX {
        let why = format!("expected the name of a person, at most {NAME_CHARS_MAX} characters");
        let next = "write your name, such as --by \"Ann Example\"";
        return Err(usage("invalid value for `--by`", why, next));
    }
    Ok(Declassification {
        labels,
        counts,
        by: by.to_owned(),
        at_ms: Clock::start().now_ms(),
    })
}

fn declassify(
    name: &str,
    declassification: Declassification,
    common: StateView,
    environment: &Environment,
) -> Outcome {
    let state_dir = common.state.open_existing(environment, None)?;
    let target = Target::find(name, &state_dir)?;
    if declassification.counts && matches!(target, Target::HostSession(_)) {
        let why = "the numbers of calls and bytes are those of the caller, not of one session";
        let next = "name the caller: the part of the id before the `-`";
        return Err(usage("`--counts` does not fit this session", why, next));
    }
    let before = target
        .state(&state_dir)
        .map_err(|error| unreadable(&error))?;
    let has_to_change = has_read(&before) || declassification.counts && has_counts(&before);
    if !has_to_change {
        let why = format!("no run of `{name}` has ended with labels or counts");
        let next = "`airlock sessions list` shows what each session has read";
        return Err(usage("there is nothing to declassify", why, next));
    }
    let changed = target.declassify(declassification, &state_dir);
    let (before, after) = changed.map_err(|error| unreadable(&error))?;
    if common.json {
        let labels = |state: &SharedState| state.flow(&Labels::worst()).labels;
        print_json(&json!({
            "session": name, "before": labels(&before), "labels": labels(&after),
        }))?;
    } else {
        let (before, after) = (words(&before), words(&after));
        print(&format!("labels of {name}: {after} (before: {before})\n"))?;
    }
    Ok(exit::DONE)
}

/// What a person declassifies.
enum Target {
    /// A session of `airlock run`.
    Session(SharedFile),
    HostSession(HostRecord),
    Caller(HostRecord),
}

impl Target {
    fn find(name: &str, state_dir: &StateDir) -> Result<Self, Problem> {
        let session = HostSessionId::parse(name);
        let caller = CallerKey::parse(name);
        let is_caller = caller.is_some();
        let Some(id) = session.or_else(|| caller.map(HostSessionId::shared)) else {
            let name = session_name(name)?;
            return Ok(Self::Session(SharedFile::session(state_dir.path(), &name)));
        };
        let found = HostRecords::existing(state_dir, id);
        let found = found.filter(|it| is_caller || it.is_stored());
        let found = found.ok_or_else(|| {
            let why = format!("the state directory has no caller or session `{name}`");
            let next = "`airlock sessions list` lists all sessions";
            usage("there is no such session", why, next)
        })?;
        Ok(match is_caller {
            true => Self::Caller(found),
            false => Self::HostSession(found),
        })
    }

    /// Returns the state, with what runs that have died may have read.
    fn state(&self, state_dir: &StateDir) -> Result<SharedState, SharedError> {
        let mut state = match self {
            Self::Session(file) => file.load()?,
            Self::HostSession(record) => record.session_state()?,
            Self::Caller(record) => record.caller_state()?,
        };
        state.end_gone(|run| !state_dir.is_running(run));
        Ok(state)
    }

    fn declassify(
        &self,
        declassification: Declassification,
        state_dir: &StateDir,
    ) -> Result<(SharedState, SharedState), SharedError> {
        let now_ms = declassification.at_ms;
        match self {
            Self::Session(file) => file.change(|shared| {
                shared.end_gone(|run| !state_dir.is_running(run));
                let before = shared.clone();
                shared.declassify(declassification);
                (before, shared.clone())
            }),
            Self::HostSession(record) => record.declassify_session(declassification, now_ms),
            Self::Caller(record) => record.declassify_caller(&declassification, now_ms),
        }
    }
}

fn has_read(state: &SharedState) -> bool {
    !state.flow(&Labels::worst()).labels.is_empty()
}

fn has_counts(state: &SharedState) -> bool {
    let flow = &state.carried;
    flow.counts_unknown || flow.bytes > 0 || !flow.calls.is_empty()
}

/// Returns the labels of a session in words.
fn words(state: &SharedState) -> String {
    let labels = state.flow(&Labels::worst()).labels.to_texts();
    match (labels.is_empty(), state.read_unknown) {
        (true, _) => "none".to_owned(),
        (false, false) => labels.join(", "),
        (false, true) => format!("{} (all that the configuration knows)", labels.join(", ")),
    }
}

fn list(common: StateView, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, false);
    let shown = (!common.json).then_some(&screen);
    let state_dir = common.state.open_existing(environment, shown)?;
    let is_gone = |run: &_| !state_dir.is_running(run);
    let files = SharedFile::all(state_dir.path()).map_err(|error| unreadable(&error))?;
    let mut sessions = Vec::new();
    for (file, state) in files {
        if file.scope() == Scope::Session {
            let mut state = state.map_err(|error| unreadable(&error))?;
            state.end_gone(is_gone);
            sessions.push((file.name().to_owned(), state));
        }
    }
    let mut callers = HostRecords::states(&state_dir).map_err(|error| unreadable(&error))?;
    for caller in &mut callers {
        let sessions = caller.sessions.iter_mut().filter_map(|(_, it)| it.as_mut());
        for state in caller.state.iter_mut().chain(sessions) {
            state.end_gone(is_gone);
        }
    }
    if common.json {
        let sessions = sessions
            .iter()
            .map(|(name, state)| row_json(name, Some(state)));
        print_json(&json!({
            "sessions": sessions.collect::<Vec<_>>(),
            "callers": callers.iter().map(caller_json).collect::<Vec<_>>(),
        }))?;
        return Ok(exit::DONE);
    }
    let mut text = String::new();
    for (name, state) in &sessions {
        text.push_str(&row(name, Some(state)));
    }
    for caller in &callers {
        text.push_str(&row(&caller.caller.to_string(), caller.state.as_ref()));
        for (id, state) in &caller.sessions {
            text.push_str(&row(&format!("  {id}"), state.as_ref()));
        }
    }
    print(&text)?;
    if text.is_empty() {
        screen.remark("there are no sessions\n");
    }
    Ok(exit::DONE)
}

/// Returns the line of a session or caller. The file of one without a state is lost.
fn row(name: &str, state: Option<&SharedState>) -> String {
    let Some(state) = state else {
        return format!("{name}  labels: unknown, its file is lost\n");
    };
    let mut row = format!("{name}  labels: {}", words(state));
    let flow = &state.carried;
    let calls = flow
        .calls
        .values()
        .fold(0_u64, |all, it| all.saturating_add(*it));
    match flow.counts_unknown {
        true => row.push_str("; calls: unknown"),
        false if has_counts(state) => {
            row.push_str(&format!("; calls: {calls}, {} bytes sent", flow.bytes));
        }
        false => {}
    }
    if let Some(who) = &state.who {
        row.push_str(&format!("; {}", escape::line(who)));
    }
    if !state.running.is_empty() {
        row.push_str(&format!(
            "; {} in progress",
            counted(state.running.len(), "run")
        ));
    }
    for it in &flow.declassified {
        row.push_str(&format!(
            "; {}",
            escape::line(&render::declassification(it))
        ));
    }
    row.push('\n');
    row
}

fn row_json(name: &str, state: Option<&SharedState>) -> Value {
    let Some(state) = state else {
        return json!({"id": name, "lost": true});
    };
    let flow = &state.carried;
    json!({
        "id": name,
        "labels": state.flow(&Labels::worst()).labels,
        "read_unknown": state.read_unknown,
        "calls": flow.calls,
        "bytes": flow.bytes,
        "counts_unknown": flow.counts_unknown,
        "running": state.running.keys().collect::<Vec<_>>(),
        "declassified": flow.declassified,
    })
}

fn caller_json(caller: &CallerStates) -> Value {
    let mut row = row_json(&caller.caller.to_string(), caller.state.as_ref());
    let sessions = caller.sessions.iter();
    let sessions = sessions.map(|(id, state)| row_json(&id.to_string(), state.as_ref()));
    let who = caller.state.as_ref().and_then(|it| it.who.as_deref());
    if let Some(row) = row.as_object_mut() {
        row.insert("who".into(), json!(who));
        row.insert("sessions".into(), sessions.collect());
    }
    row
}
