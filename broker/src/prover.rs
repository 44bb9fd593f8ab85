//! Proofs about rules: Cedar's symbolic compiler writes a question down, and
//! cvc5 answers it, where there is one. The only room that starts it. What it
//! says is believed when it says *unsat*; what it finds is made a call and
//! decided by the rules before anybody sees it. When it dies, hangs or babbles,
//! nothing is proved.

mod can;
mod cvc5;
mod diff;
mod review;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use airlock_core::policy::ever::{Lets, Theory};
use cedar_policy::{EvalResult, Schema};
use cedar_policy_symcc::err::Error;
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicySet};
use serde_json::{Map, Value};

use crate::config::Environment;
pub(crate) use can::{Answer, Case, Found};
use cvc5::Cvc5;
pub(crate) use diff::{Change, Pair, Parted};
pub(crate) use review::{Review, Reviewed, Waits};

/// For one question to a solver that hangs; one that works gives up much sooner by itself.
const QUESTION_WALL: Duration = Duration::from_secs(60);
/// A solver that failed this often is left alone.
const FAILURES_MAX: u32 = 3;

/// One solver, and what it has answered.
pub(crate) struct Prover {
    program: Option<PathBuf>,
    wall: Duration,
    compiler: Option<CedarSymCompiler<Cvc5>>,
    answers: HashMap<String, Verdict>,
    /// Questions that the solver has answered, one way or the other.
    answered: u32,
    /// How often its word that there is no such call was taken.
    believed: u32,
    failures: u32,
    /// What the last failure was.
    trouble: Option<String>,
}

/// Why it is certain that there is no such call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ground {
    /// The rules' text says so, and nobody had to be believed.
    Text,
    /// A solver was asked.
    Proof,
}

impl Ground {
    /// For a program.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "settled",
            Self::Proof => "proved",
        }
    }

    /// For a person.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Text => "by the rules' text",
            Self::Proof => "proved",
        }
    }
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// There is no such call, be it by the rules' text or by what a solver says.
    Proved,
    /// What rules would see of such a call.
    Model(Map<String, Value>),
    /// Nobody knows.
    Open { why: String },
}

impl Prover {
    /// `CVC5`, else the first one on the path.
    pub(crate) fn find(environment: &Environment) -> Self {
        let here = std::env::current_dir().ok();
        // It is started elsewhere, so a way from here is made a whole one.
        let whole = |named: PathBuf| match &here {
            Some(here) if named.components().count() > 1 => here.join(named),
            _ => named,
        };
        let named = environment.text("CVC5").map(PathBuf::from).map(whole);
        Self::new(named.or_else(|| cvc5::on_path(environment.text("PATH")?, here.as_deref())))
    }

    pub(crate) fn new(program: Option<PathBuf>) -> Self {
        Self {
            program,
            wall: QUESTION_WALL,
            compiler: None,
            answers: HashMap::new(),
            answered: 0,
            believed: 0,
            failures: 0,
            trouble: None,
        }
    }

    /// Nothing can be asked: none was found, or it failed too often.
    pub(crate) fn is_nobody(&self) -> bool {
        self.program.is_none() || self.failures >= FAILURES_MAX
    }

    pub(crate) fn program(&self) -> Option<&PathBuf> {
        self.program.as_ref()
    }

    /// The program whose answers count: none where nobody was asked, or did not answer.
    pub(crate) fn witness(&self) -> Option<&PathBuf> {
        self.program.as_ref().filter(|_| self.answered > 0)
    }

    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Whether a call is let through by `what`, and not by `but` where that is given.
    pub(crate) async fn ask(&mut self, theory: &Theory, what: Lets, but: Option<Lets>) -> Verdict {
        if theory.is_settled(what, but) {
            return Verdict::Proved;
        }
        if self.is_nobody() {
            return self.nobody();
        }
        let key = theory.question(what, but);
        if let Some(answer) = self.answers.get(&key).cloned() {
            return self.heard(answer);
        }
        let failures = self.failures;
        let asked = Question::compile(theory, what, but);
        let answer = match asked {
            Ok(question) => self.converse(&question).await,
            Err(why) => Verdict::Open { why },
        };
        // A solver that failed may answer when it is asked anew.
        if self.failures == failures {
            self.answers.insert(key, answer.clone());
        }
        self.heard(answer)
    }

    fn heard(&mut self, answer: Verdict) -> Verdict {
        self.believed += u32::from(answer == Verdict::Proved);
        answer
    }

    /// To be given to [`Self::ground`] when the answer is there.
    fn begin(&self) -> u32 {
        self.believed
    }

    /// What the answer rests on that was found since then.
    fn ground(&self, begun: u32) -> Ground {
        match self.believed == begun {
            true => Ground::Text,
            false => Ground::Proof,
        }
    }

