//! The `WWW-Authenticate` header of a server that requires a login (RFC 9110 and RFC 6750).

use super::scopes::ScopeSet;

/// Maximum length of the header that is read.
const HEADER_BYTES_MAX: usize = 16 * 1024;

/// What the first `Bearer` challenge says. Everything in it comes from the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    pub resource_metadata: Option<String>,
    pub scopes: ScopeSet,
    pub error: Option<String>,
}

impl Challenge {
    /// Parses the values of all `WWW-Authenticate` headers of an answer. A header that cannot be
    /// parsed counts as a challenge without parameters.
    #[must_use]
    pub fn parse<'a>(headers: impl IntoIterator<Item = &'a str>) -> Self {
        let mut found = headers.into_iter().filter_map(bearer);
        found.next().unwrap_or_default()
    }

    /// Whether the token was accepted, and lacks a scope.
    #[must_use]
    pub fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

fn bearer(header: &str) -> Option<Challenge> {
    let header = (header.len() <= HEADER_BYTES_MAX).then_some(header)?;
    let mut reader = Reader { rest: header };
    let mut challenge = None;
    while let Some(word) = reader.token() {
        match reader.value() {
            // A word without `=` is the scheme of the next challenge.
            None if challenge.is_some() => break,
            None if word.eq_ignore_ascii_case("bearer") => challenge = Some(Challenge::default()),
            None => {}
            Some(value) => {
                if let Some(challenge) = &mut challenge {
                    set(challenge, word, value);
                }
            }
        }
    }
    challenge
}

fn set(challenge: &mut Challenge, name: &str, value: String) {
    if name.eq_ignore_ascii_case("resource_metadata") {
        challenge.resource_metadata.get_or_insert(value);
    } else if name.eq_ignore_ascii_case("scope") {
        challenge.scopes = ScopeSet::parse(&value);
    } else if name.eq_ignore_ascii_case("error") {
        challenge.error.get_or_insert(value);
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Returns the next word, after commas and spaces.
    fn token(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_start_matches([' ', '\t', ',']);
        let end = self.rest.find([' ', '\t', ',', '=']);
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Returns the value if the last word was the name of a parameter.
    fn value(&mut self) -> Option<String> {
        let after = self.rest.trim_start_matches([' ', '\t']);
        let after = after.strip_prefix('=')?.trim_start_matches([' ', '\t']);
        let Some(quoted) = after.strip_prefix('"') else {
            let end = after.find([' ', '\t', ',']).unwrap_or(after.len());
            let (value, rest) = after.split_at(end);
            self.rest = rest;
            return Some(value.to_owned());
        };
        let mut value = String::new();
        let mut chars = quoted.chars();
        while let Some(char) = chars.next() {
            match char {
                '"' => break,
                '\\' => value.extend(chars.next()),
                char => value.push(char),
            }
        }
        self.rest = chars.as_str();
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[&str], metadata: Option<&str>, scopes: &str, error: Option<&str>) {
        let challenge = Challenge::parse(headers.iter().copied());
        let found = (
            challenge.resource_metadata.as_deref(),
            challenge.scopes.to_string(),
            challenge.error.as_deref(),
        );
        assert_eq!(found, (metadata, scopes.to_owned(), error), "{headers:?}");
    }

    #[test]
    fn challenge_of_bearer_is_read_among_others() {
        check(&[], None, "", None);
        check(&["Bearer"], None, "", None);
        check(
            &[r#"Bearer resource_metadata="https://a.example/m", scope="a b""#],
            Some("https://a.example/m"),
            "a b",
            None,
        );
        check(
            &[r#"Basic realm="x, y=\"z\"", bearer error = insufficient_scope ,scope=a"#],
            None,
            "a",
            Some("insufficient_scope"),
        );
        check(
            &[r#"Bearer scope="a", DPoP scope="b", resource_metadata="no""#],
            None,
            "a",
            None,
        );
        check(
            &["Negotiate", r#"Bearer error="invalid_token"#],
            None,
            "",
            Some("invalid_token"),
        );
        check(
            &["=,=,\"", "Bearer =x", "Bearer scope=\"ü \u{7}\""],
            None,
            "",
            None,
        );
        check(
            &[&format!("Bearer scope={}", "a".repeat(20_000))],
            None,
            "",
            None,
        );
    }
}
