//! Policies: rules in Cedar files about tools, arguments and facts, written for a reviewer.
//! [`Policies::load`] is the only way to create them; it refuses ambiguous rules.
//! [`Policies::judge`] evaluates the rules on one call and returns reasons. The shell reads files
//! and shows findings. Further analysis of rules is in the crate `airlock-policy-analysis`.

pub mod ast;
pub mod context_value;
mod engine;
pub mod expr;
pub mod fact;
pub mod finding;
pub mod fix;
mod grammar;
pub mod kind;
mod lint;
pub mod load;
pub mod mentions;
pub mod model;
mod nesting;
pub mod part_fix;
pub mod prefilter;
pub mod repair;
pub mod rule;
pub mod source;
pub mod spelling;
#[cfg(test)]
mod tests;
pub mod token;
pub mod validate;
mod values;
pub mod vocabulary;

use std::collections::BTreeSet;
use std::sync::Arc;

use codegen::canonical;
use serde_json::{Value, json};

use crate::call::Args;
use crate::facts::Facts;
use crate::id::{Digest, ToolId};
use crate::level::Level;

pub use finding::Finding;
pub use fix::{Edit, Fix};
pub use kind::{Kind, Severity};
pub use rule::Rule;
pub use source::{FILE_BYTES_MAX, Place, PolicyFile};
pub use vocabulary::{ConfiguredWords, DESTRUCTIVE, READ_ONLY, Vocabulary};

use engine::{Engine, EngineVerdict};

/// Maximum number of rules in all files of a run.
pub const RULES_MAX: usize = 2_000;
/// Maximum size of all rule files of a run together. Cedar reads about 1 MiB a second.
pub const TEXT_BYTES_MAX: usize = 512 * 1024;

/// All rules of a run, validated against its tools and ready for evaluation.
#[derive(Debug, Clone)]
pub struct Policies {
    rules: Vec<Rule>,
    vocabulary: Vocabulary,
    engine: Engine,
    needs_permit: bool,
    digest: Digest,
}

/// The result of the rules for one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyVerdict {
    pub level: Level,
    /// The ids of the rules that decided.
    pub rules: BTreeSet<Arc<str>>,
    /// Reasons for the report, the approver and the journal. They include places in files.
    pub reasons: Vec<String>,
    /// Reasons for the script. They name rules, without places in files.
    pub told: Vec<String>,
    /// The questions for a human.
    pub prompts: Vec<String>,
}

/// Policies that have errors, with the findings about the errors.
#[derive(Debug, Clone)]
pub struct InvalidPolicies {
    pub findings: Vec<Finding>,
    pub files: Vec<PolicyFile>,
    pub vocabulary: Box<Vocabulary>,
}

impl InvalidPolicies {
    fn new(findings: Vec<Finding>, files: &[PolicyFile], vocabulary: Vocabulary) -> Self {
        Self {
            findings,
            files: files.to_vec(),
            vocabulary: vocabulary.into(),
        }
    }

    /// Returns the errors. Their fixes have not been checked yet.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

impl Policies {
    /// Loads policy files. `needs_permit` says whether a call is denied if no rule permits it. It
    /// is false only if all files are tightening files; patterns then decide the calls that no rule
    /// forbids.
    pub fn load(
        files: &[PolicyFile],
        vocabulary: Vocabulary,
        needs_permit: bool,
    ) -> Result<Self, InvalidPolicies> {
        let rules = match valid(files, &vocabulary) {
            Ok(rules) => rules,
            Err(findings) => return Err(InvalidPolicies::new(findings, files, vocabulary)),
        };
        let Some(engine) = Engine::build(&rules, &vocabulary, needs_permit) else {
            let what = "Cedar cannot combine the rules";
            let place = rules.first().map(|rule| rule.place.clone());
            let finding = place.map(|place| Finding::new(Kind::Unusable, place, what, "", ""));
            let findings = finding.into_iter().collect();
            return Err(InvalidPolicies::new(findings, files, vocabulary));
        };
        Ok(Self {
            engine,
            rules,
            vocabulary,
            needs_permit,
            digest: digest(files, needs_permit),
        })
    }

    /// Returns policies with other rules and another vocabulary that decide in the same way, or
    /// `None` if Cedar cannot combine the rules.
    #[must_use]
    pub fn with_rules(&self, rules: Vec<Rule>, vocabulary: Vocabulary) -> Option<Self> {
        Some(Self {
            engine: Engine::build(&rules, &vocabulary, self.needs_permit)?,
            rules,
            vocabulary,
            needs_permit: self.needs_permit,
            digest: self.digest,
        })
    }

    #[must_use]
    pub fn judge(&self, tool: &ToolId, args: &Args, facts: &Facts) -> PolicyVerdict {
        match self.engine.judge(&tool.to_string(), args, facts) {
            Some(found) => self.judged(&found),
            None => unknown_tool(),
        }
    }

