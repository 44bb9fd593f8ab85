//! The context members and arguments that a rule reads, derived from its syntax. Only these are put
//! into the context in which the rule is evaluated.

use std::collections::BTreeSet;

use cedar_policy::pst::{Clause, Expr};

use super::expr::{inner, path};

/// Names of members of `context`.
pub const ARGS: &str = "args";
pub const APPROVAL: &str = "approval";
pub(crate) const LABELS: &str = "labels";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Members of `context` other than the arguments.
    pub facts: BTreeSet<String>,
    /// Names of top-level arguments.
    pub args: BTreeSet<String>,
    /// Whether the rule reads `context` or `context.args` as a whole.
    pub everything: bool,
}

impl Mentions {
    pub fn in_clauses(clauses: &[Clause]) -> Self {
        let mut mentions = Self::default();
        for clause in clauses {
            let (Clause::When(expr) | Clause::Unless(expr)) = clause;
            mentions.walk(expr);
        }
        mentions
    }

    pub fn join(&mut self, other: &Self) {
        self.facts.extend(other.facts.iter().cloned());
        self.args.extend(other.args.iter().cloned());
        self.everything |= other.everything;
    }

    pub fn asks(&self) -> bool {
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

/// An argument that a rule reads, or tests with `has`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArgRead {
    /// The JSON pointer of the argument, such as `/a/b`; empty for all arguments.
    pub pointer: String,
    /// Whether the rule reads the value, with everything in it. Otherwise the rule only tests
    /// whether the argument is present.
    pub(crate) is_value: bool,
}

impl ArgRead {
    pub fn in_clauses(clauses: &[Clause]) -> BTreeSet<Self> {
        let mut reads = BTreeSet::new();
        for clause in clauses {
            let (Clause::When(expr) | Clause::Unless(expr)) = clause;
            Self::walk(expr, &mut reads);
        }
        reads
    }

    fn walk(expr: &Expr, reads: &mut BTreeSet<Self>) {
        let steps = match path(expr).as_deref() {
            Some([]) => Some(Vec::new()),
            Some([ARGS, steps @ ..]) => Some(steps.to_vec()),
            Some(_) => return,
            None => None,
        };
        match (steps, inner(expr)) {
            (Some(steps), _) => {
                let is_value = !matches!(expr, Expr::HasAttr { .. });
                let pointer = steps.into_iter().map(pointer_step).collect();
                reads.insert(Self { pointer, is_value });
            }
            (None, Some(parts)) => parts.into_iter().for_each(|it| Self::walk(it, reads)),
            (None, None) => {
                reads.insert(Self {
                    pointer: String::new(),
                    is_value: true,
                });
            }
        }
    }

    /// Whether the rule cannot see the argument if the argument at `unmodelled` is unmodelled.
    pub(crate) fn is_hidden_by(&self, unmodelled: &str) -> bool {
        let is_below = |inner: &str, outer: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        is_below(&self.pointer, unmodelled)
            || (self.is_value && is_below(unmodelled, &self.pointer))
    }
}

/// Returns one step of a JSON pointer, with its slash.
pub fn pointer_step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
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

    fn check_reads(condition: &str, expected: &[&str]) {
        let text = format!("permit(principal, action, resource) when {{ {condition} }};");
        let policy = Policy::parse(None, text).unwrap().to_pst().unwrap();
        let reads = ArgRead::in_clauses(policy.body().clauses());
        let shown = |read: &ArgRead| match read.is_value {
            true => read.pointer.clone(),
            false => format!("{}?", read.pointer),
        };
        let shown: Vec<_> = reads.iter().map(shown).collect();
        assert_eq!(shown, expected, "{condition}");
    }

    #[test]
    fn read_arguments_are_pointers() {
        check_reads(
            "context.args.a.b == 1 || context.args has c || context has args.d.e",
            &["/a/b", "/c?", "/d/e?"],
        );
        check_reads(
            "context.args[\"x/y\"] == context.counts.calls_run",
            &["/x~1y"],
        );
        check_reads("context.args.a like \"x*\" && !context.disclosed", &["/a"]);
        check_reads("context.args == {a: 1}", &[""]);
        check_reads("context has args", &["?"]);
    }

    #[test]
    fn unmodelled_argument_hides_what_is_read_from_it() {
        let read = |pointer: &str, is_value| ArgRead {
            pointer: pointer.to_owned(),
            is_value,
        };
        for (pointer, is_value, unmodelled, expected) in [
            ("/a", true, "/a", true),
            ("/a", false, "/a", true),
            ("/a/b", false, "/a", true),
            ("/a", true, "/a/b", true),
            ("/a", false, "/a/b", false),
            ("/a", true, "/ab", false),
            ("/ab", true, "/a", false),
            ("", true, "/a", true),
        ] {
            let found = read(pointer, is_value).is_hidden_by(unmodelled);
            assert_eq!(found, expected, "{pointer} {is_value} {unmodelled}");
        }
    }
}
