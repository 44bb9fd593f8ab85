//! Finds content blocks in a tool's result. A host that calls the tool directly gets images, sounds
//! and resources as content blocks, not as text that encodes them.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::render::escape;

/// The types of images that models view.
const VIEWABLE: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Maximum size of an image that a result contains, in bytes. Model APIs accept about 5 MB in base64.
pub(super) const IMAGE_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Returns the content blocks of a value. Returns `None` if the value is not a list of content
/// blocks, or if its text is longer than `text_bytes_max`. Texts are escaped, because a host may
/// show them.
pub(super) fn of_value(value: &RawValue, text_bytes_max: usize) -> Option<Vec<Value>> {
    let mut blocks: Vec<Value> = serde_json::from_str(value.get()).ok()?;
    let text_bytes = blocks.iter().map(|block| text_of(block, "/text").len());
    let is_content = !blocks.is_empty() && blocks.iter().all(is_block);
    let fits = text_bytes.sum::<usize>() <= text_bytes_max;
    blocks.iter_mut().for_each(escape::texts);
    (is_content && fits).then_some(blocks)
}

/// Returns an image block, if models can view images of this type and size.
pub(super) fn image(bytes: &[u8], mime: &str) -> Option<Value> {
    let is_shown = VIEWABLE.contains(&mime) && bytes.len() <= IMAGE_BYTES_MAX;
    let encoded = || BASE64_STANDARD.encode(bytes);
    is_shown.then(|| json!({"type": "image", "data": encoded(), "mimeType": mime}))
}

fn is_block(block: &Value) -> bool {
    let says = |path| block.pointer(path).is_some_and(Value::is_string);
    match text_of(block, "/type") {
        "text" => says("/text"),
        "image" | "audio" => says("/data") && says("/mimeType"),
        "resource_link" => says("/uri") && says("/name"),
        "resource" => says("/resource/uri") && (says("/resource/text") || says("/resource/blob")),
        _ => false,
    }
}

fn text_of<'a>(block: &'a Value, path: &str) -> &'a str {
    let found = block.pointer(path).and_then(Value::as_str);
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: Value, is_content: bool) {
        let raw = RawValue::from_string(value.to_string()).unwrap();
        assert_eq!(of_value(&raw, 10).is_some(), is_content, "{value}");
    }

    #[test]
    fn only_viewable_images_become_blocks() {
        let block = json!({"type": "image", "data": "YWJj", "mimeType": "image/png"});
        assert_eq!(image(b"abc", "image/png"), Some(block));
        assert_eq!(image(b"abc", "image/svg+xml"), None);
        assert_eq!(image(b"abc", "audio/wav"), None);
        assert_eq!(image(&vec![0; IMAGE_BYTES_MAX + 1], "image/png"), None);
    }

    #[test]
    fn texts_of_blocks_are_escaped() {
        let text = json!([{"type": "text", "text": "a\u{1b}[2J\nb"}]);
        let raw = RawValue::from_string(text.to_string()).unwrap();
        let shown = json!({"type": "text", "text": "a\\u{1b}[2J\nb"});
        assert_eq!(of_value(&raw, 100), Some(vec![shown]));
    }

    #[test]
    fn only_complete_blocks_are_content() {
        let text = json!({"type": "text", "text": "short"});
        let image = json!({"type": "image", "data": "aaaaaaaaaaaaaaaa", "mimeType": "image/png"});
        let embedded = json!({"uri": "a://b", "blob": "aaaa"});
        check(json!([text, image]), true);
        check(json!([{"type": "resource", "resource": embedded}]), true);
        check(
            json!([{"type": "resource_link", "uri": "a://b", "name": "b"}]),
            true,
        );
        check(json!([]), false);
        check(json!([text, 7]), false);
        check(json!([{"type": "image", "data": "aaaa"}]), false);
        check(json!([{"type": "ticket", "text": "a"}]), false);
        check(image, false);
        check(json!([text, text, text]), false);
    }
}
