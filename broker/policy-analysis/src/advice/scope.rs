//! Advice about rules that probably apply to more calls than their author intended.

use super::ask::Ask;
use super::meaning::{Literal, Meaning};
use airlock_core::policy::finding::Finding;
use airlock_core::policy::fix::Fix;
use airlock_core::policy::kind::Kind;
use airlock_core::policy::mentions::{APPROVAL, ARGS};
use airlock_core::policy::rule::{ActionScope, Rule};
use airlock_core::policy::token::tokens;
use airlock_core::policy::vocabulary::{DESTRUCTIVE, READ_ONLY, Vocabulary};

/// Members of `context` that limit a permit for all tools: the arguments, the approval, the
/// effects, the destination, and the source of the script.
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
    broad: &[&Rule],
    vocabulary: &Vocabulary,
) -> Option<Finding> {
    let meaning = meaning?;
    let is_everywhere = rule.scope == ActionScope::All;
    if rule.forbids {
        let always = meaning.ways.iter().any(Vec::is_empty);
        return (is_everywhere && always).then(|| everything(rule));
    }
    if is_everywhere && meaning.ways.iter().any(|way| !way.iter().any(bounds)) {
        return Some(unscoped(rule));
    }
    destroys(rule, meaning, broad, vocabulary)
}

fn bounds(held: &Literal) -> bool {
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
        "the rule `{}` permits every tool without a limiting condition",
        rule.id
    );
    let why = "tools that are added later are permitted too";
    let next = "name tools or a group, or test what the call writes, where it goes or whether it \
                is approved";
    Finding::new(Kind::PermitUnscoped, place, what, why, next).fixed(fix)
}

fn everything(rule: &Rule) -> Finding {
    let what = format!("the rule `{}` forbids every call of every tool", rule.id);
    let why = "this overrides all permits in all files";
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

/// Reports a permit for a group or for everything that includes a destructive tool, if none of the
/// `broad` forbids covers this tool.
fn destroys(
    rule: &Rule,
    meaning: &Meaning,
    broad: &[&Rule],
    vocabulary: &Vocabulary,
) -> Option<Finding> {
    if matches!(rule.scope, ActionScope::Is(_))
        || meaning.ways.iter().all(|way| way.iter().any(is_careful))
    {
        return None;
    }
    let is_named = |name: &String| match &rule.scope {
        ActionScope::Within(names) => names.contains(name),
        _ => false,
    };
    let (name, _) = vocabulary.tools.iter().find(|(name, words)| {
        let is_held = |other: &&Rule| other.scope.covers(name, &words.groups);
        words.groups.contains(DESTRUCTIVE)
            && !is_named(name)
            && rule.scope.covers(name, &words.groups)
            && !broad.iter().any(is_held)
    })?;
    let statement = &rule.statement;
    let end = statement.text().len().saturating_sub(1);
    let clause = format!("unless {{ action in Action::\"{DESTRUCTIVE}\" }}");
    let what = format!(
        "the rule `{}` permits the destructive tool `{name}` without asking",
        rule.id
    );
    let why = "the rule permits several tools, and no forbid asks about this one";
    let next = format!("write {clause}, or name the tool in the scope of the rule");
    let fix = Fix::replace(
        statement,
        end..end,
        format!("\n{clause}"),
        format!("write {clause}"),
    );
    Some(Finding::new(Kind::DestroysUnasked, rule.place.clone(), what, why, next).fixed(Some(fix)))
}

/// Whether the test excludes destructive tools, restricts the single call, or asks.
fn is_careful(held: &Literal) -> bool {
    match held {
        Literal(Ask::InGroup(name), false) => name == DESTRUCTIVE,
        held => bounds(held),
    }
}

/// Returns the forbids that apply to all calls in their scope, or to all without approval.
pub(super) fn broad_forbids<'a>(rules: &'a [Rule], meanings: &[Option<Meaning>]) -> Vec<&'a Rule> {
    let of_approval = |held: &Literal| {
        held.0
            .way()
            .is_some_and(|way| way.first().is_some_and(|it| it == APPROVAL))
    };
    let is_broad = |meaning: &Meaning| {
        let mut ways = meaning.ways.iter();
        ways.any(|way| way.iter().all(of_approval))
    };
    let forbids = rules.iter().zip(meanings).filter(|(rule, _)| rule.forbids);
    let broad = forbids.filter(|(_, meaning)| meaning.as_ref().is_some_and(is_broad));
    broad.map(|(rule, _)| rule).collect()
}
