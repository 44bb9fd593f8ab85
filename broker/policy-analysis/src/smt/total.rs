//! Splits a condition into two conditions that never err: one for its value, and one for whether it
//! errs. Both are in Cedar's JSON form.

use serde_json::{Value as Json, json};

use super::connective::{and, either, not};
use super::overflow;
use airlock_core::policy::fact::UNMODELLED;
use airlock_core::policy::mentions::ARGS;
use airlock_core::policy::mentions::ArgRead;
use airlock_core::policy::model::{Member, Record, Type};
use airlock_core::policy::rule::Rule;
use airlock_core::policy::vocabulary::ToolWords;

/// The value of a condition, and the condition under which it errs; `None` if it never errs.
struct SplitCondition {
    holds: Json,
    errs: Option<Json>,
}

/// Returns a rule and a forbid of all calls on which it errs or reads an unmodelled argument, or
/// `None` if the two cannot be separated.
pub(super) fn bodies(rule: &Json, hidden: Option<Json>, args: &Record) -> Option<Vec<Json>> {
    let mut all: Option<SplitCondition> = None;
    for condition in rule.get("conditions")?.as_array()? {
        let is_when = condition.get("kind")?.as_str()? == "when";
        let total = SplitCondition::from_expr(condition.get("body")?, args)?;
        let total = if is_when { total } else { total.not() };
        all = Some(match all {
            Some(before) => before.and(total),
            None => total,
        });
    }
    let effect = rule.get("effect")?.as_str()?;
    let Some(SplitCondition { holds, errs }) = all else {
        return Some(vec![body(effect, None)]);
    };
    let mut bodies = vec![body(effect, Some(holds))];
    let errs = either(hidden, errs);
    bodies.extend(errs.map(|errs| body("forbid", Some(errs))));
    Some(bodies)
}

/// Returns the condition that a call has an unmodelled argument which the rule reads. The inner
/// `None` means that no call can have one. The outer `None` means that the condition cannot be
/// expressed.
pub(super) fn hidden(rule: &Rule, args: &Record) -> Option<Option<Json>> {
    let mut all = None;
    let mut pointers = Vec::new();
    for read in ArgRead::in_clauses(&rule.clauses) {
        pointers.extend(args.may_hide(&read)?);
    }
    pointers.sort();
    pointers.dedup();
    for pointer in pointers {
        let context = json!({"Var": "context"});
        let unmodelled = json!({".": {"left": context, "attr": UNMODELLED}});
        let one = json!({"contains": {"left": unmodelled, "right": {"Value": pointer}}});
        all = either(all, Some(one));
    }
    Some(all)
}

/// The calls of a tool on which a rule errs: it reads an unmodelled argument, or its arithmetic
/// overflows.
#[derive(Debug, PartialEq)]
pub(crate) enum Errors {
    Never,
    When(Json),
    Unknown,
}

impl Errors {
    pub(crate) fn from_rule(rule: &Rule, words: &ToolWords) -> Self {
        let args = &words.args;
        let body = rule.json();
        let bodies = body.and_then(|body| bodies(body, hidden(rule, args)?, args));
        match bodies.map(|all| all.into_iter().nth(1)) {
            None => Self::Unknown,
            Some(None) => Self::Never,
            Some(Some(errs)) => Self::When(errs),
        }
    }
}

/// Returns the arguments as rules see them: numbers that may be too large become optional.
pub(super) fn as_seen(record: Record) -> Record {
    let member = |(name, member): (String, Member)| {
        let member = Member {
            always: member.always && !member.may_be_lost,
            may_be_lost: member.may_be_lost,
            kind: member.kind.map(|kind| match kind {
                Type::Record(inner) => Type::Record(as_seen(inner)),
                kind => kind,
            }),
        };
        (name, member)
    };
    Record(record.0.into_iter().map(member).collect())
}

impl SplitCondition {
    fn from_expr(expr: &Json, args: &Record) -> Option<Self> {
        let (word, inner) = expr.as_object()?.iter().next()?;
        let part = |name: &str| Self::from_expr(inner.get(name)?, args);
        Some(match word.as_str() {
            "!" => part("arg")?.not(),
            "&&" => part("left")?.and(part("right")?),
            "||" => part("left")?.or(part("right")?),
            "if-then-else" => part("if")?.choose(part("then")?, part("else")?),
            _ => Self::atom(expr, args)?,
        })
    }

