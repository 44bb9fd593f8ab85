//! Checks rules against the tools of a run. Finds tools, groups, arguments and facts that do not
//! exist, and types that do not match.

mod mismatch;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cedar_policy::pst::{Clause, Expr};
use cedar_policy::{PolicySet, ValidationMode, Validator};
use codegen::closest::{closest, closest_tool};

use super::ast;
use super::expr::{inner, path};
use super::fact::FACTS;
use super::finding::{Finding, did_you_mean};
use super::fix::Fix;
use super::kind::Kind;
use super::mentions::ARGS;
use super::rule::{ActionScope, FINDINGS_MAX, RULE_FINDINGS_MAX, Rule};
use super::token::{Token, tokens};
use super::vocabulary::{ACTION, SERVER, Vocabulary, context_names, is_file_word};
use crate::id::ServerName;

/// Number of rules that Cedar validates before the number of findings is checked.
const RULES_AT_ONCE: usize = 100;
/// Maximum number of fixes that are tried out; each is a parse and a validation of a rule.
const TRIALS_MAX: usize = 50;

/// Returns all findings; an empty list means that the rules are valid.
pub fn validate(rules: &[Rule], vocabulary: &Vocabulary) -> Vec<Finding> {
    Checker::new(vocabulary).check(rules)
}

/// Checks several sets of rules against one vocabulary, and keeps the validator between the checks.
#[derive(Debug)]
pub struct Checker<'a> {
    vocabulary: &'a Vocabulary,
    /// The latest validator, and the actions of other servers in its schema. Usually there are no
    /// such actions.
    validator: Option<(BTreeSet<String>, Validator)>,
    trials_max: usize,
}

impl<'a> Checker<'a> {
    pub fn new(vocabulary: &'a Vocabulary) -> Self {
        Self {
            vocabulary,
            validator: None,
            trials_max: TRIALS_MAX,
        }
    }

    /// Returns a checker that proposes no fix which would have to be tried out.
    pub fn without_fixes(vocabulary: &'a Vocabulary) -> Self {
        Self {
            trials_max: 0,
            ..Self::new(vocabulary)
        }
    }

    pub fn check(&mut self, rules: &[Rule]) -> Vec<Finding> {
        let (mut findings, strangers) = unknown(rules, self.vocabulary);
        if findings.is_empty() {
            findings = self.typed(rules, strangers);
        }
        findings.sort();
        findings.dedup();
        findings
    }

    fn validator(&mut self, strangers: BTreeSet<String>) -> Result<&Validator, String> {
        let (_, validator) = match self.validator.take() {
            Some(kept) if kept.0 == strangers => self.validator.insert(kept),
            _ => {
                let schema = self.vocabulary.schema(&strangers)?;
                self.validator.insert((strangers, Validator::new(schema)))
            }
        };
        Ok(validator)
    }
}

/// Returns findings for unknown names, and the actions that belong to servers outside this run.
fn unknown(rules: &[Rule], vocabulary: &Vocabulary) -> (Vec<Finding>, BTreeSet<String>) {
    let mut findings = Vec::new();
    let mut strangers = BTreeSet::new();
    for rule in rules {
        if findings.len() >= FINDINGS_MAX {
            break;
        }
        let before = findings.len();
        for name in actions(rule) {
            if findings.len() >= before + RULE_FINDINGS_MAX {
                break;
            }
            match ActionRef::resolve(&name, vocabulary) {
                ActionRef::Here => {}
                ActionRef::Elsewhere => {
                    strangers.insert(name);
                }
                ActionRef::Nowhere {
                    kind,
                    what,
                    next,
                    meant,
                } => {
                    let place = rule.statement.place_of(&quoted(&name));
                    let fix = meant.and_then(|meant| named(rule, &name, &meant));
                    findings.push(Finding::new(kind, place, what, "", next).fixed(fix));
                }
            }
        }
        findings.extend(group_as_tool(rule, vocabulary));
        findings.extend(unknown_members(rule, vocabulary));
    }
    (findings, strangers)
}

/// Whether a rule applies to any tool of this run.
pub(crate) fn applies_here(rule: &Rule, vocabulary: &Vocabulary) -> bool {
    covered(rule, vocabulary).next().is_some()
}

fn covered<'a>(
    rule: &'a Rule,
    vocabulary: &'a Vocabulary,
) -> impl Iterator<Item = &'a super::vocabulary::ToolWords> {
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

/// The result of looking up an action's name.
enum ActionRef {
    Here,
    /// The action belongs to a server that is not part of this run, or whose tools are not known
    /// yet.
    Elsewhere,
    Nowhere {
        kind: Kind,
        what: String,
        next: String,
        /// The complete name that was probably meant.
        meant: Option<String>,
    },
}

