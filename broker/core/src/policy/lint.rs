//! Findings about rules that are valid Cedar but probably wrong. Such a rule does not do what its
//! author intended, or it allows calls because of a condition that may only restrict calls.
//!
//! Each part of a condition has a polarity: if the part is true, the rules allow more calls
//! (`Gives`) or fewer (`Takes`). Approval may only allow more calls, and labels may only allow
//! fewer. So reading more data never lets a run make more calls, and an approval never lets it make
//! fewer.

#[cfg(test)]
mod tests;

use cedar_policy::pst::{BinaryOp, Clause, Expr, Literal, UnaryOp, Var};

use super::ast::Polarity;
use super::expr::{inner, literal_part, looks_raw, may_err, path, text};
use super::finding::{Finding, did_you_mean};
use super::fix::Fix;
use super::kind::Kind;
use super::mentions::{APPROVAL, ARGS, LABELS};
use super::repair::Repair;
use super::rule::{ActionScope, RULE_FINDINGS_MAX, Rule};
use super::vocabulary::is_file_word;
use crate::labels::Label;

pub(super) fn findings(rule: &Rule) -> Vec<Finding> {
    let mut lint = Lint {
        rule,
        part: None,
        findings: Vec::new(),
        is_full: false,
    };
    lint.scope();
    for clause in &rule.clauses {
        let (expr, stands_for) = match clause {
            Clause::When(expr) => (expr, !rule.forbids),
            Clause::Unless(expr) => (expr, rule.forbids),
        };
        lint.look(expr, Polarity::from_bool(stands_for));
        lint.errors_beside_labels(expr);
    }
    lint.done()
}

struct Lint<'a> {
    rule: &'a Rule,
    /// The part that is being checked.
    part: Option<&'a Expr>,
    /// Findings, each with the part that it concerns.
    findings: Vec<(Finding, Option<&'a Expr>)>,
    /// Whether more findings exist than are reported.
    is_full: bool,
}

impl<'a> Lint<'a> {
    fn found(&mut self, kind: Kind, near: &str, what: &str, why: &str, next: impl Into<String>) {
        self.is_full = self.findings.len() >= RULE_FINDINGS_MAX;
        if self.is_full {
            return;
        }
        let place = self.rule.statement.place_of(near);
        let finding = Finding::new(kind, place, what, why, next);
        self.findings.push((finding, self.part));
    }

    /// Returns the findings with fixes.
    fn done(mut self) -> Vec<Finding> {
        self.findings.dedup_by(|one, other| one.0 == other.0);
        if self.findings.is_empty() {
            return Vec::new();
        }
        let repair = Repair::new(self.rule);
        let findings = self.findings.into_iter();
        let fixed = |(finding, part): (Finding, Option<&Expr>)| match &finding.fix {
            Some(_) => finding,
            None => {
                let fix = repair.fix(finding.kind, part);
                let place = match (finding.kind, fix.as_ref().map(|fix| &*fix.edits)) {
                    // The rule can have several such conditions, and valid ones among them.
                    (Kind::ApprovalMisused, Some([edit])) => edit.start.clone(),
                    _ => finding.place.clone(),
                };
                Finding { place, ..finding }.fixed(fix)
            }
        };
        findings.map(fixed).collect()
    }

    fn scope(&mut self) {
        use cedar_policy::{PrincipalConstraint, ResourceConstraint};
        let policy = &self.rule.policy;
        let anybody = policy.principal_constraint() == PrincipalConstraint::Any;
        if !anybody || policy.resource_constraint() != ResourceConstraint::Any {
            self.nobody("principal");
        }
        if let ActionScope::Within(names) = &self.rule.scope
            && !self.rule.forbids
        {
            names.iter().for_each(|name| self.file_word(name));
        }
    }

    /// Refuses a group or tag from a tool file. Such a name is only allowed in the scope of a
    /// forbid.
    fn file_word(&mut self, name: &str) {
        if is_file_word(name) {
            let what =
                format!("`{name}` comes from a tool file; only the scope of a forbid may name it");
            let why = "tool files describe tools and must not decide what is permitted";
            let next = "put the tools into a group in airlock.toml, and name that group";
            let quoted = format!("\"{name}\"");
            self.found(Kind::FileWordPermits, &quoted, &what, why, next);
            self.fix_word(&quoted, "\"read-only\"");
        }
    }

