//! What is told of a rule of which it is certain that it does nothing. Who says
//! so, and from what, is the shell's.

use std::sync::Arc;

use super::pairs::gone;
use crate::policy::finding::Finding;
use crate::policy::kind::Kind;
use crate::policy::{Policies, Rule};

/// A rule that could go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    pub rule: Arc<str>,
    pub how: How,
    /// How many tools it is about.
    pub tools: usize,
    /// It has its part in decisions, so that other reasons are told without it.
    pub counts: bool,
}

/// Why a rule does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// No call meets its condition; where it cannot be evaluated, a call is denied all the same.
    Dead { errs: bool },
    /// Others forbid all that it permits.
    Overruled,
    /// One other rule, or several together, do what it does.
    Shadowed { by: Option<Arc<str>> },
}

impl Policies {
    /// A finding with its place and its fix; none for a rule that there is not. `how` says
    /// what that is known by.
    #[must_use]
    pub fn idle_by(&self, idle: &Idle, how: &str) -> Option<Finding> {
        let of = |id: &Arc<str>| self.rules.iter().find(|rule| rule.id == *id);
        let rule = of(&idle.rule)?;
        let (kind, what, why) = match &idle.how {
            How::Dead { errs } => (
                Kind::RuleDead,
                format!("no call meets the condition of the rule `{}`", rule.id),
                dead(*errs),
            ),
            How::Overruled => (
                Kind::RuleOverruled,
                format!("the rule `{}` permits nothing", rule.id),
                "other rules forbid all of it".to_owned(),
            ),
            How::Shadowed { by } => (
                Kind::RuleShadowed,
                format!("the rule `{}` changes nothing", rule.id),
                shadowed(rule, by.as_ref().and_then(of), idle.counts),
            ),
        };
        let tools = match idle.tools {
            1 => "the tool that it is about".to_owned(),
            count => format!("the {count} tools that it is about"),
        };
        let why = format!("{why} ({how}, for {tools})");
        Some(gone(kind, rule, &what, &why))
    }
}

fn dead(errs: bool) -> String {
    let also = match errs {
        true => "; what it denies by an error is denied without it too",
        false => "",
    };
    format!("its parts exclude each other, or what holds of every call{also}")
}

fn shadowed(rule: &Rule, by: Option<&Rule>, counts: bool) -> String {
    let (verb, done) = match rule.forbids {
        true => ("forbids", "forbid"),
        false => ("permits", "permit"),
    };
    let others = match by {
        Some(other) => format!("the rule `{}` ({}) {verb} too", other.id, other.place),
        None if rule.forbids => format!("other rules together {done} too"),
        None => format!("other rules together {done} too, or forbid"),
    };
    let reason = match counts {
        true => "; only the reported reason would change",
        false => "",
    };
    format!("whatever it {verb}, {others}{reason}")
}
