//! Masks secrets in JSON text without parsing it into a value. Text without secrets is not changed
//! by a single byte, and the result is valid JSON. Secrets in texts and member names are masked. A
//! number that is a secret as a whole becomes a text.

use std::borrow::Cow;

use airlock_core::masked_names::{MASK, MaskedNames};

use super::Secrets;

/// Returns the text with its secrets masked, or `None` if it contains none.
pub(super) fn redact(secrets: &Secrets, json: &str) -> Option<String> {
    if secrets.is_empty() {
        return None;
    }
    let mut names = MaskedNames::default();
    let redacted = redact_with(secrets, json, &mut names);
    let can_have_earlier_masks = json.contains(MASK) || json.contains("\\u");
    match names.has_masked() && can_have_earlier_masks {
        true => redact_with(secrets, json, &mut MaskedNames::with_earlier_masks()),
        false => redacted,
    }
}

fn redact_with(secrets: &Secrets, json: &str, names: &mut MaskedNames) -> Option<String> {
    let mut marks = Marks::new(secrets, json);
    let (mut out, mut done, mut at) = (String::new(), 0, 0);
    // The name of the member whose value is the next token, if the name can say that the value is a
    // credential.
    let mut name = "";
    let numbers_earlier_masks = names.numbers_earlier_masks();
    while marks.is_any_from(at) || (numbers_earlier_masks && at < json.len()) {
        let (from, token) = next_token(json, at, secrets.has_number())?;
        at = from + token.len();
        let is_marked = marks.is_in(from, at) || !name.is_empty();
        if !is_marked && !numbers_earlier_masks {
            continue;
        }
        let struck = is_marked.then(|| struck(secrets, name, token)).flatten();
        let role = Role::of(token, json.get(at..).unwrap_or_default());
        let struck = match role {
            Role::Value => struck,
            Role::Name | Role::NameOfText => replaced_name(names, token, struck),
        };
        name = match role {
            Role::NameOfText if is_marked => token,
            _ => "",
        };
        if let Some(text) = struck {
            out.push_str(json.get(done..from).unwrap_or_default());
            out.push_str(&text);
            done = at;
        }
    }
    out.push_str(json.get(done..)?);
    (done > 0).then_some(out)
}

/// What a token stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Value,
    /// The name of a member whose value is a text.
    NameOfText,
    /// The name of another member.
    Name,
}

impl Role {
    /// Only the name of a member is followed by a colon.
    fn of(token: &str, rest: &str) -> Self {
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
        match value {
            Some(value) if token.starts_with('"') => match value.starts_with('"') {
                true => Self::NameOfText,
                false => Self::Name,
            },
            _ => Self::Value,
        }
    }
}

/// Returns the replacement for the name of a member, given its masked form if it contains a secret.
fn replaced_name(names: &mut MaskedNames, token: &str, masked: Option<String>) -> Option<String> {
    // A name that cannot be decoded is not equal to any masked name.
    let name = decoded(token).unwrap_or_default();
    let masked = masked.map(|it| decoded(&it).unwrap_or_default().into_owned());
    names.replacement(&name, masked).map(|it| quoted(&it))
}

