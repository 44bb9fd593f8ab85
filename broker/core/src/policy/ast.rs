//! Splits a rule's conditions into parts with their positions, which Cedar's own syntax tree does
//! not have. This is a second parse of the text, so it is used only if its result equals what Cedar
//! has parsed.

use std::ops::Range;
use std::sync::Arc;

use cedar_policy::Policy;
use cedar_policy::pst::{BinaryOp, Clause as Read, Expr, UnaryOp};

use super::grammar;
use super::rule::Rule;
use super::token::{Token, tokens};

/// A `when { … }` or `unless { … }` clause.
#[derive(Debug)]
pub struct Clause {
    /// Byte range in the text of the rule's statement, like every range here.
    pub range: Range<usize>,
    pub is_unless: bool,
    pub tree: Tree,
}

#[derive(Debug, PartialEq)]
pub struct Tree {
    /// Byte range including the brackets around the tree.
    pub range: Range<usize>,
    pub node: Node,
}

#[derive(Debug, PartialEq)]
pub enum Node {
    All(Vec<Tree>),
    Any(Vec<Tree>),
    Not(Box<Tree>),
    Part(Expr),
}

/// A part of a condition with its position and context.
#[derive(Debug, Clone, Copy)]
pub struct PlacedPart<'a> {
    pub tree: &'a Tree,
    pub expr: &'a Expr,
    pub sign: Polarity,
    pub around: ParentKind,
}

/// Whether a true part makes the rules allow more calls (`Gives`) or fewer (`Takes`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polarity {
    Gives,
    Takes,
    /// The effect depends on other parts.
    Either,
}

impl Polarity {
    pub(crate) fn from_bool(gives: bool) -> Self {
        if gives { Self::Gives } else { Self::Takes }
    }

    pub(crate) fn flipped(self) -> Self {
        match self {
            Self::Gives => Self::Takes,
            Self::Takes => Self::Gives,
            Self::Either => Self::Either,
        }
    }
}

/// The node that directly contains a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentKind {
    Clause,
    All,
    Any,
    Not,
}

/// Returns the clauses of a rule, or `None` if this parse differs from Cedar's.
pub fn clauses(rule: &Rule) -> Option<Vec<Clause>> {
    let found = cut(rule.statement.text())?;
    let is_same = |(ours, theirs): (&Clause, &Read)| {
        let (is_unless, expr) = match theirs {
            Read::When(expr) => (false, expr),
            Read::Unless(expr) => (true, expr),
        };
        ours.is_unless == is_unless && ours.tree.expr() == **expr
    };
    let is_same = found.len() == rule.clauses.len() && found.iter().zip(&rule.clauses).all(is_same);
    is_same.then_some(found)
}

/// Returns every part of every clause.
pub fn seen<'a>(rule: &Rule, clauses: &'a [Clause]) -> Vec<PlacedPart<'a>> {
    let mut found = Vec::new();
    for clause in clauses {
        let sign = Polarity::from_bool(clause.is_unless == rule.forbids);
        clause.tree.collect(sign, ParentKind::Clause, &mut found);
    }
    found
}

/// Splits a rule twice: first to find its parts, and then with what Cedar makes of each.
fn cut(text: &str) -> Option<Vec<Clause>> {
    let all = tokens(text);
    let mut parts = Vec::new();
    cut_with(&all, &mut |range| {
        parts.push(text.get(range)?);
        Some(Expr::Set(Vec::new()))
    })?;
    let mut exprs = expressions(&parts)?.into_iter();
    cut_with(&all, &mut |_| exprs.next())
}

/// Returns the expression of the part in this byte range.
type PartReader<'a> = dyn FnMut(Range<usize>) -> Option<Expr> + 'a;

fn cut_with(all: &[Token<'_>], part: &mut PartReader<'_>) -> Option<Vec<Clause>> {
    let mut found = Vec::new();
    let mut depth = 0;
    let mut rest = all;
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        depth += token.depth();
        if depth > 0 || !matches!(token.text, "when" | "unless") {
            continue;
        }
        let close = closing(after)?;
        let body = after.get(1..close)?;
        found.push(Clause {
            range: token.at..after.get(close)?.range().end,
            is_unless: token.text == "unless",
            tree: Tree::read(body, part)?,
        });
        rest = after.get(close + 1..)?;
    }
    Some(found)
}

/// Returns the index of the bracket that closes the first token's bracket.
fn closing(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0;
    tokens.iter().position(|token| {
        depth += token.depth();
        depth <= 0
    })
}

