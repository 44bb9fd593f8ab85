//! One rule: its text parsed, its annotations read. Whether what it speaks of
//! exists is looked at elsewhere.

mod mend;

use std::collections::{BTreeSet, HashMap};
use std::str::FromStr as _;
use std::sync::Arc;

use cedar_policy::pst::{ActionConstraint, Clause, Effect};
use cedar_policy::{Policy, PolicyId, PolicySet};
use codegen::closest::closest;
use miette::{Diagnostic, LabeledSpan};

use super::RULES_MAX;
use super::finding::{Finding, did_you_mean};
use super::fix::Fix;
use super::grammar;
use super::kind::Kind;
use super::mentions::{APPROVAL, Mentions};
use super::nesting::too_deep;
use super::source::{Place, PolicyFile, Statement, statements};

/// The annotations there are.
pub(super) const ID: &str = "id";
const OWNER: &str = "owner";
const REASON: &str = "reason";
const PROMPT: &str = "prompt";
const ANNOTATIONS: [&str; 4] = [ID, OWNER, REASON, PROMPT];
pub(super) const ID_CHARS_MAX: usize = 80;
pub(super) const TEXT_CHARS_MAX: usize = 400;
/// Of all rules.
pub(super) const FINDINGS_MAX: usize = 500;
/// Of one rule: for each, the rule is gone through to find its place.
pub(super) const RULE_FINDINGS_MAX: usize = 20;

/// A rule as a reviewer wrote it.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Unique over all files.
    pub id: Arc<str>,
    pub owner: String,
    pub reason: String,
    /// What a human is asked, where the rule asks.
    pub prompt: Option<String>,
    pub place: Place,
    pub forbids: bool,
    /// It speaks of the approval level.
    pub asks: bool,
    pub(super) scope: Scope,
    pub(super) mentions: Mentions,
    pub(super) clauses: Vec<Clause>,
    pub(super) policy: Policy,
    pub(super) statement: Statement,
}

/// Which actions a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    /// `==`: one tool.
    Is(String),
    /// `in`: tools and groups of tools.
    Within(Vec<String>),
}

/// All rules of all files, or what is wrong with them. It stops where nobody would go on
/// reading: at one rule too many, which is the caller's to refuse, and at so many findings.
pub(super) fn read(files: &[PolicyFile]) -> Result<Vec<Rule>, Vec<Finding>> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut places: HashMap<Arc<str>, Place> = HashMap::new();
    let mut findings = Vec::new();
    'all: for file in files {
        let (name, text) = (file.name.as_str().into(), file.text.as_str().into());
        let (rules_before, faults_before) = (rules.len(), findings.len());
        for statement in statements(&name, &text) {
            if rules.len() > RULES_MAX || findings.len() >= FINDINGS_MAX {
                break 'all;
            }
            match Rule::read(statement, file.tightens) {
                Ok(rule) => match places.get(&rule.id) {
                    Some(earlier) => findings.push(id_twice(&rule, earlier)),
                    None => {
                        places.insert(Arc::clone(&rule.id), rule.place.clone());
                        rules.push(rule);
                    }
                },
                Err(found) => findings.extend(found),
            }
        }
        if findings.len() == faults_before {
            findings.extend(read_apart(&name, file, rules.get(rules_before..)));
        }
    }
    if findings.is_empty() {
        Ok(rules)
    } else {
        Err(findings)
    }
}

/// Where a file is cut into rules is our own reading of it: Cedar has to find the same rules in
/// the whole, or one that forbids could be taken for a comment.
fn read_apart(name: &Arc<str>, file: &PolicyFile, rules: Option<&[Rule]>) -> Option<Finding> {
    let mut ours: Vec<&str> = rules?.iter().map(|rule| &*rule.id).collect();
    ours.sort_unstable();
    let is_cedar = grammar::policies(&file.text).is_ok();
    let whole = is_cedar.then(|| PolicySet::from_str(&file.text).ok());
    let whole = whole.flatten();
    let theirs = whole.as_ref().map(|set| {
        let mut ids: Vec<&str> = set
            .policies()
            .map(|policy| policy.annotation(ID).unwrap_or_default())
            .collect();
        ids.sort_unstable();
        ids
    });
    (theirs.as_ref() != Some(&ours)).then(|| {
        let place = Place {
            file: Arc::clone(name),
            line: 1,
            column: 1,
        };
        let count = theirs.map_or_else(|| "none".to_owned(), |ids| ids.len().to_string());
        let what = "the file cannot be cut into rules";
        let why = format!("as a whole it holds {count}, one by one {}", ours.len());
        Finding::new(
            Kind::FileUnclear,
            place,
            what,
            why,
            "write it again, as plain text",
        )
    })
}

