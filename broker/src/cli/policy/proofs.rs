//! What `airlock policy check --prove` adds: which rules do nothing, as far as that
//! is proved.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use airlock_core::policy::{Finding, Kind, Policies};
use airlock_core::problem::Problem;
use clap::Args;
use serde_json::{Value, json};

use super::ever;
use super::sources::Opened;
use crate::cli::runtime;
use crate::cli::screen::Screen;
use crate::config::Environment;
use crate::prover::{Prover, Review, Reviewed, Waits};

#[derive(Debug, Clone, Args)]
pub(super) struct ProofOptions {
    /// Finds rules that do nothing by proof (needs cvc5): of each a call that it decides, or a
    /// proof that there is none; a rule of which neither is found fails the check
    #[arg(long)]
    pub(super) prove: bool,
    /// How long --prove may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "prove",
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    prove_seconds: u64,
}

/// What was asked, and what came of it.
pub(super) struct Proofs {
    reviewed: Reviewed,
    prover: Prover,
}

impl Proofs {
    /// `found`: what the text of the rules says already.
    pub(super) fn of(
        options: &ProofOptions,
        (opened, policies): (&Opened, &Policies),
        found: &[Finding],
        (environment, screen): (&Environment, &Screen),
        folders: &[std::path::PathBuf],
    ) -> Result<Self, Problem> {
        let until = Instant::now() + Duration::from_secs(options.prove_seconds);
        let subjects = ever::subjects(&opened.descriptions, &opened.flow, None, screen)?;
        let own = ever::own_subjects(&opened.descriptions, &opened.flow);
        let is_idle = |it: &&Finding| {
            matches!(
                it.kind,
                Kind::RuleDead | Kind::RuleShadowed | Kind::RuleOverruled
            )
        };
        let known: BTreeSet<Arc<str>> = found
            .iter()
            .filter(is_idle)
            .filter_map(|it| it.rule.clone())
            .collect();
        let mut prover = Prover::find(environment);
        let seeds = ever::seeds(folders, screen);
        let review = Review {
            policies,
            subjects: &subjects,
            own: &own,
            seeds: &seeds,
            known: &known,
            until,
        };
        let reviewed = runtime()?.block_on(prover.review(review));
        Ok(Self { reviewed, prover })
    }

    /// Rules that can go.
    pub(super) fn findings(&self, policies: &Policies) -> Vec<Finding> {
        let prover = match self.prover.witness() {
            Some(_) => "cvc5",
            None => "what their texts say",
        };
        let idle = self.reviewed.idle.iter();
        idle.filter_map(|it| policies.proved_idle(it, prover))
            .collect()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.reviewed.open.is_empty()
    }

    /// For a person: what is no finding.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (rule, waits) in &self.reviewed.waiting {
            text.push_str(&format!("note: the rule `{rule}` {}\n", said(*waits)));
        }
        for (rule, why) in &self.reviewed.open {
            text.push_str(&format!(
                "not proved: whether the rule `{rule}` does anything: {why}\n"
            ));
        }
        text
    }

    /// Who has proved it, and from what.
    pub(super) fn rests(&self) -> String {
        let assumed = self.assumed().map(|it| format!("assuming: {it}\n"));
        let assumed: String = assumed.collect();
        format!("{}\n{assumed}", ever::prover_line(&self.prover))
    }

    fn assumed(&self) -> impl Iterator<Item = &'static str> {
        const LEFT_ASIDE: [&str; 2] = [
            "patterns (`--allow`, `[rules]`) are left aside: rules are looked at by themselves",
            "a rule about a tool that is not among these is not looked at there",
        ];
        ever::assumptions(&self.prover).chain(LEFT_ASIDE)
    }

    pub(super) fn json(&self) -> Value {
        let waiting = self.reviewed.waiting.iter();
        let waiting = waiting.map(|(rule, waits)| json!({"rule": rule, "what": said(*waits)}));
        let open = self.reviewed.open.iter();
        let open = open.map(|(rule, why)| json!({"rule": rule, "why": why}));
        let proved = self.reviewed.idle.iter().map(|idle| &idle.rule);
        json!({
            "proved": proved.collect::<Vec<_>>(),
            "waiting": waiting.collect::<Vec<_>>(),
            "open": open.collect::<Vec<_>>(),
            "solver": self.prover.witness().map(|it| it.display().to_string()),
            "trouble": self.prover.trouble(),
            "assumptions": self.assumed().collect::<Vec<_>>(),
        })
    }

    /// Rules of which nothing is proved, and why.
    pub(super) fn open(&self) -> &[(Arc<str>, String)] {
        &self.reviewed.open
    }
}

fn said(waits: Waits) -> &'static str {
    match waits {
        Waits::ForPermits => {
            "forbids only what no rule permits (proved): it is there for rules to come"
        }
        Waits::ToBeMet => {
            "is met by no call, as the configuration has these tools (proved): it is there for \
             others"
        }
        Waits::ForSayings => {
            "changes nothing, as the configuration has these tools (proved): it is there for \
             others"
        }
    }
}
