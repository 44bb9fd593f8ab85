//! Decides whether a description already states a fact, so that the short form would only repeat
//! it.

use serde_json::Value;

use crate::shape::Bound;

/// Number of words after "default" that are searched for its value.
const WORDS_AFTER: usize = 5;

/// Recognises `Defaults to 10.`, `(default: "asc")`, `"asc" (default)`.
pub(super) fn says_default(prose: &str, value: &Value) -> bool {
    let wanted = match value {
        Value::String(text) if !text.is_empty() => text.to_lowercase(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => return false,
    };
    let words = words(prose);
    let is_default = |word: &String| word.starts_with("default");
    let places = words
        .iter()
        .enumerate()
        .filter(|(_, word)| is_default(word));
    for (at, _) in places {
        let mut after = words.iter().skip(at + 1).take(WORDS_AFTER);
        let before = at.checked_sub(1).and_then(|it| words.get(it));
        if after.any(|it| *it == wanted) || before == Some(&wanted) {
            return true;
        }
    }
    false
}

/// Recognises `min 1, max 100`, `1-100`, `between 1 and 100`, `at most 100`.
pub(super) fn says_bounds(prose: &str, minimum: Option<&Bound>, maximum: Option<&Bound>) -> bool {
    let words = words(prose);
    let is_said = |bound: &Bound, signs: &[&str]| {
        let limit = bound.limit.to_string();
        let places = words.iter().enumerate().filter(|(_, word)| **word == limit);
        let mut before = places.map(|(at, _)| words.iter().take(at).rev().take(2));
        before.any(|mut near| near.any(|word| signs.contains(&word.as_str())))
    };
    let low = |it: &Bound| is_said(it, &["min", "minimum", "least", "from", "between"]);
    let high = |it: &Bound| is_said(it, &["max", "maximum", "most"]);
    match (minimum, maximum) {
        (Some(a), Some(b)) => {
            let spans = ["-", "–", "..", "…"].map(|dash| format!("{}{dash}{}", a.limit, b.limit));
            let joined = words.join(" ");
            let together = [" and ", " to "].map(|word| format!("{}{word}{}", a.limit, b.limit));
            words.iter().any(|word| spans.contains(word))
                || together.iter().any(|it| joined.contains(it.as_str()))
                || (low(a) && high(b))
        }
        (Some(a), None) => low(a),
        (None, Some(b)) => high(b),
        (None, None) => false,
    }
}

/// Splits a text into lower-case words without the punctuation around them.
fn words(prose: &str) -> Vec<String> {
    let is_frame = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '/' | '*' | '$');
    let framed = prose.split([' ', '=', '(', ')']);
    framed
        .map(|word| word.trim_matches(is_frame).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn default_is_stated_if_value_follows_the_word() {
        let check = |prose, value: Value, expected| {
            assert_eq!(says_default(prose, &value), expected, "{prose} {value}");
        };
        check("How many. Defaults to 10.", json!(10), true);
        check("How many (default=10)", json!(10), true);
        check("How many. Defaults to 100.", json!(10), false);
        check("Order (default: \"asc\").", json!("asc"), true);
        check("\"stats\" (default) counts lines.", json!("stats"), true);
        check("Whether. Defaults to True.", json!(true), true);
        check("Whether. Default is true.", json!(false), false);
        check(
            "The default branch, 10 at a time or so it is said.",
            json!("main"),
            false,
        );
        check("Empty by default.", json!(""), false);
        check("Defaults to [].", json!([]), false);
    }

    #[test]
    fn bounds_are_stated_if_each_follows_its_word() {
        let bound = |limit: i64| Bound {
            limit: limit.into(),
            exclusive: false,
        };
        let (low, high) = (bound(1), bound(100));
        let check = |prose, minimum, maximum, expected| {
            assert_eq!(says_bounds(prose, minimum, maximum), expected, "{prose}");
        };
        check("Per page (min 1, max 100)", Some(&low), Some(&high), true);
        check("Per page (1-100)", Some(&low), Some(&high), true);
        check("Between 1 and 100.", Some(&low), Some(&high), true);
        check("Per page (max 100)", Some(&low), Some(&high), false);
        check("Page number (min 1)", Some(&low), None, true);
        check("At most 100.", None, Some(&high), true);
        check("100 of them.", None, Some(&high), false);
    }
}
