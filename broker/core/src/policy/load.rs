//! Parses policy files. Returns all rules, or the findings about single rules. Other modules check
//! whether the tools and facts that the rules name exist.

use std::collections::HashMap;
use std::sync::Arc;

use super::finding::Finding;
use super::fix::Fix;
use super::grammar;
use super::kind::Kind;
use super::lint;
use super::mentions::APPROVAL;
use super::rule::{FINDINGS_MAX, ID, PROMPT, Rule, syntax_fixes};
use super::source::{Place, PolicyFile, Statement, one_by_one, statements};
use super::{RULES_MAX, TEXT_BYTES_MAX, too_many};

/// Parses all rules of all files, or returns the findings. Stops when there is one rule more than
/// allowed, which the caller refuses, or when the maximum number of findings is reached.
pub fn read(files: &[PolicyFile]) -> Result<Vec<Rule>, Vec<Finding>> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut places: HashMap<Arc<str>, Place> = HashMap::new();
    let mut findings = Vec::new();
    if let Some(file) = first_too_much(files) {
        let what = format!("more than {} KiB of rules", TEXT_BYTES_MAX / 1024);
        let place = Place::at_offset(&file.name.as_str().into(), "", 0);
        return Err(vec![too_many(place, what)]);
    }
    'all: for file in files {
        let (name, text) = (file.name.as_str().into(), file.text.as_str().into());
        let (rules_before, faults_before) = (rules.len(), findings.len());
        for statement in statements(&name, &text) {
            if rules.len() > RULES_MAX || findings.len() >= FINDINGS_MAX {
                break 'all;
            }
            match read_one(statement, file.tightens) {
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

/// Returns the file at which the total size exceeds [`TEXT_BYTES_MAX`].
fn first_too_much(files: &[PolicyFile]) -> Option<&PolicyFile> {
    let mut bytes: usize = 0;
    files.iter().find(|file| {
        bytes = bytes.saturating_add(file.text.len());
        bytes > TEXT_BYTES_MAX
    })
}

/// Checks how [`statements`] has split a file into rules. A second parse, with Cedar's grammar,
/// must find the same rules in the same places. Otherwise a forbid could be mistaken for a comment.
fn read_apart(name: &Arc<str>, file: &PolicyFile, rules: Option<&[Rule]>) -> Option<Finding> {
    let one_by_one: Vec<_> = rules?.iter().map(|rule| rule.statement.range()).collect();
    let whole = grammar::policies(&file.text).unwrap_or_default();
    (whole != one_by_one).then(|| {
        let place = Place::at_offset(name, "", 0);
        let what = "airlock and Cedar find different rules in the file";
        let (whole, parts) = (whole.len(), one_by_one.len());
        let why = format!("Cedar's grammar finds {whole} rules, airlock's scan finds {parts}");
        let next = "type the rules again in a new file, without copying unusual characters";
        Finding::new(Kind::FileUnclear, place, what, why, next)
    })
}

fn id_twice(rule: &Rule, earlier: &Place) -> Finding {
    let finding = Finding::new(
        Kind::IdTaken,
        rule.statement.place_of("@id"),
        format!("the rule id `{}` is already used", rule.id),
        format!("the rule at {earlier} has the same id"),
        "write another id",
    );
    let own = format!("{}-{}", rule.id, rule.place.line);
    finding.fixed(syntax_fixes::note(&rule.statement, ID, &own))
}

/// Parses and checks one rule by itself.
pub fn read_one(statement: Statement, tightens: bool) -> Result<Rule, Vec<Finding>> {
    let rule = Rule::parse(statement)?;
    let findings = oddities(&rule, tightens);
    if findings.is_empty() {
        Ok(rule)
    } else {
        Err(findings)
    }
}

fn oddities(rule: &Rule, tightens: bool) -> Vec<Finding> {
    let mut findings = lint::findings(rule);
    let mut found = |kind, word: &str, what: String, next: &str, fix| {
        let place = rule.statement.place_of(word);
        findings.push(Finding::new(kind, place, what, "", next).fixed(fix));
    };
    if rule.mentions.facts.contains(APPROVAL) && rule.prompt.is_none() {
        let what = format!("the rule `{}` asks a person and has no @prompt", rule.id);
        let next = "write @prompt(\"the question to the person\")";
        let asked = format!("{}. Allow the call?", rule.reason.trim_end_matches('.'));
        let fix = syntax_fixes::new_note(&rule.statement, PROMPT, &asked);
        found(Kind::PromptMissing, "approval", what, next, Some(fix));
    }
    if !rule.asks && rule.prompt.is_some() {
        let what = format!("the @prompt of the rule `{}` is never shown", rule.id);
        let next = "remove the @prompt, or test context.approval in the condition";
        let fix = syntax_fixes::without_note(&rule.statement, PROMPT);
        found(Kind::PromptIdle, "@prompt", what, next, fix);
    }
    if tightens && !rule.forbids {
        let what = format!(
            "the rule `{}` is a permit in a folder that may only forbid",
            rule.id
        );
        let next = "write a forbid, or pass the folder with --policy";
        let fix = Fix::without_rule(&rule.statement, "remove the rule");
        found(Kind::TighteningPermits, "permit", what, next, Some(fix));
    }
    findings
}

/// Returns the rule with a fix applied, or `None` if the changed text cannot be parsed.
pub(crate) fn read_with(rule: &Rule, fix: &Fix) -> Option<Rule> {
    let text: Arc<str> = fix.apply(rule.statement.whole())?.into();
    let name = Arc::clone(&rule.place.file);
    let own = one_by_one(&name, &text).find(|it| it.start() == rule.statement.start())?;
    read_one(own, false).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_with_unread_rule_is_refused() {
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
        let why = "Cedar's grammar finds 2 rules, airlock's scan finds 1";
        assert_eq!(found(&both, &rules[..1]).as_deref(), Some(why));
        let other = file(rule("a") + "// elsewhere\n" + &rule("b"));
        assert!(found(&other, &rules).is_some());
        let broken = file(rule("a") + "permit(");
        let why = "Cedar's grammar finds 0 rules, airlock's scan finds 1";
        assert_eq!(found(&broken, &rules[..1]).as_deref(), Some(why));
    }
}
