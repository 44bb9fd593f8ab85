//! Masks secrets in JSON text without parsing it into a value. Text without secrets is not changed
//! by a single byte, and the result is valid JSON. Secrets in texts and member names are masked. A
//! number that is a secret as a whole becomes a text.

use std::borrow::Cow;

use super::{MASK, Secrets};

/// Returns the text with its secrets masked, or `None` if it contains none.
pub(super) fn redact(secrets: &Secrets, json: &str) -> Option<String> {
    // An escape sequence can stand for any character, so a plain search can miss a secret.
    if secrets.is_empty() || (!json.contains('\\') && secrets.redact(json).is_none()) {
        return None;
    }
    let mut names_redacted = 0_usize;
    let mut out = String::with_capacity(json.len());
    let (mut rest, mut is_redacted) = (json, false);
    while let Some((token, after)) = next_token(rest) {
        let before = rest.len() - token.len() - after.len();
        out.push_str(rest.get(..before).unwrap_or_default());
        match struck(secrets, token) {
            None => out.push_str(token),
            Some(text) => {
                is_redacted = true;
                let is_name = token.starts_with('"') && after.trim_start().starts_with(':');
                out.push_str(&if is_name {
                    names_redacted += 1;
                    numbered(text, names_redacted)
                } else {
                    text
                });
            }
        }
        rest = after;
    }
    out.push_str(rest);
    is_redacted.then_some(out)
}

/// Adds a number to a masked name. Without the number, two masked names could be equal, and a
/// member would be lost.
fn numbered(name: String, number: usize) -> String {
    match (number, name.strip_suffix('"')) {
        (2.., Some(open)) => format!("{open}#{number}\""),
        _ => name,
    }
}

/// Returns the first text (with its quotes) or number, and the rest after it.
fn next_token(json: &str) -> Option<(&str, &str)> {
    let is_digit = |c: char| c == '-' || c.is_ascii_digit();
    let from = json.get(json.find(|c| c == '"' || is_digit(c))?..)?;
    let end = match from.strip_prefix('"') {
        Some(inside) => text_bytes(inside).map_or(from.len(), |bytes| bytes + 2),
        None => from
            .find(|c| !is_digit(c) && !matches!(c, '+' | '.' | 'e' | 'E'))
            .unwrap_or(from.len()),
    };
    from.split_at_checked(end)
}

/// Returns the length of a text up to its closing quote, in bytes.
fn text_bytes(inside: &str) -> Option<usize> {
    let mut is_escaped = false;
    inside.bytes().position(|byte| {
        let closes = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes
    })
}

/// Returns the replacement for a text or number that contains a secret.
fn struck(secrets: &Secrets, token: &str) -> Option<String> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    if !token.starts_with('"') {
        return secrets.is_one(token).then(|| quoted(MASK));
    }
    match decoded(token) {
        Some(text) => secrets.redact(&text).map(|text| quoted(&text)),
        // The text contains half of a surrogate pair, which a Rust string cannot represent, so all
        // of it is masked.
        None => secrets.redact(token).map(|_| quoted(MASK)),
    }
}

fn decoded(token: &str) -> Option<Cow<'_, str>> {
    let inside = token.strip_prefix('"')?.strip_suffix('"')?;
    if inside.contains('\\') {
        serde_json::from_str::<String>(token).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Option<&str>) {
        let secrets = Secrets::new(["Bearer tok-123", "with \"quote\"", "n987", "123456"]);
        let found = redact(&secrets, json);
        assert_eq!(found.as_deref(), expected, "{json}");
        if let Some(text) = found {
            serde_json::from_str::<&serde_json::value::RawValue>(&text).unwrap();
        }
    }

    #[test]
    fn redact_json_changes_only_secret_bytes() {
        check(
            r#"{ "a" : "it is tok-123!" ,"b":1.50}"#,
            Some(r#"{ "a" : "it is ***!" ,"b":1.50}"#),
        );
        check(r#"["with \"quote\""]"#, Some(r#"["***"]"#));
        check(
            r#"["tok\u002d123", "\u00e9"]"#,
            Some(r#"["***", "\u00e9"]"#),
        );
        check(
            r#"{"tok-123":{"x tok-123":[]}}"#,
            Some(r#"{"***":{"x ***#2":[]}}"#),
        );
        check(
            r#"[123456,1234567,-123456]"#,
            Some(r#"["***",1234567,-123456]"#),
        );
        check(
            r#""{\"k\":\"with \\\"quote\\\"\"}""#,
            Some(r#""{\"k\":\"***\"}""#),
        );
        check(r#"["nothing\n", true, 1e5]"#, None);
        check("", None);
    }

    #[test]
    fn escape_next_to_secret_stays_intact() {
        // In plain text both contain the secret `n987`, but in one of them the `n` belongs to an
        // escape.
        check(r#"["\n987"]"#, None);
        check(r#"["\n987", "n987\\"]"#, Some(r#"["\n987", "***\\"]"#));
        check(
            r#"["\ud83d tok-123", "\ud83d"]"#,
            Some(r#"["***", "\ud83d"]"#),
        );
    }
}
