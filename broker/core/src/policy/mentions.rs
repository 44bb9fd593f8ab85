//! What a rule speaks of, read off its syntax: only that is put into the
//! context that the rule is evaluated in.

use std::collections::BTreeSet;

use cedar_policy::pst::{Clause, Expr, Var};

/// Members of `context`.
pub(super) const ARGS: &str = "args";
pub(super) const APPROVAL: &str = "approval";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mentions {
    /// Members of `context` other than the arguments.
    pub(super) facts: BTreeSet<String>,
    /// Top-level arguments.
    pub(super) args: BTreeSet<String>,
    /// `context` or `context.args` as a whole.
    pub(super) everything: bool,
}

impl Mentions {
    pub(super) fn of(clauses: &[Clause]) -> Self {
        let mut mentions = Self::default();
        for clause in clauses {
            let (Clause::When(expr) | Clause::Unless(expr)) = clause;
            mentions.walk(expr);
        }
        mentions
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.facts.extend(other.facts.iter().cloned());
        self.args.extend(other.args.iter().cloned());
        self.everything |= other.everything;
    }

    pub(super) fn asks(&self) -> bool {
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

/// The way from `context` to what an expression reads, or asks for with `has`.
pub(super) fn path(expr: &Expr) -> Option<Vec<&str>> {
    match expr {
        Expr::Var(Var::Context) => Some(Vec::new()),
        Expr::GetAttr { expr, attr } => {
            let mut steps = path(expr)?;
            steps.push(attr.as_str());
            Some(steps)
        }
        Expr::HasAttr { expr, attrs } => {
            let mut steps = path(expr)?;
            steps.extend(attrs.iter().map(|attr| attr.as_str()));
            Some(steps)
        }
        _ => None,
    }
}

/// The expressions directly within one; none for a kind of expression that is not known here.
pub(super) fn inner(expr: &Expr) -> Option<Vec<&Expr>> {
    Some(match expr {
        Expr::Literal(_) | Expr::Var(_) | Expr::Slot(_) => Vec::new(),
        Expr::UnaryOp { expr, .. }
        | Expr::GetAttr { expr, .. }
        | Expr::HasAttr { expr, .. }
        | Expr::Like { expr, .. } => vec![expr],
        Expr::BinaryOp { left, right, .. } => vec![left, right],
        Expr::Is { expr, in_expr, .. } => {
            let within = in_expr.iter().map(|it| &**it);
            std::iter::once(&**expr).chain(within).collect()
        }
        Expr::IfThenElse {
            cond,
            then_expr,
            else_expr,
        } => vec![cond, then_expr, else_expr],
        Expr::Set(members) => members.iter().map(|it| &**it).collect(),
        Expr::Record(members) => members.values().map(|it| &**it).collect(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cedar_policy::Policy;

    fn check(condition: &str, facts: &[&str], args: &[&str], everything: bool) {
        let text = format!("permit(principal, action, resource) when {{ {condition} }};");
        let policy = Policy::parse(None, text).unwrap().to_pst().unwrap();
        let mentions = Mentions::of(policy.body().clauses());
        let owned = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
        let expected = Mentions {
            facts: owned(facts),
            args: owned(args),
            everything,
        };
        assert_eq!(mentions, expected, "{condition}");
    }

    #[test]
    fn a_rule_mentions_what_it_reads_and_what_it_asks_for() {
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
