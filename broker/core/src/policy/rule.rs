//! Parses one rule and its annotations. Other modules check whether the rule does what its author
//! intended, and whether the names in it exist.

pub mod syntax_fixes;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use cedar_policy::pst::{ActionConstraint, Clause, Effect};
use cedar_policy::{Policy, PolicyId};
use codegen::closest::closest;
use miette::{Diagnostic, LabeledSpan};

use super::finding::{Finding, did_you_mean};
use super::grammar;
use super::kind::Kind;
use super::mentions::Mentions;
use super::nesting::too_complex;
use super::source::{Place, Statement};
use super::token::tokens;

/// Names of the known annotations.
pub(crate) const ID: &str = "id";
const OWNER: &str = "owner";
const REASON: &str = "reason";
pub(crate) const PROMPT: &str = "prompt";
const ANNOTATIONS: [&str; 4] = [ID, OWNER, REASON, PROMPT];
const NOT_CEDAR: &str = "the rule is not valid Cedar";
pub(crate) const ID_CHARS_MAX: usize = 80;
pub(crate) const TEXT_CHARS_MAX: usize = 400;
/// Maximum number of findings for all rules together.
pub(crate) const FINDINGS_MAX: usize = 500;
/// Maximum number of findings per rule; finding the place of each one scans the rule.
pub(crate) const RULE_FINDINGS_MAX: usize = 20;

/// A parsed rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The rule's id, unique over all files.
    pub id: Arc<str>,
    pub owner: String,
    pub reason: String,
    /// The question for a human, if the rule asks.
    pub prompt: Option<String>,
    pub place: Place,
    pub forbids: bool,
    /// Whether the rule reads the approval level.
    pub asks: bool,
    pub scope: ActionScope,
    pub mentions: Mentions,
    pub clauses: Vec<Clause>,
    pub policy: Policy,
    pub statement: Statement,
    /// The rule in Cedar's JSON format, once it was needed. Cedar parses the text again for each
    /// conversion.
    json: OnceLock<Option<serde_json::Value>>,
}

/// The actions that a rule applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionScope {
    All,
    /// `==`: one tool.
    Is(String),
    /// `in`: tools and groups of tools.
    Within(Vec<String>),
}

impl Rule {
    /// Parses a rule's text. The lint looks for suspicious conditions afterwards.
    pub fn parse(statement: Statement) -> Result<Self, Vec<Finding>> {
        if let Some(why) = too_complex(statement.text()) {
            let next = "split the rule: one permit is enough to allow, one forbid to deny";
            let what = "the rule is too complex";
            let place = statement.place(0);
            return Err(vec![Finding::new(Kind::TooDeep, place, what, why, next)]);
        }
        let policy = parsed(&statement)?;
        let notes = Notes::read(&statement, &policy)?;
        let syntax = policy.to_pst().map_err(|error| {
            let why = error.to_string();
            let place = statement.place(0);
            vec![Finding::new(Kind::Unreadable, place, NOT_CEDAR, why, "")]
        })?;
        let body = syntax.body();
        let mentions = Mentions::in_clauses(body.clauses());
        Ok(Self {
            id: notes.id.as_str().into(),
            owner: notes.owner,
            reason: notes.reason,
            prompt: notes.prompt,
            place: statement.place(0),
            forbids: body.effect == Effect::Forbid,
            asks: mentions.asks(),
            scope: ActionScope::from_constraint(&body.action),
            clauses: body.clauses().clone(),
            policy: policy.new_id(PolicyId::new(&notes.id)),
            mentions,
            statement,
            json: OnceLock::new(),
        })
    }

    /// Returns the rule in Cedar's JSON format.
    pub fn json(&self) -> Option<&serde_json::Value> {
        let json = || self.policy.to_json().ok();
        self.json.get_or_init(json).as_ref()
    }

    /// Returns the place of a Cedar parser or validator error in this rule.
    pub(crate) fn place_of(&self, error: &dyn Diagnostic) -> Place {
        place_of(&self.statement, error)
    }

