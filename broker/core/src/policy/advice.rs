//! What a reviewer is told of rules that can be loaded: what will probably not
//! do what its author thinks, and what does nothing. No run asks for it.

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

use super::finding::Finding;
use super::fix::{Decides, Fix};
use super::kind::Kind;
use super::parts::{self, Clause, Seen};
use super::rule::Rule;
use super::vocabulary::Vocabulary;
use meaning::Meaning;
pub use proved::{How, Idle};

pub(super) fn findings(rules: &[Rule], vocabulary: &Vocabulary) -> Vec<Finding> {
    let meanings: Vec<Option<Meaning>> = rules.iter().map(Meaning::of).collect();
    let mut findings = Vec::new();
    for (rule, meaning) in rules.iter().zip(&meanings) {
        let of_scope = scope::findings(rule, meaning.as_ref(), rules, vocabulary);
        let clauses = parts::clauses(rule).unwrap_or_default();
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

/// One rule, and what can be said of its parts.
struct Advice<'a> {
    rule: &'a Rule,
    clauses: &'a [Clause],
    vocabulary: &'a Vocabulary,
}

impl Advice<'_> {
    fn parts(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = parts::seen(self.rule, self.clauses)
            .iter()
            .filter_map(|seen| self.part(seen))
            .collect();
        findings.extend(self.twice());
        findings.extend(self.absent_gives());
        findings
    }

    /// At a part, with another text in its place.
    fn at(
        &self,
        seen: &Seen<'_>,
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

    /// At a part that says nothing.
    fn idle(&self, seen: &Seen<'_>, what: &str, why: &str) -> Finding {
        let statement = &self.rule.statement;
        let place = statement.place(seen.tree.range.start);
        let out = "leave it out";
        let fix = Fix::without_true(statement, self.clauses, seen.tree, out);
        let next = match &fix {
            Ok(_) => out,
            Err(Decides::Joined) => "write what is meant: what it is joined to decides nothing",
            Err(Decides::Rule) => "write what is meant: no call meets the rule",
        };
        Finding::new(Kind::AlwaysTrue, place, what, why, next).fixed(fix.ok())
    }
}
