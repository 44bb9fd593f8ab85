//! `airlock runs verify`: checks whether journals are intact, ended and signed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlock_core::id::RunId;
use airlock_core::journal::VerifiedJournal;
use airlock_core::problem::Problem;
use clap::Args;
use serde_json::{Map, Value, json};

use super::{broken_journal, in_doubt, intact, listed, load, uses_in_doubt};
use crate::cli::options::usage;
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json};
use crate::journal_file::{is_locked, wait_until_unlocked};
use crate::private_file::StateDir;
use crate::pruned_runs::PrunedRun;
use crate::render::{self, counted, escape};
use crate::run_index::{IndexError, PublicKey, RunIndex, SignedHead};

/// How long to wait for a process that has written the end of a journal and not yet signed it.
const SIGNING_WALL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(in crate::cli) struct TrustOptions {
    /// Public key to trust, as printed by `airlock runs key`. Repeat the flag to trust several keys
    /// [default: the key of the state directory]
    #[arg(long = "key", value_name = "PUBLIC")]
    keys: Vec<PublicKey>,
    /// File with the signed ends of runs [default: index.jsonl in the state directory]
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
}

/// The signed heads that journals are compared with, and the keys that are trusted to sign them.
struct Trust {
    index_path: PathBuf,
    index: RefCell<RunIndex>,
    keys: Vec<PublicKey>,
}

/// The result of verifying a journal, with the reason if it is not `signed`.
enum JournalState {
    Signed(SignedHead),
    Unsigned(String),
    Incomplete(String),
    /// The journal has no end yet, and a process holds its lock.
    Running,
    Broken(String),
    /// airlock deleted the journal because it was old.
    Pruned,
}

/// A verified journal. The content of a broken journal is absent.
struct Checked {
    journal: Option<VerifiedJournal>,
    state: JournalState,
}

/// A journal file, as it was read.
struct JournalBytes<'a> {
    /// The run that the file is named after.
    run: &'a RunId,
    path: &'a Path,
    bytes: &'a [u8],
    /// Whether a process held the lock of the file before it was read.
    was_locked: bool,
}

impl Trust {
    fn open(options: TrustOptions, state: &StateDir) -> Result<Self, Problem> {
        if let Some(index) = options.index.as_ref().filter(|index| !index.exists()) {
            let what = format!("{} cannot be read", index.display());
            return Err(usage(
                what,
                "there is no such file",
                "check the path given with --index",
            ));
        }
        let index_path = options.index.unwrap_or_else(|| state.index_path());
        let index = RunIndex::read(&index_path).map_err(|error| error.into_problem())?;
        let mut keys = options.keys;
        if keys.is_empty() {
            let own = state.existing_public_key();
            keys.extend(own.map_err(|error| error.into_problem())?);
        }
        Ok(Self {
            index_path,
            index: RefCell::new(index),
            keys,
        })
    }

    /// Verifies one journal.
    fn check(&self, file: &JournalBytes<'_>) -> Checked {
        match intact(file.run, file.bytes) {
            Ok(journal) => Checked {
                state: self
                    .state(file, &journal)
                    .unwrap_or_else(JournalState::Broken),
                journal: Some(journal),
            },
            Err(why) => Checked::broken(why),
        }
    }