    /// Returns a finding for a Cedar parser or validator error in this rule.
    pub(crate) fn diagnosed(&self, kind: Kind, error: &dyn Diagnostic, what: &str) -> Finding {
        diagnosed(kind, &self.statement, error, what)
    }
}

/// Parses a rule. Cedar's parser only gets text that fits its grammar: see [`grammar`].
fn parsed(statement: &Statement) -> Result<Policy, Vec<Finding>> {
    let (finding, at) = match grammar::policy(statement.text()) {
        Err(wrong) => {
            let finding = match unended(statement.text(), wrong.at) {
                Some(end) => Finding::new(
                    Kind::Unreadable,
                    statement.place(end),
                    NOT_CEDAR,
                    "the rule has no `;` at its end, and another rule begins after it",
                    "write `;` here",
                ),
                None => {
                    let place = statement.place(wrong.at);
                    Finding::new(Kind::Unreadable, place, NOT_CEDAR, wrong.why, wrong.help)
                }
            };
            (finding, wrong.at)
        }
        Ok(()) => match Policy::parse(None, statement.text()) {
            Ok(policy) => return Ok(policy),
            Err(errors) => {
                let finding = diagnosed(Kind::Unreadable, statement, &errors, NOT_CEDAR);
                let finding = match finding.next.is_empty() {
                    true => Finding {
                        next: meant_variable(&finding.why),
                        ..finding
                    },
                    false => finding,
                };
                (finding, label(&errors).map_or(0, |label| label.offset()))
            }
        },
    };
    Err(vec![finding.fixed(syntax_fixes::syntax(statement, at))])
}

/// Returns the end of a complete rule before `at`, if another rule begins at `at`.
fn unended(text: &str, at: usize) -> Option<usize> {
    let before = text.get(..at)?;
    let all = tokens(text);
    let begins = all.iter().find(|token| token.at == at)?;
    let is_rule = matches!(begins.text, "@" | "permit" | "forbid");
    let last = all.iter().rfind(|token| token.at < at)?;
    let end = last.range().end;
    let ended = format!("{};", before.get(..end)?);
    (is_rule && grammar::policy(&ended).is_ok()).then_some(end)
}

/// Suggests the variable for a misspelt one, such as `contex.labels`.
fn meant_variable(why: &str) -> String {
    const VARIABLES: [&str; 4] = ["context", "action", "principal", "resource"];
    let word = why.split_once("member access `").map(|(_, rest)| rest);
    let word = word.and_then(|rest| rest.split(['.', '`', '[']).next());
    did_you_mean(word.and_then(|word| closest(word, VARIABLES)))
}

/// Returns the position that an error reports, if any.
fn label(error: &dyn Diagnostic) -> Option<LabeledSpan> {
    error.labels().and_then(|mut labels| labels.next())
}

fn place_of(statement: &Statement, error: &dyn Diagnostic) -> Place {
    statement.place(label(error).map_or(0, |label| label.offset()))
}

fn diagnosed(kind: Kind, statement: &Statement, error: &dyn Diagnostic, what: &str) -> Finding {
    let label = label(error);
    let place = place_of(statement, error);
    let said = error.to_string();
    // Cedar's prefix names the policy, which the finding names anyway.
    let why = match said.strip_prefix("for policy `") {
        Some(rest) => rest
            .split_once("`, ")
            .map_or(rest, |(_, why)| why)
            .to_owned(),
        None => said,
    };
    let label = label.and_then(|label| label.label().map(str::to_owned));
    let why = label.map_or_else(|| why.clone(), |label| format!("{why} ({label})"));
    let next = error
        .help()
        .map(|help| help.to_string())
        .unwrap_or_default();
    Finding::new(kind, place, what, why, next)
}

impl ActionScope {
    fn from_constraint(action: &ActionConstraint) -> Self {
        match action {
            ActionConstraint::Any => Self::All,
            ActionConstraint::Eq(uid) => Self::Is(uid.eid.to_string()),
            ActionConstraint::In(uids) => {
                Self::Within(uids.iter().map(|uid| uid.eid.to_string()).collect())
            }
        }
    }