    async fn converse(&mut self, question: &Question) -> Verdict {
        let wall = self.wall;
        let answer = tokio::time::timeout(wall, self.answer(question)).await;
        self.answered += u32::from(matches!(answer, Ok(Ok(_))));
        match answer {
            Ok(Ok(None)) => Verdict::Proved,
            Ok(Ok(Some(model))) => Verdict::Model(model),
            Ok(Err(Unanswered::Unknown(why))) => Verdict::Open { why },
            Ok(Err(Unanswered::Failed(why))) => self.failed(why),
            Ok(Err(Unanswered::Unusable(why))) => {
                self.failures = FAILURES_MAX;
                self.trouble = Some(why);
                self.nobody()
            }
            Err(_) => self.failed(format!("no answer within {} ms", wall.as_millis())),
        }
    }

    /// In few words, since it is said of every tool; what happened is said once.
    fn nobody(&self) -> Verdict {
        let why = match (&self.trouble, self.answered) {
            (None, _) => "there is no solver",
            (Some(_), 0) => "the solver cannot be used",
            (Some(_), _) => "the solver has failed too often",
        };
        Verdict::Open { why: why.into() }
    }

    fn failed(&mut self, why: String) -> Verdict {
        // Whatever state it is in, the next question gets another one.
        self.compiler = None;
        self.failures += 1;
        self.trouble = Some(why.clone());
        Verdict::Open {
            why: format!("the solver failed: {why}"),
        }
    }

    async fn answer(
        &mut self,
        question: &Question,
    ) -> Result<Option<Map<String, Value>>, Unanswered> {
        let mut compiler = match self.compiler.take() {
            Some(compiler) => compiler,
            None => self.start().await?,
        };
        let Question { what, but } = question;
        let found = match but {
            None => {
                compiler
                    .check_always_denies_with_counterexample_opt(what)
                    .await
            }
            Some(but) => {
                compiler
                    .check_implies_with_counterexample_opt(what, but)
                    .await
            }
        };
        let found = found.map_err(Unanswered::of);
        if !matches!(found, Err(Unanswered::Failed(_) | Unanswered::Unusable(_))) {
            self.compiler = Some(compiler);
        }
        Ok(found?.map(|env| {
            let context = env.request.context().cloned();
            let pairs = context.into_iter().flatten();
            let names: Vec<String> = pairs.map(|(name, _)| name).collect();
            let context = env.request.context();
            let value = |name: String| Some((name.clone(), json_of(&context?.get(&name)?)));
            names.into_iter().filter_map(value).collect()
        }))
    }

    async fn start(&self) -> Result<CedarSymCompiler<Cvc5>, Unanswered> {
        let program = self.program.as_ref();
        let program = program.ok_or_else(|| Unanswered::Unusable("there is none".into()))?;
        // Sooner than the question, whose answer it would be otherwise.
        let wall = self.wall / 2;
        let started = tokio::time::timeout(wall, Cvc5::start(program)).await;
        let late = || format!("no answer within {} ms", wall.as_millis());
        let unusable = match self.answered {
            0 => Unanswered::Unusable,
            _ => Unanswered::Failed,
        };
        let solver = started.map_err(|_| late()).flatten().map_err(unusable)?;
        CedarSymCompiler::new(solver).map_err(Unanswered::of)
    }
}

/// Why there is no answer: the question is too hard, the solver broke down over it, or it is
/// none at all.
enum Unanswered {
    Unknown(String),
    Failed(String),
    Unusable(String),
}

impl Unanswered {
    fn of(error: Error) -> Self {
        match error {
            Error::SolverError(error) => Self::Failed(cvc5::told(&error)),
            Error::SolverUnknown => Self::Unknown("the solver does not know".into()),
            error => Self::Unknown(error.to_string()),
        }
    }
}

/// Rules compiled for a solver.
struct Question {
    what: CompiledPolicySet,
    but: Option<CompiledPolicySet>,
}

impl Question {
    fn compile(theory: &Theory, what: Lets, but: Option<Lets>) -> Result<Self, String> {
        let schema = theory.schema()?;
        let one = |lets: Lets| compiled(theory, &schema, lets);
        Ok(Self {
            what: one(what)?,
            but: but.map(one).transpose()?,
        })
    }
}

fn compiled(theory: &Theory, schema: &Schema, lets: Lets) -> Result<CompiledPolicySet, String> {
    let rules = theory.policies(lets)?;
    let environment = theory.environment().ok_or("the call has no name")?;
    CompiledPolicySet::compile(&rules, &environment, schema).map_err(|error| match error {
        Error::PolicyNotWellTyped { errs } => match errs.first() {
            Some(first) => format!("for a solver: {first}"),
            None => error_text("the rules do not fit"),
        },
        error => error_text(&error.to_string()),
    })
}

fn error_text(why: &str) -> String {
    format!("for a solver: {why}")
}

fn json_of(value: &EvalResult) -> Value {
    match value {
        EvalResult::Bool(truth) => (*truth).into(),
        EvalResult::Long(number) => (*number).into(),
        EvalResult::String(text) => text.as_str().into(),
        EvalResult::Set(items) => items.iter().map(json_of).collect(),
        EvalResult::Record(record) => record
            .iter()
            .map(|(name, value)| (name.clone(), json_of(value)))
            .collect(),
        EvalResult::EntityUid(uid) => uid.to_string().into(),
        EvalResult::ExtensionValue(text) => text.as_str().into(),
    }
}