    /// Returns the state of a journal with an intact chain, or why the journal contradicts its
    /// signed head.
    fn state(
        &self,
        file: &JournalBytes<'_>,
        journal: &VerifiedJournal,
    ) -> Result<JournalState, String> {
        let entries = journal.lines.len() as u64;
        let has_ended = journal.ended().is_some() || journal.suspended().is_some();
        if has_ended && file.was_locked {
            // The process that wrote the end may be about to sign it.
            wait_until_unlocked(file.path, SIGNING_WALL);
        }
        let Some(signed) = self.signed_head(file.run)? else {
            return Ok(match has_ended {
                true => JournalState::Unsigned("the index has no signed end of this run".into()),
                false if file.was_locked => JournalState::Running,
                false if entries == 0 => JournalState::Incomplete("the journal is empty".into()),
                false => JournalState::Incomplete(
                    "the journal has no end: the run was interrupted, or its end was cut off"
                        .into(),
                ),
            });
        };
        if journal.head != Some(signed.head) {
            return Err(match has_ended {
                true => format!("the head differs from the signed head {}", signed.head),
                false => format!(
                    "the end was cut off: the journal has {entries} entries, and {} were signed",
                    signed.entries
                ),
            });
        }
        if signed.entries != entries {
            let signed = signed.entries;
            return Err(format!(
                "the journal has {entries} entries, and {signed} were signed"
            ));
        }
        if journal.cut.is_some() {
            return Err("the journal continues after its signed end".into());
        }
        if self.keys.contains(&signed.key) {
            return Ok(JournalState::Signed(signed));
        }
        Ok(JournalState::Unsigned(match self.keys.is_empty() {
            true => format!(
                "the end is signed with {}, and there is no key to compare it with: none was given, \
                 and the state directory has none",
                signed.key
            ),
            false => format!("the end is signed with another key, {}", signed.key),
        }))
    }

    /// Returns the result for a run whose journal does not exist.
    fn absent(&self, run: &RunId, pruned: Option<&PrunedRun>) -> Checked {
        let signed = self.signed_head(run).ok().flatten();
        let head = signed
            .filter(|it| self.keys.contains(&it.key))
            .map(|it| it.head);
        let is_pruned = |it: &PrunedRun| Some(it.head) == head && self.keys.contains(&it.key);
        Checked {
            journal: None,
            state: match pruned.is_some_and(is_pruned) {
                true => JournalState::Pruned,
                false => JournalState::Incomplete(
                    "the journal is missing, and the index has a signed end of this run".into(),
                ),
            },
        }
    }

    /// Returns the signed head of a run. A run can end while others are verified, so the index is
    /// read again if it has changed.
    fn signed_head(&self, run: &RunId) -> Result<Option<SignedHead>, String> {
        let text = |error: IndexError| error.to_string();
        let of_run = || self.index.borrow().of_run(run).map(|it| it.cloned());
        if let Some(head) = of_run().map_err(text)? {
            return Ok(Some(head));
        }
        if self.index.borrow().is_current(&self.index_path) {
            return Ok(None);
        }
        *self.index.borrow_mut() = RunIndex::read(&self.index_path).map_err(text)?;
        of_run().map_err(text)
    }
}

/// Verifies one run, or the journal in a file.
pub(super) fn one(state: &StateDir, options: TrustOptions, id: &str, is_json: bool) -> Outcome {
    let trust = Trust::open(options, state)?;
    let loaded = load(state, id)?;
    let name = &loaded.name;
    let checked = trust.check(&JournalBytes {
        run: &loaded.run,
        path: &loaded.path,
        bytes: &loaded.bytes,
        was_locked: loaded.was_locked,
    });
    let (Some(journal), code) = (&checked.journal, checked.state.exit_code()) else {
        return Err(broken_journal(name, checked.state.why()));
    };
    if is_json {
        print_json(&checked.json(&loaded.run))?;
        return Ok(code);
    }
    if let JournalState::Broken(why) = &checked.state {
        return Err(broken_journal(name, why));
    }
    let mut text = format!("{}: {}", escape::line(name), render::verification(journal));
    match &checked.state {
        JournalState::Signed(head) => text.push_str(&format!(
            "signed with {}, line {} of the index\n",
            head.key,
            head.seq + 1
        )),
        JournalState::Running => text.push_str("running: the run has not ended yet\n"),
        _ if !journal.is_content_checked() => text
            .push_str("format version 1: the digests of arguments and results were not compared\n"),
        _ => {}
    }
    print(&text)?;
    match checked.state.problem(name) {
        Some(problem) => Err(problem),
        None => Ok(code),
    }
}