    /// Whether the scope covers a tool; `groups` are the groups of this tool.
    pub fn covers(&self, tool: &str, groups: &BTreeSet<String>) -> bool {
        match self {
            Self::All => true,
            Self::Is(name) => name == tool,
            Self::Within(names) => names
                .iter()
                .any(|name| name == tool || groups.contains(name)),
        }
    }
}

/// The values of a rule's annotations.
struct Notes {
    id: String,
    owner: String,
    reason: String,
    prompt: Option<String>,
}

impl Notes {
    fn read(statement: &Statement, policy: &Policy) -> Result<Self, Vec<Finding>> {
        let mut findings = Vec::new();
        // A misspelt annotation is not also reported as missing.
        let mut meant_names = BTreeSet::new();
        let mut annotations: Vec<_> = policy.annotations().collect();
        annotations.sort_unstable();
        for (name, text) in &annotations {
            if findings.len() >= RULE_FINDINGS_MAX {
                return Err(findings);
            }
            let place = || statement.place_of(&format!("@{name}"));
            if !ANNOTATIONS.contains(name) {
                let meant = closest(name, ANNOTATIONS);
                meant_names.extend(meant);
                let meant = meant.map(|it| format!("@{it}"));
                let why = "the annotations are @id, @owner, @reason and @prompt";
                let what = format!("unknown annotation `@{name}`");
                let next = did_you_mean(meant.as_deref());
                let fix = match &meant {
                    Some(meant) => syntax_fixes::word(statement, &format!("@{name}"), meant),
                    None => syntax_fixes::without_note(statement, name),
                };
                let kind = Kind::AnnotationUnknown;
                findings.push(Finding::new(kind, place(), what, why, next).fixed(fix));
            } else if let Some(why) = bad_text(name, text) {
                let what = format!("invalid @{name}");
                let fix = syntax_fixes::note(statement, name, &syntax_fixes::usable(name, text));
                let kind = Kind::AnnotationUnusable;
                findings.push(Finding::new(kind, place(), what, why, "").fixed(fix));
            }
        }
        let text = |name: &str| policy.annotation(name).unwrap_or_default().to_owned();
        let notes = Self {
            id: text(ID),
            owner: text(OWNER),
            reason: text(REASON),
            prompt: policy.annotation(PROMPT).map(str::to_owned),
        };
        for (name, example) in [
            (ID, "no-mail-after-web"),
            (OWNER, "security"),
            (REASON, "why the rule exists"),
        ] {
            if policy.annotation(name).is_none() && !meant_names.contains(name) {
                let next = format!("write @{name}(\"{example}\")");
                let what = format!("the rule has no @{name}");
                let kind = Kind::AnnotationMissing;
                let fix = syntax_fixes::new_note(statement, name, &syntax_fixes::usable(name, ""));
                let finding = Finding::new(kind, statement.place(0), what, "", next);
                findings.push(finding.fixed(Some(fix)));
            }
        }
        if findings.is_empty() {
            Ok(notes)
        } else {
            Err(findings)
        }
    }
}

fn bad_text(name: &str, text: &str) -> Option<String> {
    let chars = text.chars().count();
    let fits_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.trim().is_empty() {
        return Some("the text is empty".into());
    }
    if name == ID && !(chars <= ID_CHARS_MAX && text.chars().all(fits_id)) {
        let why = format!("an id has up to {ID_CHARS_MAX} letters, digits, `-`, `_` and `.`");
        return Some(why);
    }
    if chars > TEXT_CHARS_MAX {
        return Some(format!(
            "the text has {chars} characters; at most {TEXT_CHARS_MAX} are allowed"
        ));
    }
    let odd = text
        .chars()
        .any(|c| c.is_control() || codegen::text::is_invisible(c));
    odd.then(|| "the text contains invisible characters or a line break".into())
}
