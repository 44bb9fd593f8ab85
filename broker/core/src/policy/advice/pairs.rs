//! Rules beside each other: one that does nothing because of another.

use std::collections::{BTreeMap, BTreeSet};

use super::meaning::Meaning;
use crate::policy::ever::Errors;
use crate::policy::finding::Finding;
use crate::policy::fix::Fix;
use crate::policy::kind::Kind;
use crate::policy::rule::{Rule, Scope};
use crate::policy::vocabulary::{Vocabulary, Words};

/// Rules that are looked at for one with the same error.
const OTHERS_MAX: usize = 32;

/// A rule, and what it comes to.
#[derive(Clone, Copy)]
struct Read<'a> {
    at: usize,
    rule: &'a Rule,
    meaning: &'a Meaning,
}

pub(super) fn findings(
    rules: &[Rule],
    meanings: &[Option<Meaning>],
    vocabulary: &Vocabulary,
) -> Vec<Finding> {
    let read: Vec<Read<'_>> = rules
        .iter()
        .zip(meanings)
        .enumerate()
        .filter_map(|(at, (rule, meaning))| {
            let meaning = meaning.as_ref()?;
            Some(Read { at, rule, meaning })
        })
        .collect();
    let mut known = Known::of(&read, vocabulary);
    for (at, (rule, meaning)) in rules.iter().zip(meanings).enumerate() {
        if !rule.forbids && !meaning.as_ref().is_some_and(Meaning::is_never) {
            known.permits.add(rule, at);
        }
    }
    read.iter().filter_map(|one| known.finding(*one)).collect()
}

/// The rules that can be met.
struct Known<'a> {
    /// Those that are understood.
    meant: ByScope<'a, Read<'a>>,
    /// All that permit something, understood or not.
    permits: ByScope<'a, usize>,
    vocabulary: &'a Vocabulary,
}

/// Of rules, by what their scopes name.
#[derive(Default)]
struct ByScope<'a, T> {
    everywhere: Vec<T>,
    by_name: BTreeMap<&'a str, Vec<T>>,
}

impl<'a, T: Copy> ByScope<'a, T> {
    fn add(&mut self, rule: &'a Rule, one: T) {
        match &rule.scope {
            Scope::All => self.everywhere.push(one),
            Scope::Is(name) => self.by_name.entry(name).or_default().push(one),
            Scope::Within(names) => {
                for name in names {
                    self.by_name.entry(name).or_default().push(one);
                }
            }
        }
    }

    /// Those about everything, and those that name a tool or a group, or a group that the tool is
    /// in.
    fn about(&self, name: &str, vocabulary: &Vocabulary) -> Vec<T> {
        let tool = vocabulary.tools.get(name);
        let groups = tool.map(|words| &words.groups);
        let names: BTreeSet<&str> = groups
            .into_iter()
            .flatten()
            .map(String::as_str)
            .chain([name])
            .collect();
        let named = names.into_iter().filter_map(|name| self.by_name.get(name));
        let all = self.everywhere.iter().chain(named.flatten());
        all.copied().collect()
    }
}

impl<'a> Known<'a> {
    fn of(read: &[Read<'a>], vocabulary: &'a Vocabulary) -> Self {
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
        }
    }

    fn finding(&self, one: Read<'a>) -> Option<Finding> {
        if one.meaning.is_never() {
            return Some(dead(one.rule, self.can_go(one)));
        }
        let others: Vec<Read<'a>> = self.beside(one).collect();
        let safe = |find: fn(Read<'_>, Read<'_>) -> Option<Finding>| {
            let mut found = others.iter().filter_map(|other| {
                let finding = find(one, *other)?;
                self.is_safe(one, *other).then_some(finding)
            });
            found.next()
        };
        safe(overruled).or_else(|| safe(shadowed))
    }

    /// Without the rule no call is let through that an error in it denies: there is none, or the
    /// other rule has the very same.
    fn is_safe(&self, one: Read<'_>, other: Read<'_>) -> bool {
        self.of_tools(one.rule, |_, words, own| {
            Errors::of(other.rule, words) == own
        })
    }

