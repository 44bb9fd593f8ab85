//! Tests of the Rust output: it always parses, and lists what it does not express.

use serde_json::{Value, json};

use super::*;

fn types(tools: &[Value]) -> RustTypes {
    let descriptions: Vec<Description> = tools
        .iter()
        .map(|tool| Description::parse("demo", tool).unwrap())
        .collect();
    of_tools(&descriptions)
}

fn check(schema: Value, parts: &[&str]) {
    let tool = json!({"name": "t", "inputSchema": schema});
    let types = types(&[tool]);
    syn::parse_file(&types.text).unwrap();
    for part in parts {
        assert!(types.text.contains(part), "no `{part}` in\n{}", types.text);
    }
    assert_eq!(types.degraded, []);
}

#[test]
fn schema_becomes_rust_struct() {
    check(
        json!({"type": "object", "properties": {
            "level": {"type": "string", "enum": ["debug", "error"]},
            "limit": {"type": "integer", "minimum": 0, "maximum": 10, "default": 5},
            "since": {"type": "string", "format": "date-time", "pattern": "^2", "default": null},
            "kind": {"const": "a"},
        }, "required": ["level"]}),
        &[
            "pub struct Args",
            "pub level: ArgsLevel",
            "Option<u64>",
            "Option<::std::string::String>",
            "Debug",
        ],
    );
    check(
        json!({"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}}),
        &["pub struct Node", "Box<Node>"],
    );
}

#[test]
fn unsupported_schema_becomes_json_value_and_is_listed() {
    let schema =
        json!({"type": "object", "properties": {"x": {"enum": ["+1", "-1"]}, "y": {"not": {}}}});
    let types = types(&[
        json!({"name": "t", "inputSchema": schema}),
        json!({"name": "ok", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}),
    ]);
    syn::parse_file(&types.text).unwrap();
    assert_eq!(types.degraded.len(), 1);
    assert!(types.text.contains("pub struct Args"), "{}", types.text);
}

#[test]
fn colliding_field_names_yield_no_type() {
    let properties = json!({"a-b": {"type": "string"}, "a_b": {"type": "string"}});
    let types = types(&[json!({"name": "t", "inputSchema": {"properties": properties}})]);
    assert_eq!(types.degraded.len(), 1, "{}", types.text);
}

#[test]
fn type_names_are_unique_and_order_independent() {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let names = [
        "get-user",
        "get_user",
        "get.user",
        "fn",
        "self",
        "2fa",
        "a$b",
        "a_b",
        "日本語",
    ];
    let mut tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
    let text = types(&tools).text;
    tools.reverse();
    assert_eq!(types(&tools).text, text);
    let file = syn::parse_file(&text).unwrap();
    let Some(syn::Item::Mod(server)) = file.items.first() else {
        panic!("{text}")
    };
    assert_eq!(
        server.content.as_ref().unwrap().1.len(),
        names.len(),
        "{text}"
    );
}

#[test]
fn prose_cannot_close_its_comment() {
    let text = "a\n */ \u{202e} \"# fn main() {}\u{2028}x";
    let tool = json!({"name": "t", "description": text, "inputSchema":
        {"type": "object", "description": text, "properties": {"a": {"type": "string", "description": text}}}});
    let types = types(&[tool]).text;
    syn::parse_file(&types).unwrap();
    assert!(!types.contains('\u{202e}') && !types.contains('\u{2028}'));
}

#[test]
fn self_referential_type_becomes_json_value_and_is_listed() {
    let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"$ref": "#/$defs/x"}}});
    let types = types(&[json!({"name": "t", "inputSchema": schema})]);
    let [tool] = &types.degraded[..] else {
        panic!("{:?}", types.degraded)
    };
    assert!(
        tool.found[0].reason.contains("contains only itself"),
        "{tool:?}"
    );
    assert!(types.text.contains("pub type Args"), "{}", types.text);
}
