//! Advice about rules that can be loaded: rules that probably do not do what their author intended,
//! and rules without effect. Runs do not use this module.

mod ask;
mod meaning;
mod numbers;
mod pairs;
mod part;
mod proved;
mod scope;
mod sets;
#[cfg(test)]
mod tests;
mod texts;

use airlock_core::policy::ast::{Clause, PlacedPart};
use airlock_core::policy::finding::Finding;
use airlock_core::policy::fix::Fix;
use airlock_core::policy::kind::Kind;
use airlock_core::policy::part_fix::Decides;
use airlock_core::policy::rule::Rule;
use airlock_core::policy::vocabulary::Vocabulary;
use airlock_core::policy::{Policies, ast};
use meaning::Meaning;
pub use proved::{Idle, IdleReason, idle_finding};

/// Returns the warnings about valid rules.
#[must_use]
pub fn advice(policies: &Policies) -> Vec<Finding> {
    findings(policies.rules(), policies.vocabulary())
}

fn findings(rules: &[Rule], vocabulary: &Vocabulary) -> Vec<Finding> {
    let meanings: Vec<Option<Meaning>> = rules.iter().map(Meaning::from_rule).collect();
    let broad = scope::broad_forbids(rules, &meanings);
    let mut findings = Vec::new();
    for (rule, meaning) in rules.iter().zip(&meanings) {
        let of_scope = scope::findings(rule, meaning.as_ref(), &broad, vocabulary);
        let clauses = ast::clauses(rule).unwrap_or_default();
        let advice = Advice {
            rule,
            clauses: &clauses,
            vocabulary,
        };
        let all = of_scope.into_iter().chain(advice.parts());
        findings.extend(all.map(|finding| finding.of_rule(&rule.id)));
    }
    findings.extend(pairs::findings(rules, &meanings, vocabulary));
    findings.sort();
    findings.dedup();
    findings
}

/// One rule with its clauses, and the names that rules can use.
struct Advice<'a> {
    rule: &'a Rule,
    clauses: &'a [Clause],
    vocabulary: &'a Vocabulary,
}

impl Advice<'_> {
    fn parts(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = ast::seen(self.rule, self.clauses)
            .iter()
            .filter_map(|seen| self.part(seen))
            .collect();
        findings.extend(self.twice());
        findings.extend(self.absent_gives());
        findings
    }

    /// Returns a finding about a part, with a replacement text.
    fn at(
        &self,
        seen: &PlacedPart<'_>,
        kind: Kind,
        words: (&str, &str),
        instead: Option<String>,
    ) -> Finding {
        let statement = &self.rule.statement;
        let fix = instead.as_ref().map(|text| {
            let what = format!("write {text}");
            Fix::part(statement, seen, text, what)
        });
        let next = instead.map_or_else(String::new, |text| format!("write {text}"));
        let place = statement.place(seen.tree.range.start);
        Finding::new(kind, place, words.0, words.1, next).fixed(fix)
    }

    /// Returns a finding about a part that has no effect.
    fn idle(&self, seen: &PlacedPart<'_>, what: &str, why: &str) -> Finding {
        let statement = &self.rule.statement;
        let place = statement.place(seen.tree.range.start);
        let out = "remove this part";
        let fix = Fix::without_true(statement, self.clauses, seen.tree, out);
        let next = match &fix {
            Ok(_) => out,
            Err(Decides::Joined) => "correct this part: the parts joined to it have no effect",
            Err(Decides::Rule) => "correct this part: no call matches the rule",
        };
        Finding::new(Kind::AlwaysTrue, place, what, why, next).fixed(fix.ok())
    }
}
