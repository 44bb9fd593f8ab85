//! What to write instead of a part of a condition that the lint refuses, so that
//! it says what its author will have meant and never lets more through.

use cedar_policy::pst::{BinaryOp, Expr, Literal, UnaryOp};

use super::fix::{Fix, part_of};
use super::kind::Kind;
use super::lint::{LABELS, Sign, literal_part, looks_raw, may_err, text};
use super::mentions::{APPROVAL, inner, path};
use super::parts::{self, Clause, Node, Seen, Tree};
use super::rule::Rule;
use super::spelling::{quoted, spelt};
use super::token::tokens;

pub(super) struct Repair<'a> {
    rule: &'a Rule,
    /// Empty where they are read otherwise than Cedar reads them.
    clauses: Vec<Clause>,
}

impl<'a> Repair<'a> {
    pub(super) fn of(rule: &'a Rule) -> Self {
        Self {
            rule,
            clauses: parts::clauses(rule).unwrap_or_default(),
        }
    }

    pub(super) fn fix(&self, kind: Kind, part: Option<&Expr>) -> Option<Fix> {
        let all = parts::seen(self.rule, &self.clauses);
        let statement = &self.rule.statement;
        if kind == Kind::LabelsBesideSum {
            let sum = all.iter().find(|seen| may_err(seen.expr))?;
            return solved(self.rule, sum);
        }
        let Some(seen) = part.and_then(|part| part_of(&all, part)) else {
            return (kind == Kind::PrincipalOrResource).then(|| self.bare_scope())?;
        };
        match kind {
            Kind::PrincipalOrResource => {
                let what = "leave that part out";
                Fix::without_part(statement, &self.clauses, seen.tree, what)
            }
            Kind::ApprovalMisused => {
                let text = approval(&seen)?;
                Some(Fix::part(statement, &seen, &text, format!("write {text}")))
            }
            Kind::LabelsMisused => self.labels(&seen),
            Kind::ContextAsValue => {
                let text = members(seen.expr)?;
                Some(Fix::part(statement, &seen, &text, "compare each member"))
            }
            Kind::RawText => {
                let text = raw(&seen)?;
                Some(Fix::part(statement, &seen, &text, format!("write {text}")))
            }
            _ => None,
        }
    }

    /// `principal` and `resource` without anything about them.
    fn bare_scope(&self) -> Option<Fix> {
        let statement = &self.rule.statement;
        let all = tokens(statement.text());
        let mut ends = all.iter().scan(0, |depth, token| {
            *depth += token.depth();
            Some((token, *depth))
        });
        let mut bound = |word: &str, close: &str, depth: i32| {
            let (word, _) = ends.find(|(token, _)| token.text == word)?;
            let (end, _) = ends.find(|(token, at)| token.text == close && *at == depth)?;
            Some(word.range().end..end.at)
        };
        let of_principal = bound("principal", ",", 1)?;
        let of_resource = bound("resource", ")", 0)?;
        let bare = Fix::replace(statement, of_principal, "", "leave both bare");
        Some(bare.and_replace(statement, of_resource, ""))
    }

    /// The opposite, or the same said so that it takes.
    fn labels(&self, seen: &Seen<'_>) -> Option<Fix> {
        let statement = &self.rule.statement;
        let own = statement.text().get(seen.tree.range.clone())?;
        let text = match seen.expr {
            Expr::BinaryOp {
                op: BinaryOp::Eq,
                left,
                right,
            } => {
                let (left, right) = match path(left).as_deref() {
                    Some([LABELS]) => (right, left),
                    _ => (left, right),
                };
                let (words, labels) = (spelt(left)?, spelt(right)?);
                match seen.sign {
                    Sign::Gives => format!("{words}.containsAll({labels})"),
                    _ => format!("{labels}.containsAll({words})"),
                }
            }
            Expr::BinaryOp { .. }
            | Expr::UnaryOp {
                op: UnaryOp::IsEmpty,
                ..
            } => {
                if let Some(not) = self.negation(seen.tree) {
                    let what = format!("write {own}");
                    return Some(Fix::replace(statement, not.range.clone(), own, what));
                }
                format!("!{own}")
            }
            _ => return None,
        };
        Some(Fix::part(statement, seen, &text, format!("write {text}")))
    }

    /// The `!` right before a part.
    fn negation(&self, part: &Tree) -> Option<&Tree> {
        fn within<'a>(tree: &'a Tree, part: &Tree) -> Option<&'a Tree> {
            match &tree.node {
                Node::Not(operand) if operand.range == part.range => Some(tree),
                Node::Not(operand) => within(operand, part),
                Node::All(sides) | Node::Any(sides) => {
                    sides.iter().find_map(|side| within(side, part))
                }
                Node::Part(_) => None,
            }
        }
        self.clauses
            .iter()
            .find_map(|clause| within(&clause.tree, part))
    }
}

/// The level that is nearest to what is compared.
fn approval(seen: &Seen<'_>) -> Option<String> {
    let Expr::BinaryOp { op, left, right } = seen.expr else {
        return None;
    };
    let is_approval = |expr: &Expr| path(expr).as_deref() == Some(&[APPROVAL]);
    let (number, is_first) = match (&**left, &**right) {
        (left, Expr::Literal(Literal::Long(number))) if is_approval(left) => (*number, true),
        (Expr::Literal(Literal::Long(number)), right) if is_approval(right) => (*number, false),
        _ => return None,
    };
    let above = match op {
        BinaryOp::Greater if is_first => 1,
        BinaryOp::Less if !is_first => 1,
        _ => 0,
    };
    let level = number.saturating_add(above).clamp(1, 2);
    match seen.sign {
        Sign::Gives => Some(format!("context.approval >= {level}")),
        Sign::Takes => Some(format!("context.approval < {level}")),
        Sign::Either => None,
    }
}