    /// Handles a single expression. It errs if it reads an absent value or its arithmetic
    /// overflows.
    fn atom(expr: &Json, args: &Record) -> Option<Self> {
        let mut reads = Vec::new();
        let mut branches = false;
        walk(expr, &mut |way| reads.push(way), &mut branches);
        let mut guards: Vec<Json> = Vec::new();
        for way in reads {
            if let Some(there) = there(&way, args)
                && !guards.contains(&there)
            {
                guards.push(there);
            }
        }
        // A value that only one branch reads is not always read.
        if branches && !guards.is_empty() {
            return None;
        }
        guards.extend(overflow::when(expr).as_ref().map(not));
        let mut all = guards.iter();
        let Some(first) = all.next() else {
            return Some(Self {
                holds: expr.clone(),
                errs: None,
            });
        };
        let all = all.fold(first.clone(), |all, next| and(&all, next));
        Some(Self {
            holds: and(&all, expr),
            errs: Some(not(&all)),
        })
    }

    fn not(self) -> Self {
        Self {
            holds: not(&self.holds),
            errs: self.errs,
        }
    }

    fn and(self, next: Self) -> Self {
        let later = next.errs.map(|errs| and(&self.holds, &errs));
        Self {
            holds: and(&self.holds, &next.holds),
            errs: either(self.errs, later),
        }
    }

    fn or(self, next: Self) -> Self {
        let later = next.errs.map(|errs| and(&not(&self.holds), &errs));
        Self {
            holds: json!({"||": {"left": self.holds, "right": next.holds}}),
            errs: either(self.errs, later),
        }
    }

    fn choose(self, then: Self, other: Self) -> Self {
        let choice = |then: &Json, other: &Json| json!({"if-then-else": {"if": self.holds, "then": then, "else": other}});
        let never = json!({"Value": false});
        let later = (then.errs.is_some() || other.errs.is_some()).then(|| {
            let [then, other] = [&then.errs, &other.errs].map(|it| it.as_ref().unwrap_or(&never));
            choice(then, other)
        });
        Self {
            holds: choice(&then.holds, &other.holds),
            errs: either(self.errs, later),
        }
    }
}

fn body(effect: &str, condition: Option<Json>) -> Json {
    let condition = condition.map(|body| json!({"kind": "when", "body": body}));
    json!({
        "effect": effect,
        "principal": {"op": "All"},
        "action": {"op": "All"},
        "resource": {"op": "All"},
        "conditions": condition.into_iter().collect::<Vec<_>>(),
    })
}

/// Returns the test that a required value is visible, if rules may not see it.
fn there(way: &[String], args: &Record) -> Option<Json> {
    let (ARGS, rest) = (way.first()?.as_str(), way.get(1..)?) else {
        return None;
    };
    let (last, before) = rest.split_last()?;
    let mut record = args;
    for step in before {
        match record.0.get(step)?.kind.as_ref()? {
            Type::Record(inner) => record = inner,
            _ => return None,
        }
    }
    let member = record.0.get(last)?;
    if !member.always || !member.may_be_lost {
        return None;
    }
    let mut object = json!({"Var": "context"});
    for step in way.split_last()?.1 {
        object = json!({".": {"left": object, "attr": step}});
    }
    Some(json!({"has": {"left": object, "attr": last}}))
}

/// Collects the longest paths into the context, and whether some part is not always evaluated.
fn walk(expr: &Json, found: &mut dyn FnMut(Vec<String>), branches: &mut bool) {
    if let Some(way) = way(expr) {
        found(way);
        return;
    }
    match expr {
        Json::Array(items) => items.iter().for_each(|it| walk(it, found, branches)),
        Json::Object(members) => {
            for (word, inner) in members {
                *branches |= matches!(word.as_str(), "&&" | "||" | "if-then-else");
                walk(inner, found, branches);
            }
        }
        _ => {}
    }
}

fn way(expr: &Json) -> Option<Vec<String>> {
    let (word, inner) = expr.as_object()?.iter().next()?;
    match word.as_str() {
        "Var" => (inner == "context").then(Vec::new),
        "." => {
            let mut way = way(inner.get("left")?)?;
            way.push(inner.get("attr")?.as_str()?.to_owned());
            Some(way)
        }
        _ => None,
    }
}
