//! The address at which the browser ends: it contains the code, or an error.

use url::Url;

use super::error::{LoginError, shown};

/// What the answer of the browser is compared with.
pub(super) struct Expected<'a> {
    pub(super) redirect_uri: &'a str,
    pub(super) state: &'a str,
    pub(super) issuer: &'a str,
    /// Whether the authorization server promises to name itself in each answer (RFC 9207).
    pub(super) names_issuer: bool,
}

/// Whether an address is the redirect URI, with any query.
fn is_redirect_to(address: &str, redirect_uri: &str) -> bool {
    let (Ok(mut address), Ok(mut redirect_uri)) =
        (Url::parse(address.trim()), Url::parse(redirect_uri))
    else {
        return false;
    };
    for url in [&mut address, &mut redirect_uri] {
        url.set_query(None);
        url.set_fragment(None);
    }
    address == redirect_uri
}

/// Whether an address is an answer of this login: the redirect URI, with exactly this state. Any
/// other request to the redirect URI can come from anybody.
pub(super) fn has_state(address: &str, redirect_uri: &str, state: &str) -> bool {
    let Ok(url) = Url::parse(address.trim()) else {
        return false;
    };
    let mut states = url.query_pairs().filter(|(name, _)| name == "state");
    let is_right = states.next().is_some_and(|(_, value)| value == state);
    is_redirect_to(address, redirect_uri) && is_right && states.next().is_none()
}

/// Returns the code. Nothing of an answer is used or shown before its state and its issuer are
/// known to be right.
pub(super) fn code(address: &str, expected: &Expected<'_>) -> Result<String, LoginError> {
    let not_redirect = || LoginError::NotRedirect {
        expected: expected.redirect_uri.to_owned(),
    };
    if !is_redirect_to(address, expected.redirect_uri) {
        return Err(not_redirect());
    }
    let url = Url::parse(address.trim()).map_err(|_| not_redirect())?;
    // A parameter that occurs twice could be read in two ways.
    let single = |name: &str| {
        let mut values = url.query_pairs().filter(|(key, _)| key == name);
        let first = values.next().map(|(_, value)| value.into_owned());
        match values.next() {
            Some(_) => Err(not_redirect()),
            None => Ok(first),
        }
    };
    if single("state")?.as_deref() != Some(expected.state) {
        return Err(LoginError::State);
    }
    match single("iss")? {
        Some(issuer) if issuer != expected.issuer => return Err(LoginError::IssuerWrong),
        None if expected.names_issuer => return Err(LoginError::IssuerMissing),
        _ => {}
    }
    if let Some(error) = single("error")? {
        let description = single("error_description")?.unwrap_or_default();
        let colon = if description.is_empty() { "" } else { ": " };
        return Err(LoginError::Refused(shown(&format!(
            "{error}{colon}{description}"
        ))));
    }
    single("code")?
        .filter(|code| !code.is_empty())
        .ok_or(LoginError::NoCode)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "http://127.0.0.1:4000/callback";

    fn check(query: &str, names_issuer: bool, expected: Result<&str, LoginError>) {
        let address = match query.starts_with("http") {
            true => query.to_owned(),
            false => format!("{HERE}?{query}"),
        };
        let found = code(
            &address,
            &Expected {
                redirect_uri: HERE,
                state: "s",
                issuer: "https://as.example",
                names_issuer,
            },
        );
        assert_eq!(found, expected.map(str::to_owned), "{query}");
    }

    #[test]
    fn only_the_redirect_with_its_state_is_an_answer() {
        for (address, expected) in [
            ("http://127.0.0.1:4000/callback?code=c&state=s", true),
            ("http://127.0.0.1:4000/callback?error=e&state=s&iss=x", true),
            ("http://127.0.0.1:4000/callback?code=c&state=S", false),
            ("http://127.0.0.1:4000/callback?code=c", false),
            ("http://127.0.0.1:4000/callback?state=s&state=s", false),
            ("http://127.0.0.1:4000/callback/?state=s", false),
            ("http://127.0.0.1:4001/callback?state=s", false),
            ("nonsense", false),
        ] {
            assert_eq!(has_state(address, HERE, "s"), expected, "{address}");
        }
    }

    #[test]
    fn code_is_taken_only_from_the_right_answer() {
        const ISS: &str = "iss=https%3A%2F%2Fas.example";
        let other = LoginError::NotRedirect {
            expected: HERE.to_owned(),
        };
        check("code=c&state=s", false, Ok("c"));
        check(&format!("code=c&state=s&{ISS}"), false, Ok("c"));
        check(&format!("code=c&state=s&{ISS}"), true, Ok("c"));
        check("code=c&state=s", true, Err(LoginError::IssuerMissing));
        check("code=c&state=s&iss=", false, Err(LoginError::IssuerWrong));
        check(
            &format!("code=c&state=s&{ISS}%2F"),
            true,
            Err(LoginError::IssuerWrong),
        );
        check("code=c&state=S", false, Err(LoginError::State));
        check("code=c", false, Err(LoginError::State));
        check("state=s", false, Err(LoginError::NoCode));
        check("code=&state=s", false, Err(LoginError::NoCode));
        check("code=c&code=d&state=s", false, Err(other.clone()));
        check("code=c&state=s&state=s", false, Err(other.clone()));
        check(
            "https://evil.example/callback?code=c&state=s",
            false,
            Err(other.clone()),
        );
        check(
            "http://127.0.0.1:4001/callback?code=c&state=s",
            false,
            Err(other),
        );
        check(
            "error=access_denied&error_description=no%0Away&state=s",
            false,
            Err(LoginError::Refused("access_denied: no way".into())),
        );
        // Nothing of an answer of another server is shown.
        check(
            "error=e&error_description=call+0123&state=s&iss=https://x",
            false,
            Err(LoginError::IssuerWrong),
        );
    }
}
