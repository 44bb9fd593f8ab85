//! Arbitrary data from a server: nothing panics, and valid JSON is not changed.

use airlock_core::json::{self, Bounds};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::upstream::decode;
use crate::upstream::headers::{headers_for, mirrored};
use crate::upstream::jsonrpc::{self, Answer, IncomingMessage};
use crate::upstream::raw;
use crate::upstream::sse::SseReader;

/// Generates JSON as servers send it, with the keys that this module looks for.
fn value() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "_meta",
        "content",
        "type",
        "text",
        "id",
        "jsonrpc",
        "result",
        "error",
        "method",
        "isError",
        "properties",
        "x-mcp-header",
        "items",
        "structuredContent",
        "resultType",
        "complete",
        "a\"b\\",
        "2.0",
        "ü😀\u{2028}",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|members| {
                Value::Object(
                    members
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

fn stripped(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(stripped).collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .filter(|(key, _)| *key != "_meta")
                .map(|(key, value)| (key.clone(), stripped(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

fn depth(value: &Value) -> u32 {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

proptest! {
    #[test]
    fn removing_meta_keeps_everything_else(value in value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let left: Value = serde_json::from_str(&raw::without_meta(&text)).unwrap();
        prop_assert_eq!(left, stripped(&value));
        let deepest = depth(&value);
        for depth_max in 0..=deepest {
            let bounds = Bounds { depth_max, ..Bounds::WIDEST };
            let within = json::measure(text.as_bytes(), bounds).is_ok();
            prop_assert_eq!(within, depth_max == deepest, "{} of {}", depth_max, deepest);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic_readers(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}\",:_meta0-9\\\\ ]{0,80}") {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            let _ = jsonrpc::parse(bytes);
            let _ = jsonrpc::parse_bare_error(bytes);
            let _ = jsonrpc::answered_id(bytes, bytes);
            let _ = json::measure(bytes, Bounds::WIDEST);
            let _ = raw::without_meta(&String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn result_of_any_shape_becomes_a_reply(result in value()) {
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string();
        if let IncomingMessage::Answer { answer: answer @ Answer::Result(_), .. } = jsonrpc::parse(message.as_bytes()) {
            let _ = decode::reply(Ok(answer), 10_000);
        } else {
            prop_assert!(result.is_null());
        }
    }

    #[test]
    fn schema_of_any_shape_yields_headers_or_error(schema in value(), arguments in value()) {
        if let (Ok(mirrored), Some(arguments)) = (mirrored(&schema), arguments.as_object()) {
            for (name, value) in headers_for(&mirrored, arguments) {
                prop_assert!(reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_ok());
                prop_assert!(reqwest::header::HeaderValue::from_str(&value).is_ok());
            }
        }
    }

    #[test]
    fn sse_events_do_not_depend_on_chunking(
        lines in prop::collection::vec(prop::sample::select(vec!["data: a", "data:b", "data", "id: 1", ": x", "", "", "event: e", "retry: 5"]), 0..20),
        ending in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        cut in 1_usize..9,
    ) {
        let text: String = lines.iter().flat_map(|line| [*line, ending]).collect();
        let read = |size: usize| -> Vec<Vec<u8>> {
            let mut reader = SseReader::new(1_000);
            let chunks = text.as_bytes().chunks(size.max(1));
            chunks.flat_map(|chunk| reader.push(chunk).unwrap()).map(|event| event.data).collect()
        };
        prop_assert_eq!(read(cut), read(text.len()));
    }
}
