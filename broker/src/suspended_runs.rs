//! The open questions of suspended runs. A person answers them while no process of the run exists,
//! and the run gets the answer when it is resumed.

use std::collections::HashMap;
use std::sync::Arc;

use airlock_core::decide::{Answer, Asker, Question};
use airlock_core::id::{RunId, ToolId};
use airlock_core::journal::{AskedEntry, Body, JournalLine, Verdict, VerifiedJournal};
use airlock_core::level::Level;
use airlock_core::resume::CallRef;
use airlock_core::resume::chain::{
    ChainError, ChainRecord, RunChain, StoredAnswer, StoredAnswerWord,
};
use airlock_core::resume::plan::unused;
use airlock_core::statement::Statement;

use crate::private_file::StateDir;
use crate::run_chain::{ResumeError, StoredChain};
use crate::secrets::Secrets;
use crate::stated_result;

/// An unanswered question of a suspended run, as the journal of the run holds it.
#[derive(Debug, Clone)]
pub(crate) struct SuspendedQuestion {
    pub(crate) at: CallRef,
    pub(crate) asked: AskedEntry,
}

impl SuspendedQuestion {
    /// Records a person's answer in the file of the chain.
    pub(crate) fn answer(
        &self,
        (state, stored): (&StateDir, &StoredChain),
        answer: StoredAnswerWord,
        by: String,
        now_ms: u64,
    ) -> Result<StoredAnswer, ResumeError> {
        let stored_answer = StoredAnswer {
            about: self.at.clone(),
            shown: self.asked.shown,
            answer,
            by,
        };
        stored.record(state, ChainRecord::Answer(stored_answer.clone()), now_ms)?;
        Ok(stored_answer)
    }

    /// Returns the question in the form in which approvers show it. The answer is about this call
    /// alone.
    pub(crate) fn question(&self, stored: &StoredChain) -> Result<Question, ResumeError> {
        let (asked, ledger) = (self.asked.clone(), stored.ledger()?);
        let journal = stored.journals.last();
        let asker = journal.and_then(VerifiedJournal::started).map(|started| {
            Arc::new(Asker {
                run: started.run.clone(),
                script_name: started.script_name.clone(),
                script: started.script_digest,
                waits_ms: u64::MAX,
            })
        });
        let earlier = asked.near.iter().filter_map(|at| ledger.entry(at));
        Ok(Question {
            earlier: earlier.map(|entry| entry.earlier()).collect(),
            outcome_of: asked.outcome_of,
            allowed_so_far: journal.map_or(0, |journal| allowed(journal, &asked.tool)),
            call: asked.call,
            tool: asked.tool,
            description_digest: asked.description,
            args: asked.args,
            site: asked.site,
            facts: asked.facts,
            reads: asked.reads,
            effects: asked.effects,
            level: Level::AskCall,
            reasons: asked.reasons,
            prompts: asked.prompts,
            proposal: None,
            scopes: Vec::new(),
            asker,
        })
    }
}