    /// The same of a rule that is never met: some other rule has the very same error, or nothing
    /// permits the call.
    fn can_go(&self, one: Read<'_>) -> bool {
        self.of_tools(one.rule, |name, words, own| {
            let is_given = || !self.permits.about(name, self.vocabulary).is_empty();
            let others = self.meant.about(name, self.vocabulary);
            let mut others = others.iter().take(OTHERS_MAX);
            !one.rule.forbids && !is_given() || others.any(|it| Errors::of(it.rule, words) == own)
        })
    }

    /// Whether something holds of each tool on which a rule can err.
    fn of_tools(&self, rule: &Rule, is: impl Fn(&str, &Words, Errors) -> bool) -> bool {
        let tools = self.vocabulary.tools.iter();
        let mut covered = tools.filter(|(name, it)| rule.scope.covers(name, &it.groups));
        covered.all(|(name, words)| match Errors::of(rule, words) {
            Errors::Never => true,
            Errors::Unknown => false,
            own @ Errors::When(_) => is(name, words, own),
        })
    }

    /// The other rules that are about everything that this one is about.
    fn beside(&self, one: Read<'a>) -> impl Iterator<Item = Read<'a>> {
        let all = match &one.rule.scope {
            Scope::Is(name) => self.meant.about(name, self.vocabulary),
            Scope::Within(names) if !names.is_empty() => {
                let first = names.first().map(String::as_str);
                self.meant.about(first.unwrap_or_default(), self.vocabulary)
            }
            Scope::All | Scope::Within(_) => self.meant.everywhere.clone(),
        };
        let all = all.into_iter();
        all.filter(move |other| other.at != one.at && self.is_wider(other.rule, one.rule))
    }

    fn is_wider(&self, other: &Rule, one: &Rule) -> bool {
        let covers = |name: &String| {
            let nothing = BTreeSet::new();
            let tool = self.vocabulary.tools.get(name);
            let groups = tool.map_or(&nothing, |words| &words.groups);
            other.scope.covers(name, groups)
        };
        match (&other.scope, &one.scope) {
            (Scope::All, _) => true,
            (_, Scope::All) => false,
            (_, Scope::Is(name)) => covers(name),
            (_, Scope::Within(names)) => names.iter().all(covers),
        }
    }
}

fn dead(rule: &Rule, can_go: bool) -> Finding {
    let what = format!("no call meets the condition of the rule `{}`", rule.id);
    let why = "parts of it exclude each other";
    let mut finding = gone(Kind::RuleDead, rule, &what, why);
    if !can_go {
        finding.next = "change its condition; without it calls could pass whose numbers it \
                        cannot read, and which it denies by that error"
            .to_owned();
        finding.fix = None;
    }
    finding
}

fn overruled(one: Read<'_>, other: Read<'_>) -> Option<Finding> {
    let takes_all = !one.rule.forbids && other.rule.forbids && one.meaning.is_within(other.meaning);
    takes_all.then(|| {
        let what = format!("the rule `{}` permits nothing", one.rule.id);
        let why = format!(
            "the rule `{}` ({}) forbids all of it",
            other.rule.id, other.rule.place
        );
        gone(Kind::RuleOverruled, one.rule, &what, &why)
    })
}

fn shadowed(one: Read<'_>, other: Read<'_>) -> Option<Finding> {
    if one.rule.forbids != other.rule.forbids || !one.meaning.is_within(other.meaning) {
        return None;
    }
    // Of two that say the same, the later one is too many.
    if one.at < other.at
        && other.meaning.is_within(one.meaning)
        && one.rule.scope == other.rule.scope
    {
        return None;
    }
    // What a person is asked is something that a rule does.
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
    let what = format!("the rule `{}` changes nothing", one.rule.id);
    let why = format!(
        "whatever it {verb}, the rule `{}` ({}) {verb} too",
        other.rule.id, other.rule.place
    );
    Some(gone(Kind::RuleShadowed, one.rule, &what, &why))
}

pub(super) fn gone(kind: Kind, rule: &Rule, what: &str, why: &str) -> Finding {
    let next = "leave the rule out, or change its condition";
    let fix = Fix::without_rule(&rule.statement, "leave the rule out");
    Finding::new(kind, rule.place.clone(), what, why, next)
        .fixed(Some(fix))
        .of_rule(&rule.id)
}
