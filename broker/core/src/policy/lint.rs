//! What is wrong with a rule although it is valid Cedar: it would say something
//! else than its author means, or give power to what should take it away.
//!
//! Each part of a condition has a sign: whether the call is let through more
//! (`Gives`) or less (`Takes`) when the part is true. Approval may only give and
//! labels may only take, in whatever rules; so no set of rules allows more after
//! reading more, or less after an approval.

#[cfg(test)]
mod tests;

use cedar_policy::pst::{BinaryOp, Clause, Expr, Literal, PatternElem, UnaryOp, Var};

use super::finding::{Finding, did_you_mean};
use super::fix::Fix;
use super::kind::Kind;
use super::mentions::{APPROVAL, ARGS, inner, path};
use super::repair::Repair;
use super::rule::{RULE_FINDINGS_MAX, Rule, Scope};
use super::vocabulary::is_file_word;
use crate::flow::Label;

pub(super) const LABELS: &str = "labels";

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
        lint.look(expr, Sign::of(stands_for));
        lint.errors_beside_labels(expr);
    }
    lint.done()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Gives,
    Takes,
    /// It depends on other parts.
    Either,
}

impl Sign {
    pub(super) fn of(gives: bool) -> Self {
        if gives { Self::Gives } else { Self::Takes }
    }

    pub(super) fn flipped(self) -> Self {
        match self {
            Self::Gives => Self::Takes,
            Self::Takes => Self::Gives,
            Self::Either => Self::Either,
        }
    }
}

struct Lint<'a> {
    rule: &'a Rule,
    /// The one that is looked at.
    part: Option<&'a Expr>,
    /// Each with the part that it is about.
    findings: Vec<(Finding, Option<&'a Expr>)>,
    /// More findings exist than are reported.
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

    /// With what to write instead.
    fn done(mut self) -> Vec<Finding> {
        self.findings.dedup_by(|one, other| one.0 == other.0);
        if self.findings.is_empty() {
            return Vec::new();
        }
        let repair = Repair::of(self.rule);
        let findings = self.findings.into_iter();
        let fixed = |(finding, part): (Finding, Option<&Expr>)| match &finding.fix {
            Some(_) => finding,
            None => {
                let fix = repair.fix(finding.kind, part);
                finding.fixed(fix)
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
        if let Scope::Within(names) = &self.rule.scope
            && !self.rule.forbids
        {
            names.iter().for_each(|name| self.file_word(name));
        }
    }

    /// What a tool file says may take in the scope of a forbid, and stands nowhere else.
    fn file_word(&mut self, name: &str) {
        if is_file_word(name) {
            let what = format!("the rule permits by what a tool file says: `{name}`");
            let why = "tool files are written to say more of tools, and not to allow them";
            let next =
                "put the tools into a group in airlock.toml, or name it in the scope of a forbid";
            let quoted = format!("\"{name}\"");
            self.found(Kind::FileWordPermits, &quoted, &what, why, next);
            self.fix_word(&quoted, "\"read-only\"");
        }
    }

    /// The last finding is mended by another word.
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
        let why = "there is one principal and one resource, and neither says anything";
        let next = "leave both bare, and speak of `action` and `context`";
        let what = "a rule about a principal or a resource";
        self.found(Kind::PrincipalOrResource, near, what, why, next);
    }

    fn look(&mut self, expr: &'a Expr, sign: Sign) {
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
                self.look(cond, Sign::Either);
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

    /// A part that is no combination of conditions.
    fn atom(&mut self, expr: &'a Expr, sign: Sign) {
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
                // Within something that is not a condition itself, nothing has a sign.
                Some(parts) => parts
                    .into_iter()
                    .for_each(|part| self.look(part, Sign::Either)),
                None => {
                    let what = "a condition of an unknown kind";
                    self.found(Kind::Unreadable, "when", what, "", "");
                }
            },
        }
    }

    /// What is read out of it later is read past all that is looked for here.
    fn whole(&mut self) {
        let why = "what a rule reads of it then could not be told from its text";
        let next = "name each member where it is read, as context.MEMBER or context.args.NAME";
        self.found(
            Kind::ContextAsValue,
            "context",
            "`context` or `context.args` as a value",
            why,
            next,
        );
    }

    /// `context.approval >= 1`, or 2, and its opposite.
    fn approval(&mut self, expr: &Expr, sign: Sign) -> bool {
        let Expr::BinaryOp { op, left, right } = expr else {
            return false;
        };
        if path(left).as_deref() != Some(&[APPROVAL]) {
            return false;
        }
        let level = matches!(&**right, Expr::Literal(Literal::Long(1 | 2)));
        let fits = match op {
            BinaryOp::GreaterEq => level && sign == Sign::Gives,
            BinaryOp::Less => level && sign == Sign::Takes,
            _ => false,
        };
        if !fits {
            self.odd_approval();
        }
        true
    }

    fn odd_approval(&mut self) {
        let why = "an approval may only give: 1 is a grant for the run, 2 is this call";
        let next = "write context.approval >= 1 or >= 2, in the `when` of a permit or the `unless` of a forbid";
        self.found(
            Kind::ApprovalMisused,
            "context.approval",
            "an approval level that is not used as one",
            why,
            next,
        );
    }

    /// The ways to speak of labels that only take.
    fn labels(&mut self, expr: &Expr, sign: Sign) -> bool {
        let is_labels = |expr: &Expr| path(expr).as_deref() == Some(&[LABELS]);
        match expr {
            Expr::BinaryOp { op, left, right } if is_labels(left) => {
                let takes = matches!(
                    op,
                    BinaryOp::Contains | BinaryOp::ContainsAll | BinaryOp::ContainsAny
                );
                if !(takes && sign == Sign::Takes && self.are_labels(right)) {
                    self.odd_labels();
                }
                true
            }
            Expr::BinaryOp {
                op: BinaryOp::ContainsAll,
                left,
                right,
            } if is_labels(right) => {
                if !(sign == Sign::Gives && self.are_labels(left)) {
                    self.odd_labels();
                }
                true
            }
            Expr::BinaryOp {
                op: BinaryOp::ContainsAny,
                left,
                right,
            } if is_labels(right) => {
                if !(sign == Sign::Takes && self.are_labels(left)) {
                    self.odd_labels();
                }
                true
            }
            Expr::UnaryOp {
                op: UnaryOp::IsEmpty,
                expr,
            } if is_labels(expr) => {
                if sign != Sign::Gives {
                    self.odd_labels();
                }
                true
            }
            _ => false,
        }
    }

    /// An error denies. Where a label decides whether it is met, the label takes the denial away.
    fn errors_beside_labels(&mut self, expr: &Expr) {
        if self.rule.mentions.facts.contains(LABELS) && may_err(expr) {
            let why = "an error denies, and with a label the sum may not be reached any more: \
                       what has read more would do more";
            let next = "give the sum and the labels a rule each";
            self.found(
                Kind::LabelsBesideSum,
                "context.labels",
                "labels beside a sum that may overflow",
                why,
                next,
            );
        }
    }

    /// Whether they are written out, each spelt as a label is.
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
        let why = "what has read more may never do more, whatever the rest of the condition says";
        let next = "let labels stand in the `when` of a forbid, or negated in a permit, \
                    as context.labels.contains(\"untrusted\")";
        self.found(
            Kind::LabelsMisused,
            "context.labels",
            "labels that are not used to take",
            why,
            next,
        );
    }

    /// A path or an address that is compared as text means something else tomorrow.
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
            let why = "`..`, links, encodings and other spellings make the same path or address \
                       out of another text";
            let next = "compare context.path_roots, context.dest_hosts, context.dest_domains or \
                        context.dest_addresses";
            self.found(Kind::RawText, "context.args", &what, why, next);
        }
    }
}