/// Returns how many calls of a tool the run was allowed.
fn allowed(journal: &VerifiedJournal, tool: &ToolId) -> u32 {
    let is_allowed = |line: &&JournalLine| match &line.body {
        Body::Decided(decided) => decided.tool == *tool && decided.decision == Verdict::Allow,
        _ => false,
    };
    let count = journal.lines.iter().filter(is_allowed).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl StoredChain {
    /// Returns the unanswered questions of the newest run, if it is suspended.
    pub(crate) fn open_questions(&self) -> Vec<SuspendedQuestion> {
        let Some(journal) = self.journals.last() else {
            return Vec::new();
        };
        // A call about which a person was asked twice waits for the answer to the last question.
        let asked = |call| {
            let asked = journal.of_call(call).filter_map(|body| match body {
                Body::Asked(asked) => Some((**asked).clone()),
                _ => None,
            });
            asked.last()
        };
        let question = |call| {
            let run = self.chain.newest().clone();
            let (at, asked) = (CallRef { run, call }, asked(call)?);
            Some(SuspendedQuestion { at, asked })
        };
        let calls = journal.suspended().into_iter().flat_map(|it| &it.calls);
        let questions = calls.filter_map(|call| question(*call));
        let is_open = |it: &SuspendedQuestion| {
            let outcome_of = it.asked.outcome_of.as_ref();
            let is_stated = outcome_of.is_some_and(|about| is_stated_in(journal, about));
            !is_stated && !is_settled(&self.chain, &it.at, outcome_of)
        };
        questions.filter(is_open).collect()
    }

    /// Whether a person has answered a question of the newest run, or stated what became of a call,
    /// and no run has acted on it.
    pub(crate) fn has_answers(&self) -> bool {
        let newest = self.chain.newest();
        let mut answers = self.chain.answers().iter();
        let mut statements = self.chain.statements().iter();
        let journal = self.journals.last();
        answers.any(|it| it.about.run == *newest)
            || statements.any(|it| self.chain.is_unused(it))
            || journal.is_some_and(|journal| unused(newest, journal).next().is_some())
    }
}

/// Whether a person has answered a question since its run was suspended, or stated the outcome that
/// it is about.
fn is_settled(chain: &RunChain, at: &CallRef, outcome_of: Option<&CallRef>) -> bool {
    let is_stated = |about: &CallRef| {
        let mut statements = chain.statements().iter();
        statements.any(|it| it.statement.about == *about && chain.is_unused(it))
    };
    chain.answers().iter().any(|it| it.about == *at) || outcome_of.is_some_and(is_stated)
}

/// Whether a person stated the outcome of this call while the run was in progress.
fn is_stated_in(journal: &VerifiedJournal, about: &CallRef) -> bool {
    let mut lines = journal.lines.iter();
    lines.any(|line| matches!(&line.body, Body::Stated(it) if it.statement.about == *about))
}

/// Finds the open questions of all suspended runs. Journals that can no longer have any are read only
/// once.
#[derive(Debug)]
pub(crate) struct SuspendedRuns {
    state: StateDir,
    /// `None` for runs that are not suspended and never will be.
    seen: HashMap<RunId, Option<RunQuestions>>,
}

#[derive(Debug)]
struct RunQuestions {
    root: RunId,
    questions: Vec<(CallRef, Question)>,
}

impl SuspendedRuns {
    pub(crate) fn new(state: StateDir) -> Self {
        Self {
            state,
            seen: HashMap::new(),
        }
    }

    /// Returns the unanswered questions. Chains that cannot be used have none.
    pub(crate) fn questions(&mut self) -> Vec<(CallRef, Question)> {
        let runs = self.state.all_runs().unwrap_or_default();
        self.seen
            .retain(|run, _| runs.binary_search_by(|it| run.cmp(it)).is_ok());
        for run in &runs {
            if self.seen.contains_key(run) || self.state.is_running(run) {
                continue;
            }
            // What cannot be read now is read again the next time.
            if let Some(found) = self.suspended(run) {
                self.seen.insert(run.clone(), found);
            }
        }
        let mut open = Vec::new();
        for (run, suspended) in &self.seen {
            let Some(suspended) = suspended else { continue };
            let Ok(chain) = self.state.chain(&suspended.root).load() else {
                continue;
            };
            // Another process may have resumed the run, or recorded an answer.
            if chain.newest() == run {
                let is_open = |(at, question): &&(CallRef, Question)| {
                    let outcome_of = question.outcome_of.as_ref();
                    !is_settled(&chain, at, outcome_of)
                };
                let questions = suspended.questions.iter();
                open.extend(questions.filter(is_open).cloned());
            }
        }
        open.sort_by(|(a, _), (b, _)| (&a.run, a.call).cmp(&(&b.run, b.call)));
        open
    }

    /// Returns the run if it is suspended, or `Some(None)` if it is not and never will be. `None` if
    /// this cannot be read.
    fn suspended(&self, run: &RunId) -> Option<Option<RunQuestions>> {
        let last = self.state.ends(run).ok()?.last;
        let line = serde_json::from_slice::<JournalLine>(&last).ok()?;
        if !matches!(line.body, Body::Suspended(_)) {
            return Some(None);
        }
        let stored = self.state.stored_chain(run).ok()?;
        let questions = stored.open_questions().into_iter();
        let shown = questions.filter_map(|it| Some((it.at.clone(), it.question(&stored).ok()?)));
        Some(Some(RunQuestions {
            root: stored.chain.root().clone(),
            questions: shown.collect(),
        }))
    }
}

/// Records what a person answers to open questions of suspended runs.
#[derive(Debug)]
pub(crate) struct AnswerRecorder<'a> {
    pub(crate) state: &'a StateDir,
    /// No stated result may contain one of these.
    pub(crate) secrets: &'a Secrets,
    /// Who answers, in the form of [`Statement::by`].
    pub(crate) by: String,
    pub(crate) now_ms: u64,
}

