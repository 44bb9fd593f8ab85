//! One rule: its text parsed, its annotations read. Whether what it speaks of
//! exists is looked at elsewhere.

use std::collections::{BTreeSet, HashMap};
use std::str::FromStr as _;
use std::sync::Arc;

use cedar_policy::pst::{ActionConstraint, Clause, Effect};
use cedar_policy::{Policy, PolicyId, PolicySet};
use codegen::closest::closest;
use miette::Diagnostic;

use super::RULES_MAX;
use super::finding::{Finding, did_you_mean};
use super::mentions::Mentions;
use super::nesting::too_deep;
use super::source::{Place, PolicyFile, Statement, statements};

/// The annotations there are.
const ID: &str = "id";
const OWNER: &str = "owner";
const REASON: &str = "reason";
const PROMPT: &str = "prompt";
const ANNOTATIONS: [&str; 4] = [ID, OWNER, REASON, PROMPT];
const ID_CHARS_MAX: usize = 80;
const TEXT_CHARS_MAX: usize = 400;
const FINDINGS_MAX: usize = 500;

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
    let whole = PolicySet::from_str(&file.text).ok();
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
        Finding::new(place, what, why, "write it anew, as plain text")
    })
}

fn id_twice(rule: &Rule, earlier: &Place) -> Finding {
    Finding::new(
        rule.statement.place_of("@id"),
        format!("the rule id `{}` is taken", rule.id),
        format!("by the rule at {earlier}"),
        "give it another id",
    )
}

impl Rule {
    fn read(statement: Statement, tightens: bool) -> Result<Self, Vec<Finding>> {
        if let Some(why) = too_deep(statement.text()) {
            let next = "write several rules: any permit gives, and any forbid takes";
            let what = "a rule that nests too deep";
            return Err(vec![Finding::new(statement.place(0), what, why, next)]);
        }
        let policy = Policy::parse(None, statement.text())
            .map_err(|errors| vec![diagnosed(&statement, &errors, "cannot be read")])?;
        let notes = Notes::read(&statement, &policy)?;
        let syntax = policy.to_pst().map_err(|error| {
            let why = error.to_string();
            vec![Finding::new(statement.place(0), "cannot be read", why, "")]
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
        let mut found = |word: &str, what: String, next: &str| {
            let place = self.statement.place_of(word);
            findings.push(Finding::new(place, what, "", next));
        };
        if self.asks && self.prompt.is_none() {
            let what = format!("the rule `{}` asks and has no @prompt", self.id);
            found(
                "approval",
                what,
                "write @prompt(\"what a person is asked\")",
            );
        }
        if !self.asks && self.prompt.is_some() {
            let what = format!("the @prompt of the rule `{}` is never shown", self.id);
            let next = "leave it out, or speak of context.approval in the condition";
            found("@prompt", what, next);
        }
        if tightens && !self.forbids {
            let what = format!(
                "the rule `{}` permits, in a folder that may only tighten",
                self.id
            );
            found(
                "permit",
                what,
                "write a forbid, or name the folder with --policy",
            );
        }
        findings
    }

    /// A finding at an error of the Cedar parser or validator in this rule.
    pub(super) fn diagnosed(&self, error: &dyn Diagnostic, what: &str) -> Finding {
        diagnosed(&self.statement, error, what)
    }
}

fn diagnosed(statement: &Statement, error: &dyn Diagnostic, what: &str) -> Finding {
    let label = error.labels().and_then(|mut labels| labels.next());
    let place = statement.place(label.as_ref().map_or(0, |label| label.offset()));
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
    Finding::new(place, what, why, next)
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
        let mut annotations: Vec<_> = policy.annotations().collect();
        annotations.sort_unstable();
        for (name, text) in &annotations {
            let place = || statement.place_of(&format!("@{name}"));
            if !ANNOTATIONS.contains(name) {
                let meant = closest(name, ANNOTATIONS).map(|it| format!("@{it}"));
                let why = "there are @id, @owner, @reason and @prompt";
                let what = format!("unknown annotation `@{name}`");
                findings.push(Finding::new(
                    place(),
                    what,
                    why,
                    did_you_mean(meant.as_deref()),
                ));
            } else if let Some(why) = bad_text(name, text) {
                findings.push(Finding::new(
                    place(),
                    format!("the @{name} cannot be used"),
                    why,
                    "",
                ));
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
            if policy.annotation(name).is_none() {
                let next = format!("write @{name}(\"{example}\")");
                findings.push(Finding::new(
                    statement.place(0),
                    format!("a rule without @{name}"),
                    "",
                    next,
                ));
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
