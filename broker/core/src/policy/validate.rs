//! Rules held against what they can speak of: tools, groups, arguments and
//! facts that do not exist, and types that do not fit, each with its place.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::pst::{Clause, Expr};
use cedar_policy::{PolicySet, ValidationMode, Validator};
use codegen::closest::closest;

use super::fact::FACTS;
use super::finding::{Finding, did_you_mean};
use super::mentions::{ARGS, inner, path};
use super::rule::{Rule, Scope};
use super::vocabulary::{ACTION, SERVER, Vocabulary, context_names, is_file_word};
use crate::id::ServerName;

/// Everything that is wrong. Nothing, when the rules can be used.
pub(super) fn validate(rules: &[Rule], vocabulary: &Vocabulary) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut strangers = BTreeSet::new();
    for rule in rules {
        for name in actions(rule) {
            match Named::of(&name, vocabulary) {
                Named::Here => {}
                Named::Elsewhere => {
                    strangers.insert(name);
                }
                Named::Nowhere { what, next } => {
                    let place = rule.statement.place_of(&quoted(&name));
                    findings.push(Finding::new(place, what, "", next));
                }
            }
        }
        findings.extend(group_as_tool(rule, vocabulary));
        findings.extend(unknown_members(rule, vocabulary));
    }
    if findings.is_empty() {
        findings = typed(rules, vocabulary, &strangers);
    }
    findings.sort();
    findings.dedup();
    findings
}

/// Whether a rule can be about any of the tools here.
pub(super) fn applies_here(rule: &Rule, vocabulary: &Vocabulary) -> bool {
    covered(rule, vocabulary).next().is_some()
}

fn covered<'a>(
    rule: &'a Rule,
    vocabulary: &'a Vocabulary,
) -> impl Iterator<Item = &'a super::vocabulary::Words> {
    vocabulary
        .tools
        .iter()
        .filter(|(name, words)| rule.scope.covers(name, &words.groups))
        .map(|(_, words)| words)
}