impl AnswerRecorder<'_> {
    /// Records answers to open questions of a run, and returns how many were recorded. Answers to
    /// other questions are ignored. If an answer cannot be recorded, the others are recorded all the
    /// same, and the first error is returned.
    pub(crate) fn record(
        &self,
        run: &RunId,
        answers: &[(CallRef, Answer)],
    ) -> Result<usize, ResumeError> {
        let stored = self.state.stored_chain(run)?.of_newest(run)?;
        let open = stored.open_questions();
        let (mut recorded, mut failed) = (0, None);
        for (about, answer) in answers {
            let Some(question) = open.iter().find(|it| it.at == *about) else {
                continue;
            };
            match self.record_one(&stored, question, answer) {
                Ok(is_recorded) => recorded += usize::from(is_recorded),
                Err(error) => _ = failed.get_or_insert(error),
            }
        }
        failed.map_or(Ok(recorded), Err)
    }

    /// Records an answer, if it fits the question. Returns whether it does.
    fn record_one(
        &self,
        stored: &StoredChain,
        question: &SuspendedQuestion,
        answer: &Answer,
    ) -> Result<bool, ResumeError> {
        if let Some(about) = &question.asked.outcome_of {
            let Answer::Stated { outcome, by } = answer else {
                return Ok(false);
            };
            let ledger = stored.ledger()?;
            let entry = ledger.entry(about);
            let entry = entry.ok_or_else(|| ChainError::UnknownCall(about.to_string()))?;
            let statement = Statement {
                about: about.clone(),
                args_digest: entry.key.args,
                outcome: outcome.clone(),
                by: by.clone(),
                shown: question.asked.shown,
            };
            ledger.check_statement(&statement)?;
            if let Some(result) = outcome.result() {
                stated_result::check(result, (entry, stored), (self.state, self.secrets))?;
            }
            stored.record(self.state, ChainRecord::Statement(statement), self.now_ms)?;
            return Ok(true);
        }
        let word = match answer {
            Answer::AllowOnce | Answer::Allow(_) => StoredAnswerWord::AllowOnce,
            Answer::AllowDeclassified => StoredAnswerWord::AllowDeclassified,
            Answer::Refuse => StoredAnswerWord::Refuse,
            Answer::Stated { .. } | Answer::Unanswered | Answer::Invalid { .. } => {
                return Ok(false);
            }
        };
        question.answer((self.state, stored), word, self.by.clone(), self.now_ms)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use airlock_core::limits::Limits;
    use airlock_core::statement::StatedOutcome;
    use serde_json::{Value, json};

    use super::*;
    use crate::approver::SuspendingApprover;
    use crate::broker::{Broker, InProcessTool, ResumeOptions, RunContext, Script};
    use crate::tempdir::TempDir;

    /// Asks what became of a call, and whether another one is allowed.
    const SCRIPT: &str = "const lose = () => w.lose({}).catch((error) => error.code);
        await lose();
        return await Promise.all([lose(), w.create({title: 'a'})]);";

    async fn broker(state: &std::path::Path) -> Broker {
        let described = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let limits = Limits {
            call_wall_ms_max: 50,
            ..Limits::default()
        };
        Broker::builder()
            .state_dir(state)
            .limits(limits)
            .tool(InProcessTool::new("w", described("lose"), |_: Value| {
                std::future::pending()
            }))
            .tool(InProcessTool::new(
                "w",
                described("create"),
                |args: Value| async move { Ok(args["title"].clone()) },
            ))
            .allow("w.lose")
            .unwrap()
            .ask("w.create")
            .unwrap()
            .approver(SuspendingApprover)
            .build()
            .await
            .unwrap()
    }

    fn happened(result: &str) -> Answer {
        let result = Some(result.to_owned());
        Answer::Stated {
            outcome: StatedOutcome::Happened { result },
            by: "ada".into(),
        }
    }

    #[tokio::test]
    async fn unusable_result_stops_no_other_answer_and_statement_voids_none() {
        let scratch = TempDir::new();
        let path = scratch.path().join("state");
        let broker = broker(&path).await;
        let script = || Script::body(SCRIPT).suspended_after(Duration::ZERO);
        let paused = broker.run(script()).report().await;
        let state = StateDir::existing(path).unwrap();
        let run = RunId(paused.run.as_str().into());
        let open = state.stored_chain(&run).unwrap().open_questions();
        assert_eq!(open.len(), 2, "{paused:?}");
        let (about_outcome, about_call): (Vec<_>, Vec<_>) = open
            .into_iter()
            .partition(|it| it.asked.outcome_of.is_some());
        let (about_outcome, about_call) = (&about_outcome[0].at, &about_call[0].at);
        let secrets = Secrets::default();
        let recorder = AnswerRecorder {
            state: &state,
            secrets: &secrets,
            by: "ada".into(),
            now_ms: 1,
        };
        let answers = [
            (about_outcome.clone(), happened("{no")),
            (about_call.clone(), Answer::AllowOnce),
        ];
        let error = recorder.record(&run, &answers).unwrap_err();
        assert!(matches!(error, ResumeError::UnusableResult(_)), "{error}");
        let chain = state.stored_chain(&run).unwrap().chain;
        assert_eq!((chain.answers().len(), chain.statements().len()), (1, 0));
        let answers = [(about_outcome.clone(), happened("7"))];
        assert_eq!(recorder.record(&run, &answers).unwrap(), 1);
        let options = ResumeOptions {
            script: Some(script()),
            ..ResumeOptions::default()
        };
        let resumed = broker.resume(RunContext::default(), &run, options);
        let report = resumed.unwrap().report().await;
        let value = report.value.as_ref().map(|value| value.get());
        // The stated result is that of the first call, so the second equal one is a new call.
        assert_eq!(value, Some(r#"["outcome-unknown","a"]"#), "{report:?}");
    }
}
