//! `airlock runs verify`: checks whether journals are intact, ended and signed, and whether the files
//! of run chains are intact, signed, and agree with the journals.

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
use crate::chain_file::ChainFileError;
use crate::cli::options::usage;
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json};
use crate::journal_file::{is_locked, wait_until_unlocked};
use crate::private_file::StateDir;
use crate::pruned_runs::PrunedRun;
use crate::render::{self, counted, escape};
use crate::run_chain::{ChainReader, ResumeError};
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
    /// The index has a signed end of the run, and there is no journal.
    Missing,
    /// airlock deleted the journal because it was old.
    Pruned,
}

/// A run chain whose file does not verify.
struct DamagedChain {
    /// The first run of the chain.
    root: RunId,
    state: JournalState,
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
                false => JournalState::Missing,
            },
        }
    }

    /// Returns the only run whose id begins with this text and of which the index has a signed end.
    fn indexed(&self, id: &str) -> Option<RunId> {
        let index = self.index.borrow();
        let mut runs = index.runs().filter(|run| run.0.starts_with(id));
        let run = runs.next()?.clone();
        runs.next().is_none().then_some(run)
    }

    /// Checks the file of the chain that a run of the state directory belongs to.
    fn chain_of(&self, state: &StateDir, run: &RunId) -> Option<DamagedChain> {
        let root = state.chain_root(run).unwrap_or_else(|| run.clone());
        let checked = state.check_chain(&root, &self.keys);
        DamagedChain::find(root, checked)
    }

    /// Checks the files of all chains.
    fn damaged_chains(&self, state: &StateDir) -> Result<Vec<DamagedChain>, ResumeError> {
        let reader = ChainReader::new(state)?;
        let pruned = state.pruned_runs()?;
        let is_pruned = |run: &RunId| {
            let is_absent = !state.journal_path(run).exists();
            let state = || self.absent(run, pruned.get(run)).state;
            is_absent && matches!(state(), JournalState::Pruned)
        };
        let mut damaged = Vec::new();
        for root in reader.roots()? {
            let chain = state.chain(&root).load_signed_with(&self.keys);
            // Its deletion was interrupted; `airlock runs prune` finishes it.
            if chain.is_ok_and(|chain| chain.runs().iter().any(is_pruned)) {
                continue;
            }
            let checked = reader.check(&root, &self.keys);
            damaged.extend(DamagedChain::find(root, checked));
        }
        Ok(damaged)
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
    let loaded = match load(state, id) {
        Ok(loaded) => loaded,
        Err(unknown) => return absent(state, &trust, id, is_json).unwrap_or(Err(unknown)),
    };
    let name = &loaded.name;
    let checked = trust.check(&JournalBytes {
        run: &loaded.run,
        path: &loaded.path,
        bytes: &loaded.bytes,
        was_locked: loaded.was_locked,
    });
    let Some(journal) = &checked.journal else {
        return Err(broken_journal(name, checked.state.why()));
    };
    // A file can be a copy on a machine without the other files of the chain.
    let damaged = match loaded.is_of_state {
        true => trust.chain_of(state, &loaded.run),
        false => None,
    };
    let states = [Some(&checked.state), damaged.as_ref().map(|it| &it.state)];
    let code = worst(states.into_iter().flatten().map(JournalState::exit_code));
    if is_json {
        let mut value = checked.json(&loaded.run);
        if let (Some(members), Some(damaged)) = (value.as_object_mut(), &damaged) {
            members.insert("chain".to_owned(), damaged.json());
        }
        print_json(&value)?;
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
    let problem = checked.state.problem(name);
    match problem.or_else(|| damaged.map(|it| it.problem())) {
        Some(problem) => Err(problem),
        None => Ok(code),
    }
}

/// Reports a run of which only the signed end is left. `None` if there is no such run.
fn absent(state: &StateDir, trust: &Trust, id: &str, is_json: bool) -> Option<Outcome> {
    let run = trust.indexed(id)?;
    if state.journal_path(&run).exists() {
        return None;
    }
    let report = || -> Outcome {
        let pruned = state.pruned_runs().map_err(IndexError::into_problem)?;
        let checked = trust.absent(&run, pruned.get(&run));
        if is_json {
            print_json(&checked.json(&run))?;
            return Ok(checked.state.exit_code());
        }
        print(&format!("{}: {}\n", escape::line(&run.0), checked.text()))?;
        match checked.state.problem(&run.0) {
            Some(problem) => Err(problem),
            None => Ok(exit::DONE),
        }
    };
    Some(report())
}

/// Returns the exit code of the worst result.
fn worst(codes: impl Iterator<Item = u8>) -> u8 {
    let rank = |code: &u8| match *code {
        exit::JOURNAL => 3,
        exit::JOURNAL_UNSIGNED => 2,
        exit::JOURNAL_INCOMPLETE => 1,
        _ => 0,
    };
    codes.max_by_key(rank).unwrap_or(exit::DONE)
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
    tally.chains = trust
        .damaged_chains(state)
        .map_err(ResumeError::into_problem)?;
    if is_json {
        print_json(&tally.json(rows))?;
    } else if tally.all() > 0 || !tally.chains.is_empty() {
        print(
            &tally
                .chains
                .iter()
                .map(DamagedChain::text)
                .collect::<String>(),
        )?;
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
            Self::Incomplete(_) | Self::Missing => exit::JOURNAL_INCOMPLETE,
            Self::Broken(_) => exit::JOURNAL,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Signed(_) => "signed",
            Self::Unsigned(_) => "unsigned",
            Self::Incomplete(_) | Self::Missing => "incomplete",
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
            Self::Missing => "the journal is missing, and the index has a signed end of this run",
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
            Self::Missing => (
                "journal-incomplete",
                format!("the journal of {name} is missing"),
                "put back a copy of the file; without one, nothing shows which calls the run made",
            ),
            Self::Broken(_) => return Some(broken_journal(name, self.why())),
        };
        Some(Problem::new(code, what, self.why(), next))
    }
}

