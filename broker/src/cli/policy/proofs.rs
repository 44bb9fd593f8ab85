//! What `airlock policy check --prove` adds: which rules do nothing, as far as that
//! is proved.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use airlock_core::policy::{Finding, Idle, Kind, Policies};
use airlock_core::problem::Problem;
use clap::Args;
use serde_json::{Value, json};

use super::ever;
use super::sources::Opened;
use crate::cli::runtime;
use crate::cli::screen::Screen;
use crate::config::Environment;
use crate::prover::{Ground, Prover, Review, Reviewed, Waits};

#[derive(Debug, Clone, Args)]
pub(super) struct ProofOptions {
    /// Find rules without effect (needs cvc5): shows for each rule a call that it decides, or
    /// proves that none exists; a rule with neither result fails the check
    #[arg(long)]
    pub(super) prove: bool,
    /// Time limit for --prove
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
            // One that cannot simply be left out still does something.
            .filter(|it| is_idle(it) && it.fix.is_some())
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
        let finding = |(idle, ground): &(Idle, Ground)| {
            let how = match ground {
                Ground::Proof => "proved by cvc5",
                Ground::Text => ground.words(),
            };
            policies.idle_by(idle, how)
        };
        self.reviewed.idle.iter().filter_map(finding).collect()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.reviewed.open.is_empty()
    }

    /// For a person: what is no finding.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (rule, waits, ground) in &self.reviewed.waiting {
            let said = said(*waits, *ground);
            text.push_str(&format!("note: the rule `{rule}` {said}\n"));
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
        ever::assumptions(&self.prover, None).chain(LEFT_ASIDE)
    }

    pub(super) fn json(&self) -> Value {
        let waiting = self.reviewed.waiting.iter();
        let waiting = waiting.map(|(rule, waits, ground)| {
            let what = said(*waits, *ground);
            json!({"rule": rule, "what": what, "how": ground.as_str()})
        });
        let open = self.reviewed.open.iter();
        let open = open.map(|(rule, why)| json!({"rule": rule, "why": why}));
        let idle = |by: Ground| -> Vec<_> {
            let all = self.reviewed.idle.iter();
            let all = all.filter(|(_, ground)| *ground == by);
            all.map(|(idle, _)| &idle.rule).collect()
        };
        json!({
            "proved": idle(Ground::Proof),
            "settled": idle(Ground::Text),
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

fn said(waits: Waits, ground: Ground) -> String {
    let how = ground.words();
    match waits {
        Waits::ForPermits => {
            format!("forbids only what no rule permits ({how}): it is there for rules to come")
        }
        Waits::ToBeMet => format!(
            "is met by no call, as the configuration has these tools ({how}): it is there for \
             others"
        ),
        Waits::ForSayings => format!(
            "changes nothing, as the configuration has these tools ({how}): it is there for \
             others"
        ),
    }
}