fn actions(rule: &Rule) -> BTreeSet<String> {
    let literals = rule.policy.entity_literals().into_iter();
    literals
        .filter(|uid| uid.type_name().to_string() == ACTION)
        .map(|uid| uid.id().unescaped().to_owned())
        .collect()
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// What an action's name stands for.
enum Named {
    Here,
    /// It belongs to a server that is not part of this run, or whose tools nobody knows yet.
    Elsewhere,
    Nowhere {
        what: String,
        next: String,
    },
}

impl Named {
    fn of(name: &str, vocabulary: &Vocabulary) -> Self {
        if vocabulary.tools.contains_key(name) || vocabulary.groups.contains(name) {
            return Self::Here;
        }
        if is_file_word(name) {
            if !vocabulary.unseen.is_empty() {
                return Self::Elsewhere;
            }
            return match closest(name, vocabulary.file_words()) {
                Some(_) => Self::nowhere(name, vocabulary),
                None => Self::Elsewhere,
            };
        }
        let server = name.strip_prefix(SERVER);
        let server = server.or_else(|| name.split_once('.').map(|(server, _)| server));
        let Some(server) = server.filter(|it| ServerName::parse(it).is_ok()) else {
            return Self::nowhere(name, vocabulary);
        };
        if vocabulary.unseen.contains(server) {
            return Self::Elsewhere;
        }
        if vocabulary.servers().any(|it| it == server) {
            return Self::nowhere(name, vocabulary);
        }
        match closest(server, vocabulary.servers()) {
            Some(meant) => Self::Nowhere {
                what: format!("there is no server `{server}`"),
                next: did_you_mean(Some(meant)),
            },
            None => Self::Elsewhere,
        }
    }

    fn nowhere(name: &str, vocabulary: &Vocabulary) -> Self {
        let known = vocabulary.tools.keys().chain(&vocabulary.groups);
        let meant = closest(name, known.map(String::as_str));
        let next = meant.map_or_else(
            || {
                "write Action::\"SERVER.TOOL\", or a group: \"server:NAME\", \"group:NAME\", \
                \"read-only\", \"destructive\""
                    .to_owned()
            },
            |meant| did_you_mean(Some(meant)),
        );
        Self::Nowhere {
            what: format!("there is no tool or group `{name}`"),
            next,
        }
    }
}

fn group_as_tool(rule: &Rule, vocabulary: &Vocabulary) -> Option<Finding> {
    let Scope::Is(name) = &rule.scope else {
        return None;
    };
    let is_group =
        vocabulary.groups.contains(name) || name.starts_with(SERVER) || is_file_word(name);
    is_group.then(|| {
        let place = rule.statement.place_of(&quoted(name));
        let next = format!("write `action in Action::{}`", quoted(name));
        Finding::new(
            place,
            format!("`{name}` is a group, and no call is one"),
            "",
            next,
        )
    })
}

/// Cedar takes `has` with a name that nothing has for a question whose answer is no.
fn unknown_members(rule: &Rule, vocabulary: &Vocabulary) -> Vec<Finding> {
    let mut paths = Vec::new();
    for clause in &rule.clauses {
        let (Clause::When(expr) | Clause::Unless(expr)) = clause;
        collect(expr, &mut paths);
    }
    let known_args: BTreeSet<&str> = covered(rule, vocabulary)
        .flat_map(|words| words.args.0.keys().map(String::as_str))
        .collect();
    let mut findings = Vec::new();
    for steps in paths {
        let (word, known): (&str, Vec<&str>) = match steps.as_slice() {
            // A rule about tools that are not here can speak of any argument.
            [ARGS, name, ..] if !known_args.is_empty() && !reaches_unseen(rule, vocabulary) => {
                (name, known_args.iter().copied().collect())
            }
            [ARGS, ..] | [] => continue,
            [name] => (name, context_names().collect()),
            [name, member, ..] => match FACTS.iter().find(|fact| fact.name == *name) {
                Some(fact) => (member, fact.members().collect()),
                None => (name, context_names().collect()),
            },
        };
        if !known.contains(&word) {
            let kind = if steps.first() == Some(&ARGS) {
                "argument"
            } else {
                "fact"
            };
            let meant = closest(word, known.iter().copied());
            let next = meant.map_or_else(
                || format!("there are {}", known.join(", ")),
                |meant| did_you_mean(Some(meant)),
            );
            let place = rule.statement.place_of(word);
            findings.push(Finding::new(
                place,
                format!("there is no {kind} `{word}`"),
                "",
                next,
            ));
        }
    }
    findings
}

/// Whether a rule may be about tools that nobody knows yet.
fn reaches_unseen(rule: &Rule, vocabulary: &Vocabulary) -> bool {
    match &rule.scope {
        Scope::All => !vocabulary.unseen.is_empty(),
        Scope::Is(name) => vocabulary.may_hold_unseen(name),
        Scope::Within(names) => names.iter().any(|it| vocabulary.may_hold_unseen(it)),
    }
}

/// The longest ways into `context`.
fn collect<'a>(expr: &'a Expr, paths: &mut Vec<Vec<&'a str>>) {
    match path(expr) {
        Some(steps) => paths.push(steps),
        None => inner(expr)
            .unwrap_or_default()
            .into_iter()
            .for_each(|part| collect(part, paths)),
    }
}

/// What Cedar's own strict validation says, once per place.
fn typed(rules: &[Rule], vocabulary: &Vocabulary, strangers: &BTreeSet<String>) -> Vec<Finding> {
    let Some(first) = rules.first() else {
        return Vec::new();
    };
    let whole = |why: String| {
        let what = "the rules cannot be held against the tools";
        vec![Finding::new(first.place.clone(), what, why, "")]
    };
    let schema = match vocabulary.schema(strangers) {
        Ok(schema) => schema,
        Err(why) => return whole(why),
    };
    let set = match PolicySet::from_policies(rules.iter().map(|rule| rule.policy.clone())) {
        Ok(set) => set,
        Err(error) => return whole(error.to_string()),
    };
    let by_id: BTreeMap<&str, &Rule> = rules.iter().map(|rule| (&*rule.id, rule)).collect();
    let result = Validator::new(schema).validate(&set, ValidationMode::Strict);
    let mut findings: Vec<Finding> = Vec::new();
    for error in result.validation_errors() {
        let id = error.policy_id().to_string();
        let Some(rule) = by_id.get(id.as_str()) else {
            return whole(error.to_string());
        };
        let what = format!("the rule `{id}` does not fit the tools");
        let finding = rule.diagnosed(error, &what);
        // One for each tool that the rule is about, in the same place: the first stands for all.
        if !findings.iter().any(|it| it.place == finding.place) {
            findings.push(finding);
        }
    }
    findings
}
