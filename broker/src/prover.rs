//! Proofs about rules. Cedar's symbolic compiler formulates a question, and cvc5 answers it, if it
//! is installed. No other module starts cvc5. An *unsat* answer is trusted. A model of the solver
//! is converted to a call, which is shown only after the rules have decided it. If cvc5 crashes,
//! hangs or writes nonsense, nothing is proved.

mod can;
mod cvc5;
mod diff;
mod review;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use airlock_policy_analysis::{AllowQuery, SolverProblem};
use cedar_policy::{EvalResult, Schema};
use cedar_policy_symcc::err::Error;
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicySet};
use serde_json::{Map, Value};

use crate::config::Environment;
pub(crate) use can::{LevelAnswer, Reachability, ReachabilityCase};
use cvc5::Cvc5;
pub(crate) use diff::{DiffOutcome, RuleChange, RulePair, diff_configurations};
pub(crate) use review::{Review, ReviewReport, WaitReason};

/// Maximum time per question, for a solver that hangs. A working solver gives up much sooner.
const QUESTION_WALL: Duration = Duration::from_secs(60);
/// Number of failures after which a solver is not asked again.
const FAILURES_MAX: u32 = 3;

/// One solver and its answers.
pub(crate) struct Prover {
    program: Option<PathBuf>,
    wall: Duration,
    compiler: Option<CedarSymCompiler<Cvc5>>,
    answers: HashMap<String, ProofVerdict>,
    /// Number of questions that the solver has answered.
    answered: u32,
    /// Number of trusted answers that no such call exists.
    believed: u32,
    failures: u32,
    /// The last failure.
    trouble: Option<String>,
}

/// The basis of a proof that no such call exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProofGround {
    /// The text of the rules shows it, and no solver had to be trusted.
    Text,
    /// A solver proved it.
    Proof,
}

impl ProofGround {
    /// Returns the name in output for programs.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "settled",
            Self::Proof => "proved",
        }
    }

    /// Returns the text in output for people.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Text => "by the rules' text",
            Self::Proof => "proved",
        }
    }
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProofVerdict {
    /// No such call exists, as shown by the rules' text or by a solver.
    Proved,
    /// The solver found such a call; these are the values that rules would see.
    Model(Map<String, Value>),
    /// The answer is not known.
    Open { why: String },
}