    /// Returns the reasons if every call of a tool is denied, whatever its arguments and facts are.
    /// `None` means that a call may be allowed.
    #[must_use]
    pub fn always_denied(&self, tool: &ToolId) -> Option<PolicyVerdict> {
        let name = tool.to_string();
        let denied = self.engine.always_denied(&name)?;
        Some(match self.engine.knows(&name) {
            true => self.judged(&denied),
            false => unknown_tool(),
        })
    }

    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the rules that apply to no tool of this run.
    pub fn idle(&self) -> impl Iterator<Item = &Rule> {
        self.rules
            .iter()
            .filter(|rule| !validate::applies_here(rule, &self.vocabulary))
    }

    /// Whether a rule can apply to a tool.
    #[must_use]
    pub fn is_about(&self, rule: &Rule, tool: &ToolId) -> bool {
        let name = tool.to_string();
        let words = self.vocabulary.tools.get(&name);
        words.is_some_and(|it| rule.scope.covers(&name, &it.groups))
    }

    /// Returns the rules that can apply to a tool.
    pub fn about<'a>(&'a self, tool: &'a ToolId) -> impl Iterator<Item = &'a Rule> {
        let rules = self.rules.iter();
        rules.filter(move |rule| self.is_about(rule, tool))
    }

    /// Whether a call is denied if no rule permits it.
    #[must_use]
    pub fn needs_permit(&self) -> bool {
        self.needs_permit
    }

    /// Returns the digest of the texts of all files.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn judged(&self, found: &EngineVerdict) -> PolicyVerdict {
        let mut judged = PolicyVerdict {
            level: found.level,
            rules: BTreeSet::new(),
            reasons: Vec::new(),
            told: Vec::new(),
            prompts: Vec::new(),
        };
        for (at, why) in &found.errors {
            self.note(&mut judged, *at, "cannot be evaluated", Some(why));
        }
        for (at, pointer) in &found.unseen {
            let why = format!("{UNSEEN}: rules cannot see the value of `{pointer}`");
            self.note(&mut judged, *at, "cannot be evaluated", Some(&why));
            if let Some(told) = judged.told.last_mut() {
                told.push_str(&format!(": {why}"));
            }
        }
        if !judged.reasons.is_empty() {
            return judged;
        }
        let asks = matches!(found.level, Level::AskRun | Level::AskCall);
        for at in &found.forbids {
            self.note(
                &mut judged,
                *at,
                if asks { "asks" } else { "forbids" },
                None,
            );
        }
        if found.level != Level::Deny {
            for at in &found.permits {
                let gives = asks && self.rules.get(*at).is_some_and(|rule| rule.asks);
                self.note(
                    &mut judged,
                    *at,
                    if gives { "asks" } else { "permits" },
                    None,
                );
            }
        }
        match (judged.reasons.is_empty(), found.level) {
            (false, _) => judged,
            (true, Level::Deny) => denied("no policy rule permits the call".to_owned()),
            (true, level) => PolicyVerdict {
                level,
                ..denied("no tightening rule forbids the call".to_owned())
            },
        }
    }

    fn note(&self, judged: &mut PolicyVerdict, at: usize, verb: &str, why: Option<&str>) {
        let Some(rule) = self.rules.get(at) else {
            return;
        };
        let why = why.unwrap_or(&rule.reason);
        let (id, place) = (&rule.id, &rule.place);
        judged
            .reasons
            .push(format!("rule `{id}` ({place}) {verb}: {why}"));
        judged.told.push(format!("rule `{id}`"));
        if verb == "asks" {
            judged.prompts.extend(rule.prompt.clone());
        }
        judged.rules.insert(Arc::clone(id));
    }
}

/// The reason for denying a call because a rule reads an argument that rules cannot see.
const UNSEEN: &str = Kind::ArgumentUnmodelled.as_str();

fn valid(files: &[PolicyFile], vocabulary: &Vocabulary) -> Result<Vec<Rule>, Vec<Finding>> {
    let rules = load::read(files)?;
    if let Some(rule) = rules.get(RULES_MAX) {
        let what = format!("more than {RULES_MAX} rules");
        return Err(vec![too_many(rule.place.clone(), what)]);
    }
    let findings = validate::validate(&rules, vocabulary);
    if findings.is_empty() {
        Ok(rules)
    } else {
        Err(findings)
    }
}

fn too_many(place: Place, what: String) -> Finding {
    let next = "combine several rules into one, or load fewer policy folders";
    Finding::new(Kind::TooMany, place, what, "", next)
}

fn unknown_tool() -> PolicyVerdict {
    denied("the tool is unknown to the policies".to_owned())
}

fn denied(why: String) -> PolicyVerdict {
    PolicyVerdict {
        level: Level::Deny,
        rules: BTreeSet::new(),
        reasons: vec![why.clone()],
        told: vec![why],
        prompts: Vec::new(),
    }
}

fn digest(files: &[PolicyFile], needs_permit: bool) -> Digest {
    let file = |file: &PolicyFile| {
        let text = Digest::sha256(file.text.as_bytes()).to_string();
        json!({"text": text, "tightens": file.tightens})
    };
    let files: Vec<Value> = files.iter().map(file).collect();
    canonical::digest(&json!({"files": files, "needs_permit": needs_permit}))
}
