//! The context members that a rule reads, derived from its syntax. Only these are put into the
//! context in which the rule is evaluated.

use std::collections::BTreeSet;

use cedar_policy::pst::{Clause, Expr};

use super::expr::{inner, path};

/// Names of members of `context`.
pub(crate) const ARGS: &str = "args";
pub(crate) const APPROVAL: &str = "approval";
pub(crate) const LABELS: &str = "labels";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mentions {
    /// Members of `context` other than the arguments.
    pub(crate) facts: BTreeSet<String>,
    /// Names of top-level arguments.
    pub(crate) args: BTreeSet<String>,
    /// Whether the rule reads `context` or `context.args` as a whole.
    pub(crate) everything: bool,
}

impl Mentions {
    pub(crate) fn in_clauses(clauses: &[Clause]) -> Self {
        let mut mentions = Self::default();
        for clause in clauses {
            let (Clause::When(expr) | Clause::Unless(expr)) = clause;
            mentions.walk(expr);
        }
        mentions
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.facts.extend(other.facts.iter().cloned());
        self.args.extend(other.args.iter().cloned());
        self.everything |= other.everything;
    }

    pub(crate) fn asks(&self) -> bool {
        self.everything || self.facts.contains(APPROVAL)
    }

    fn walk(&mut self, expr: &Expr) {
        match path(expr) {
            Some(steps) => self.note(&steps),
            None => match inner(expr) {
                Some(parts) => parts.into_iter().for_each(|it| self.walk(it)),
                None => self.everything = true,
            },
        }
    }

    fn note(&mut self, steps: &[&str]) {
        match steps {
            [] | [ARGS] => self.everything = true,
            [ARGS, name, ..] => {
                self.args.insert((*name).to_owned());
            }
            [name, ..] => {
                self.facts.insert((*name).to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cedar_policy::Policy;

    fn check(condition: &str, facts: &[&str], args: &[&str], everything: bool) {
        let text = format!("permit(principal, action, resource) when {{ {condition} }};");
        let policy = Policy::parse(None, text).unwrap().to_pst().unwrap();
        let mentions = Mentions::in_clauses(policy.body().clauses());
        let owned = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
        let expected = Mentions {
            facts: owned(facts),
            args: owned(args),
            everything,
        };
        assert_eq!(mentions, expected, "{condition}");
    }

    #[test]
    fn mentions_lists_read_and_tested_members() {
        check(
            "context.args.a.b == 1 || context.args has c || context has args.d",
            &[],
            &["a", "c", "d"],
            false,
        );
        check(
            "context.labels.contains(\"x\") && context.counts.calls_run < 3",
            &["counts", "labels"],
            &[],
            false,
        );
        check(
            "if context has pinned then !context.pinned else [context.args[\"x-y\"]].contains(1)",
            &["pinned"],
            &["x-y"],
            false,
        );
        check("context.args == {\"a\": 1}", &[], &[], true);
        check("{\"a\": context}.a.disclosed", &[], &[], true);
        check("true", &[], &[], false);
    }
}
