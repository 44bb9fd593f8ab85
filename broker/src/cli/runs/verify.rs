//! `airlock runs verify`: checks whether journals are intact, ended and signed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use airlock_core::id::RunId;
use airlock_core::journal::VerifiedJournal;
use airlock_core::problem::Problem;
use clap::Args;
use serde_json::{Map, Value, json};

use super::{broken_journal, in_doubt, intact, listed, load, uses_in_doubt};
use crate::cli::options::usage;
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json};
use crate::private_file::StateDir;
use crate::render::{self, counted, escape};
use crate::run_index::{PublicKey, RunIndex, SignedHead};

#[derive(Debug, Args)]
pub(in crate::cli) struct TrustOptions {
    /// Public key that signed the heads of the runs, as `airlock runs key` prints it. Can be given
    /// several times [default: the key of the state directory]
    #[arg(long = "key", value_name = "PUBLIC")]
    keys: Vec<PublicKey>,
    /// Index of signed heads [default: index.jsonl in the state directory]
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
}

/// The signed heads, and the keys that a valid one may be signed with.
struct Trust {
    index: RunIndex,
    keys: Vec<PublicKey>,
}

/// What is known about a journal.
enum Standing {
    Signed(SignedHead),
    Unsigned(String),
    Incomplete(String),
    /// A process still writes the journal.
    Running,
    Broken(String),
}

/// A journal and its standing. Broken journals have no content.
struct Checked {
    journal: Option<VerifiedJournal>,
    standing: Standing,
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
        let index = options.index.unwrap_or_else(|| state.index_path());
        let index = RunIndex::read(&index).map_err(|error| error.into_problem())?;
        let mut keys = options.keys;
        if keys.is_empty() {
            let own = state.existing_public_key();
            keys.extend(own.map_err(|error| error.into_problem())?);
        }
        Ok(Self { index, keys })
    }

    /// Checks one journal. `run` is the run that its file is named after.
    fn check(&self, state: &StateDir, run: &RunId, bytes: &[u8]) -> Checked {
        match intact(run, bytes) {
            Ok(journal) => Checked {
                standing: self
                    .standing(state, run, &journal)
                    .unwrap_or_else(Standing::Broken),
                journal: Some(journal),
            },
            Err(why) => Checked {
                journal: None,
                standing: Standing::Broken(why),
            },
        }
    }

    /// Returns how a journal with an intact chain stands, or why it contradicts its signed head.
    fn standing(
        &self,
        state: &StateDir,
        run: &RunId,
        journal: &VerifiedJournal,
    ) -> Result<Standing, String> {
        let entries = journal.lines.len() as u64;
        let signed = self.index.of_run(run).map_err(|error| error.to_string())?;
        let Some(signed) = signed else {
            return Ok(match journal.ended() {
                _ if state.is_running(run) => Standing::Running,
                Some(_) => Standing::Unsigned("the index has no signed head of this run".into()),
                None if entries == 0 => Standing::Incomplete("the journal is empty".into()),
                None => Standing::Incomplete(
                    "the journal has no end: the run was interrupted, or its end was cut off"
                        .into(),
                ),
            });
        };
        if journal.head != Some(signed.head) {
            return Err(match journal.ended() {
                Some(_) => format!("the head differs from the signed head {}", signed.head),
                None => format!(
                    "the end was cut off: the journal has {entries} entries, and its signed head is of {}",
                    signed.entries
                ),
            });
        }
        if signed.entries != entries || journal.cut.is_some() {
            return Err("the journal does not end with its signed head".into());
        }
        if self.keys.contains(&signed.key) {
            return Ok(Standing::Signed(signed.clone()));
        }
        Ok(Standing::Unsigned(match self.keys.is_empty() {
            true => format!("no key is trusted; the head is signed with {}", signed.key),
            false => format!("the head is signed with another key, {}", signed.key),
        }))
    }
}

/// Verifies one run, or the journal in a file.
pub(super) fn one(state: &StateDir, options: TrustOptions, id: &str, is_json: bool) -> Outcome {
    let trust = Trust::open(options, state)?;
    let loaded = load(state, id)?;
    let name = &loaded.name;
    let checked = trust.check(state, &loaded.run, &loaded.bytes);
    let (Some(journal), code) = (&checked.journal, checked.standing.exit_code()) else {
        return Err(broken_journal(name, checked.standing.why()));
    };
    if is_json {
        print_json(&checked.json(&loaded.run))?;
        return Ok(code);
    }
    if let Standing::Broken(why) = &checked.standing {
        return Err(broken_journal(name, why));
    }
    let mut text = format!("{}: {}", escape::line(name), render::verification(journal));
    match &checked.standing {
        Standing::Signed(head) => text.push_str(&format!(
            "signed with {}, line {} of the index\n",
            head.key,
            head.seq + 1
        )),
        _ if !journal.is_content_checked() => text
            .push_str("format version 1: the digests of arguments and results were not compared\n"),
        _ => {}
    }
    print(&text)?;
    match checked.standing.problem(name) {
        Some(problem) => Err(problem),
        None => Ok(code),
    }
}

