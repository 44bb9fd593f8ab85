//! The records of a run chain, and the rules that they follow. A chain has a record of each run that
//! resumed, of what people stated about calls, and of answers that they gave while no process ran.
//! The shell keeps the records in one locked file per chain.

use serde::{Deserialize, Serialize};

use super::{CallRef, Predecessor};
use crate::id::{Digest, RunId};
use crate::statement::Statement;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ChainRecord {
    /// A run is about to resume the newest run of the chain. On disk before its guest starts.
    Began(BeganRecord),
    Statement(Statement),
    Answer(StoredAnswer),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeganRecord {
    pub run: RunId,
    pub predecessor: Predecessor,
}

/// An answer to a question of a run that was suspended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAnswer {
    pub about: CallRef,
    /// Digest of the question that the person was shown. Only the same question takes the answer.
    pub shown: Digest,
    pub answer: StoredAnswerWord,
    /// Who answered, in the form of [`Statement::by`].
    pub by: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoredAnswerWord {
    AllowOnce,
    /// The call is allowed, and its result adds no labels to the run.
    AllowDeclassified,
    Refuse,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    #[error("run {run} was already resumed, by run {by}")]
    AlreadyResumed { run: String, by: String },
    #[error("run {0} is in the chain twice")]
    Twice(String),
    #[error("run {0} does not belong to the chain")]
    ForeignRun(String),
    #[error("the journal of run {0} does not name its predecessor in the chain")]
    WrongPredecessor(String),
    #[error("the journal of run {0} has no header")]
    NoHeader(String),
    #[error("the chain has {runs} runs, and {journals} journals were read")]
    JournalCount { runs: usize, journals: usize },
    #[error("a person has already answered the question of call {0}")]
    AlreadyAnswered(String),
    #[error("call {0} is not one of the chain's calls")]
    UnknownCall(String),
    #[error("the answer about call {0} belongs to no question in the journals of the chain")]
    UnknownQuestion(String),
    #[error("the statement is about other arguments than those of call {0}")]
    OtherArguments(String),
    #[error("the outcome of call {0} is known: {1}")]
    KnownOutcome(String, &'static str),
}

/// A statement, and when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedStatement {
    pub statement: Statement,
    /// How many runs the chain had.
    pub runs: usize,
}

/// The runs of a chain in their order, and everything that people said about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunChain {
    root: RunId,
    runs: Vec<RunId>,
    predecessors: Vec<Predecessor>,
    statements: Vec<RecordedStatement>,
    answers: Vec<StoredAnswer>,
    records: u64,
}

impl RunChain {
    /// Returns the chain of a run that nothing has resumed.
    #[must_use]
    pub fn new(root: RunId) -> Self {
        Self {
            runs: vec![root.clone()],
            root,
            predecessors: Vec::new(),
            statements: Vec::new(),
            answers: Vec::new(),
            records: 0,
        }
    }

    /// Adds a record, if the chain permits it. The shell calls this for each record of the file, and
    /// before it writes a new one.
    pub fn apply(&mut self, record: ChainRecord) -> Result<(), ChainError> {
        match record {
            ChainRecord::Began(began) => self.began(began)?,
            ChainRecord::Statement(statement) => {
                self.check_run(&statement.about.run)?;
                let runs = self.runs.len();
                self.statements.push(RecordedStatement { statement, runs });
            }
            ChainRecord::Answer(answer) => {
                self.check_run(&answer.about.run)?;
                let question = (&answer.about, answer.shown);
                let mut answers = self.answers.iter();
                if answers.any(|it| (&it.about, it.shown) == question) {
                    return Err(ChainError::AlreadyAnswered(answer.about.to_string()));
                }
                self.answers.push(answer);
            }
        }
        self.records += 1;
        Ok(())
    }

    fn began(&mut self, began: BeganRecord) -> Result<(), ChainError> {
        if self.runs.contains(&began.run) {
            return Err(ChainError::Twice(began.run.0.to_string()));
        }
        let of = &began.predecessor.run;
        let Some(at) = self.runs.iter().position(|run| run == of) else {
            return Err(ChainError::ForeignRun(of.0.to_string()));
        };
        if let Some(by) = self.runs.get(at + 1) {
            return Err(ChainError::AlreadyResumed {
                run: of.0.to_string(),
                by: by.0.to_string(),
            });
        }
        self.runs.push(began.run);
        self.predecessors.push(began.predecessor);
        Ok(())
    }

    fn check_run(&self, run: &RunId) -> Result<(), ChainError> {
        match self.runs.contains(run) {
            true => Ok(()),
            false => Err(ChainError::ForeignRun(run.0.to_string())),
        }
    }

    /// Removes the newest run, which never wrote a journal. Returns false if the newest run is
    /// another one, or the root.
    pub fn void_newest(&mut self, run: &RunId) -> bool {
        let is_newest = self.runs.len() > 1 && self.newest() == run;
        if is_newest {
            self.runs.pop();
            self.predecessors.pop();
            for recorded in &mut self.statements {
                recorded.runs = recorded.runs.min(self.runs.len());
            }
        }
        is_newest
    }

    #[must_use]
    pub fn runs(&self) -> &[RunId] {
        &self.runs
    }

    /// Returns the predecessor of a run, as the chain records it.
    #[must_use]
    pub fn predecessor_of(&self, run: &RunId) -> Option<&Predecessor> {
        let at = self.runs.iter().position(|it| it == run)?;
        self.predecessors.get(at.checked_sub(1)?)
    }

    #[must_use]
    pub fn root(&self) -> &RunId {
        &self.root
    }

    /// Returns the newest run, the only one that can be resumed.
    #[must_use]
    pub fn newest(&self) -> &RunId {
        self.runs.last().unwrap_or(&self.root)
    }

