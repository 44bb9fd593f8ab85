//! Fixes that change one part of a condition: rewrite it, or remove it together with the operator
//! that joins it to the others.

use std::ops::Range;

use cedar_policy::pst::Expr;

use super::ast::{self, Clause, Node, ParentKind, PlacedPart, Tree};
use super::fix::Fix;
use super::source::Statement;
use super::token::tokens;

impl Fix {
    /// Creates a fix that rewrites a part, in brackets if the surrounding operators need them.
    pub fn part(
        statement: &Statement,
        seen: &PlacedPart<'_>,
        text: &str,
        what: impl Into<String>,
    ) -> Self {
        let needs = match seen.around {
            ParentKind::Clause => false,
            ParentKind::All => joins(text, "||"),
            ParentKind::Any => joins(text, "&&"),
            ParentKind::Not => {
                text.starts_with(['!', '-']) || ast::JOINING.iter().any(|it| joins(text, it))
            }
        };
        let text = match needs {
            true => format!("({text})"),
            false => text.to_owned(),
        };
        Self::replace(statement, seen.tree.range.clone(), text, what)
    }

    /// Creates a fix that removes a part and the operator that joins it to the others.
    pub fn without_part(
        statement: &Statement,
        clauses: &[Clause],
        part: &Tree,
        what: impl Into<String>,
    ) -> Option<Self> {
        let range = clauses.iter().find_map(|clause| {
            if clause.tree.range == part.range {
                return Some(clause.range.clone());
            }
            left_out(&clause.tree, part)
        })?;
        Some(Self::replace(statement, range, "", what))
    }

    /// Creates a fix that removes a part that is always true, if this does not change the rule.
    /// Otherwise returns the effect of the part.
    pub fn without_true(
        statement: &Statement,
        clauses: &[Clause],
        part: &Tree,
        what: impl Into<String>,
    ) -> Result<Self, Decides> {
        let found = clauses.iter().find_map(|clause| {
            Some(match met(&clause.tree, part)? {
                TreeValue::Is(truth) if truth != clause.is_unless => Ok(clause.range.clone()),
                TreeValue::Is(_) => Err(Decides::Rule),
                TreeValue::Idle(range) => Ok(range),
                TreeValue::Decides => Err(Decides::Joined),
            })
        });
        let range = found.unwrap_or(Err(Decides::Joined))?;
        Ok(Self::replace(statement, range, "", what))
    }
}

/// Whether a text contains an operator outside of all brackets.
fn joins(text: &str, sign: &str) -> bool {
    let mut depth = 0;
    tokens(text).iter().any(|token| {
        depth += token.depth();
        depth == 0 && token.text == sign
    })
}

/// The effect of an always-true part that cannot be removed by itself.
#[derive(Debug, Clone, Copy)]
pub enum Decides {
    /// The part makes the conditions to which it is joined irrelevant.
    Joined,
    /// No call matches the rule.
    Rule,
}

/// The effect of an always-true part on a tree.
enum TreeValue {
    Is(bool),
    /// The part has no effect, and this range can be removed.
    Idle(Range<usize>),
    Decides,
}

fn met(tree: &Tree, part: &Tree) -> Option<TreeValue> {
    if std::ptr::eq(tree, part) {
        return Some(TreeValue::Is(true));
    }
    let (sides, idle) = match &tree.node {
        Node::Part(_) => return None,
        Node::Not(operand) => {
            return Some(match met(operand, part)? {
                TreeValue::Is(truth) => TreeValue::Is(!truth),
                found => found,
            });
        }
        Node::All(sides) => (sides, true),
        Node::Any(sides) => (sides, false),
    };
    let within = |(at, side): (usize, &Tree)| Some((at, met(side, part)?));
    let (at, found) = sides.iter().enumerate().find_map(within)?;
    Some(match found {
        TreeValue::Is(truth) if truth == idle => {
            side_out(sides, at).map_or(TreeValue::Decides, TreeValue::Idle)
        }
        TreeValue::Is(_) => TreeValue::Decides,
        found => found,
    })
}

/// Returns the range of a side with the operator that joins it to its neighbour.
fn side_out(sides: &[Tree], at: usize) -> Option<Range<usize>> {
    let own = &sides.get(at)?.range;
    let before = at.checked_sub(1).and_then(|at| sides.get(at));
    match (before, sides.get(at + 1)) {
        (Some(before), _) => Some(before.range.end..own.end),
        (None, Some(after)) => Some(own.start..after.range.start),
        (None, None) => None,
    }
}

/// Returns the range that must be removed from a tree in order to remove one of its parts.
fn left_out(tree: &Tree, part: &Tree) -> Option<Range<usize>> {
    match &tree.node {
        Node::Part(_) => None,
        Node::Not(operand) => left_out(operand, part),
        Node::All(sides) | Node::Any(sides) => {
            let at = sides.iter().position(|side| is_it(side, part));
            match at {
                Some(at) => side_out(sides, at),
                None => sides.iter().find_map(|side| left_out(side, part)),
            }
        }
    }
}

fn is_it(side: &Tree, part: &Tree) -> bool {
    let within = match &side.node {
        Node::Not(operand) => is_it(operand, part),
        _ => false,
    };
    within || side.range == part.range
}

/// Returns the placed part with this expression.
pub(crate) fn part_of<'a>(all: &[PlacedPart<'a>], expr: &Expr) -> Option<PlacedPart<'a>> {
    let same = |seen: &&PlacedPart<'a>| seen.expr == expr;
    all.iter().find(same).copied()
}