impl Prover {
    /// Uses the solver named by the variable `CVC5`, else the first one on the path.
    pub(crate) fn find(environment: &Environment) -> Self {
        let here = std::env::current_dir().ok();
        // The solver is started in another folder, so a relative path is made absolute.
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

    /// Whether no solver can be asked: none was found, or it failed too often.
    pub(crate) fn is_disabled(&self) -> bool {
        self.program.is_none() || self.failures >= FAILURES_MAX
    }

    pub(crate) fn program(&self) -> Option<&PathBuf> {
        self.program.as_ref()
    }

    /// Returns the program that gave answers, or `None` if there were none.
    pub(crate) fn witness(&self) -> Option<&PathBuf> {
        self.program.as_ref().filter(|_| self.answered > 0)
    }

    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Asks whether a call can be allowed by `what` and, if `but` is given, not by `but`.
    pub(crate) async fn ask(
        &mut self,
        theory: &SolverProblem,
        what: AllowQuery,
        but: Option<AllowQuery>,
    ) -> ProofVerdict {
        if theory.is_settled(what, but) {
            return ProofVerdict::Proved;
        }
        if self.is_disabled() {
            return self.without_solver();
        }
        let key = theory.question(what, but);
        if let Some(answer) = self.answers.get(&key).cloned() {
            return self.heard(answer);
        }
        let failures = self.failures;
        let asked = Question::compile(theory, what, but);
        let answer = match asked {
            Ok(question) => self.converse(&question).await,
            Err(why) => ProofVerdict::Open { why },
        };
        // After a failure, the same question may succeed when it is asked again.
        if self.failures == failures {
            self.answers.insert(key, answer.clone());
        }
        self.heard(answer)
    }

    fn heard(&mut self, answer: ProofVerdict) -> ProofVerdict {
        self.believed += u32::from(answer == ProofVerdict::Proved);
        answer
    }

    /// Returns a mark for [`Self::ground`], which is called when the answer is known.
    fn begin(&self) -> u32 {
        self.believed
    }

    /// Returns the basis of the answers since `begun`.
    fn ground(&self, begun: u32) -> ProofGround {
        match self.believed == begun {
            true => ProofGround::Text,
            false => ProofGround::Proof,
        }
    }

    async fn converse(&mut self, question: &Question) -> ProofVerdict {
        let wall = self.wall;
        let answer = tokio::time::timeout(wall, self.answer(question)).await;
        self.answered += u32::from(matches!(answer, Ok(Ok(_))));
        match answer {
            Ok(Ok(None)) => ProofVerdict::Proved,
            Ok(Ok(Some(model))) => ProofVerdict::Model(model),
            Ok(Err(SolverFailure::Unknown(why))) => ProofVerdict::Open { why },
            Ok(Err(SolverFailure::Failed(why))) => self.failed(why),
            Ok(Err(SolverFailure::Unusable(why))) => {
                self.failures = FAILURES_MAX;
                self.trouble = Some(why);
                self.without_solver()
            }
            Err(_) => self.failed(format!("no answer within {} ms", wall.as_millis())),
        }
    }

    /// Returns the verdict without a solver. The text is short because it is repeated for every
    /// tool; details are reported once.
    fn without_solver(&self) -> ProofVerdict {
        let why = match (&self.trouble, self.answered) {
            (None, _) => "there is no solver",
            (Some(_), 0) => "the solver cannot be used",
            (Some(_), _) => "the solver has failed too often",
        };
        ProofVerdict::Open { why: why.into() }
    }

    fn failed(&mut self, why: String) -> ProofVerdict {
        // The solver may be in any state, so the next question starts a new one.
        self.compiler = None;
        self.failures += 1;
        self.trouble = Some(why.clone());
        ProofVerdict::Open {
            why: format!("the solver failed: {why}"),
        }
    }

    async fn answer(
        &mut self,
        question: &Question,
    ) -> Result<Option<Map<String, Value>>, SolverFailure> {
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
        let found = found.map_err(SolverFailure::from_error);
        if !matches!(
            found,
            Err(SolverFailure::Failed(_) | SolverFailure::Unusable(_))
        ) {
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

    async fn start(&self) -> Result<CedarSymCompiler<Cvc5>, SolverFailure> {
        let program = self.program.as_ref();
        let program =
            program.ok_or_else(|| SolverFailure::Unusable("no solver was found".into()))?;
        // The solver's own limit expires before the time limit of the question.
        let wall = self.wall / 2;
        let started = tokio::time::timeout(wall, Cvc5::start(program)).await;
        let late = || format!("no answer within {} ms", wall.as_millis());
        let unusable = match self.answered {
            0 => SolverFailure::Unusable,
            _ => SolverFailure::Failed,
        };
        let solver = started.map_err(|_| late()).flatten().map_err(unusable)?;
        CedarSymCompiler::new(solver).map_err(SolverFailure::from_error)
    }
}

/// The reason why there is no answer: the question is too hard, the solver failed on it, or the
/// program is not a usable solver.
enum SolverFailure {
    Unknown(String),
    Failed(String),
    Unusable(String),
}

impl SolverFailure {
    fn from_error(error: Error) -> Self {
        match error {
            Error::SolverError(error) => Self::Failed(cvc5::describe(&error)),
            Error::SolverUnknown => Self::Unknown("the solver answered `unknown`".into()),
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
    fn compile(
        theory: &SolverProblem,
        what: AllowQuery,
        but: Option<AllowQuery>,
    ) -> Result<Self, String> {
        let schema = theory.schema()?;
        let one = |lets: AllowQuery| compiled(theory, &schema, lets);
        Ok(Self {
            what: one(what)?,
            but: but.map(one).transpose()?,
        })
    }
}

fn compiled(
    theory: &SolverProblem,
    schema: &Schema,
    lets: AllowQuery,
) -> Result<CompiledPolicySet, String> {
    let rules = theory.policies(lets)?;
    let environment = theory.environment().ok_or("invalid action name")?;
    CompiledPolicySet::compile(&rules, &environment, schema).map_err(|error| match error {
        Error::PolicyNotWellTyped { errs } => match errs.first() {
            Some(first) => error_text(&first.to_string()),
            None => error_text("a rule is not well typed"),
        },
        error => error_text(&error.to_string()),
    })
}

fn error_text(why: &str) -> String {
    format!("the rules cannot be translated for the solver: {why}")
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
