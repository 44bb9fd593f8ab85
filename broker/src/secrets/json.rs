//! Masks secrets in JSON text without parsing it into a value. Text without secrets is not changed
//! by a single byte, and the result is valid JSON. Secrets in texts and member names are masked. A
//! number that is a secret as a whole becomes a text.

use std::borrow::Cow;

use super::{MASK, Secrets};

/// Returns the text with its secrets masked, or `None` if it contains none.
pub(super) fn redact(secrets: &Secrets, json: &str) -> Option<String> {
    if secrets.is_empty() {
        return None;
    }
    let mut marks = Marks::new(secrets, json);
    let (mut out, mut done) = (String::new(), 0);
    let (mut at, mut names_redacted) = (0, 0_usize);
    // The name of a member that can say that its value is a credential.
    let mut name = "";
    while marks.is_any_from(at) {
        let (from, token) = next_token(json, at, secrets.known.has_number)?;
        at = from + token.len();
        let is_name = || {
            json.get(at..)
                .unwrap_or_default()
                .trim_start()
                .starts_with(':')
        };
        let is_marked = marks.is_in(from, at) || !name.is_empty();
        let struck = is_marked.then(|| struck(secrets, name, token)).flatten();
        name = if is_marked && is_name() { token } else { "" };
        if let Some(text) = struck {
            out.push_str(json.get(done..from).unwrap_or_default());
            out.push_str(&if name.is_empty() {
                text
            } else {
                names_redacted += 1;
                numbered(text, names_redacted)
            });
            done = at;
        }
    }
    out.push_str(json.get(done..)?);
    (done > 0).then_some(out)
}

/// The places in JSON text at which a secret can be. An escape can stand for any character, so a
/// plain search can miss a secret. All other escapes are written as the forms of secrets contain
/// them, and no start of a shape contains a character that needs one.
struct Marks<'a> {
    secrets: &'a Secrets,
    json: &'a str,
    /// The next configured secret, the next start of a shape, and the next unusual escape. Each is
    /// the end of the text if there is none.
    next: [usize; 3],
}

impl<'a> Marks<'a> {
    fn new(secrets: &'a Secrets, json: &'a str) -> Self {
        let mut marks = Self {
            secrets,
            json,
            next: [0; 3],
        };
        marks.next = [0, 1, 2].map(|kind| marks.find(kind, 0));
        marks
    }

    fn find(&self, kind: usize, from: usize) -> usize {
        let found = match kind {
            0 => self.secrets.known.next(self.json, from),
            1 => self.secrets.next_shape(self.json, from),
            _ => self.next_escape(from),
        };
        found.unwrap_or(self.json.len())
    }

    fn next_escape(&self, from: usize) -> Option<usize> {
        let rest = self.json.get(from..)?;
        let is_unusual = |at: &usize| match rest.as_bytes().get(at + 1) {
            Some(b'u' | b'/') => true,
            Some(b'\\') => self.secrets.known.has_escape,
            _ => false,
        };
        let mut escapes = rest.match_indices('\\').map(|(at, _)| at);
        escapes.find(is_unusual).map(|at| from + at)
    }

    /// Returns whether the rest of the text has to be read. Numbers are never marked.
    fn is_any_from(&self, at: usize) -> bool {
        let end = self.json.len();
        let has_mark = self.next.iter().any(|it| *it < end);
        at < end && (has_mark || self.secrets.known.has_number)
    }

    /// Returns whether a place is marked between `from` and `to`. Later calls ask for later places.
    fn is_in(&mut self, from: usize, to: usize) -> bool {
        for kind in 0..self.next.len() {
            if self.next.get(kind).is_some_and(|it| *it < from) {
                let next = self.find(kind, from);
                self.next
                    .iter_mut()
                    .skip(kind)
                    .take(1)
                    .for_each(|it| *it = next);
            }
        }
        let is_number = !self.json.get(from..).is_some_and(|it| it.starts_with('"'));
        is_number || self.next.iter().any(|it| *it < to)
    }
}

/// Adds a number to a masked name. Without the number, two masked names could be equal, and a
/// member would be lost.
fn numbered(name: String, number: usize) -> String {
    match (number, name.strip_suffix('"')) {
        (2.., Some(open)) => format!("{open}#{number}\""),
        _ => name,
    }
}

/// Returns the first text (with its quotes) or number after `at`, and its place.
fn next_token(json: &str, at: usize, with_numbers: bool) -> Option<(usize, &str)> {
    let is_digit = |c: char| c == '-' || c.is_ascii_digit();
    let rest = json.get(at..)?;
    let before = match with_numbers {
        true => rest.find(|c| c == '"' || is_digit(c)),
        false => rest.find('"'),
    };
    let from = at + before.unwrap_or(rest.len());
    let rest = json.get(from..)?;
    let bytes = match rest.strip_prefix('"') {
        Some(inside) => text_bytes(inside).map_or(rest.len(), |bytes| bytes + 2),
        None => rest
            .find(|c| !is_digit(c) && !matches!(c, '+' | '.' | 'e' | 'E'))
            .unwrap_or(rest.len()),
    };
    Some((from, rest.get(..bytes)?))
}

