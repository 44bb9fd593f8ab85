//! Findings about rules that provably have no effect. The shell supplies the proof.

use std::sync::Arc;

use super::pairs::gone;
use airlock_core::policy::finding::Finding;
use airlock_core::policy::kind::Kind;
use airlock_core::policy::{Policies, Rule};

/// A rule that can be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    pub rule: Arc<str>,
    pub how: IdleReason,
    /// Number of tools that the rule applies to.
    pub tools: usize,
    /// Whether the rule takes part in decisions. If so, decisions have other reasons without the
    /// rule.
    pub counts: bool,
}

/// The reason why a rule has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdleReason {
    /// No call meets the condition. `errs` says whether the rule can cause an error. The calls with
    /// an error are denied without the rule too.
    Dead { errs: bool },
    /// Other rules forbid everything that the rule permits.
    Overruled,
    /// Another rule, or several rules together, have the same effect as the rule.
    Shadowed { by: Option<Arc<str>> },
}

/// Returns a finding with place and fix, or `None` if the rule does not exist. `how` names the
/// evidence.
#[must_use]
pub fn idle_finding(policies: &Policies, idle: &Idle, how: &str) -> Option<Finding> {
    let of = |id: &Arc<str>| policies.rules().iter().find(|rule| rule.id == *id);
    let rule = of(&idle.rule)?;
    let (kind, what, why) = match &idle.how {
        IdleReason::Dead { errs } => (
            Kind::RuleDead,
            format!("no call meets the condition of the rule `{}`", rule.id),
            dead(*errs),
        ),
        IdleReason::Overruled => (
            Kind::RuleOverruled,
            format!("the rule `{}` permits nothing", rule.id),
            "other rules forbid all calls that this rule permits".to_owned(),
        ),
        IdleReason::Shadowed { by } => (
            Kind::RuleShadowed,
            format!("the rule `{}` has no effect", rule.id),
            shadowed(rule, by.as_ref().and_then(of), idle.counts),
        ),
    };
    let tools = match idle.tools {
        1 => "the tool that the rule applies to".to_owned(),
        count => format!("the {count} tools that the rule applies to"),
    };
    let why = format!("{why} ({how}, for {tools})");
    Some(gone(kind, rule, &what, &why))
}

fn dead(errs: bool) -> String {
    let also = match errs {
        true => "; the calls that it denies by an error are denied without it too",
        false => "",
    };
    format!("the condition contradicts itself, or the facts of every call{also}")
}

fn shadowed(rule: &Rule, by: Option<&Rule>, counts: bool) -> String {
    let (verb, done) = match rule.forbids {
        true => ("forbids", "forbid"),
        false => ("permits", "permit"),
    };
    let others = match by {
        Some(other) => format!("the rule `{}` ({}) {verb}", other.id, other.place),
        None if rule.forbids => format!("other rules together {done}"),
        None => format!("other rules together {done} or forbid"),
    };
    let reason = match counts {
        true => "; only the reported reason would change",
        false => "",
    };
    format!("{others} all calls that this rule {verb}{reason}")
}
