//! Finds content blocks in a tool's result. A host that calls the tool directly gets images, sounds
//! and resources as content blocks, not as text that encodes them.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::render::escape;

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
    use serde_json::json;

    fn check(value: Value, is_content: bool) {
        let raw = RawValue::from_string(value.to_string()).unwrap();
        assert_eq!(of_value(&raw, 10).is_some(), is_content, "{value}");
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