/// Returns the length of a text up to its closing quote, in bytes.
fn text_bytes(inside: &str) -> Option<usize> {
    let mut quotes = inside.match_indices('"');
    let is_closing = |at: usize| {
        let before = inside.as_bytes().get(..at).unwrap_or_default().iter().rev();
        before
            .take_while(|byte| **byte == b'\\')
            .count()
            .is_multiple_of(2)
    };
    quotes.find_map(|(at, _)| is_closing(at).then_some(at))
}

/// Returns the replacement for a text or number that contains a secret. A text is the value of the
/// member `name`, or of no member.
fn struck(secrets: &Secrets, name: &str, token: &str) -> Option<String> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    if !token.starts_with('"') {
        return secrets.is_one(token).then(|| quoted(MASK));
    }
    match (decoded(token), decoded(name)) {
        (Some(text), Some(name)) => secrets
            .redact_member(&name, &text)
            .map(|text| quoted(&text)),
        (Some(text), None) => secrets.redact(&text).map(|text| quoted(&text)),
        // The text contains half of a surrogate pair, which a Rust string cannot represent, so all
        // of it is masked.
        (None, _) => secrets.redact(token).map(|_| quoted(MASK)),
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
    fn credentials_of_known_shapes_are_masked_in_decoded_texts() {
        let secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz";
        check(
            r#"["redis:\/\/:pw@h\/0", "\u0072edis:\u002f/:pw@h/\n"]"#,
            Some(r#"["redis://:***@h/0", "redis://:***@h/\n"]"#),
        );
        check(
            &format!(r#"{{"SecretAccessKey" : "{secret_key}", "SecretName": "{secret_key}"}}"#),
            Some(&format!(
                r#"{{"SecretAccessKey" : "***", "SecretName": "{secret_key}"}}"#
            )),
        );
        check(
            r#"{"redis://:pw@h":1,"redis://:other@h":2}"#,
            Some(r#"{"redis://:***@h":1,"redis://:***@h#2":2}"#),
        );
        let key = "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\\n-----END PRIVATE KEY-----\\n";
        check(&format!(r#"{{"key":"{key}"}}"#), Some(r#"{"key":"***\n"}"#));
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

    /// Parts of texts. They contain secrets, parts of secrets, and characters that JSON escapes.
    const PARTS: [&str; 14] = [
        "tok-123",
        "tok-",
        "123",
        "with \"quote\"",
        "\"",
        "\\",
        "\n",
        "n987",
        "/",
        " ü🙂",
        "redis://:pw",
        "@h",
        "ghp_",
        "a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4a1B2",
    ];

    /// Writes a text as JSON, with some of its characters as unusual escapes.
    fn written(text: &str, escaped: &[bool]) -> String {
        let mut out = String::from("\"");
        for (c, is_escaped) in text.chars().zip(escaped.iter().cycle()) {
            match c {
                '/' if *is_escaped => out.push_str("\\/"),
                c if *is_escaped => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
                c => out.push_str(
                    serde_json::Value::from(c.to_string())
                        .to_string()
                        .trim_matches('"'),
                ),
            }
            if c == '"' && !*is_escaped {
                // `trim_matches` removed the escaped quote too.
                out.pop();
                out.push_str("\\\"");
            }
        }
        out + "\""
    }

    proptest::proptest! {
        #[test]
        fn masked_json_is_the_masked_value(
            texts in proptest::collection::vec(proptest::collection::vec(0..PARTS.len(), 0..6), 1..6),
            escaped in proptest::collection::vec(proptest::bool::weighted(0.1), 1..40),
        ) {
            let secrets = Secrets::new(["Bearer tok-123", "with \"quote\"", "n987"]);
            let texts = texts.iter().map(|parts| parts.iter().map(|it| PARTS[*it]).collect::<String>());
            let members = texts.enumerate().map(|(n, text)| format!("\"k{n}\" : {}", written(&text, &escaped)));
            let json = format!("{{{}}}", members.collect::<Vec<_>>().join(",\n"));
            let mut expected: serde_json::Value = serde_json::from_str(&json).unwrap();
            secrets.redact_value(&mut expected);
            let shown = redact(&secrets, &json).unwrap_or(json);
            let found: serde_json::Value = serde_json::from_str(&shown).unwrap();
            proptest::prop_assert_eq!(found, expected);
        }
    }
}