/// Verifies every run of the state directory, newest first, with one line each. Runs of which only
/// the signed head is left come last.
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
        tally.add(&checked.standing);
        if is_json {
            rows.push(checked.json(run));
            return Ok(());
        }
        let text = escape::line(&checked.text()).into_owned();
        print(&format!("{}: {text}\n", escape::line(&run.0)))
    };
    for run in &runs {
        // Journals can be long, so only one is held in memory at a time.
        let checked = match state.read(run) {
            Ok(bytes) => trust.check(state, run, &bytes),
            Err(error) => Checked::without_content(Standing::Broken(error.to_string())),
        };
        take(run, &checked)?;
    }
    let there: BTreeSet<&RunId> = runs.iter().collect();
    for run in trust.index.runs().filter(|run| !there.contains(run)) {
        let why = "the journal is missing; the index has its signed head".into();
        take(run, &Checked::without_content(Standing::Incomplete(why)))?;
    }
    if is_json {
        print_json(&tally.json(rows))?;
    }
    match tally.exit_code() {
        exit::DONE => Ok(exit::DONE),
        code if is_json => Ok(code),
        _ => Err(tally.problem()),
    }
}

impl Standing {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Signed(_) => exit::DONE,
            Self::Unsigned(_) => exit::JOURNAL_UNSIGNED,
            Self::Incomplete(_) | Self::Running => exit::JOURNAL_INCOMPLETE,
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
        }
    }

    fn why(&self) -> &str {
        match self {
            Self::Signed(_) => "",
            Self::Unsigned(why) | Self::Incomplete(why) | Self::Broken(why) => why,
            Self::Running => "the run has not ended yet",
        }
    }

    fn problem(&self, name: &str) -> Option<Problem> {
        let (code, what, next) = match self {
            Self::Signed(_) => return None,
            Self::Unsigned(_) => (
                "journal-unsigned",
                format!("the end of the journal of {name} is not signed with a trusted key"),
                "`airlock runs key` prints the key of a state directory; pass it with --key, and its index with --index",
            ),
            Self::Running => (
                "journal-incomplete",
                format!("the journal of {name} is incomplete"),
                "verify it again when the run has ended",
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
    fn without_content(standing: Standing) -> Self {
        Self {
            journal: None,
            standing,
        }
    }

    /// Describes the journal in one line.
    fn text(&self) -> String {
        let mut text = self.standing.word().to_owned();
        if let Some(journal) = &self.journal {
            text.push_str(&format!(", {} entries", journal.lines.len()));
            if !journal.in_doubt.is_empty() {
                let calls = counted(journal.in_doubt.len(), "call");
                text.push_str(&format!(", {calls} in doubt"));
            }
        }
        match self.standing.why() {
            "" => text,
            why => format!("{text}: {why}"),
        }
    }

    fn json(&self, run: &RunId) -> Value {
        let standing = &self.standing;
        let signed = match standing {
            Standing::Signed(head) => json!(head),
            _ => Value::Null,
        };
        let mut value = Map::new();
        let mut add = |name: &str, item: Value| value.insert(name.to_owned(), item);
        add("run", json!(run));
        add("state", json!(standing.word()));
        add("signed", signed);
        add("intact", (!matches!(standing, Standing::Broken(_))).into());
        if !standing.why().is_empty() {
            add("why", json!(standing.why()));
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

/// How many journals stand how.
#[derive(Default)]
struct Tally {
    all: usize,
    broken: usize,
    unsigned: usize,
    incomplete: usize,
}

impl Tally {
    fn add(&mut self, standing: &Standing) {
        self.all += 1;
        match standing {
            Standing::Signed(_) | Standing::Running => {}
            Standing::Unsigned(_) => self.unsigned += 1,
            Standing::Incomplete(_) => self.incomplete += 1,
            Standing::Broken(_) => self.broken += 1,
        }
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
            "runs": rows, "broken": self.broken, "unsigned": self.unsigned,
            "incomplete": self.incomplete,
        })
    }

    fn problem(&self) -> Problem {
        let code = match self.exit_code() {
            exit::JOURNAL => "journal-broken",
            exit::JOURNAL_UNSIGNED => "journal-unsigned",
            _ => "journal-incomplete",
        };
        let failed = self.broken + self.unsigned + self.incomplete;
        let counts = [
            (self.broken, "broken"),
            (self.unsigned, "unsigned"),
            (self.incomplete, "incomplete"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        Problem::new(
            code,
            format!("{failed} of {} journals do not verify", self.all),
            format!("{}; the lines above say why", counts.join(", ")),
            "`airlock runs verify RUN` shows the details of one run",
        )
    }
}
