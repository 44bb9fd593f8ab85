//! Advice about one part of a condition.

use cedar_policy::pst::{BinaryOp, Expr, Literal};

use super::Advice;
use super::ask::{Ask, Form};
use airlock_core::policy::ast::{Node, PlacedPart, Polarity, Tree};
use airlock_core::policy::expr::{inner, may_err, path};
use airlock_core::policy::fact::FACTS;
use airlock_core::policy::finding::Finding;
use airlock_core::policy::fix::Fix;
use airlock_core::policy::kind::Kind;
use airlock_core::policy::mentions::ARGS;
use airlock_core::policy::model::Member;
use airlock_core::policy::repair::solved;
use airlock_core::policy::vocabulary::ToolWords;

/// Whether the schema requires the member and rules see every value of it.
fn is_always_seen(member: &Member) -> bool {
    member.always && !member.may_be_lost
}

/// Bound for small numbers: sums of counts and smaller numbers stay far within 64 bits.
const SMALL_MAX: i64 = 1 << 40;

impl Advice<'_> {
    pub(super) fn part(&self, seen: &PlacedPart<'_>) -> Option<Finding> {
        if let Some(finding) = self.overflows(seen) {
            return Some(finding);
        }
        if is_always(seen.expr) && !self.reads_lost(seen.expr) {
            let what = "this part of the condition is true for every call";
            let why = "the part is `true`, or compares a value with itself";
            return Some(self.idle(seen, what, why));
        }
        let form = Form::from_expr(seen.expr, true);
        if let Form::One(Ask::Has(way), _) = &form {
            return self.has(seen, way);
        }
        self.numbers(seen, &form)
            .or_else(|| self.sets(seen))
            .or_else(|| self.texts(seen, &form))
    }

    fn overflows(&self, seen: &PlacedPart<'_>) -> Option<Finding> {
        if !may_err(seen.expr) || is_small(seen.expr) {
            return None;
        }
        let (word, next) = match product(seen.expr) {
            true => ("product", "compare with a number instead of multiplying"),
            false => ("sum", "compare with a number instead of adding"),
        };
        let what = format!("this {word} may not fit into 64 bits");
        let why = "a rule that cannot be evaluated denies the call";
        let place = self.rule.statement.place(seen.tree.range.start);
        let fix = solved(self.rule, seen);
        Some(Finding::new(Kind::MayOverflow, place, what, why, next).fixed(fix))
    }

    /// Whether the expression reads a number that rules do not always see. Without the number the
    /// evaluation fails.
    fn reads_lost(&self, expr: &Expr) -> bool {
        let is_lost = |words: &ToolWords, name: &str| {
            let member = words.args.0.get(name);
            member.is_none_or(|member| member.may_be_lost)
        };
        match path(expr).as_deref() {
            Some([ARGS, name]) => self.tools().any(|words| is_lost(words, name)),
            Some([ARGS, ..]) => true,
            Some(_) => false,
            None => inner(expr).is_none_or(|all| all.into_iter().any(|it| self.reads_lost(it))),
        }
    }

    /// Reports a `has` test of a member that is always present.
    fn has(&self, seen: &PlacedPart<'_>, way: &[String]) -> Option<Finding> {
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
            let what = format!("`{name}` is always present");
            self.idle(seen, &what, "`has` is true for every call")
        })
    }

    /// Reports `!(context has dest_hosts && …)`, or the same with `if`, if its truth lets the rules
    /// allow more calls.
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
        let what = "calls with an unknown value are allowed";
        let why = "an absent fact could not be computed, so the call may go anywhere";
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
        let mut earlier = Vec::new();
        for side in sides {
            self.twice_within(side, findings);
            let expr = side.expr();
            let is_again = earlier.contains(&expr);
            earlier.push(expr);
            if is_again {
                let what = "a part of the condition is repeated";
                let statement = &self.rule.statement;
                let place = statement.place(side.range.start);
                let next = "remove the repetition";
                let fix = Fix::without_part(statement, self.clauses, side, next);
                let finding = Finding::new(Kind::PartTwice, place, what, "", next);
                findings.push(finding.fixed(fix));
            }
        }
    }
}

/// Whether the tree is `context has` with a fact about the destinations or paths of a call.
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

/// Whether the expression is `true`, or compares a value with itself.
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

/// Whether the outermost arithmetic is a multiplication.
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

/// Whether the expression only combines counts, times and small numbers, without multiplication.
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

/// Whether the polarity is known, which a replacement text needs.
pub(super) fn is_known(sign: Polarity) -> bool {
    sign != Polarity::Either
}