/// The places in JSON text at which a secret can be. An escape can stand for any character, so a
/// plain search can miss a secret. The other escapes need no mark: the forms of secrets contain
/// them in the same spelling, and no start of a shape contains a character that must be escaped.
struct Marks<'a> {
    secrets: &'a Secrets,
    json: &'a str,
    /// The next configured secret, the next start of a shape, and the next unusual escape. A
    /// position is the end of the text if there is no further one.
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
            0 => self.secrets.next_known(self.json, from),
            1 => self.secrets.next_shape(self.json, from),
            _ => self.next_escape(from),
        };
        found.unwrap_or(self.json.len())
    }

    fn next_escape(&self, from: usize) -> Option<usize> {
        let rest = self.json.get(from..)?;
        let is_unusual = |at: &usize| match rest.as_bytes().get(at + 1) {
            Some(b'u' | b'/') => true,
            Some(b'\\') => self.secrets.has_escape(),
            _ => false,
        };
        let mut escapes = rest.match_indices('\\').map(|(at, _)| at);
        escapes.find(is_unusual).map(|at| from + at)
    }

    /// Returns whether the rest of the text has to be read. Numbers are never marked.
    fn is_any_from(&self, at: usize) -> bool {
        let end = self.json.len();
        let has_mark = self.next.iter().any(|it| *it < end);
        at < end && (has_mark || self.secrets.has_number())
    }

    /// Returns whether a place is marked between `from` and `to`. Each call must ask for a later
    /// place than the previous call.
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
    if !token.starts_with('"') {
        return secrets.is_known_number(token).then(|| quoted(MASK));
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

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
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
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::Value;
    use std::collections::BTreeSet;

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

    /// The name of a member concerns its own value only.
    #[test]
    fn name_is_not_carried_over_a_value_that_is_no_text() {
        let key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz";
        for value in ["null", "true", "1", "[]", "{}", "123"] {
            let name = format!(r#"{{"SecretAccessKey": {value}, "{key}": 1, "a": "{key}"}}"#);
            check(&name, None);
        }
        let inside = format!(r#"{{"SecretAccessKey": {{"{key}": 1}}, "b": ["{key}"]}}"#);
        check(&inside, None);
        let list = format!(r#"["SecretAccessKey", "{key}"]"#);
        check(&list, None);
    }

    #[test]
    fn masked_name_stays_distinct_from_earlier_masks() {
        check(
            r#"{"***":1,"tok-123":2,"\u002a**":[{"***#2":3}]}"#,
            Some(r#"{"***":1,"***#2":2,"***#3":[{"***#2#4":3}]}"#),
        );
        check(
            r#"{"***":1,"b":{"***":2},"c":"tok-123"}"#,
            Some(r#"{"***":1,"b":{"***":2},"c":"***"}"#),
        );
    }

    #[test]
    fn escape_next_to_secret_stays_intact() {
        // As plain text, both contain the secret `n987`. In one of them, the `n` belongs to an
        // escape.
        check(r#"["\n987"]"#, None);
        check(r#"["\n987", "n987\\"]"#, Some(r#"["\n987", "***\\"]"#));
        check(
            r#"["\ud83d tok-123", "\ud83d"]"#,
            Some(r#"["***", "\ud83d"]"#),
        );
    }

    /// Parts of texts. They contain secrets, parts of secrets, and characters that JSON escapes.
    const PARTS: [&str; 18] = [
        "SecretAccessKey",
        "Authorization",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz",
        "***",
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

    /// A value of JSON, with texts and names made of [`PARTS`].
    #[derive(Debug, Clone)]
    enum Node {
        Plain(&'static str),
        Text(Vec<usize>),
        List(Vec<Node>),
        Object(Vec<(Vec<usize>, Node)>),
    }

    fn node() -> impl Strategy<Value = Node> {
        let parts = || vec(0..PARTS.len(), 0..5);
        let plain = select(&["null", "true", "false", "123456", "7", "{}", "[]"][..]);
        let leaf = prop_oneof![plain.prop_map(Node::Plain), parts().prop_map(Node::Text)];
        leaf.prop_recursive(3, 24, 5, move |inner| {
            prop_oneof![
                vec(inner.clone(), 0..5).prop_map(Node::List),
                vec((parts(), inner), 0..5).prop_map(Node::Object),
            ]
        })
    }

    impl Node {
        fn write(&self, escaped: &[bool], out: &mut String) {
            let text = |parts: &[usize]| parts.iter().map(|it| PARTS[*it]).collect::<String>();
            match self {
                Self::Plain(plain) => out.push_str(plain),
                Self::Text(parts) => out.push_str(&written(&text(parts), escaped)),
                Self::List(items) => {
                    out.push('[');
                    for (number, item) in items.iter().enumerate() {
                        out.push_str(if number > 0 { " , " } else { "" });
                        item.write(escaped, out);
                    }
                    out.push(']');
                }
                Self::Object(members) => {
                    out.push('{');
                    let mut names = BTreeSet::new();
                    for (name, member) in members {
                        let name = text(name);
                        if !names.insert(name.clone()) {
                            continue;
                        }
                        out.push_str(if names.len() > 1 { ",\n" } else { "" });
                        out.push_str(&written(&name, escaped));
                        out.push_str(" : ");
                        member.write(escaped, out);
                    }
                    out.push('}');
                }
            }
        }
    }

    fn members(value: &Value) -> usize {
        match value {
            Value::Array(items) => items.iter().map(members).sum(),
            Value::Object(all) => all.len() + all.values().map(members).sum::<usize>(),
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn masked_json_is_the_masked_value(
            node in node(),
            escaped in vec(proptest::bool::weighted(0.1), 1..40),
        ) {
            let secrets = Secrets::new(["Bearer tok-123", "with \"quote\"", "n987", "123456"]);
            let mut json = String::new();
            node.write(&escaped, &mut json);
            let exact: Value = serde_json::from_str(&json).unwrap();
            let mut expected = exact.clone();
            secrets.redact_whole(&mut expected);
            let shown = redact(&secrets, &json).unwrap_or(json);
            let found: Value = serde_json::from_str(&shown).unwrap();
            prop_assert_eq!(members(&found), members(&exact));
            prop_assert_eq!(found, expected);
        }
    }
}
