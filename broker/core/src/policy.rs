//! Policies: rules in Cedar files about tools, arguments and facts, written for
//! a reviewer. [`Policies::load`] is the only way to have some, and refuses
//! whatever could be meant otherwise; [`Policies::judge`] says what they make of
//! one call, and why. Reading files and showing findings is the shell's.

mod advice;
mod engine;
pub mod ever;
mod fact;
mod finding;
mod fix;
mod grammar;
mod kind;
mod known;
mod lint;
mod mentions;
mod model;
mod nesting;
mod parts;
mod repair;
mod rule;
mod sift;
mod source;
mod spelling;
#[cfg(test)]
mod tests;
mod token;
mod validate;
mod values;
mod vocabulary;

use std::collections::BTreeSet;
use std::sync::Arc;

use codegen::canonical;
use serde_json::{Value, json};

use crate::call::Args;
use crate::facts::Facts;
use crate::id::{Digest, ToolId};
use crate::rules::Level;

pub use advice::{How, Idle};
pub use finding::Finding;
pub use fix::{Edit, Fix};
pub use kind::{Kind, Severity};
pub use rule::Rule;
pub use source::{FILE_BYTES_MAX, Place, PolicyFile};
pub use vocabulary::{DESTRUCTIVE, READ_ONLY, Vocabulary};

use engine::{Engine, Found};

/// More rules than anybody reviews.
pub const RULES_MAX: usize = 10_000;

/// All rules of a run, held against its tools and ready to be asked.
#[derive(Debug, Clone)]
pub struct Policies {
    rules: Vec<Rule>,
    vocabulary: Vocabulary,
    engine: Engine,
    needs_permit: bool,
    digest: Digest,
}

/// What the rules make of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    pub level: Level,
    /// The ids of the rules that decided.
    pub rules: BTreeSet<Arc<str>>,
    /// For the report, the approver and the journal: with places and reasons.
    pub reasons: Vec<String>,
    /// For the script: names of rules, no places.
    pub told: Vec<String>,
    /// What a human is asked.
    pub prompts: Vec<String>,
}

impl Policies {
    /// `needs_permit`: what no rule permits is denied. It is false only where nothing but
    /// tightening files is named; then what no rule forbids is left to others.
    pub fn load(
        files: &[PolicyFile],
        vocabulary: Vocabulary,
        needs_permit: bool,
    ) -> Result<Self, Vec<Finding>> {
        let rules = valid(files, &vocabulary).map_err(|mut findings| {
            fix::keep_good(&mut findings, files, &vocabulary);
            findings
        })?;
        let engine = Engine::build(&rules, &vocabulary, needs_permit).ok_or_else(|| {
            let place = rules.first().map(|rule| rule.place.clone());
            let what = "the rules cannot be put together";
            place
                .map(|place| Finding::new(Kind::Unusable, place, what, "", ""))
                .into_iter()
                .collect::<Vec<_>>()
        })?;
        Ok(Self {
            engine,
            rules,
            vocabulary,
            needs_permit,
            digest: digest(files, needs_permit),
        })
    }

    #[must_use]
    pub fn judge(&self, tool: &ToolId, args: &Args, facts: &Facts) -> Judged {
        match self.engine.judge(&tool.to_string(), args, facts) {
            Some(found) => self.judged(&found),
            None => denied("the policies do not know the tool".to_owned()),
        }
    }

    /// Whether no call of a tool can be allowed, as far as that is known without the call.
    #[must_use]
    pub fn denies_always(&self, tool: &ToolId) -> bool {
        self.engine.denies_always(&tool.to_string())
    }

    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Rules that are about no tool of this run.
    pub fn idle(&self) -> impl Iterator<Item = &Rule> {
        self.rules
            .iter()
            .filter(|rule| !validate::applies_here(rule, &self.vocabulary))
    }

    /// What is probably wrong with rules that can be used all the same.
    #[must_use]
    pub fn advice(&self) -> Vec<Finding> {
        advice::findings(&self.rules, &self.vocabulary)
    }

    /// Whether what no rule permits is denied.
    #[must_use]
    pub fn needs_permit(&self) -> bool {
        self.needs_permit
    }

    /// Of the texts of all files.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn judged(&self, found: &Found) -> Judged {
        let mut judged = Judged {
            level: found.level,
            rules: BTreeSet::new(),
            reasons: Vec::new(),
            told: Vec::new(),
            prompts: Vec::new(),
        };
        for (at, why) in &found.errors {
            self.note(&mut judged, *at, "cannot be evaluated", Some(why));
        }
        if !found.errors.is_empty() {
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
            (true, Level::Deny) => denied("no rule of the policies permits it".to_owned()),
            (true, level) => Judged {
                level,
                ..denied("no tightening rule forbids it".to_owned())
            },
        }
    }

    fn note(&self, judged: &mut Judged, at: usize, verb: &str, why: Option<&str>) {
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

fn valid(files: &[PolicyFile], vocabulary: &Vocabulary) -> Result<Vec<Rule>, Vec<Finding>> {
    let rules = rule::read(files)?;
    if let Some(rule) = rules.get(RULES_MAX) {
        let what = format!("more than {RULES_MAX} rules");
        let place = rule.place.clone();
        return Err(vec![Finding::new(Kind::TooMany, place, what, "", "")]);
    }
    let findings = validate::validate(&rules, vocabulary);
    if findings.is_empty() {
        Ok(rules)
    } else {
        Err(findings)
    }
}

fn denied(why: String) -> Judged {
    Judged {
        level: Level::Deny,
        rules: BTreeSet::new(),
        reasons: vec![why.clone()],
        told: vec![why],
        prompts: Vec::new(),
    }
}

fn digest(files: &[PolicyFile], needs_permit: bool) -> Digest {
    let file = |file: &PolicyFile| {
        let text = Digest::of(file.text.as_bytes()).to_string();
        json!({"text": text, "tightens": file.tightens})
    };
    let files: Vec<Value> = files.iter().map(file).collect();
    canonical::digest(&json!({"files": files, "needs_permit": needs_permit}))
}
