//! URLs, and the names and values of their query strings.

use url::{Url, form_urlencoded, quirks};

/// Returns the URL in its normal form.
pub fn parse(text: &str, base: Option<&str>) -> Option<String> {
    let url = match base {
        None => Url::parse(text),
        Some(base) => Url::parse(base).and_then(|base| base.join(text)),
    };
    url.ok().map(|url| quirks::href(&url).to_owned())
}

/// Returns one part of a URL, or an empty text if the URL does not have it; `None` if `href` is not
/// a URL.
pub fn part(href: &str, name: &str) -> Option<String> {
    let url = Url::parse(href).ok()?;
    let part = match name {
        "protocol" => quirks::protocol(&url),
        "username" => quirks::username(&url),
        "password" => quirks::password(&url),
        "host" => quirks::host(&url),
        "hostname" => quirks::hostname(&url),
        "port" => quirks::port(&url),
        "pathname" => quirks::pathname(&url),
        "search" => quirks::search(&url),
        "hash" => quirks::hash(&url),
        "origin" => return Some(quirks::origin(&url)),
        _ => "",
    };
    Some(part.to_owned())
}

/// Returns a URL with one part changed. An invalid value leaves the part unchanged. `None` if
/// `href` is not a URL.
pub fn with(href: &str, name: &str, value: &str) -> Option<String> {
    let mut url = Url::parse(href).ok()?;
    let refused = match name {
        "protocol" => quirks::set_protocol(&mut url, value).is_err(),
        "username" => quirks::set_username(&mut url, value).is_err(),
        "password" => quirks::set_password(&mut url, value).is_err(),
        "host" => quirks::set_host(&mut url, value).is_err(),
        "hostname" => quirks::set_hostname(&mut url, value).is_err(),
        "port" => quirks::set_port(&mut url, value).is_err(),
        "pathname" => {
            quirks::set_pathname(&mut url, value);
            false
        }
        "search" => {
            quirks::set_search(&mut url, value);
            false
        }
        "hash" => {
            quirks::set_hash(&mut url, value);
            false
        }
        _ => true,
    };
    if refused {
        return Some(href.to_owned());
    }
    Some(quirks::href(&url).to_owned())
}

/// Returns names and values alternately.
pub fn form_parts(text: &str) -> Vec<String> {
    form_urlencoded::parse(text.as_bytes())
        .flat_map(|(name, value)| [name.into_owned(), value.into_owned()])
        .collect()
}

/// Returns the query string of these names and values.
pub fn form_text(pairs: impl IntoIterator<Item = (String, String)>) -> String {
    let mut out = form_urlencoded::Serializer::new(String::new());
    out.extend_pairs(pairs);
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_parsed_and_changed_part_by_part() {
        let href = parse("../b?x=1#y", Some("https://u:p@h.example:8080/a/c/")).unwrap();
        assert_eq!(href, "https://u:p@h.example:8080/a/b?x=1#y");
        for (name, value) in [
            ("protocol", "https:"),
            ("username", "u"),
            ("password", "p"),
            ("host", "h.example:8080"),
            ("hostname", "h.example"),
            ("port", "8080"),
            ("pathname", "/a/b"),
            ("search", "?x=1"),
            ("hash", "#y"),
            ("origin", "https://h.example:8080"),
            ("other", ""),
        ] {
            assert_eq!(part(&href, name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(
            with(&href, "port", "1").as_deref(),
            Some("https://u:p@h.example:1/a/b?x=1#y")
        );
        assert_eq!(with(&href, "port", "x"), Some(href.clone()));
        assert_eq!(with(&href, "origin", "x"), Some(href));
    }

    #[test]
    fn what_is_no_url_is_none() {
        assert_eq!(parse("a", None), None);
        assert_eq!(parse("a", Some("b")), None);
        assert_eq!(part("a", "host"), None);
        assert_eq!(with("a", "host", "b"), None);
    }

    #[test]
    fn forms_are_read_and_written() {
        assert_eq!(
            form_parts("a=1+2&b&%C3%A4=%26"),
            ["a", "1 2", "b", "", "ä", "&"]
        );
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            form_text([pair("a b", "&"), pair("ä", "")]),
            "a+b=%26&%C3%A4="
        );
    }
}