fn id_twice(rule: &Rule, earlier: &Place) -> Finding {
    let finding = Finding::new(
        Kind::IdTaken,
        rule.statement.place_of("@id"),
        format!("the rule id `{}` is taken", rule.id),
        format!("by the rule at {earlier}"),
        "give it another id",
    );
    let own = format!("{}-{}", rule.id, rule.place.line);
    finding.fixed(mend::note(&rule.statement, ID, &own))
}

/// One rule by itself.
pub(super) fn read_one(statement: Statement, tightens: bool) -> Result<Rule, Vec<Finding>> {
    Rule::read(statement, tightens)
}

impl Rule {
    fn read(statement: Statement, tightens: bool) -> Result<Self, Vec<Finding>> {
        if let Some(why) = too_deep(statement.text()) {
            let next = "write several rules: any permit gives, and any forbid takes";
            let what = "a rule that nests too deep";
            let place = statement.place(0);
            return Err(vec![Finding::new(Kind::TooDeep, place, what, why, next)]);
        }
        let policy = parsed(&statement)?;
        let notes = Notes::read(&statement, &policy)?;
        let syntax = policy.to_pst().map_err(|error| {
            let why = error.to_string();
            let place = statement.place(0);
            vec![Finding::new(
                Kind::Unreadable,
                place,
                "cannot be read",
                why,
                "",
            )]
        })?;
        let body = syntax.body();
        let mentions = Mentions::of(body.clauses());
        let rule = Self {
            id: notes.id.as_str().into(),
            owner: notes.owner,
            reason: notes.reason,
            prompt: notes.prompt,
            place: statement.place(0),
            forbids: body.effect == Effect::Forbid,
            asks: mentions.asks(),
            scope: Scope::of(&body.action),
            clauses: body.clauses().clone(),
            policy: policy.new_id(PolicyId::new(&notes.id)),
            mentions,
            statement,
        };
        let findings = rule.oddities(tightens);
        if findings.is_empty() {
            Ok(rule)
        } else {
            Err(findings)
        }
    }

    fn oddities(&self, tightens: bool) -> Vec<Finding> {
        let mut findings = super::lint::findings(self);
        let mut found = |kind, word: &str, what: String, next: &str, fix| {
            let place = self.statement.place_of(word);
            findings.push(Finding::new(kind, place, what, "", next).fixed(fix));
        };
        if self.mentions.facts.contains(APPROVAL) && self.prompt.is_none() {
            let what = format!("the rule `{}` asks and has no @prompt", self.id);
            let next = "write @prompt(\"what a person is asked\")";
            let asked = format!("{}. May it be done?", self.reason.trim_end_matches('.'));
            let fix = mend::new_note(&self.statement, PROMPT, &asked);
            found(Kind::PromptMissing, "approval", what, next, Some(fix));
        }
        if !self.asks && self.prompt.is_some() {
            let what = format!("the @prompt of the rule `{}` is never shown", self.id);
            let next = "leave it out, or speak of context.approval in the condition";
            let fix = mend::without_note(&self.statement, PROMPT);
            found(Kind::PromptIdle, "@prompt", what, next, fix);
        }
        if tightens && !self.forbids {
            let what = format!(
                "the rule `{}` permits, in a folder that may only tighten",
                self.id
            );
            let next = "write a forbid, or name the folder with --policy";
            let fix = Fix::without_rule(&self.statement, "leave the rule out");
            found(Kind::TighteningPermits, "permit", what, next, Some(fix));
        }
        findings
    }

    /// As it would be with a change of its text; none when it could not be read.
    pub(super) fn with(&self, fix: &Fix) -> Option<Self> {
        let text: Arc<str> = fix.apply(self.statement.whole())?.into();
        let name = Arc::clone(&self.place.file);
        let all = statements(&name, &text);
        let own = all
            .into_iter()
            .find(|it| it.start() == self.statement.start())?;
        Self::read(own, false).ok()
    }

    /// Where an error of the Cedar parser or validator in this rule is.
    pub(super) fn place_of(&self, error: &dyn Diagnostic) -> Place {
        place_of(&self.statement, error)
    }

    /// A finding at an error of the Cedar parser or validator in this rule.
    pub(super) fn diagnosed(&self, kind: Kind, error: &dyn Diagnostic, what: &str) -> Finding {
        diagnosed(kind, &self.statement, error, what)
    }
}

