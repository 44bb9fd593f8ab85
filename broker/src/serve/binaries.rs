//! Replaces images, sounds and other binary data in the value that a script returns, because a
//! model cannot read base64 text. Each binary gets an address, where a host can read the data with
//! its media type.

use airlock_core::json::{self, Bounds};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::result_store::StoredContent;
use base64::prelude::{BASE64_STANDARD, Engine as _};

/// Maximum number of binaries replaced per value. Further binaries stay in the value, which is then
/// cut like any long text.
const BINARIES_MAX: usize = 32;
const MIME_CHARS_MAX: usize = 100;
const UNKNOWN: &str = "application/octet-stream";

/// Replaces the binaries in a value by their addresses. `keep` stores one binary and returns its
/// address. Returns `None` if the value contains no binaries.
pub(super) fn put_away(
    value: &RawValue,
    mut keep: impl FnMut(usize, StoredContent) -> String,
) -> Option<Box<RawValue>> {
    // A value that contains neither key has no binaries, so it need not be parsed.
    if !value.get().contains("\"mimeType\"") && !value.get().contains("\"blob\"") {
        return None;
    }
    let mut value = json::read(value.get().as_bytes(), Bounds::WIDEST).ok()?;
    let mut number = 0;
    walk(&mut value, &mut |kept| {
        (number < BINARIES_MAX).then(|| {
            number += 1;
            keep(number, kept)
        })
    });
    let changed = || RawValue::from_string(value.to_string()).ok();
    (number > 0).then(changed).flatten()
}

fn walk(value: &mut Value, keep: &mut impl FnMut(StoredContent) -> Option<String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|it| walk(it, keep)),
        Value::Object(members) => {
            if let Some((key, kept)) = binary(members) {
                replace(members, key, kept, keep);
            }
            members.values_mut().for_each(|it| walk(it, keep));
        }
        _ => {}
    }
}

/// Returns the member that holds base64 text, if the object is an image, a sound or the contents of
/// a resource.
fn binary(members: &Map<String, Value>) -> Option<(&'static str, StoredContent)> {
    let text = |key: &str| members.get(key).and_then(Value::as_str);
    let is_shown = matches!(text("type"), Some("image" | "audio")) && text("mimeType").is_some();
    let key = match is_shown {
        true => "data",
        false => text("uri").map(|_| "blob")?,
    };
    let bytes = BASE64_STANDARD.decode(text(key)?).ok()?;
    let kept = StoredContent::Binary {
        bytes: bytes.into(),
        mime: mime(text("mimeType").unwrap_or(UNKNOWN)).into(),
    };
    Some((key, kept))
}

/// Inserts the address at the place of the binary, so that the order of members is kept.
fn replace(
    members: &mut Map<String, Value>,
    key: &str,
    kept: StoredContent,
    keep: &mut impl FnMut(StoredContent) -> Option<String>,
) {
    let StoredContent::Binary { bytes, mime } = &kept else {
        return;
    };
    let mut place = json!({"mimeType": **mime, "bytes": bytes.len()});
    let Some(uri) = keep(kept) else {
        return;
    };
    super::rpc::set_member(&mut place, "uri", uri);
    let renamed = |(name, value): (String, Value)| match name == key {
        true => (format!("{key}_at"), place.clone()),
        false => (name, value),
    };
    *members = std::mem::take(members).into_iter().map(renamed).collect();
}

/// Returns the media type that the server sent if the text looks like a media type, and otherwise a
/// generic type.
fn mime(said: &str) -> &str {
    let fits = |it: char| it.is_ascii_graphic() || it == ' ';
    let is_type = said.contains('/') && said.len() <= MIME_CHARS_MAX && said.chars().all(fits);
    if is_type { said } else { UNKNOWN }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: Value, expected: Option<Value>, kept: &[(&[u8], &str)]) {
        let raw = RawValue::from_string(value.to_string()).unwrap();
        let mut away = Vec::new();
        let told = put_away(&raw, |number, kept| {
            away.push(kept);
            format!("a:{number}")
        });
        assert_eq!(
            told.map(|it| it.get().to_owned()),
            expected.map(|it| it.to_string())
        );
        let kept: Vec<_> = kept
            .iter()
            .map(|(bytes, mime)| StoredContent::Binary {
                bytes: (*bytes).into(),
                mime: (*mime).into(),
            })
            .collect();
        assert_eq!(away, kept, "{value}");
    }

    #[test]
    fn binaries_are_stored_wherever_they_occur() {
        let image = json!({"type": "image", "data": "YWJj", "mimeType": "image/png"});
        let image_at = |uri: &str| {
            let place = json!({"mimeType": "image/png", "bytes": 3, "uri": uri});
            json!({"type": "image", "data_at": place, "mimeType": "image/png"})
        };
        check(
            image.clone(),
            Some(image_at("a:1")),
            &[(b"abc", "image/png")],
        );
        let text = json!({"type": "text", "text": "YWJj"});
        check(
            json!({"n": 1, "pages": [text, image, {"deep": image}]}),
            Some(json!({"n": 1, "pages": [text, image_at("a:1"), {"deep": image_at("a:2")}]})),
            &[(b"abc", "image/png"), (b"abc", "image/png")],
        );
        check(
            json!({"type": "resource", "resource": {"uri": "x:y", "blob": "YQ=="}}),
            Some(json!({"type": "resource", "resource": {
                "uri": "x:y",
                "blob_at": {"mimeType": UNKNOWN, "bytes": 1, "uri": "a:1"},
            }})),
            &[(b"a", UNKNOWN)],
        );
    }

    #[test]
    fn binary_lookalikes_stay_inline() {
        for value in [
            json!({"type": "image", "data": "no letters!", "mimeType": "image/png"}),
            json!({"type": "image", "data": "YWJj"}),
            json!({"type": "text", "data": "YWJj", "mimeType": "image/png"}),
            json!({"blob": "YWJj"}),
            json!({"uri": "x:y", "blob": 7}),
            json!("\"mimeType\""),
        ] {
            check(value, None, &[]);
        }
    }

    #[test]
    fn binary_bound_applies_and_invalid_mime_is_not_repeated() {
        let image = json!({"type": "image", "data": "YQ==", "mimeType": "ima\nge/png"});
        let many = vec![image; BINARIES_MAX + 1];
        let raw = RawValue::from_string(json!(many).to_string()).unwrap();
        let mut types = Vec::new();
        let told = put_away(&raw, |_, kept| {
            if let StoredContent::Binary { mime, .. } = kept {
                types.push(mime);
            }
            String::new()
        });
        assert_eq!(types.len(), BINARIES_MAX);
        assert!(types.iter().all(|it| &**it == UNKNOWN));
        assert_eq!(told.unwrap().get().matches("\"data\"").count(), 1);
    }
}