impl ActionRef {
    fn resolve(name: &str, vocabulary: &Vocabulary) -> Self {
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
                kind: Kind::ServerUnknown,
                what: format!("there is no server `{server}`"),
                next: did_you_mean(Some(meant)),
                meant: Some(name.replacen(server, meant, 1)),
            },
            None => Self::Elsewhere,
        }
    }

    fn nowhere(name: &str, vocabulary: &Vocabulary) -> Self {
        let all_of = name
            .strip_suffix(".*")
            .map(|server| format!("{SERVER}{server}"));
        if let Some(all) = all_of.filter(|all| vocabulary.groups.contains(all)) {
            return Self::Nowhere {
                kind: Kind::ToolUnknown,
                what: format!("there is no tool or group `{name}`"),
                next: format!("write `action in Action::{}`", quoted(&all)),
                meant: Some(all),
            };
        }
        let known = vocabulary.tools.keys().chain(&vocabulary.groups);
        let meant = closest_tool(name, known.map(String::as_str));
        let next = meant.map_or_else(
            || {
                "write Action::\"SERVER.TOOL\", or a group: \"server:NAME\", \"group:NAME\", \
                \"read-only\", \"destructive\""
                    .to_owned()
            },
            |meant| did_you_mean(Some(meant)),
        );
        Self::Nowhere {
            kind: Kind::ToolUnknown,
            what: format!("there is no tool or group `{name}`"),
            next,
            meant: meant.map(str::to_owned),
        }
    }
}

fn group_as_tool(rule: &Rule, vocabulary: &Vocabulary) -> Option<Finding> {
    let ActionScope::Is(name) = &rule.scope else {
        return None;
    };
    let is_group =
        vocabulary.groups.contains(name) || name.starts_with(SERVER) || is_file_word(name);
    is_group.then(|| {
        let place = rule.statement.place_of(&quoted(name));
        let next = format!("write `action in Action::{}`", quoted(name));
        let what = format!("`{name}` is a group, not a tool");
        let fix = word(rule, "==", "in");
        Finding::new(Kind::GroupAsTool, place, what, "", next).fixed(fix)
    })
}

/// Finds unknown members of `context`. Cedar accepts `has` with an unknown name, and evaluates it
/// to false.
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
        if findings.len() >= RULE_FINDINGS_MAX {
            break;
        }
        let (unknown, known): (&str, Vec<&str>) = match steps.as_slice() {
            // A rule for tools that are not known yet can read any argument.
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
        if !known.contains(&unknown) {
            let (kind, noun) = if steps.first() == Some(&ARGS) {
                (Kind::ArgumentUnknown, "argument")
            } else {
                (Kind::FactUnknown, "fact")
            };
            let meant = closest(unknown, known.iter().copied());
            let next = meant.map_or_else(
                || match known.as_slice() {
                    [] => {
                        let fact = steps.first().copied().unwrap_or_default();
                        format!("`context.{fact}` has no members; read it as a whole")
                    }
                    known => format!("the known names are {}", known.join(", ")),
                },
                |meant| did_you_mean(Some(meant)),
            );
            let at = member(rule, &steps, unknown);
            let place = rule.statement.place(at.start);
            let fix = meant.map(|meant| {
                let is_text = rule.statement.text().get(at.clone()) != Some(unknown);
                let instead = if is_text {
                    quoted(meant)
                } else {
                    meant.to_owned()
                };
                Fix::replace(
                    &rule.statement,
                    at.clone(),
                    instead,
                    format!("write `{meant}`"),
                )
            });
            let what = format!("there is no {noun} `{unknown}`");
            findings.push(Finding::new(kind, place, what, "", next).fixed(fix));
        }
    }
    findings
}

/// Whether a rule may apply to tools that are not known yet.
fn reaches_unseen(rule: &Rule, vocabulary: &Vocabulary) -> bool {
    match &rule.scope {
        ActionScope::All => !vocabulary.unseen.is_empty(),
        ActionScope::Is(name) => vocabulary.may_hold_unseen(name),
        ActionScope::Within(names) => names.iter().any(|it| vocabulary.may_hold_unseen(it)),
    }
}

/// Replaces a name by another. A group needs `in` instead of `==`.
fn named(rule: &Rule, name: &str, meant: &str) -> Option<Fix> {
    let fix = word(rule, &quoted(name), &quoted(meant))?;
    let is_tool = matches!(&rule.scope, ActionScope::Is(scope) if scope == name);
    match rule.statement.find("==") {
        Some(at) if is_tool && meant.starts_with(SERVER) => {
            Some(fix.and_replace(&rule.statement, at..at + 2, "in"))
        }
        _ => Some(fix),
    }
}

