//! What a header says. One may carry what headers cannot, between `=?base64?` and `?=`.

use axum::http::HeaderMap;

use base64::prelude::{BASE64_STANDARD, Engine as _};

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// None also where it cannot be decoded.
pub(super) fn decoded(headers: &HeaderMap, name: &str) -> Option<String> {
    let said = text(headers, name)?;
    let coded = said
        .strip_prefix("=?base64?")
        .and_then(|it| it.strip_suffix("?="));
    match coded {
        None => Some(said.to_owned()),
        Some(coded) => String::from_utf8(BASE64_STANDARD.decode(coded).ok()?).ok(),
    }
}