/// `context.args == {"a": 1}`, member by member.
fn members(expr: &Expr) -> Option<String> {
    let Expr::BinaryOp {
        op: BinaryOp::Eq,
        left,
        right,
    } = expr
    else {
        return None;
    };
    let (read, record) = match (&**left, &**right) {
        (read, Expr::Record(record)) | (Expr::Record(record), read) => (read, record),
        _ => return None,
    };
    let from = spelt(read)?;
    let members = record.iter().map(|(name, value)| {
        let value = spelt(value)?;
        Some(format!("{from}[{}] == {value}", quoted(name)?))
    });
    let members: Option<Vec<_>> = members.collect();
    members
        .filter(|it| !it.is_empty())
        .map(|it| it.join(" && "))
}

/// The fact that says where a path or an address leads.
fn raw(seen: &Seen<'_>) -> Option<String> {
    let compared = texts(seen.expr).into_iter().find(|text| looks_raw(text))?;
    let host = compared.split_once("://").map(|(_, rest)| rest);
    let host = host.or_else(|| compared.starts_with("www.").then_some(compared.as_str()));
    if let Some(host) = host {
        let host = host.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        let host = host
            .trim_start_matches(['*', '.'])
            .trim_end_matches('*')
            .to_lowercase();
        return about("dest_hosts", &host, &host, seen.sign);
    }
    let steps = compared.split(['/', '\\']);
    let name = steps
        .rev()
        .find(|step| !step.is_empty() && !step.contains(['*', '.', ':', '~']));
    about(
        "path_roots",
        name.unwrap_or("project"),
        "outside",
        seen.sign,
    )
}

/// A fact that is a set: all of it where that gives, any of it where that takes.
pub(super) fn about(fact: &str, given: &str, taken: &str, sign: Sign) -> Option<String> {
    let (given, taken) = (quoted(given)?, quoted(taken)?);
    match sign {
        Sign::Gives => Some(format!(
            "context has {fact} && [{given}].containsAll(context.{fact})"
        )),
        Sign::Takes => Some(format!(
            "!(context has {fact} && !context.{fact}.contains({taken}))"
        )),
        Sign::Either => None,
    }
}

/// Everything that is written out in an expression.
fn texts(expr: &Expr) -> Vec<String> {
    match expr {
        Expr::Like { pattern, .. } => vec![literal_part(pattern)],
        _ => match text(expr) {
            Some(text) => vec![text],
            None => inner(expr)
                .unwrap_or_default()
                .into_iter()
                .flat_map(texts)
                .collect(),
        },
    }
}

/// A sum that is compared with a number, without the sum.
pub(super) fn solved(rule: &Rule, seen: &Seen<'_>) -> Option<Fix> {
    let Expr::BinaryOp { op, left, right } = seen.expr else {
        return None;
    };
    let (op, sum, bound) = match (&**left, &**right) {
        (sum, Expr::Literal(Literal::Long(bound))) => (*op, sum, *bound),
        (Expr::Literal(Literal::Long(bound)), sum) => (turned(*op)?, sum, *bound),
        _ => return None,
    };
    let text = match sum {
        Expr::BinaryOp {
            op: sum,
            left,
            right,
        } => match (&**left, &**right) {
            (read, Expr::Literal(Literal::Long(by))) => alone(*sum, op, read, *by, bound)?,
            (Expr::Literal(Literal::Long(by)), read) if *sum != BinaryOp::Sub => {
                alone(*sum, op, read, *by, bound)?
            }
            (one, other) if *sum == BinaryOp::Add => halves(op, one, other, bound, seen.sign)?,
            _ => return None,
        },
        _ => return None,
    };
    Some(Fix::part(
        &rule.statement,
        seen,
        &text,
        format!("write {text}"),
    ))
}

fn turned(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessEq => BinaryOp::GreaterEq,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterEq => BinaryOp::LessEq,
        BinaryOp::Eq => BinaryOp::Eq,
        _ => return None,
    })
}

fn sign_of(op: BinaryOp) -> Option<&'static str> {
    Some(match op {
        BinaryOp::Less => "<",
        BinaryOp::LessEq => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterEq => ">=",
        BinaryOp::Eq => "==",
        _ => return None,
    })
}

/// `read + by < bound` is `read < bound - by`.
fn alone(sum: BinaryOp, op: BinaryOp, read: &Expr, by: i64, bound: i64) -> Option<String> {
    let (read, sign) = (spelt(read)?, sign_of(op)?);
    let bound = match sum {
        BinaryOp::Add => bound.checked_sub(by)?,
        BinaryOp::Sub => bound.checked_add(by)?,
        BinaryOp::Mul if by > 0 => {
            let floor = bound.div_euclid(by);
            let is_whole = bound.rem_euclid(by) == 0;
            match op {
                BinaryOp::LessEq | BinaryOp::Greater => floor,
                BinaryOp::Less | BinaryOp::GreaterEq => floor + i64::from(!is_whole),
                _ if is_whole => floor,
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(format!("{read} {sign} {bound}"))
}

/// `a + b` is small where both are within half of the bound, and large where one is above it.
fn halves(op: BinaryOp, one: &Expr, other: &Expr, bound: i64, sign: Sign) -> Option<String> {
    let (one, other) = (spelt(one)?, spelt(other)?);
    let half = bound.div_euclid(2);
    match (op, sign) {
        (BinaryOp::Less | BinaryOp::LessEq, Sign::Gives) => {
            let is = sign_of(op)?;
            Some(format!("{one} {is} {half} && {other} {is} {half}"))
        }
        (BinaryOp::Greater, Sign::Takes) => Some(format!("{one} > {half} || {other} > {half}")),
        _ => None,
    }
}
