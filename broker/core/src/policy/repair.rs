//! Proposes replacements for the parts of a condition that the lint refuses. A replacement is what
//! the author probably meant, and never allows more calls.

use cedar_policy::pst::{BinaryOp, Expr, Literal, UnaryOp};

use super::ast::{self, Clause, Node, PlacedPart, Polarity, Tree};
use super::expr::{inner, literal_part, looks_raw, may_err, path, text};
use super::fix::Fix;
use super::kind::Kind;
use super::mentions::{APPROVAL, LABELS};
use super::part_fix::part_of;
use super::rule::Rule;
use super::spelling::{quoted, spelt};
use super::token::tokens;

pub(crate) struct Repair<'a> {
    rule: &'a Rule,
    /// The rule's clauses; empty if they could not be matched to Cedar's parse.
    clauses: Vec<Clause>,
}

impl<'a> Repair<'a> {
    pub(crate) fn new(rule: &'a Rule) -> Self {
        Self {
            rule,
            clauses: ast::clauses(rule).unwrap_or_default(),
        }
    }

    pub(crate) fn fix(&self, kind: Kind, part: Option<&Expr>) -> Option<Fix> {
        let all = ast::seen(self.rule, &self.clauses);
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
                let what = "remove the condition on `principal` or `resource`";
                Fix::without_part(statement, &self.clauses, seen.tree, what)
            }
            Kind::ApprovalMisused => {
                let text = approval(&seen, self.rule.forbids)?;
                Some(Fix::part(statement, &seen, &text, format!("write {text}")))
            }
            Kind::LabelsMisused => self.labels(&seen),
            // A permit that compares each member would allow further arguments.
            Kind::ContextAsValue if seen.sign == Polarity::Takes => {
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

    /// Removes the constraints on `principal` and `resource`.
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
        let what = "remove the constraints on `principal` and `resource`";
        let bare = Fix::replace(statement, of_principal, "", what);
        Some(bare.and_replace(statement, of_resource, ""))
    }

    /// Inverts a test of labels, or rewrites it so that labels only deny.
    fn labels(&self, seen: &PlacedPart<'_>) -> Option<Fix> {
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
                    Polarity::Gives => format!("{words}.containsAll({labels})"),
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

    /// Returns the `!` directly before a part.
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

/// Rewrites a comparison with the approval to the nearest valid level. A forbid still applies at every
/// level at which a `<`, `<=` or `==` made it apply.
fn approval(seen: &PlacedPart<'_>, is_forbid: bool) -> Option<String> {
    let Expr::BinaryOp { op, left, right } = seen.expr else {
        return None;
    };
    let is_approval = |expr: &Expr| path(expr).as_deref() == Some(&[APPROVAL]);
    let (number, is_first) = match (&**left, &**right) {
        (left, Expr::Literal(Literal::Long(number))) if is_approval(left) => (*number, true),
        (Expr::Literal(Literal::Long(number)), right) if is_approval(right) => (*number, false),
        _ => return None,
    };
    // `approval > n` and `approval <= n` divide the levels between `n` and `n + 1`.
    let above = match (op, is_first, seen.sign) {
        (BinaryOp::Greater | BinaryOp::LessEq, true, _)
        | (BinaryOp::Less | BinaryOp::GreaterEq, false, _)
        | (BinaryOp::Eq, _, Polarity::Takes) => 1,
        _ => 0,
    };
    let level = number.saturating_add(above);
    let is_above = matches!(
        (op, is_first),
        (BinaryOp::Greater | BinaryOp::GreaterEq, true)
            | (BinaryOp::Less | BinaryOp::LessEq, false)
    );
    let nearest = level.clamp(1, 2);
    match seen.sign {
        // A forbid with such a part negated applies at every level.
        Polarity::Gives if level > 2 && is_forbid => None,
        // A forbid with `approval != 1` or `!(approval == 1)` also applies at level 2, where
        // `approval < 1` does not.
        Polarity::Gives if *op == BinaryOp::Eq && level < 2 && is_forbid => None,
        Polarity::Takes if *op == BinaryOp::NotEq && level < 2 && is_forbid => None,
        Polarity::Gives => Some(format!("context.approval >= {nearest}")),
        // No approval is above the highest level, so no valid forbid applies at every level.
        Polarity::Takes if level > 2 && !is_above => None,
        Polarity::Takes => Some(format!("context.approval < {nearest}")),
        Polarity::Either => None,
    }
}

/// Rewrites `context.args == {"a": 1}` as one comparison per member.
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

/// Rewrites a comparison of a path or an address as text as a test of the fact with the roots of
/// the paths, or the hosts of the addresses.
fn raw(seen: &PlacedPart<'_>) -> Option<String> {
    let compared = texts(seen.expr).into_iter().find(|text| looks_raw(text))?;
    let address = compared.split_once("://");
    let address = address.or_else(|| {
        compared
            .starts_with("www.")
            .then_some(("", compared.as_str()))
    });
    if let Some((scheme, address)) = address {
        let end = address.find(['/', '?', '#']).unwrap_or(address.len());
        let (host, rest) = address.split_at_checked(end)?;
        // A permit of the host would also allow its other paths.
        if seen.sign == Polarity::Gives && !matches!(rest, "" | "/" | "/*") {
            return None;
        }
        let host = host.rsplit('@').next().unwrap_or_default();
        let host = match scheme {
            "https" => host.strip_suffix(":443").unwrap_or(host),
            "http" => host.strip_suffix(":80").unwrap_or(host),
            _ => host,
        };
        // The hosts of a call are exact, so a forbid of one host does not cover a pattern.
        if host.contains('*') && seen.sign == Polarity::Takes {
            return None;
        }
        let host = host
            .trim_start_matches(['*', '.'])
            .trim_end_matches('*')
            .to_lowercase();
        return about("dest_hosts", &host, &host, seen.sign);
    }
    // The fact covers what is outside the roots, and such a text also occurs inside them.
    if seen.sign == Polarity::Takes && !compared.starts_with(['/', '~']) {
        return None;
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

/// Writes a test of a fact that is a set: all members must match to permit, and any member may
/// match to deny.
pub fn about(fact: &str, given: &str, taken: &str, sign: Polarity) -> Option<String> {
    let (given, taken) = (quoted(given)?, quoted(taken)?);
    match sign {
        Polarity::Gives => Some(format!(
            "context has {fact} && [{given}].containsAll(context.{fact})"
        )),
        Polarity::Takes => Some(format!(
            "!(context has {fact} && !context.{fact}.contains({taken}))"
        )),
        Polarity::Either => None,
    }
}

/// Returns all texts that an expression contains as literals.
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

/// Rewrites a comparison of a sum with a number as a comparison without arithmetic.
pub fn solved(rule: &Rule, seen: &PlacedPart<'_>) -> Option<Fix> {
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

/// Rewrites `read + by < bound` as `read < bound - by`.
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

/// Splits a comparison of `a + b` with a bound. The sum is below the bound if both are below half
/// of it, and above the bound if one of them is above it.
fn halves(op: BinaryOp, one: &Expr, other: &Expr, bound: i64, sign: Polarity) -> Option<String> {
    let (one, other) = (spelt(one)?, spelt(other)?);
    let half = bound.div_euclid(2);
    match (op, sign) {
        (BinaryOp::Less | BinaryOp::LessEq, Polarity::Gives) => {
            let is = sign_of(op)?;
            Some(format!("{one} {is} {half} && {other} {is} {half}"))
        }
        (BinaryOp::Greater, Polarity::Takes) => Some(format!("{one} > {half} || {other} > {half}")),
        _ => None,
    }
}
