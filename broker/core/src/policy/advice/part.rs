//! One part of a condition: what it asks, and what is odd about that.

use cedar_policy::pst::{BinaryOp, Expr, Literal};

use super::Advice;
use super::ask::{Ask, Form};
use crate::policy::ever::may_be_lost;
use crate::policy::fact::FACTS;
use crate::policy::finding::Finding;
use crate::policy::fix::Fix;
use crate::policy::kind::Kind;
use crate::policy::lint::{Sign, may_err};
use crate::policy::mentions::{ARGS, inner, path};
use crate::policy::model::Member;
use crate::policy::parts::{Node, Seen, Tree};
use crate::policy::repair::solved;
use crate::policy::vocabulary::Words;

/// The schema requires it, and there is no value of it that rules do not see.
fn is_always_seen(member: &Member) -> bool {
    let is_kept = |kind| !may_be_lost(kind);
    member.always && member.kind.as_ref().is_some_and(is_kept)
}

/// No sum of counts and of a number below this comes near to what 64 bits hold.
const SMALL_MAX: i64 = 1 << 40;

impl Advice<'_> {
    pub(super) fn part(&self, seen: &Seen<'_>) -> Option<Finding> {
        if let Some(finding) = self.overflows(seen) {
            return Some(finding);
        }
        if is_always(seen.expr) && !self.reads_lost(seen.expr) {
            let what = "a part of the condition that every call meets";
            return Some(self.idle(seen, what, "it compares nothing that differs"));
        }
        let form = Form::of(seen.expr, true);
        if let Form::One(Ask::Has(way), _) = &form {
            return self.has(seen, way);
        }
        self.numbers(seen, &form)
            .or_else(|| self.sets(seen))
            .or_else(|| self.texts(seen, &form))
    }

    fn overflows(&self, seen: &Seen<'_>) -> Option<Finding> {
        if !may_err(seen.expr) || is_small(seen.expr) {
            return None;
        }
        let (word, next) = match product(seen.expr) {
            true => ("product", "compare with a number instead of multiplying"),
            false => ("sum", "compare with a number instead of adding to one"),
        };
        let what = format!("a {word} that may not fit into 64 bits");
        let why = "a rule that cannot be evaluated denies the call, whatever the others say";
        let place = self.rule.statement.place(seen.tree.range.start);
        let fix = solved(self.rule, seen);
        Some(Finding::new(Kind::MayOverflow, place, what, why, next).fixed(fix))
    }

    /// Whether it reads a number that rules do not always see: there it errs.
    fn reads_lost(&self, expr: &Expr) -> bool {
        let is_lost = |words: &Words, name: &str| {
            let kind = words.args.0.get(name).map(|member| member.kind.as_ref());
            !matches!(kind, Some(Some(kind)) if !may_be_lost(kind))
        };
        match path(expr).as_deref() {
            Some([ARGS, name]) => self.tools().any(|words| is_lost(words, name)),
            Some([ARGS, ..]) => true,
            Some(_) => false,
            None => inner(expr).is_none_or(|all| all.into_iter().any(|it| self.reads_lost(it))),
        }
    }

    /// `has` of what is always there.
    fn has(&self, seen: &Seen<'_>, way: &[String]) -> Option<Finding> {
        let way: Vec<&str> = way.iter().map(String::as_str).collect();
        let is_there = match way.as_slice() {
            [ARGS, name] => {
                let mut tools = self.tools().peekable();
                tools.peek().is_some()
                    && tools.all(|words| words.args.0.get(*name).is_some_and(is_always_seen))
            }
            [name] => FACTS.iter().any(|fact| fact.name == *name && fact.always),
            _ => false,
        };
        let name = way.last()?;
        is_there.then(|| {
            let what = format!("`{name}` is always there");
            self.idle(seen, &what, "asking for it says nothing")
        })
    }

    /// `!(context has dest_hosts && …)` in what gives, or the same with `if`.
    pub(super) fn absent_gives(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for clause in self.clauses {
            if clause.is_unless == self.rule.forbids {
                self.absent_within(&clause.tree, &mut findings);
            }
        }
        findings
    }

    fn absent_within(&self, tree: &Tree, findings: &mut Vec<Finding>) {
        match &tree.node {
            Node::All(sides) | Node::Any(sides) => {
                sides
                    .iter()
                    .for_each(|side| self.absent_within(side, findings));
            }
            Node::Not(operand) => findings.extend(self.absent(tree, operand)),
            Node::Part(expr) => findings.extend(self.else_true(tree, expr)),
        }
    }

    fn absent(&self, tree: &Tree, operand: &Tree) -> Option<Finding> {
        let Node::All(sides) = &operand.node else {
            return None;
        };
        let text = |tree: &Tree| self.rule.statement.text().get(tree.range.clone());
        let (first, rest) = sides.split_first().filter(|(first, _)| is_asked(first))?;
        let rest = match rest {
            [
                Tree {
                    node: Node::Not(inner),
                    ..
                },
            ] => text(inner)?.to_owned(),
            _ => {
                let rest: Option<Vec<&str>> = rest.iter().map(text).collect();
                format!("!({})", rest?.join(" && "))
            }
        };
        Some(self.unknown(tree, format!("{} && {rest}", text(first)?)))
    }

    fn else_true(&self, tree: &Tree, expr: &Expr) -> Option<Finding> {
        let Expr::IfThenElse {
            cond, else_expr, ..
        } = expr
        else {
            return None;
        };
        if !is_open(cond) || !matches!(&**else_expr, Expr::Literal(Literal::Bool(true))) {
            return None;
        }
        let text = self.rule.statement.text().get(tree.range.clone())?;
        let (before, _) = text.rsplit_once("true")?;
        Some(self.unknown(
            tree,
            format!("{before}false{}", text.rsplit_once("true")?.1),
        ))
    }

    fn unknown(&self, tree: &Tree, instead: String) -> Finding {
        let is_whole = self
            .clauses
            .iter()
            .any(|clause| clause.tree.range == tree.range);
        let instead = match is_whole {
            true => instead,
            false => format!("({instead})"),
        };
        let what = "unknown values are let through";
        let why = "a fact that is absent could not be computed: the call may lead anywhere";
        let next = format!("write {instead}");
        let statement = &self.rule.statement;
        let fix = Fix::replace(statement, tree.range.clone(), instead, next.as_str());
        let place = statement.place(tree.range.start);
        Finding::new(Kind::AbsentGives, place, what, why, next).fixed(Some(fix))
    }

    pub(super) fn twice(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for clause in self.clauses {
            self.twice_within(&clause.tree, &mut findings);
        }
        findings
    }

    fn twice_within(&self, tree: &Tree, findings: &mut Vec<Finding>) {
        let sides = match &tree.node {
            Node::All(sides) | Node::Any(sides) => sides,
            Node::Not(operand) => return self.twice_within(operand, findings),
            Node::Part(_) => return,
        };
        for (at, side) in sides.iter().enumerate() {
            self.twice_within(side, findings);
            let before = sides.get(..at).unwrap_or_default();
            if before.iter().any(|it| it.expr() == side.expr()) {
                let what = "a part of the condition is repeated";
                let statement = &self.rule.statement;
                let place = statement.place(side.range.start);
                let fix = Fix::without_part(statement, self.clauses, side, "leave one out");
                let finding = Finding::new(Kind::PartTwice, place, what, "", "leave one out");
                findings.push(finding.fixed(fix));
            }
        }
    }
}