    /// Returns the number of runs.
    #[must_use]
    pub fn number(&self) -> u32 {
        u32::try_from(self.runs.len()).unwrap_or(u32::MAX)
    }

    /// Returns all statements in their order. Of several statements about one call, the last one
    /// counts.
    #[must_use]
    pub fn statements(&self) -> &[RecordedStatement] {
        &self.statements
    }

    /// Whether a statement was made after the newest run of the chain had begun, so that no run has
    /// used it.
    #[must_use]
    pub fn is_unused(&self, recorded: &RecordedStatement) -> bool {
        recorded.runs >= self.runs.len()
    }

    #[must_use]
    pub fn answers(&self) -> &[StoredAnswer] {
        &self.answers
    }

    /// Returns the number of records, also those of runs that never wrote a journal. Records are only
    /// added, so the chain is the same one if it has the same number of them.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::CallId;
    use crate::statement::StatedOutcome;

    fn began(run: &str, of: &str) -> ChainRecord {
        ChainRecord::Began(BeganRecord {
            run: RunId(run.into()),
            predecessor: Predecessor {
                run: RunId(of.into()),
                head: Digest::sha256(of.as_bytes()),
            },
        })
    }

    fn chain(records: Vec<ChainRecord>) -> Result<RunChain, ChainError> {
        let mut chain = RunChain::new(RunId("a".into()));
        for record in records {
            chain.apply(record)?;
        }
        Ok(chain)
    }

    #[test]
    fn only_newest_run_is_resumed_and_only_once() {
        let resumed = chain(vec![began("b", "a"), began("c", "b")]).unwrap();
        assert_eq!((&*resumed.newest().0, resumed.number()), ("c", 3));
        let of = resumed.predecessor_of(&RunId("c".into())).unwrap();
        assert_eq!(&*of.run.0, "b");
        let (run, by) = ("a".into(), "b".into());
        assert_eq!(
            chain(vec![began("b", "a"), began("c", "a")]),
            Err(ChainError::AlreadyResumed { run, by })
        );
    }

    #[test]
    fn foreign_run_and_predecessor_of_itself_are_refused() {
        assert_eq!(
            chain(vec![began("b", "x")]),
            Err(ChainError::ForeignRun("x".into()))
        );
        assert_eq!(
            chain(vec![began("b", "b")]),
            Err(ChainError::ForeignRun("b".into()))
        );
        assert_eq!(
            chain(vec![began("a", "a")]),
            Err(ChainError::Twice("a".into()))
        );
    }

    #[test]
    fn question_is_answered_only_once() {
        let answer = |shown: &[u8]| {
            ChainRecord::Answer(StoredAnswer {
                about: CallRef {
                    run: RunId("a".into()),
                    call: CallId(3),
                },
                shown: Digest::sha256(shown),
                answer: StoredAnswerWord::Refuse,
                by: "ada".into(),
            })
        };
        let twice = chain(vec![answer(b"x"), answer(b"x")]);
        assert_eq!(twice, Err(ChainError::AlreadyAnswered("a:3".into())));
        let two = chain(vec![answer(b"x"), answer(b"y")]).unwrap();
        assert_eq!(two.answers().len(), 2);
    }

    #[test]
    fn last_statement_is_unused_until_a_run_begins() {
        let statement = |outcome| {
            ChainRecord::Statement(Statement {
                about: CallRef {
                    run: RunId("a".into()),
                    call: CallId(3),
                },
                args_digest: Digest::sha256(b"x"),
                outcome,
                by: "ada".into(),
                shown: Digest::sha256(b"x"),
            })
        };
        let mut chain = chain(vec![
            statement(StatedOutcome::DidNotHappen),
            began("b", "a"),
            statement(StatedOutcome::Happened { result: None }),
        ])
        .unwrap();
        let unused = |chain: &RunChain| -> Vec<bool> {
            let statements = chain.statements().iter();
            statements.map(|it| chain.is_unused(it)).collect()
        };
        assert_eq!(unused(&chain), [false, true]);
        // The second run wrote nothing, so it has used no statement.
        chain.void_newest(&RunId("b".into()));
        assert_eq!(unused(&chain), [true, true]);
        chain.apply(began("c", "a")).unwrap();
        assert_eq!(unused(&chain), [false, false]);
    }

    #[test]
    fn run_without_journal_is_void() {
        let mut chain = chain(vec![began("b", "a")]).unwrap();
        assert!(!chain.void_newest(&RunId("a".into())));
        assert!(chain.void_newest(&RunId("b".into())));
        assert!(!chain.void_newest(&RunId("a".into())));
        chain.apply(began("c", "a")).unwrap();
        assert_eq!(&*chain.newest().0, "c");
    }

    #[test]
    fn records_round_trip() {
        let about = CallRef {
            run: RunId("a".into()),
            call: CallId(3),
        };
        let digest = Digest::sha256(b"x");
        let statement = |outcome| {
            ChainRecord::Statement(Statement {
                about: about.clone(),
                args_digest: digest,
                outcome,
                by: "ada".into(),
                shown: digest,
            })
        };
        let result = Some(r#"{"id":1}"#.to_owned());
        for record in [
            began("b", "a"),
            statement(StatedOutcome::Happened { result }),
            statement(StatedOutcome::Happened { result: None }),
            statement(StatedOutcome::DidNotHappen),
            ChainRecord::Answer(StoredAnswer {
                about: about.clone(),
                shown: digest,
                answer: StoredAnswerWord::AllowOnce,
                by: "ada".into(),
            }),
        ] {
            let text = serde_json::to_string(&record).unwrap();
            assert_eq!(
                crate::json::typed::<ChainRecord>(text.as_bytes()).unwrap(),
                record
            );
        }
    }
}