impl Tree {
    fn read(tokens: &[Token<'_>], part: &mut PartReader<'_>) -> Option<Self> {
        let range = tokens.first()?.at..tokens.last()?.range().end;
        let bracketed = tokens.first()?.text == "(" && closing(tokens) == Some(tokens.len() - 1);
        if bracketed {
            let inner = Self::read(tokens.get(1..tokens.len() - 1)?, part)?;
            return Some(Self { range, ..inner });
        }
        let is_if = tokens.first()?.text == "if";
        let mut joined = |sign: &str| -> Option<Option<Vec<Self>>> {
            let sides = split(tokens, sign);
            if is_if || sides.len() < 2 {
                return Some(None);
            }
            sides
                .into_iter()
                .map(|side| Self::read(side, part))
                .collect::<Option<_>>()
                .map(Some)
        };
        let node = if let Some(sides) = joined("||")? {
            Node::Any(sides)
        } else if let Some(sides) = joined("&&")? {
            Node::All(sides)
        } else if let Some(("!", operand)) = negated(tokens) {
            Node::Not(Self::read(operand, part)?.into())
        } else {
            Node::Part(part(range.clone())?)
        };
        Some(Self { range, node })
    }

    pub fn expr(&self) -> Expr {
        let joined = |op: BinaryOp, sides: &[Self]| {
            let sides = sides.iter().map(Self::expr);
            let join = |left, right| Expr::BinaryOp {
                op,
                left: Arc::new(left),
                right: Arc::new(right),
            };
            sides.reduce(join)
        };
        let nothing = Expr::Set(Vec::new());
        match &self.node {
            Node::All(sides) => joined(BinaryOp::And, sides).unwrap_or(nothing),
            Node::Any(sides) => joined(BinaryOp::Or, sides).unwrap_or(nothing),
            Node::Not(operand) => Expr::UnaryOp {
                op: UnaryOp::Not,
                expr: Arc::new(operand.expr()),
            },
            Node::Part(expr) => expr.clone(),
        }
    }

    fn collect<'a>(&'a self, sign: Polarity, around: ParentKind, found: &mut Vec<PlacedPart<'a>>) {
        match &self.node {
            Node::All(sides) => sides
                .iter()
                .for_each(|it| it.collect(sign, ParentKind::All, found)),
            Node::Any(sides) => sides
                .iter()
                .for_each(|it| it.collect(sign, ParentKind::Any, found)),
            Node::Not(operand) => operand.collect(sign.flipped(), ParentKind::Not, found),
            Node::Part(expr) => found.push(PlacedPart {
                tree: self,
                expr,
                sign,
                around,
            }),
        }
    }
}

/// Splits the tokens at each sign that is outside all brackets.
fn split<'a, 'b>(tokens: &'b [Token<'a>], sign: &str) -> Vec<&'b [Token<'a>]> {
    let mut depth = 0;
    let is_end = |token: &Token<'_>| {
        depth += token.depth();
        depth == 0 && token.text == sign
    };
    tokens.split(is_end).collect()
}

/// Operators that bind less tightly than `!`.
pub(crate) const JOINING: [&str; 16] = [
    "&&", "||", "if", "==", "!=", "<", "<=", ">", ">=", "in", "has", "like", "is", "+", "-", "*",
];

/// Returns the first token and the rest, unless the rest contains an operator outside brackets that
/// binds less tightly than `!`.
fn negated<'a, 'b>(tokens: &'b [Token<'a>]) -> Option<(&'a str, &'b [Token<'a>])> {
    let (first, operand) = tokens.split_first()?;
    let compares = JOINING.iter().any(|sign| split(operand, sign).len() > 1);
    (!compares).then_some((first.text, operand))
}

/// Parses expressions with Cedar, all at once: each parse takes longer than most expressions.
fn expressions(texts: &[&str]) -> Option<Vec<Expr>> {
    if texts.is_empty() {
        return Some(Vec::new());
    }
    let mut rule = "permit(principal, action, resource)".to_owned();
    for text in texts {
        // The text may end with a comment.
        rule.extend([" when { ", text, "\n}"]);
    }
    rule.push(';');
    grammar::policy(&rule).ok()?;
    let policy = Policy::parse(None, rule).ok()?.to_pst().ok()?;
    let clauses = policy.body().clauses().iter();
    let exprs: Option<Vec<Expr>> = clauses
        .map(|clause| match clause {
            Read::When(expr) => Some((**expr).clone()),
            Read::Unless(_) => None,
        })
        .collect();
    exprs.filter(|it| it.len() == texts.len())
}
