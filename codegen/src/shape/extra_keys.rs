//! Decides which rules for extra keys TypeScript can express as index signatures.

use super::{ExtraKeyRule, ExtraKeys, Kind, Object};

/// Whether the index signatures express less than the rules.
pub(crate) fn needs_rest_note(object: &Object) -> bool {
    let rules = spoken_rules(object);
    if are_templates(&rules, object) {
        return false;
    }
    rules.iter().any(|rule| {
        let is_beside =
            !object.properties.is_empty() && rule.pattern.is_none() && rule.shape.kind != Kind::Any;
        key_type(rule, object).is_none() || is_beside || rules.len() > 1
    })
}

/// Whether each rule applies to keys with a different prefix.
pub(crate) fn are_templates(rules: &[&ExtraKeyRule], object: &Object) -> bool {
    let prefixes: Option<Vec<&str>> = rules
        .iter()
        .map(|rule| literal_prefix(rule.pattern.as_deref()?))
        .collect();
    let Some(prefixes) = prefixes else {
        return false;
    };
    let overlap = |(at, one): (usize, &&str)| {
        let mut others = prefixes
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at);
        others.any(|(_, other)| other.starts_with(one))
    };
    let are_apart = !prefixes.iter().enumerate().any(overlap);
    are_apart && rules.iter().all(|rule| key_type(rule, object).is_some())
}

/// Returns the rules for other keys, without a rule that only forbids all remaining keys.
pub(crate) fn spoken_rules(object: &Object) -> Vec<&ExtraKeyRule> {
    match &object.rest {
        ExtraKeys::Allowed(rules) => rules
            .iter()
            .filter(|it| it.shape.kind != Kind::Never)
            .collect(),
        ExtraKeys::Unsaid | ExtraKeys::Forbidden => Vec::new(),
    }
}

/// Returns the key type of an index signature. Returns `None` if TypeScript has no type for the
/// pattern, or if a named property matches the pattern too.
pub(crate) fn key_type(rule: &ExtraKeyRule, object: &Object) -> Option<String> {
    let Some(pattern) = &rule.pattern else {
        return Some("string".to_owned());
    };
    if matches_everything(pattern) {
        return Some("string".to_owned());
    }
    let prefix = literal_prefix(pattern)?;
    let is_free = object
        .properties
        .iter()
        .all(|it| !it.name.starts_with(prefix));
    is_free.then(|| format!("`{prefix}${{string}}`"))
}

fn matches_everything(pattern: &str) -> bool {
    matches!(pattern, "" | ".*" | "^.*$" | ".+" | "^.+$")
}

/// Returns the prefix, for example `x-`, of a pattern that only requires a prefix.
fn literal_prefix(pattern: &str) -> Option<&str> {
    let prefix = pattern.strip_prefix('^')?;
    let prefix = prefix.strip_suffix(".*").unwrap_or(prefix);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | ':' | ' ');
    (!prefix.is_empty() && prefix.chars().all(is_plain)).then_some(prefix)
}