/// Replaces the first occurrence of a word outside of comments.
fn word(rule: &Rule, word: &str, instead: &str) -> Option<Fix> {
    let at = rule.statement.find(word)?;
    let what = format!("write {instead}");
    Some(Fix::replace(
        &rule.statement,
        at..at + word.len(),
        instead,
        what,
    ))
}

/// Returns the range of a member's name. If the path to the member is not found in the text,
/// returns the first occurrence of the name.
fn member(rule: &Rule, steps: &[&str], name: &str) -> Range<usize> {
    let text = rule.statement.text();
    let all = tokens(text);
    let way = steps.iter().take_while(|step| **step != name);
    let way: Vec<&str> = std::iter::once("context").chain(way.copied()).collect();
    let is_name = |token: &Token<'_>| token.text == name || token.text == quoted(name);
    let names = all.iter().enumerate().filter(|(_, token)| is_name(token));
    let leads = |at: usize| {
        let before = all.get(..at).unwrap_or_default().iter().rev();
        let mut words = before.filter(|it| !matches!(it.text, "." | "[" | "]" | "has"));
        way.iter().rev().all(|step| {
            let found = words.next().map_or("", |it| it.text);
            found == *step || found == quoted(step)
        })
    };
    let mut found = names.clone().filter(|(at, _)| leads(*at));
    let found = found.next().or_else(|| names.clone().next());
    found.map_or(0..0, |(_, token)| token.range())
}

/// Collects the longest paths into `context`.
fn collect<'a>(expr: &'a Expr, paths: &mut Vec<Vec<&'a str>>) {
    match path(expr) {
        Some(steps) => paths.push(steps),
        None => inner(expr)
            .unwrap_or_default()
            .into_iter()
            .for_each(|part| collect(part, paths)),
    }
}

/// The clauses of a rule with errors, and the number of errors that are reported.
struct RuleErrors {
    clauses: Vec<ast::Clause>,
    count: usize,
}

impl Checker<'_> {
    /// Returns the findings of Cedar's strict validation, once per place.
    fn typed(&mut self, rules: &[Rule], strangers: BTreeSet<String>) -> Vec<Finding> {
        let vocabulary = self.vocabulary;
        let Some(first) = rules.first() else {
            return Vec::new();
        };
        let whole = |why: String| {
            let what = "the rules cannot be checked against the tools";
            vec![Finding::new(
                Kind::Unusable,
                first.place.clone(),
                what,
                why,
                "",
            )]
        };
        let mut trial = mismatch::FixTrial::new(vocabulary, self.trials_max);
        let validator = match self.validator(strangers) {
            Ok(validator) => validator,
            Err(why) => return whole(why),
        };
        let mut findings: Vec<Finding> = Vec::new();
        // Cedar reports one error for each tool that a rule applies to, in the same place. Keep the
        // first.
        let mut places = BTreeSet::new();
        let mut of_rules: BTreeMap<&str, RuleErrors> = BTreeMap::new();
        for some in rules.chunks(RULES_AT_ONCE) {
            let set = match PolicySet::from_policies(some.iter().map(|rule| rule.policy.clone())) {
                Ok(set) => set,
                Err(error) => return whole(error.to_string()),
            };
            let by_id: BTreeMap<&str, &Rule> = some.iter().map(|rule| (&*rule.id, rule)).collect();
            let result = validator.validate(&set, ValidationMode::Strict);
            // Cedar reports them in any order. The output must not change from run to run.
            let mut errors: Vec<_> = result.validation_errors().collect();
            errors.sort_by_cached_key(ToString::to_string);
            for error in errors {
                let id = error.policy_id().to_string();
                let Some(rule) = by_id.get(id.as_str()) else {
                    return whole(error.to_string());
                };
                let of_rule = of_rules.entry(&rule.id).or_insert_with(|| RuleErrors {
                    clauses: ast::clauses(rule).unwrap_or_default(),
                    count: 0,
                });
                if of_rule.count < RULE_FINDINGS_MAX && places.insert(rule.place_of(error)) {
                    of_rule.count += 1;
                    let what = format!("the rule `{id}` does not match the tools' schemas");
                    let about = (*rule, of_rule.clauses.as_slice());
                    findings.push(mismatch::finding(about, error, &what, &mut trial));
                }
                if findings.len() >= FINDINGS_MAX {
                    return findings;
                }
            }
        }
        findings
    }
}