/// Cedar is given what fits its grammar, and nothing else: see [`grammar`].
fn parsed(statement: &Statement) -> Result<Policy, Vec<Finding>> {
    const WHAT: &str = "cannot be read";
    let (finding, at) = match grammar::policy(statement.text()) {
        Err(wrong) => {
            let place = statement.place(wrong.at);
            let finding = Finding::new(Kind::Unreadable, place, WHAT, wrong.why, wrong.help);
            (finding, wrong.at)
        }
        Ok(()) => match Policy::parse(None, statement.text()) {
            Ok(policy) => return Ok(policy),
            Err(errors) => {
                let finding = diagnosed(Kind::Unreadable, statement, &errors, WHAT);
                (finding, label(&errors).map_or(0, |label| label.offset()))
            }
        },
    };
    Err(vec![finding.fixed(mend::syntax(statement, at))])
}

/// Where an error is, as far as it says.
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
    // Its own prefix names the policy, which the finding does too.
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

impl Scope {
    fn of(action: &ActionConstraint) -> Self {
        match action {
            ActionConstraint::Any => Self::All,
            ActionConstraint::Eq(uid) => Self::Is(uid.eid.to_string()),
            ActionConstraint::In(uids) => {
                Self::Within(uids.iter().map(|uid| uid.eid.to_string()).collect())
            }
        }
    }

    /// `groups`: those of the tool.
    pub(super) fn covers(&self, tool: &str, groups: &BTreeSet<String>) -> bool {
        match self {
            Self::All => true,
            Self::Is(name) => name == tool,
            Self::Within(names) => names
                .iter()
                .any(|name| name == tool || groups.contains(name)),
        }
    }
}

/// What the annotations say.
struct Notes {
    id: String,
    owner: String,
    reason: String,
    prompt: Option<String>,
}

impl Notes {
    fn read(statement: &Statement, policy: &Policy) -> Result<Self, Vec<Finding>> {
        let mut findings = Vec::new();
        // What is there under a misspelt name is not missing too.
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
                let why = "there are @id, @owner, @reason and @prompt";
                let what = format!("unknown annotation `@{name}`");
                let next = did_you_mean(meant.as_deref());
                let fix = match &meant {
                    Some(meant) => mend::word(statement, &format!("@{name}"), meant),
                    None => mend::without_note(statement, name),
                };
                let kind = Kind::AnnotationUnknown;
                findings.push(Finding::new(kind, place(), what, why, next).fixed(fix));
            } else if let Some(why) = bad_text(name, text) {
                let what = format!("the @{name} cannot be used");
                let fix = mend::note(statement, name, &mend::usable(name, text));
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
            (REASON, "why the rule is there"),
        ] {
            if policy.annotation(name).is_none() && !meant_names.contains(name) {
                let next = format!("write @{name}(\"{example}\")");
                let what = format!("a rule without @{name}");
                let kind = Kind::AnnotationMissing;
                let fix = mend::new_note(statement, name, &mend::usable(name, ""));
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
        return Some("it is empty".into());
    }
    if name == ID && !(chars <= ID_CHARS_MAX && text.chars().all(fits_id)) {
        let why = format!("an id is at most {ID_CHARS_MAX} letters, digits, `-`, `_` and `.`");
        return Some(why);
    }
    if chars > TEXT_CHARS_MAX {
        return Some(format!(
            "it has {chars} characters; {TEXT_CHARS_MAX} are allowed"
        ));
    }
    let odd = text
        .chars()
        .any(|c| c.is_control() || codegen::text::is_invisible(c));
    odd.then(|| "it holds characters that cannot be seen, or a line break".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_which_a_rule_was_not_read_is_refused() {
        let rule = |id: &str| {
            format!(
                "@id(\"{id}\") @owner(\"o\") @reason(\"r\") permit(principal, action, resource);\n"
            )
        };
        let file = |text: String| PolicyFile {
            name: "a.cedar".into(),
            text,
            tightens: false,
        };
        let both = file(rule("a") + &rule("b"));
        let rules = read(std::slice::from_ref(&both)).unwrap();
        let found = |file: &PolicyFile, rules: &[Rule]| {
            read_apart(&"a.cedar".into(), file, Some(rules)).map(|it| it.why)
        };
        assert_eq!(found(&both, &rules), None);
        let why = "as a whole it holds 2, one by one 1";
        assert_eq!(found(&both, &rules[..1]).as_deref(), Some(why));
        let other = file(rule("a") + &rule("c"));
        assert!(found(&other, &rules).is_some());
        let broken = file(rule("a") + "permit(");
        let why = "as a whole it holds none, one by one 1";
        assert_eq!(found(&broken, &rules[..1]).as_deref(), Some(why));
    }
}
