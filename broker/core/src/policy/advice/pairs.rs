//! Rules beside each other: one that does nothing because of another.

use std::collections::{BTreeMap, BTreeSet};

use super::meaning::Meaning;
use crate::policy::ever::Errors;
use crate::policy::finding::Finding;
use crate::policy::fix::Fix;
use crate::policy::kind::Kind;
use crate::policy::rule::{Rule, Scope};
use crate::policy::vocabulary::Vocabulary;

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
    let known = Known::of(&read, vocabulary);
    read.iter().filter_map(|one| known.finding(*one)).collect()
}

/// The rules by what their scopes name.
struct Known<'a> {
    everywhere: Vec<Read<'a>>,
    by_name: BTreeMap<&'a str, Vec<Read<'a>>>,
    vocabulary: &'a Vocabulary,
}

impl<'a> Known<'a> {
    fn of(read: &[Read<'a>], vocabulary: &'a Vocabulary) -> Self {
        let mut known = Self {
            everywhere: Vec::new(),
            by_name: BTreeMap::new(),
            vocabulary,
        };
        for one in read.iter().filter(|one| !one.meaning.is_never()) {
            match &one.rule.scope {
                Scope::All => known.everywhere.push(*one),
                Scope::Is(name) => known.by_name.entry(name).or_default().push(*one),
                Scope::Within(names) => {
                    for name in names {
                        known.by_name.entry(name).or_default().push(*one);
                    }
                }
            }
        }
        known
    }

    fn finding(&self, one: Read<'a>) -> Option<Finding> {
        if one.meaning.is_never() {
            if !self.is_safe(one, None) {
                return None;
            }
            let what = format!("no call meets the condition of the rule `{}`", one.rule.id);
            let why = "parts of it exclude each other";
            return Some(gone(Kind::RuleDead, one.rule, &what, why));
        }
        let others: Vec<Read<'a>> = self.beside(one).collect();
        let safe = |find: fn(Read<'_>, Read<'_>) -> Option<Finding>| {
            let mut found = others.iter().filter_map(|other| {
                let finding = find(one, *other)?;
                self.is_safe(one, Some(*other)).then_some(finding)
            });
            found.next()
        };
        safe(overruled).or_else(|| safe(shadowed))
    }

    /// Without the rule no call is let through that an error in it denies: there is none, or the
    /// other rule has the very same.
    fn is_safe(&self, one: Read<'_>, other: Option<Read<'_>>) -> bool {
        let tools = self.vocabulary.tools.iter();
        let mut covered = tools.filter(|(name, it)| one.rule.scope.covers(name, &it.groups));
        covered.all(|(_, words)| match Errors::of(one.rule, words) {
            Errors::Never => true,
            Errors::Unknown => false,
            own @ Errors::When(_) => other.is_some_and(|it| Errors::of(it.rule, words) == own),
        })
    }

    /// The other rules that are about everything that this one is about.
    fn beside(&self, one: Read<'a>) -> impl Iterator<Item = Read<'a>> {
        let first = match &one.rule.scope {
            Scope::All => Vec::new(),
            Scope::Is(name) => self.named(name),
            Scope::Within(names) => names.first().map(|it| self.named(it)).unwrap_or_default(),
        };
        let all = self.everywhere.iter().copied().chain(first);
        all.filter(move |other| other.at != one.at && self.is_wider(other.rule, one.rule))
    }

    /// Rules that name a tool or a group, or a group that the tool is in.
    fn named(&self, name: &str) -> Vec<Read<'a>> {
        let tool = self.vocabulary.tools.get(name);
        let groups = tool.map(|words| &words.groups);
        let names: BTreeSet<&str> = groups
            .into_iter()
            .flatten()
            .map(String::as_str)
            .chain([name])
            .collect();
        let rules = names.into_iter().filter_map(|name| self.by_name.get(name));
        rules.flatten().copied().collect()
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
