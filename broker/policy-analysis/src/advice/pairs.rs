//! Advice about pairs of rules: one rule has no effect because of the other.

use std::collections::{BTreeMap, BTreeSet};

use super::meaning::{Meaning, Work};
use crate::smt::Errors;
use airlock_core::policy::finding::Finding;
use airlock_core::policy::fix::Fix;
use airlock_core::policy::kind::Kind;
use airlock_core::policy::rule::{ActionScope, Rule};
use airlock_core::policy::vocabulary::{ToolWords, Vocabulary};

/// Maximum number of rules that are searched for the same error.
const OTHERS_MAX: usize = 32;
/// Maximum number of comparisons for all pairs together, some tenths of a second. Pairs beyond it
/// are not reported.
const COMPARISONS_MAX: usize = 10_000_000;
/// The comparisons that finding out about a rule's errors counts as.
const ERRORS_COST: usize = 100;

/// A rule with its analysed meaning.
#[derive(Clone, Copy)]
struct RuleMeaning<'a> {
    at: usize,
    rule: &'a Rule,
    meaning: &'a Meaning,
}

pub(super) fn findings(
    rules: &[Rule],
    meanings: &[Option<Meaning>],
    vocabulary: &Vocabulary,
) -> Vec<Finding> {
    let read: Vec<RuleMeaning<'_>> = rules
        .iter()
        .zip(meanings)
        .enumerate()
        .filter_map(|(at, (rule, meaning))| {
            let meaning = meaning.as_ref()?;
            Some(RuleMeaning { at, rule, meaning })
        })
        .collect();
    let mut known = RuleIndex::new(&read, vocabulary);
    for (at, (rule, meaning)) in rules.iter().zip(meanings).enumerate() {
        if !rule.forbids && !meaning.as_ref().is_some_and(Meaning::is_never) {
            known.permits.add(rule, at);
        }
    }
    read.iter().filter_map(|one| known.finding(*one)).collect()
}

/// The rules whose conditions can be met.
struct RuleIndex<'a> {
    /// The rules that could be analysed.
    meant: ByScope<'a, RuleMeaning<'a>>,
    /// All permits, analysed or not.
    permits: ByScope<'a, usize>,
    vocabulary: &'a Vocabulary,
    work: Work,
}

/// Rules by the names in their scopes.
#[derive(Default)]
struct ByScope<'a, T> {
    everywhere: Vec<T>,
    by_name: BTreeMap<&'a str, Vec<T>>,
}

impl<'a, T: Copy> ByScope<'a, T> {
    fn add(&mut self, rule: &'a Rule, one: T) {
        match &rule.scope {
            ActionScope::All => self.everywhere.push(one),
            ActionScope::Is(name) => self.by_name.entry(name).or_default().push(one),
            ActionScope::Within(names) => {
                for name in names {
                    self.by_name.entry(name).or_default().push(one);
                }
            }
        }
    }

    /// Returns the rules that apply to a name: those without a scope, those that name it, and those
    /// that name a group of the tool.
    fn about<'b>(&'b self, name: &'b str, vocabulary: &'b Vocabulary) -> impl Iterator<Item = T> {
        let tool = vocabulary.tools.get(name);
        let groups = tool.map(|words| &words.groups);
        let names: BTreeSet<&str> = groups
            .into_iter()
            .flatten()
            .map(String::as_str)
            .chain([name])
            .collect();
        let named = names.into_iter().filter_map(|name| self.by_name.get(name));
        self.everywhere.iter().chain(named.flatten()).copied()
    }
}