impl DamagedChain {
    /// Returns the chain if its check failed.
    fn find(root: RunId, checked: Result<(), ResumeError>) -> Option<Self> {
        let error = checked.err()?;
        let why = error.to_string();
        let state = match error {
            ResumeError::File(ChainFileError::OtherKey { .. }) => JournalState::Unsigned(why),
            ResumeError::Journal(missing) if missing.is_missing() => JournalState::Incomplete(why),
            _ => JournalState::Broken(why),
        };
        Some(Self { root, state })
    }

    /// Describes the chain in one line.
    fn text(&self) -> String {
        let text = format!(
            "run chain {}: {}: {}",
            self.root.0,
            self.state.word(),
            self.state.why()
        );
        format!("{}\n", escape::line(&text))
    }

    fn json(&self) -> Value {
        let state = &self.state;
        json!({ "chain": self.root, "state": state.word(), "why": state.why() })
    }

    fn problem(&self) -> Problem {
        let (code, next) = match self.state {
            JournalState::Unsigned(_) => (
                "journal-unsigned",
                "if you know the other key, name it with --key; runs of the chain cannot be resumed",
            ),
            JournalState::Incomplete(_) => (
                "journal-incomplete",
                "put back a copy of the journal; without it, runs of the chain cannot be resumed",
            ),
            _ => (
                "journal-broken",
                "the file was changed or is damaged, so what it says about answers of people may be \
                 false; runs of the chain cannot be resumed",
            ),
        };
        let what = format!("the run chain {} does not verify", self.root.0);
        Problem::new(code, what, self.state.why(), next)
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
    /// The run chains that do not verify.
    chains: Vec<DamagedChain>,
}

impl Tally {
    fn add(&mut self, state: &JournalState) {
        let count = match state {
            JournalState::Signed(_) => &mut self.signed,
            JournalState::Running => &mut self.running,
            JournalState::Incomplete(_) | JournalState::Missing => &mut self.incomplete,
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
        let journals = match self {
            Self { broken: 1.., .. } => exit::JOURNAL,
            Self { unsigned: 1.., .. } => exit::JOURNAL_UNSIGNED,
            Self {
                incomplete: 1.., ..
            } => exit::JOURNAL_INCOMPLETE,
            _ => exit::DONE,
        };
        let chains = self.chains.iter().map(|it| it.state.exit_code());
        worst(chains.chain([journals]))
    }

    fn json(&self, rows: Vec<Value>) -> Value {
        json!({
            "runs": rows, "signed": self.signed, "running": self.running,
            "incomplete": self.incomplete, "unsigned": self.unsigned, "broken": self.broken,
            "pruned": self.pruned,
            "damaged_chains": self.chains.iter().map(DamagedChain::json).collect::<Vec<_>>(),
        })
    }

    /// Returns the number of journals in each state, in one line.
    fn text(&self) -> String {
        let chains = match self.chains.len() {
            0 => String::new(),
            damaged => format!("; {} damaged", counted(damaged, "run chain")),
        };
        let journals = match self.all() {
            0 => "no journals".to_owned(),
            all => format!("{}: {}", counted(all, "journal"), self.counts()),
        };
        format!("{journals}{chains}\n")
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
        let what = match self.failed() {
            0 => "the files of some run chains do not verify".to_owned(),
            failed => format!("{failed} of {} journals do not verify", self.all()),
        };
        Problem::new(
            code,
            what,
            format!(
                "{}; the lines above give the reasons",
                self.text().trim_end()
            ),
            "`airlock runs verify RUN` shows the details of one run",
        )
    }
}