    /// Adds a fix to the last finding that replaces a word.
    fn fix_word(&mut self, word: &str, instead: &str) {
        if self.is_full {
            return;
        }
        let statement = &self.rule.statement;
        if let (Some((finding, _)), Some(at)) = (self.findings.last_mut(), statement.find(word)) {
            let range = at..at + word.len();
            let what = format!("write {instead}");
            finding.fix = Some(Fix::replace(statement, range, instead, what));
        }
    }

    fn nobody(&mut self, near: &str) {
        let why = "every call has the same principal and the same resource";
        let next = "remove the constraint, and use `action` and `context`";
        let what = "the rule constrains `principal` or `resource`";
        self.found(Kind::PrincipalOrResource, near, what, why, next);
    }

    fn look(&mut self, expr: &'a Expr, sign: Polarity) {
        match expr {
            Expr::UnaryOp {
                op: UnaryOp::Not,
                expr,
            } => self.look(expr, sign.flipped()),
            Expr::BinaryOp {
                op: BinaryOp::And | BinaryOp::Or,
                left,
                right,
            } => {
                self.look(left, sign);
                self.look(right, sign);
            }
            Expr::IfThenElse {
                cond,
                then_expr,
                else_expr,
            } => {
                self.look(cond, Polarity::Either);
                self.look(then_expr, sign);
                self.look(else_expr, sign);
            }
            _ => {
                let within = self.part;
                self.part = within.or(Some(expr));
                self.atom(expr, sign);
                self.part = within;
            }
        }
    }

    /// Checks a part that is not a combination of conditions.
    fn atom(&mut self, expr: &'a Expr, sign: Polarity) {
        if self.approval(expr, sign) || self.labels(expr, sign) {
            return;
        }
        self.raw_text(expr);
        match expr {
            Expr::Var(Var::Principal) => self.nobody("principal"),
            Expr::Var(Var::Resource) => self.nobody("resource"),
            Expr::Literal(Literal::EntityUID(uid)) => self.file_word(uid.eid.as_ref()),
            _ => {}
        }
        match path(expr).as_deref() {
            Some([] | [ARGS]) => self.whole(),
            Some([APPROVAL, ..]) => self.odd_approval(),
            Some([LABELS, ..]) => self.odd_labels(),
            Some(_) => {}
            None => match inner(expr) {
                // A nested part that is not a condition itself has no polarity.
                Some(parts) => parts
                    .into_iter()
                    .for_each(|part| self.look(part, Polarity::Either)),
                None => {
                    let what = "unsupported expression in a condition";
                    self.found(Kind::Unreadable, "when", what, "", "");
                }
            },
        }
    }

    /// Refuses `context` or `context.args` as a whole. The lint could not see what a rule reads
    /// from such a value.
    fn whole(&mut self) {
        let why = "the text of the rule would not show which members the rule reads";
        let next = "read each member by its name, as context.MEMBER or context.args.NAME";
        self.found(
            Kind::ContextAsValue,
            "context",
            "`context` or `context.args` is used as a value",
            why,
            next,
        );
    }

    /// Accepts `context.approval >= N` where a true part allows more calls, and `< N` where it
    /// allows fewer. N is 1 or 2.
    fn approval(&mut self, expr: &Expr, sign: Polarity) -> bool {
        let Expr::BinaryOp { op, left, right } = expr else {
            return false;
        };
        if path(left).as_deref() != Some(&[APPROVAL]) {
            return false;
        }
        let level = matches!(&**right, Expr::Literal(Literal::Long(1 | 2)));
        let fits = match op {
            BinaryOp::GreaterEq => level && sign == Polarity::Gives,
            BinaryOp::Less => level && sign == Polarity::Takes,
            _ => false,
        };
        if !fits {
            self.odd_approval();
        }
        true
    }

    fn odd_approval(&mut self) {
        let why = "a condition on approval may only allow more calls: 1 is a grant for the run, \
                   2 is an approval of this call";
        let next = "write context.approval >= 1 or >= 2, in the `when` of a permit or the `unless` of a forbid";
        self.found(
            Kind::ApprovalMisused,
            "context.approval",
            "invalid use of `context.approval`",
            why,
            next,
        );
    }

