//! A rule's conditions cut into their parts, each with where it stands: Cedar's
//! own syntax has no places. This is a second reading of the text, so it counts
//! only where it comes to exactly what Cedar has read.

use std::ops::Range;
use std::sync::Arc;

use cedar_policy::Policy;
use cedar_policy::pst::{BinaryOp, Clause as Read, Expr, UnaryOp};

use super::grammar;
use super::lint::Sign;
use super::rule::Rule;
use super::token::{Token, tokens};

/// `when { … }` or `unless { … }`.
#[derive(Debug)]
pub(super) struct Clause {
    /// In the text of the rule's statement, like every range here.
    pub(super) range: Range<usize>,
    pub(super) is_unless: bool,
    pub(super) tree: Tree,
}

#[derive(Debug, PartialEq)]
pub(super) struct Tree {
    /// With the brackets around it.
    pub(super) range: Range<usize>,
    pub(super) node: Node,
}

#[derive(Debug, PartialEq)]
pub(super) enum Node {
    All(Vec<Tree>),
    Any(Vec<Tree>),
    Not(Box<Tree>),
    Part(Expr),
}

/// A part in its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) tree: &'a Tree,
    pub(super) expr: &'a Expr,
    pub(super) sign: Sign,
    pub(super) around: Around,
}

/// What a part is directly a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    Clause,
    All,
    Any,
    Not,
}

/// None where the text is read otherwise than Cedar reads it.
pub(super) fn clauses(rule: &Rule) -> Option<Vec<Clause>> {
    let text = rule.statement.text();
    let found = cut(text)?;
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

/// Every part of every clause.
pub(super) fn seen<'a>(rule: &Rule, clauses: &'a [Clause]) -> Vec<Seen<'a>> {
    let mut found = Vec::new();
    for clause in clauses {
        let sign = Sign::of(clause.is_unless == rule.forbids);
        clause.tree.collect(sign, Around::Clause, &mut found);
    }
    found
}

fn cut(text: &str) -> Option<Vec<Clause>> {
    let all = tokens(text);
    let mut found = Vec::new();
    let mut depth = 0;
    let mut rest = all.as_slice();
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
            tree: Tree::read(body, text)?,
        });
        rest = after.get(close + 1..)?;
    }
    Some(found)
}

/// Where the bracket ends that the first token opens.
fn closing(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0;
    tokens.iter().position(|token| {
        depth += token.depth();
        depth <= 0
    })
}

impl Tree {
    fn read(tokens: &[Token<'_>], text: &str) -> Option<Self> {
        let range = tokens.first()?.at..tokens.last()?.range().end;
        let bracketed = tokens.first()?.text == "(" && closing(tokens) == Some(tokens.len() - 1);
        if bracketed {
            let inner = Self::read(tokens.get(1..tokens.len() - 1)?, text)?;
            return Some(Self { range, ..inner });
        }
        let is_if = tokens.first()?.text == "if";
        let joined = |sign: &str| -> Option<Option<Vec<Self>>> {
            let sides = split(tokens, sign);
            if is_if || sides.len() < 2 {
                return Some(None);
            }
            sides
                .into_iter()
                .map(|side| Self::read(side, text))
                .collect::<Option<_>>()
                .map(Some)
        };
        let node = if let Some(sides) = joined("||")? {
            Node::Any(sides)
        } else if let Some(sides) = joined("&&")? {
            Node::All(sides)
        } else if let Some(("!", operand)) = negated(tokens) {
            Node::Not(Self::read(operand, text)?.into())
        } else {
            Node::Part(expression(text.get(range.clone())?)?)
        };
        Some(Self { range, node })
    }

    pub(super) fn expr(&self) -> Expr {
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

    fn collect<'a>(&'a self, sign: Sign, around: Around, found: &mut Vec<Seen<'a>>) {
        match &self.node {
            Node::All(sides) => sides
                .iter()
                .for_each(|it| it.collect(sign, Around::All, found)),
            Node::Any(sides) => sides
                .iter()
                .for_each(|it| it.collect(sign, Around::Any, found)),
            Node::Not(operand) => operand.collect(sign.flipped(), Around::Not, found),
            Node::Part(expr) => found.push(Seen {
                tree: self,
                expr,
                sign,
                around,
            }),
        }
    }
}

/// At each sign that stands in no bracket.
fn split<'a, 'b>(tokens: &'b [Token<'a>], sign: &str) -> Vec<&'b [Token<'a>]> {
    let mut depth = 0;
    let is_end = |token: &Token<'_>| {
        depth += token.depth();
        depth == 0 && token.text == sign
    };
    tokens.split(is_end).collect()
}

/// Signs and words that join less closely than `!`.
pub(super) const JOINING: [&str; 16] = [
    "&&", "||", "if", "==", "!=", "<", "<=", ">", ">=", "in", "has", "like", "is", "+", "-", "*",
];

/// `!` binds closer than whatever compares.
fn negated<'a, 'b>(tokens: &'b [Token<'a>]) -> Option<(&'a str, &'b [Token<'a>])> {
    let (first, operand) = tokens.split_first()?;
    let compares = JOINING.iter().any(|sign| split(operand, sign).len() > 1);
    (!compares).then_some((first.text, operand))
}

/// An expression by itself, as Cedar reads it.
pub(super) fn expression(text: &str) -> Option<Expr> {
    let rule = format!("permit(principal, action, resource) when {{ {text}\n}};");
    grammar::policy(&rule).ok()?;
    let policy = Policy::parse(None, rule).ok()?.to_pst().ok()?;
    match policy.body().clauses().as_slice() {
        [Read::When(expr)] => Some((**expr).clone()),
        _ => None,
    }
}