impl<'a> RuleIndex<'a> {
    fn new(read: &[RuleMeaning<'a>], vocabulary: &'a Vocabulary) -> Self {
        let mut meant = ByScope {
            everywhere: Vec::new(),
            by_name: BTreeMap::new(),
        };
        for one in read.iter().filter(|one| !one.meaning.is_never()) {
            meant.add(one.rule, *one);
        }
        Self {
            meant,
            permits: ByScope::default(),
            vocabulary,
            work: Work::new(COMPARISONS_MAX),
        }
    }

    fn finding(&self, one: RuleMeaning<'a>) -> Option<Finding> {
        if one.meaning.is_never() {
            return Some(dead(one, self.can_go(one)));
        }
        let others: Vec<RuleMeaning<'a>> = self.beside(one).collect();
        let safe = |find: fn(RuleMeaning<'_>, RuleMeaning<'_>, &Work) -> Option<Finding>| {
            let mut found = others.iter().filter_map(|other| {
                let finding = find(one, *other, &self.work)?;
                self.is_safe(one, *other).then_some(finding)
            });
            found.next()
        };
        safe(overruled).or_else(|| safe(shadowed))
    }

    /// Whether the rule can be removed without allowing a call that an error in the rule denies:
    /// the rule cannot err, or the other rule errs on the same calls.
    fn is_safe(&self, one: RuleMeaning<'_>, other: RuleMeaning<'_>) -> bool {
        self.of_tools(one.rule, |_, words, own| {
            self.work.does(ERRORS_COST) && Errors::from_rule(other.rule, words) == own
        })
    }

    /// Whether a rule whose condition no call meets can be removed without allowing a call that an
    /// error in the rule denies: another rule errs on the same calls, or no rule permits them.
    fn can_go(&self, one: RuleMeaning<'_>) -> bool {
        self.of_tools(one.rule, |name, words, own| {
            let is_given = || self.permits.about(name, self.vocabulary).next().is_some();
            let mut others = self.meant.about(name, self.vocabulary).take(OTHERS_MAX);
            !one.rule.forbids && !is_given()
                || others.any(|it| Errors::from_rule(it.rule, words) == own)
        })
    }

    /// Whether a property holds for each tool on whose calls a rule can err.
    fn of_tools(&self, rule: &Rule, is: impl Fn(&str, &ToolWords, Errors) -> bool) -> bool {
        let tools = self.vocabulary.tools.iter();
        let mut covered = tools.filter(|(name, it)| rule.scope.covers(name, &it.groups));
        covered.all(|(name, words)| match Errors::from_rule(rule, words) {
            Errors::Never => true,
            Errors::Unknown => false,
            own @ Errors::When(_) => is(name, words, own),
        })
    }

    /// Returns the other rules that apply to every tool that this rule applies to.
    fn beside(&self, one: RuleMeaning<'a>) -> impl Iterator<Item = RuleMeaning<'a>> {
        let name = match &one.rule.scope {
            ActionScope::Is(name) => Some(name),
            ActionScope::Within(names) => names.first(),
            ActionScope::All => None,
        };
        let all: Vec<RuleMeaning<'a>> = match name {
            Some(name) => self.meant.about(name, self.vocabulary).collect(),
            None => self.meant.everywhere.clone(),
        };
        all.into_iter()
            .filter(move |other| other.at != one.at && self.is_wider(other.rule, one.rule))
    }

    fn is_wider(&self, other: &Rule, one: &Rule) -> bool {
        let names = match &other.scope {
            ActionScope::Within(names) => names.len(),
            ActionScope::Is(_) | ActionScope::All => 1,
        };
        let covers = |name: &String| {
            if !self.work.does(names) {
                return false;
            }
            let nothing = BTreeSet::new();
            let tool = self.vocabulary.tools.get(name);
            let groups = tool.map_or(&nothing, |words| &words.groups);
            other.scope.covers(name, groups)
        };
        match (&other.scope, &one.scope) {
            (ActionScope::All, _) => true,
            (wider, scope) if wider == scope => true,
            (_, ActionScope::All) => false,
            (_, ActionScope::Is(name)) => covers(name),
            (_, ActionScope::Within(names)) => names.iter().all(covers),
        }
    }
}

fn dead(one: RuleMeaning<'_>, can_go: bool) -> Finding {
    let rule = one.rule;
    let what = format!("no call meets the condition of the rule `{}`", rule.id);
    let why = match one.meaning.excluded() {
        Some(value) => format!("the tests of `{value}` exclude each other"),
        None => "parts of the condition exclude each other".to_owned(),
    };
    let mut finding = gone(Kind::RuleDead, rule, &what, &why);
    if !can_go {
        finding.next = "change the condition, but keep the rule: it denies calls with a number \
                        that is too large to read"
            .to_owned();
        finding.fix = None;
    }
    finding
}

fn overruled(one: RuleMeaning<'_>, other: RuleMeaning<'_>, work: &Work) -> Option<Finding> {
    let takes_all =
        !one.rule.forbids && other.rule.forbids && one.meaning.is_within(other.meaning, work);
    takes_all.then(|| {
        let what = format!("the rule `{}` permits nothing", one.rule.id);
        let why = format!(
            "the rule `{}` ({}) forbids all calls that this rule permits",
            other.rule.id, other.rule.place
        );
        gone(Kind::RuleOverruled, one.rule, &what, &why)
    })
}

fn shadowed(one: RuleMeaning<'_>, other: RuleMeaning<'_>, work: &Work) -> Option<Finding> {
    if one.rule.forbids != other.rule.forbids || !one.meaning.is_within(other.meaning, work) {
        return None;
    }
    // If two rules are equal, the later one is redundant.
    if one.at < other.at
        && other.meaning.is_within(one.meaning, work)
        && one.rule.scope == other.rule.scope
    {
        return None;
    }
    // A rule that asks another question is not redundant.
    let asks_otherwise = one.rule.asks
        && one.rule.prompt != other.rule.prompt
        && one.meaning.approvals() == other.meaning.approvals();
    if asks_otherwise {
        return None;
    }
    let verb = if one.rule.forbids {
        "forbids"
    } else {
        "permits"
    };
    let what = format!("the rule `{}` has no effect", one.rule.id);
    let why = format!(
        "the rule `{}` ({}) already {verb} all calls that this rule {verb}",
        other.rule.id, other.rule.place
    );
    Some(gone(Kind::RuleShadowed, one.rule, &what, &why))
}

pub(super) fn gone(kind: Kind, rule: &Rule, what: &str, why: &str) -> Finding {
    let next = "remove the rule, or change its condition";
    let fix = Fix::without_rule(&rule.statement, "remove the rule");
    let (next, fix) = match kind == Kind::RuleDead && rule.forbids {
        true => (
            "correct the condition: a forbid that matches no call protects nothing",
            Fix {
                what: "or remove the rule, if nothing needs its protection".to_owned(),
                ..fix
            },
        ),
        false => (next, fix),
    };
    Finding::new(kind, rule.place.clone(), what, why, next)
        .fixed(Some(fix))
        .of_rule(&rule.id)
}
