//! Striking secrets out of JSON text without building anything from it: what
//! holds none stays as it is to the byte, and what comes out is JSON again.
//! Texts and names of members lose the secrets inside them; a number that is a
//! secret as a whole becomes a text.

use std::borrow::Cow;

use super::{STRUCK, Secrets};

/// The text without the secrets; none when it holds none.
pub(super) fn strike(secrets: &Secrets, json: &str) -> Option<String> {
    // An escape can spell any character, and so hide a secret from a plain search.
    if secrets.is_empty() || (!json.contains('\\') && secrets.strike(json).is_none()) {
        return None;
    }
    let mut names_struck = 0_usize;
    let mut out = String::with_capacity(json.len());
    let (mut rest, mut is_struck) = (json, false);
    while let Some((token, after)) = next_token(rest) {
        let before = rest.len() - token.len() - after.len();
        out.push_str(rest.get(..before).unwrap_or_default());
        match struck(secrets, token) {
            None => out.push_str(token),
            Some(text) => {
                is_struck = true;
                let is_name = token.starts_with('"') && after.trim_start().starts_with(':');
                out.push_str(&if is_name {
                    names_struck += 1;
                    numbered(text, names_struck)
                } else {
                    text
                });
            }
        }
        rest = after;
    }
    out.push_str(rest);
    is_struck.then_some(out)
}

/// Two names can become one, and no member may be lost by that.
fn numbered(name: String, number: usize) -> String {
    match (number, name.strip_suffix('"')) {
        (2.., Some(open)) => format!("{open}#{number}\""),
        _ => name,
    }
}

/// The first text (with its quotes) or number, and what follows it.
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

/// How long a text is, up to its closing quote.
fn text_bytes(inside: &str) -> Option<usize> {
    let mut is_escaped = false;
    inside.bytes().position(|byte| {
        let closes = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes
    })
}

/// What stands instead of a text or number that holds a secret.
fn struck(secrets: &Secrets, token: &str) -> Option<String> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    if !token.starts_with('"') {
        return secrets.is_one(token).then(|| quoted(STRUCK));
    }
    match decoded(token) {
        Some(text) => secrets.strike(&text).map(|text| quoted(&text)),
        // Half of a surrogate pair: no text of ours can stand for the rest of it.
        None => secrets.strike(token).map(|_| quoted(STRUCK)),
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
        let found = strike(&secrets, json);
        assert_eq!(found.as_deref(), expected, "{json}");
        if let Some(text) = found {
            serde_json::from_str::<&serde_json::value::RawValue>(&text).unwrap();
        }
    }

    #[test]
    fn texts_names_and_numbers_lose_their_secrets_and_the_rest_stays_to_the_byte() {
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
    fn an_escape_beside_a_secret_stays_whole() {
        // As plain text the secret `n987` stands in both, and in one of them not really.
        check(r#"["\n987"]"#, None);
        check(r#"["\n987", "n987\\"]"#, Some(r#"["\n987", "***\\"]"#));
        check(
            r#"["\ud83d tok-123", "\ud83d"]"#,
            Some(r#"["***", "\ud83d"]"#),
        );
    }
}