/// Verifies every run of the state directory, newest first, with one line each, and prints how many
/// there are in each state. Runs of which only the signed head is left come last.
pub(super) fn all(
    state: &StateDir,
    options: TrustOptions,
    is_json: bool,
    screen: &Screen,
) -> Outcome {
    let trust = Trust::open(options, state)?;
    let runs = listed(state, is_json, screen)?;
    let (mut tally, mut rows) = (Tally::default(), Vec::new());
    let mut take = |run: &RunId, checked: &Checked| {
        tally.add(&checked.state);
        if is_json {
            rows.push(checked.json(run));
            return Ok(());
        }
        // Their number grows for ever, and nothing is left to look at.
        if matches!(checked.state, JournalState::Pruned) {
            return Ok(());
        }
        let text = escape::line(&checked.text()).into_owned();
        print(&format!("{}: {text}\n", escape::line(&run.0)))
    };
    let mut there: BTreeSet<&RunId> = runs.iter().collect();
    for run in &runs {
        // Journals can be long, so only one is held in memory at a time.
        let path = state.journal_path(run);
        let was_locked = is_locked(&path);
        let checked = match state.read(run) {
            Ok(bytes) => trust.check(&JournalBytes {
                run,
                path: &path,
                bytes: &bytes,
                was_locked,
            }),
            // It was deleted after the runs were listed.
            Err(error) if error.is_missing() => {
                there.remove(run);
                continue;
            }
            Err(error) => Checked::broken(error.to_string()),
        };
        take(run, &checked)?;
    }
    let pruned = state.pruned_runs().map_err(IndexError::into_problem)?;
    let index = trust.index.borrow();
    // A run can begin and end while others are verified.
    let is_missing = |run: &&RunId| !there.contains(run) && !state.journal_path(run).exists();
    for run in index.runs().filter(is_missing) {
        take(run, &trust.absent(run, pruned.get(run)))?;
    }
    if is_json {
        print_json(&tally.json(rows))?;
    } else if tally.all() > 0 {
        print(&tally.text())?;
    }
    match tally.exit_code() {
        exit::DONE => Ok(exit::DONE),
        code if is_json => Ok(code),
        _ => Err(tally.problem()),
    }
}

impl JournalState {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Signed(_) | Self::Running | Self::Pruned => exit::DONE,
            Self::Unsigned(_) => exit::JOURNAL_UNSIGNED,
            Self::Incomplete(_) => exit::JOURNAL_INCOMPLETE,
            Self::Broken(_) => exit::JOURNAL,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Signed(_) => "signed",
            Self::Unsigned(_) => "unsigned",
            Self::Incomplete(_) => "incomplete",
            Self::Running => "running",
            Self::Broken(_) => "broken",
            Self::Pruned => "pruned",
        }
    }

    fn why(&self) -> &str {
        match self {
            Self::Signed(_) => "",
            Self::Unsigned(why) | Self::Incomplete(why) | Self::Broken(why) => why,
            Self::Running => "the run has not ended yet",
            Self::Pruned => "airlock deleted the journal because it was old",
        }
    }

    fn problem(&self, name: &str) -> Option<Problem> {
        let (code, what, next) = match self {
            Self::Signed(_) | Self::Running | Self::Pruned => return None,
            Self::Unsigned(_) => (
                "journal-unsigned",
                format!("the journal of {name} is not signed with a trusted key"),
                "name the trusted key with --key, and the file with the signed ends with --index; \
                 `airlock runs key` prints the key of a state directory",
            ),
            Self::Incomplete(_) => (
                "journal-incomplete",
                format!("the journal of {name} is incomplete"),
                "treat calls in doubt as sent; compare the journal with a copy if you have one",
            ),
            Self::Broken(_) => return Some(broken_journal(name, self.why())),
        };
        Some(Problem::new(code, what, self.why(), next))
    }
}

impl Checked {
    fn broken(why: String) -> Self {
        Self {
            journal: None,
            state: JournalState::Broken(why),
        }
    }

