//! Proposes replacements for unusable annotations, and for text that is almost Cedar.

use std::ops::Range;

use cedar_policy::Policy;
use codegen::closest::closest;

use super::{ID, ID_CHARS_MAX, TEXT_CHARS_MAX};
use crate::policy::fix::Fix;
use crate::policy::grammar;
use crate::policy::source::Statement;
use crate::policy::token::{Token, tokens};

/// Maximum size of a rule for which fixes are tried, since each attempt parses the rule again.
const MENDED_BYTES_MAX: usize = 8 * 1024;
/// Maximum number of changes tried.
const CHANGES_MAX: usize = 60;

/// Words of other languages, and their form in Cedar.
const WORDS: [(&str, &str); 12] = [
    ("and", "&&"),
    ("&", "&&"),
    ("or", "||"),
    ("|", "||"),
    ("not", "!"),
    ("=", "=="),
    ("===", "=="),
    ("if", "when"),
    ("where", "when"),
    ("true()", "true"),
    ("True", "true"),
    ("False", "false"),
];
/// Keywords that begin a rule, its scope or its clauses.
const KEYWORDS: [&str; 7] = [
    "permit",
    "forbid",
    "principal",
    "action",
    "resource",
    "when",
    "unless",
];

/// Rewrites an annotation with another text.
pub(crate) fn note(statement: &Statement, name: &str, text: &str) -> Option<Fix> {
    let range = annotation(statement, name)?;
    let what = format!("write @{name}(\"{text}\")");
    Some(Fix::replace(
        statement,
        range,
        format!("@{name}(\"{text}\")"),
        what,
    ))
}

/// Adds an annotation after the existing ones.
pub(crate) fn new_note(statement: &Statement, name: &str, text: &str) -> Fix {
    let text: String = text.chars().filter(|c| !matches!(c, '"' | '\\')).collect();
    let all = tokens(statement.text());
    let is_effect = |token: &&Token<'_>| matches!(token.text, "permit" | "forbid");
    let at = all.iter().find(is_effect).map_or(0, |token| token.at);
    let note = format!("@{name}(\"{text}\")");
    let what = format!("write {note}");
    Fix::replace(statement, at..at, format!("{note}\n"), what)
}

pub(crate) fn without_note(statement: &Statement, name: &str) -> Option<Fix> {
    let range = annotation(statement, name)?;
    Some(Fix::replace(
        statement,
        range,
        "",
        format!("remove @{name}"),
    ))
}

/// Replaces the first occurrence of a word.
pub(crate) fn word(statement: &Statement, word: &str, instead: &str) -> Option<Fix> {
    let at = statement.find(word)?;
    let what = format!("write `{instead}`");
    Some(Fix::replace(statement, at..at + word.len(), instead, what))
}

/// Returns a valid text for an annotation: the usable characters of its text, or a placeholder.
pub(crate) fn usable(name: &str, text: &str) -> String {
    let seen = |c: &char| !c.is_control() && !codegen::text::is_invisible(*c);
    let kept = text
        .chars()
        .filter(seen)
        .filter(|c| !matches!(c, '"' | '\\'));
    let is_id = name == ID;
    let most = if is_id { ID_CHARS_MAX } else { TEXT_CHARS_MAX };
    let fits = |c: char| match c {
        c if !is_id || c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') => c,
        _ => '-',
    };
    let kept: String = kept.map(fits).take(most).collect();
    match (kept.trim(), name) {
        ("", ID) => "unnamed".to_owned(),
        ("", "owner") => "nobody-yet".to_owned(),
        ("", _) => format!("write the {name} here"),
        (kept, _) => kept.to_owned(),
    }
}

/// Returns the range of an annotation, from its `@` to its closing bracket.
fn annotation(statement: &Statement, name: &str) -> Option<Range<usize>> {
    let all = tokens(statement.text());
    let at = all
        .windows(2)
        .position(|two| matches!(two, [at, word] if at.text == "@" && word.text == name))?;
    let close = all
        .get(at + 2..)?
        .iter()
        .take(3)
        .find(|token| token.text == ")");
    let end = close.or(all.get(at + 1))?.range().end;
    Some(all.get(at)?.at..end)
}

/// Returns a change that makes the rule valid, if exactly one change is obvious. `at` is the byte
/// of the syntax error.
pub(crate) fn syntax(statement: &Statement, at: usize) -> Option<Fix> {
    let text = statement.text();
    if text.len() > MENDED_BYTES_MAX {
        return None;
    }
    let all = tokens(text);
    let near = all.iter().position(|token| token.range().end > at);
    let near = near.unwrap_or(all.len());
    let around = all.get(near.saturating_sub(2)..(near + 2).min(all.len()))?;
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    for token in around.iter().chain(&all) {
        let other = WORDS.iter().find(|(word, _)| *word == token.text);
        if let Some((_, instead)) = other {
            changes.push((token.range(), (*instead).to_owned()));
        } else if let Some(meant) = closest(token.text, KEYWORDS).filter(|it| *it != token.text) {
            changes.push((token.range(), meant.to_owned()));
        }
    }
    let end = all.last().map_or(0, |token| token.range().end);
    let closers = [";", ");", "};", ")};", ") };"];
    changes.extend(closers.map(|closer| (end..end, closer.to_owned())));
    let before_end = all.last().map_or(0, |token| token.at);
    changes
        .extend([")", "}", " }", ") }"].map(|closer| (before_end..before_end, closer.to_owned())));
    changes.extend(around.iter().map(|token| (token.range(), String::new())));
    let reads = |(range, instead): &(Range<usize>, String)| {
        let (before, after) = (text.get(..range.start), text.get(range.end..));
        let changed = format!(
            "{}{instead}{}",
            before.unwrap_or_default(),
            after.unwrap_or_default()
        );
        super::too_complex(&changed).is_none()
            && grammar::policy(&changed).is_ok()
            && Policy::parse(None, changed).is_ok()
    };
    let (range, instead) = changes.into_iter().take(CHANGES_MAX).find(reads)?;
    let what = match (text.get(range.clone()).unwrap_or_default(), instead.trim()) {
        (word, "") => format!("remove `{word}`"),
        (_, instead) => format!("write `{instead}`"),
    };
    Some(Fix::replace(statement, range, instead, what))
}
