//! Rules that are about more than anybody will have meant.

use super::ask::Ask;
use super::meaning::{Held, Meaning};
use crate::policy::finding::Finding;
use crate::policy::fix::Fix;
use crate::policy::kind::Kind;
use crate::policy::mentions::{APPROVAL, ARGS};
use crate::policy::rule::{Rule, Scope};
use crate::policy::token::tokens;
use crate::policy::vocabulary::{DESTRUCTIVE, READ_ONLY, Vocabulary};

/// What bounds a permit for all tools: what the call is given, where it goes, what it does, who
/// wants it.
const BOUNDS: [&str; 9] = [
    ARGS,
    APPROVAL,
    "writes",
    "path_roots",
    "dest_hosts",
    "dest_addresses",
    "dest_domains",
    "dest_explained",
    "script_trusted",
];

pub(super) fn findings(
    rule: &Rule,
    meaning: Option<&Meaning>,
    rules: &[Rule],
    vocabulary: &Vocabulary,
) -> Option<Finding> {
    let meaning = meaning?;
    let is_everywhere = rule.scope == Scope::All;
    if rule.forbids {
        let always = meaning.ways.iter().any(Vec::is_empty);
        return (is_everywhere && always).then(|| everything(rule));
    }
    if is_everywhere && meaning.ways.iter().any(|way| !way.iter().any(bounds)) {
        return Some(unscoped(rule));
    }
    destroys(rule, meaning, rules, vocabulary)
}

fn bounds(held: &Held) -> bool {
    match &held.0 {
        Ask::InGroup(_) => held.1,
        ask => ask
            .way()
            .is_some_and(|way| way.first().is_some_and(|it| BOUNDS.contains(&it.as_str()))),
    }
}

fn unscoped(rule: &Rule) -> Finding {
    let all = tokens(rule.statement.text());
    let bare = all.iter().find(|token| token.text == "action");
    let instead = format!("action in Action::\"{READ_ONLY}\"");
    let fix = bare.map(|token| {
        let what = format!("write {instead}");
        Fix::replace(&rule.statement, token.range(), instead.as_str(), what)
    });
    let place = bare.map_or(rule.place.clone(), |token| rule.statement.place(token.at));
    let what = format!(
        "the rule `{}` permits every tool, and nothing bounds it",
        rule.id
    );
    let why = "a tool that joins tomorrow is permitted today";
    let next = "name tools or a group, or speak of what the call writes, where it goes or who \
                approves it";
    Finding::new(Kind::PermitUnscoped, place, what, why, next).fixed(fix)
}

fn everything(rule: &Rule) -> Finding {
    let what = format!("the rule `{}` forbids every call of every tool", rule.id);
    let why = "no permit of any file gives anything beside it";
    let next = "name tools or a group";
    let all = tokens(rule.statement.text());
    let bare = all.iter().find(|token| token.text == "action");
    let instead = format!("action in Action::\"{DESTRUCTIVE}\"");
    let fix = bare.map(|token| {
        let what = format!("write {instead}");
        Fix::replace(&rule.statement, token.range(), instead.as_str(), what)
    });
    Finding::new(Kind::ForbidEverything, rule.place.clone(), what, why, next).fixed(fix)
}

/// A group, or everything, in which there is a tool that destroys, and no rule asks about it.
fn destroys(
    rule: &Rule,
    meaning: &Meaning,
    rules: &[Rule],
    vocabulary: &Vocabulary,
) -> Option<Finding> {
    if matches!(rule.scope, Scope::Is(_))
        || meaning.ways.iter().all(|way| way.iter().any(is_careful))
    {
        return None;
    }
    let is_named = |name: &String| match &rule.scope {
        Scope::Within(names) => names.contains(name),
        _ => false,
    };
    let (name, _) = vocabulary.tools.iter().find(|(name, words)| {
        let is_held = |other: &Rule| {
            other.forbids && other.scope.covers(name, &words.groups) && is_broad(other)
        };
        words.groups.contains(DESTRUCTIVE)
            && !is_named(name)
            && rule.scope.covers(name, &words.groups)
            && !rules.iter().any(is_held)
    })?;
    let statement = &rule.statement;
    let end = statement.text().len().saturating_sub(1);
    let clause = format!("unless {{ action in Action::\"{DESTRUCTIVE}\" }}");
    let what = format!(
        "the rule `{}` permits `{name}`, which destroys, without asking",
        rule.id
    );
    let why = "it is one of several tools that the rule is about, and no forbid is about it";
    let next = format!("write {clause}, or name the tool by itself");
    let fix = Fix::replace(
        statement,
        end..end,
        format!("\n{clause}"),
        format!("write {clause}"),
    );
    Some(Finding::new(Kind::DestroysUnasked, rule.place.clone(), what, why, next).fixed(Some(fix)))
}

/// It leaves the destructive ones out, or is about what single calls do, or asks.
fn is_careful(held: &Held) -> bool {
    match held {
        Held(Ask::InGroup(name), false) => name == DESTRUCTIVE,
        held => bounds(held),
    }
}

/// A forbid that holds for all calls, or for all that nobody approves.
fn is_broad(rule: &Rule) -> bool {
    let of_approval = |held: &Held| {
        held.0
            .way()
            .is_some_and(|way| way.first().is_some_and(|it| it == APPROVAL))
    };
    Meaning::of(rule).is_some_and(|it| it.ways.iter().any(|way| way.iter().all(of_approval)))
}
