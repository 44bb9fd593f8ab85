//! `airlock policy check --prove`: finds rules that provably have no effect.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use airlock_core::policy::{Finding, Kind, Policies};
use airlock_core::problem::Problem;
use airlock_policy_analysis::{Idle, LabelAssumption, idle_finding};
use clap::Args;
use serde_json::{Value, json};

use super::analysis;
use super::sources::RuleSources;
use crate::cli::runtime;
use crate::cli::screen::Screen;
use crate::config::Environment;
use crate::prover::{ProofGround, Prover, Review, ReviewReport, WaitReason};

#[derive(Debug, Clone, Args)]
pub(super) struct ProofOptions {
    /// Also use cvc5 to find rules that have no effect. Fail if, for some rule, airlock finds no
    /// example call that the rule decides, and cannot prove that no such call exists
    #[arg(long)]
    pub(super) prove: bool,
    /// Time limit for --prove
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "prove",
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    prove_seconds: u64,
}

/// The result of the review, with the prover that was used.
pub(super) struct Proofs {
    reviewed: ReviewReport,
    prover: Prover,
}

impl Proofs {
    /// Reviews the rules. `found` contains the findings from the text of the rules.
    pub(super) fn prove(
        options: &ProofOptions,
        (opened, policies): (&RuleSources, &Policies),
        found: &[Finding],
        (environment, screen): (&Environment, &Screen),
        folders: &[std::path::PathBuf],
    ) -> Result<Self, Problem> {
        let until = Instant::now() + Duration::from_secs(options.prove_seconds);
        let subjects = analysis::subjects(&opened.descriptions, &opened.flow, None, screen)?;
        let own = analysis::own_subjects(&opened.descriptions, &opened.flow);
        let is_idle = |it: &&Finding| {
            matches!(
                it.kind,
                Kind::RuleDead | Kind::RuleShadowed | Kind::RuleOverruled
            )
        };
        let known: BTreeSet<Arc<str>> = found
            .iter()
            // A rule without a fix cannot simply be removed, so it still has an effect.
            .filter(|it| is_idle(it) && it.fix.is_some())
            .filter_map(|it| it.rule.clone())
            .collect();
        let mut prover = Prover::find(environment);
        let seeds = analysis::seeds(folders, &opened.descriptions, screen);
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

    /// Returns findings for the rules that can be removed.
    pub(super) fn findings(&self, policies: &Policies) -> Vec<Finding> {
        let finding = |(idle, ground): &(Idle, ProofGround)| {
            let how = match ground {
                ProofGround::Proof => "proved by cvc5",
                ProofGround::Text => ground.words(),
            };
            idle_finding(policies, idle, how)
        };
        self.reviewed.idle.iter().filter_map(finding).collect()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.reviewed.open.is_empty()
    }

    /// Formats the results that are not findings, for a person.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (rule, waits, ground) in &self.reviewed.waiting {
            let said = describe(*waits, *ground);
            text.push_str(&format!("note: the rule `{rule}` {said}\n"));
        }
        for (rule, why) in &self.reviewed.open {
            text.push_str(&format!(
                "not proved: whether the rule `{rule}` has an effect: {why}\n"
            ));
        }
        text
    }

    /// Describes the solver and the assumptions.
    pub(super) fn rests(&self) -> String {
        let assumed = self.assumed().map(|it| format!("assuming: {it}\n"));
        let assumed: String = assumed.collect();
        format!("{}\n{assumed}", analysis::prover_line(&self.prover))
    }

    fn assumed(&self) -> impl Iterator<Item = &'static str> {
        const LEFT_ASIDE: [&str; 2] = [
            "patterns (`--allow`, `[rules]`) are ignored: only the policy rules are reviewed",
            "a rule is reviewed only for these tools",
        ];
        analysis::assumptions(&self.prover, None, LabelAssumption::Configured).chain(LEFT_ASIDE)
    }

    pub(super) fn json(&self) -> Value {
        let waiting = self.reviewed.waiting.iter();
        let waiting = waiting.map(|(rule, waits, ground)| {
            let what = describe(*waits, *ground);
            json!({"rule": rule, "what": what, "how": ground.as_str()})
        });
        let open = self.reviewed.open.iter();
        let open = open.map(|(rule, why)| json!({"rule": rule, "why": why}));
        let idle = |by: ProofGround| -> Vec<_> {
            let all = self.reviewed.idle.iter();
            let all = all.filter(|(_, ground)| *ground == by);
            all.map(|(idle, _)| &idle.rule).collect()
        };
        json!({
            "proved": idle(ProofGround::Proof),
            "settled": idle(ProofGround::Text),
            "waiting": waiting.collect::<Vec<_>>(),
            "open": open.collect::<Vec<_>>(),
            "solver": self.prover.witness().map(|it| it.display().to_string()),
            "trouble": self.prover.trouble(),
            "assumptions": self.assumed().collect::<Vec<_>>(),
        })
    }

    /// Returns the rules about which nothing is proved, with the reason.
    pub(super) fn open(&self) -> &[(Arc<str>, String)] {
        &self.reviewed.open
    }
}

fn describe(waits: WaitReason, ground: ProofGround) -> String {
    let how = ground.words();
    match waits {
        WaitReason::ForPermits => {
            format!(
                "forbids only calls that no rule permits ({how}): it will have an effect if a \
                 later rule permits such a call"
            )
        }
        WaitReason::ToBeMet => format!(
            "matches no call of these tools as configured ({how}): it may match in another \
             configuration"
        ),
        WaitReason::ForLabels => format!(
            "has no effect on these tools as configured ({how}): it may have one in another \
             configuration"
        ),
    }
}