/// What is valid and can fail all the same: arithmetic, where the result does not fit.
pub(super) fn may_err(expr: &Expr) -> bool {
    let here = match expr {
        Expr::UnaryOp { op, expr } => match op {
            UnaryOp::Neg => !matches!(&**expr, Expr::Literal(_)),
            UnaryOp::ToDate | UnaryOp::ToTime => true,
            _ => false,
        },
        Expr::BinaryOp { op, .. } => matches!(
            op,
            BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::GetTag
                | BinaryOp::Offset
                | BinaryOp::DurationSince
        ),
        _ => false,
    };
    here || inner(expr).is_none_or(|parts| parts.into_iter().any(may_err))
}

fn is_argument(expr: &Expr) -> bool {
    path(expr).is_some_and(|steps| steps.first() == Some(&ARGS))
}

/// What the value of an expression can hold of what is written out, and of what is read.
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

pub(super) fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(Literal::String(text)) => Some(text.to_string()),
        _ => None,
    }
}

pub(super) fn literal_part(pattern: &[PatternElem]) -> String {
    pattern
        .iter()
        .map(|it| match it {
            PatternElem::Char(c) => *c,
            PatternElem::Wildcard => '*',
        })
        .collect()
}

/// A path from somewhere, or an address with a scheme. `acme/site` is a name.
pub(super) fn looks_raw(text: &str) -> bool {
    let starts = ["/", "./", "../", "~", "\\", "*/", "file:", "www."];
    starts.iter().any(|start| text.starts_with(start))
        || text.contains("://")
        || text.contains("/../")
        || text.contains(":\\")
        || text.ends_with("/*")
}