    /// Accepts the uses of labels that can only restrict.
    fn labels(&mut self, expr: &Expr, sign: Polarity) -> bool {
        let is_labels = |expr: &Expr| path(expr).as_deref() == Some(&[LABELS]);
        match expr {
            Expr::BinaryOp { op, left, right } if is_labels(left) => {
                let takes = matches!(
                    op,
                    BinaryOp::Contains | BinaryOp::ContainsAll | BinaryOp::ContainsAny
                );
                if !(takes && sign == Polarity::Takes && self.are_labels(right)) {
                    self.odd_labels();
                }
                true
            }
            Expr::BinaryOp {
                op: BinaryOp::ContainsAll,
                left,
                right,
            } if is_labels(right) => {
                if !(sign == Polarity::Gives && self.are_labels(left)) {
                    self.odd_labels();
                }
                true
            }
            Expr::BinaryOp {
                op: BinaryOp::ContainsAny,
                left,
                right,
            } if is_labels(right) => {
                if !(sign == Polarity::Takes && self.are_labels(left)) {
                    self.odd_labels();
                }
                true
            }
            Expr::UnaryOp {
                op: UnaryOp::IsEmpty,
                expr,
            } if is_labels(expr) => {
                if sign != Polarity::Gives {
                    self.odd_labels();
                }
                true
            }
            _ => false,
        }
    }

    /// Refuses labels together with arithmetic that may overflow. An overflow denies the call, and
    /// a label that skips the arithmetic would remove the denial.
    fn errors_beside_labels(&mut self, expr: &Expr) {
        if self.rule.mentions.facts.contains(LABELS) && may_err(expr) {
            let why = "an overflow denies the call, but a condition on labels can make Cedar skip \
                       the arithmetic: a run that has read more data would be allowed more calls";
            let next = "write one rule with the arithmetic and another with the labels";
            self.found(
                Kind::LabelsBesideSum,
                "context.labels",
                "labels together with arithmetic that may overflow",
                why,
                next,
            );
        }
    }

    /// Whether an expression consists of text literals. Reports a literal that is not a valid
    /// label.
    fn are_labels(&mut self, expr: &Expr) -> bool {
        match expr {
            Expr::Literal(Literal::String(word)) => {
                if let Err(bad) = Label::parse(word) {
                    let what = format!("`{word}` is not a label");
                    let why = "labels are untrusted, private and private:CLASS";
                    let quoted = format!("\"{word}\"");
                    let next = did_you_mean(bad.closest);
                    self.found(Kind::LabelUnknown, &quoted, &what, why, next);
                    if let Some(meant) = bad.closest {
                        self.fix_word(&quoted, &format!("\"{meant}\""));
                    }
                }
                true
            }
            Expr::Set(members) => members.iter().all(|member| self.are_labels(member)),
            _ => false,
        }
    }

    fn odd_labels(&mut self) {
        let why = "a run that has read more data must never be allowed more calls";
        let next = "write context.labels.contains(\"untrusted\") in the `when` of a forbid, \
                    or negate it in the `when` of a permit";
        self.found(
            Kind::LabelsMisused,
            "context.labels",
            "invalid use of `context.labels`",
            why,
            next,
        );
    }

    /// Refuses to compare a path or an address as text, since another spelling leads to the same
    /// place.
    fn raw_text(&mut self, expr: &Expr) {
        let (texts, sides) = match expr {
            Expr::Like { expr, pattern } => (vec![literal_part(pattern)], leaves(expr)),
            Expr::BinaryOp { left, right, .. } => {
                let sides = [leaves(left), leaves(right)].concat();
                (sides.iter().copied().filter_map(text).collect(), sides)
            }
            _ => return,
        };
        let raw = texts.into_iter().find(|text| looks_raw(text));
        if let Some(text) = raw.filter(|_| sides.into_iter().any(is_argument)) {
            let what = format!("the argument is compared with `{text}` as text");
            let why = "`..`, links and encodings give one path or address several spellings";
            let next = "test context.path_roots, context.dest_hosts, context.dest_domains or \
                        context.dest_addresses instead";
            self.found(Kind::RawText, "context.args", &what, why, next);
        }
    }
}

fn is_argument(expr: &Expr) -> bool {
    path(expr).is_some_and(|steps| steps.first() == Some(&ARGS))
}

/// Returns the literals and the reads of `context` whose values an expression can return.
fn leaves(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::IfThenElse {
            then_expr,
            else_expr,
            ..
        } => [leaves(then_expr), leaves(else_expr)].concat(),
        Expr::Set(_) | Expr::Record(_) => {
            let parts = inner(expr).unwrap_or_default();
            parts.into_iter().flat_map(leaves).collect()
        }
        Expr::GetAttr { expr: from, .. } if path(expr).is_none() => leaves(from),
        Expr::GetAttr { .. } | Expr::Literal(_) | Expr::Var(_) => vec![expr],
        _ => Vec::new(),
    }
}