    /// Describes the journal in one line.
    fn text(&self) -> String {
        let mut text = self.state.word().to_owned();
        if let Some(journal) = &self.journal {
            text.push_str(&format!(", {} entries", journal.lines.len()));
            if !journal.in_doubt.is_empty() {
                let calls = counted(journal.in_doubt.len(), "call");
                text.push_str(&format!(", {calls} in doubt"));
            }
        }
        match self.state.why() {
            "" => text,
            why => format!("{text}: {why}"),
        }
    }

    fn json(&self, run: &RunId) -> Value {
        let state = &self.state;
        let signed = match state {
            JournalState::Signed(head) => json!(head),
            _ => Value::Null,
        };
        let mut value = Map::new();
        let mut add = |name: &str, item: Value| value.insert(name.to_owned(), item);
        add("run", json!(run));
        add("state", json!(state.word()));
        add("signed", signed);
        add("intact", (!matches!(state, JournalState::Broken(_))).into());
        if !state.why().is_empty() {
            add("why", json!(state.why()));
        }
        if let Some(journal) = &self.journal {
            let cut = journal.cut.as_ref();
            let cut = cut.map(|cut| json!({ "after_entry": cut.after_line, "bytes": cut.bytes }));
            add("entries", journal.lines.len().into());
            add("head", json!(journal.head));
            add("ended", journal.ended().is_some().into());
            add("cut", json!(cut));
            add("in_doubt", json!(in_doubt(journal)));
            add("uses_in_doubt", json!(uses_in_doubt(journal)));
        }
        value.into()
    }
}

/// The number of journals in each state.
#[derive(Default)]
struct Tally {
    signed: usize,
    running: usize,
    incomplete: usize,
    unsigned: usize,
    broken: usize,
    pruned: usize,
}

impl Tally {
    fn add(&mut self, state: &JournalState) {
        let count = match state {
            JournalState::Signed(_) => &mut self.signed,
            JournalState::Running => &mut self.running,
            JournalState::Incomplete(_) => &mut self.incomplete,
            JournalState::Unsigned(_) => &mut self.unsigned,
            JournalState::Broken(_) => &mut self.broken,
            JournalState::Pruned => &mut self.pruned,
        };
        *count += 1;
    }

    fn all(&self) -> usize {
        self.signed + self.running + self.pruned + self.failed()
    }

    fn failed(&self) -> usize {
        self.incomplete + self.unsigned + self.broken
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self { broken: 1.., .. } => exit::JOURNAL,
            Self { unsigned: 1.., .. } => exit::JOURNAL_UNSIGNED,
            Self {
                incomplete: 1.., ..
            } => exit::JOURNAL_INCOMPLETE,
            _ => exit::DONE,
        }
    }

    fn json(&self, rows: Vec<Value>) -> Value {
        json!({
            "runs": rows, "signed": self.signed, "running": self.running,
            "incomplete": self.incomplete, "unsigned": self.unsigned, "broken": self.broken,
            "pruned": self.pruned,
        })
    }

    /// Returns the number of journals in each state, in one line.
    fn text(&self) -> String {
        format!("{}: {}\n", counted(self.all(), "journal"), self.counts())
    }

    fn counts(&self) -> String {
        let counts = [
            (self.signed, "signed"),
            (self.running, "running"),
            (self.incomplete, "incomplete"),
            (self.unsigned, "unsigned"),
            (self.broken, "broken"),
            (self.pruned, "pruned"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        counts.join(", ")
    }

    fn problem(&self) -> Problem {
        let code = match self.exit_code() {
            exit::JOURNAL => "journal-broken",
            exit::JOURNAL_UNSIGNED => "journal-unsigned",
            _ => "journal-incomplete",
        };
        Problem::new(
            code,
            format!("{} of {} journals do not verify", self.failed(), self.all()),
            format!("{}; the lines above give the reasons", self.counts()),
            "`airlock runs verify RUN` shows the details of one run",
        )
    }
}