/// `context has` with a fact that says where a call leads.
fn is_asked(tree: &Tree) -> bool {
    matches!(&tree.node, Node::Part(expr) if is_open(expr))
}

fn is_open(expr: &Expr) -> bool {
    const OPEN: [&str; 5] = [
        "dest_hosts",
        "dest_addresses",
        "dest_domains",
        "dest_explained",
        "path_roots",
    ];
    let is_has = matches!(expr, Expr::HasAttr { .. });
    is_has && path(expr).is_some_and(|way| way.first().is_some_and(|it| OPEN.contains(it)))
}

/// `true`, or the same on both sides.
fn is_always(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(Literal::Bool(truth)) => *truth,
        Expr::BinaryOp { op, left, right } => {
            let alike = matches!(op, BinaryOp::Eq | BinaryOp::LessEq | BinaryOp::GreaterEq);
            alike && left == right
        }
        _ => false,
    }
}

/// Whether its arithmetic, where it begins, multiplies.
fn product(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { op, .. } if *op == BinaryOp::Mul => true,
        Expr::BinaryOp {
            op: BinaryOp::Add | BinaryOp::Sub,
            ..
        } => false,
        _ => inner(expr).unwrap_or_default().into_iter().any(product),
    }
}

/// Counts, times and small numbers added up.
fn is_small(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(Literal::Long(number)) => number.abs() < SMALL_MAX,
        Expr::GetAttr { .. } => {
            path(expr).is_some_and(|way| matches!(way.as_slice(), ["counts" | "time", _]))
        }
        Expr::BinaryOp {
            op: BinaryOp::Mul, ..
        } => false,
        Expr::BinaryOp { .. } => inner(expr).unwrap_or_default().into_iter().all(is_small),
        _ => false,
    }
}

/// Where a sign is needed to say what to write instead.
pub(super) fn is_known(sign: Sign) -> bool {
    sign != Sign::Either
}
