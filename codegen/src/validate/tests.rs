//! Tests of findings about single values, and of schemas that are refused.

use super::*;
use serde_json::json;

#[track_caller]
fn check(schema: &Value, value: &Value, expected: &[&str]) {
    let validator = Validator::compile(schema).unwrap();
    let findings: Vec<String> = validator
        .check("args", value)
        .iter()
        .map(Finding::to_string)
        .collect();
    assert_eq!(findings, expected, "{value} against {schema}");
}

#[track_caller]
fn check_refused(schema: &Value, expected: &str) {
    assert_eq!(
        Validator::compile(schema).unwrap_err().to_string(),
        expected
    );
}

#[test]
fn valid_value_has_no_findings() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    check(&schema, &json!({"a": "x"}), &[]);
    check(&schema, &json!({}), &[]);
    check(&json!({}), &json!({"anything": 1}), &[]);
    check(&json!({"type": "object"}), &json!({"anything": 1}), &[]);
}

#[test]
fn misspelt_property_suggests_closest() {
    let schema = json!({
        "type": "object",
        "properties": {"owner": {"type": "string"}, "per_page": {"type": "integer"}},
        "required": ["owner"],
        "additionalProperties": false,
    });
    check(
        &schema,
        &json!({"owner": "o", "perPage": 1}),
        &[
            "args.perPage: expected `owner` or `per_page`, got an unknown property. Did you mean `per_page`?",
        ],
    );
    check(
        &schema,
        &json!({"Owner": "o"}),
        &[
            "args.Owner: expected `owner` or `per_page`, got an unknown property. Did you mean `owner`?",
            "args.owner: expected a string, got nothing. Did you write `Owner` instead?",
        ],
    );
}

#[test]
fn permitted_unknown_property_is_a_warning() {
    let schema = json!({"type": "object", "properties": {
        "filter": {"type": "object", "properties": {"since": {"type": "string"}}},
        "tags": {"type": "array", "items": {"properties": {"name": {}}}},
        "any": {"type": "object", "additionalProperties": true, "properties": {"a": {}}},
    }});
    let validator = Validator::compile(&schema).unwrap();
    let value = json!({"filter": {"sinc": "x"}, "tags": [{"nam": 1}], "any": {"b": 1}});
    let findings = validator.check("args", &value);
    assert!(findings.iter().all(|it| it.severity == Severity::Warning));
    let texts: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert_eq!(
        texts,
        [
            "args.filter.sinc: expected `since`, got an unknown property. Did you mean `since`?",
            "args.tags[0].nam: expected `name`, got an unknown property. Did you mean `name`?",
        ]
    );
    assert!(validator.accepts(&value));
}

#[test]
fn wrong_type_names_expected_type() {
    let schema = json!({"properties": {
        "n": {"type": "integer"}, "s": {"type": "string"}, "b": {"type": "boolean"},
        "xs": {"type": "array"}, "o": {"type": "object"}, "u": {"type": ["string", "null"]},
    }, "required": ["s"]});
    let one = |key: &str, value: Value, expected: &str| {
        let mut whole = json!({"s": "x"});
        whole[key] = value;
        check(&schema, &whole, &[expected]);
    };
    one(
        "n",
        json!("5"),
        "args.n: expected an integer, got \"5\". Did you mean 5?",
    );
    one("n", json!(1.5), "args.n: expected an integer, got 1.5");
    one(
        "s",
        json!(5),
        "args.s: expected a string, got 5. Did you mean \"5\"?",
    );
    one("s", json!(null), "args.s: expected a string, got null");
    one(
        "b",
        json!("True"),
        "args.b: expected a boolean, got \"True\". Did you mean true?",
    );
    one(
        "xs",
        json!("x"),
        "args.xs: expected an array, got \"x\". Did you mean [\"x\"]?",
    );
    one(
        "o",
        json!("{}"),
        "args.o: expected an object, got \"{}\". Pass the object itself, not its JSON text.",
    );
    one(
        "n",
        json!(null),
        "args.n: expected an integer, got null. Omit the property instead.",
    );
    one(
        "u",
        json!(1),
        "args.u: expected null or a string, got 1. Did you mean \"1\"?",
    );
}

#[test]
fn bounds_patterns_and_enums_are_spelled_out() {
    let schema = json!({"properties": {
        "n": {"minimum": 1, "maximum": 10}, "s": {"minLength": 2, "pattern": "^[a-z]+$"},
        "e": {"enum": ["list_workflows", "get_workflow"]}, "c": {"const": 3},
        "xs": {"type": "array", "maxItems": 1, "uniqueItems": true},
    }});
    check(
        &schema,
        &json!({"n": 0}),
        &["args.n: expected at least 1, got 0"],
    );
    check(
        &schema,
        &json!({"n": 11}),
        &["args.n: expected at most 10, got 11"],
    );
    check(
        &schema,
        &json!({"s": "a"}),
        &["args.s: expected at least 2 characters, got 1 character"],
    );
    check(
        &schema,
        &json!({"s": "AB"}),
        &["args.s: expected text that matches /^[a-z]+$/, got \"AB\""],
    );
    check(&schema, &json!({"c": 4}), &["args.c: expected 3, got 4"]);
    check(
        &schema,
        &json!({"xs": [1, 2]}),
        &["args.xs: expected at most 1 item, got 2 items"],
    );
    check(
        &schema,
        &json!({"e": "list_workflow"}),
        &[
            "args.e: expected \"list_workflows\" or \"get_workflow\", got \"list_workflow\". Did you mean \"list_workflows\"?",
        ],
    );
}

#[test]
fn union_finding_explains_intended_alternative() {
    let optional = json!({"properties": {"f": {"anyOf": [
        {"type": "object", "properties": {"since": {"type": "string"}}, "required": ["since"]},
        {"type": "null"},
    ]}}});
    check(
        &optional,
        &json!({"f": {}}),
        &["args.f.since: expected a string, got nothing"],
    );
    check(
        &optional,
        &json!({"f": 5}),
        &["args.f: expected an object or null, got 5"],
    );

    let tagged = json!({"properties": {"f": {"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
        {"type": "object", "properties": {"kind": {"const": "b"}, "y": {"type": "integer"}}, "required": ["kind", "y"]},
    ]}}});
    check(
        &tagged,
        &json!({"f": {"kind": "b", "y": "1"}}),
        &["args.f.y: expected an integer, got \"1\". Did you mean 1?"],
    );
}

#[test]
fn paths_use_script_syntax() {
    let schema =
        json!({"properties": {"a-b": {"properties": {"0": {"items": {"type": "string"}}}}}});
    check(
        &schema,
        &json!({"a-b": {"0": ["x", 1]}}),
        &["args[\"a-b\"][\"0\"][1]: expected a string, got 1. Did you mean \"1\"?"],
    );
}

#[test]
fn other_drafts_and_dialects_are_supported() {
    check(
        &json!({"items": [{"type": "number"}]}),
        &json!(["x"]),
        &["args[0]: expected a number, got \"x\""],
    );
    check(
        &json!({"properties": {"n": {"minimum": 0, "exclusiveMinimum": true}}}),
        &json!({"n": 0}),
        &["args.n: expected more than 0, got 0"],
    );
    check(
        &json!({"$schema": "https://example.com/own-dialect", "type": "object"}),
        &json!({}),
        &[],
    );
    let nullable =
        json!({"properties": {"v": {"type": "string", "nullable": true, "enum": ["a"]}}});
    check(&nullable, &json!({"v": null}), &[]);
    check(
        &json!({"properties": {"v": {"format": "ipv4"}}}),
        &json!({"v": "text"}),
        &[],
    );
}

#[test]
fn external_references_are_refused() {
    check_refused(
        &json!({"properties": {"c": {"$ref": "https://example.com/x.json"}}}),
        "the schema refers to `https://example.com/x.json` outside the schema; airlock does not fetch it",
    );
    check_refused(
        &json!({"$ref": "file:///etc/passwd"}),
        "the schema refers to `file:///etc/passwd` outside the schema; airlock does not fetch it",
    );
    check_refused(
        &json!({"$ref": "#/$defs/x"}),
        "the schema refers to `#/$defs/x`, which does not exist",
    );
    check_refused(
        &json!({"properties": {"a": {"$id": "https://example.com/a"}}}),
        "the schema has a nested `$id` (`https://example.com/a`), so its references are ambiguous",
    );
    check(
        &json!({"properties": {"$id": {"type": "string"}, "$ref": {}}}),
        &json!({"$id": "x"}),
        &[],
    );
}

#[test]
fn endless_schema_is_refused() {
    let endless = "the schema applies itself to the same value endlessly";
    check_refused(&json!({"$ref": "#"}), endless);
    check_refused(
        &json!({"anyOf": [{"type": "null"}, {"allOf": [{"$ref": "#"}]}]}),
        endless,
    );
    let hidden = json!({
        "properties": {"x": {"$ref": "#/$defs/b"}},
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}},
    });
    check_refused(&hidden, endless);
}

#[test]
fn exponentially_unfolding_schema_is_refused() {
    let mut defs = serde_json::Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        defs.insert(format!("l{level}"), json!({"anyOf": [next, next]}));
    }
    defs.insert("l60".into(), json!({"type": "null"}));
    check_refused(
        &json!({"$ref": "#/$defs/l0", "$defs": defs}),
        "the schema expands to more than 100000 parts",
    );
    let mut deep = json!({});
    for _ in 0..400 {
        deep = json!({"items": deep});
    }
    check_refused(&deep, "the schema is nested too deeply or too large");
}

#[test]
fn work_doubling_recursive_schema_is_refused() {
    let branch = |key: &str| json!({"properties": {"c": {"$ref": "#"}}, "required": [key]});
    let bomb = json!({"anyOf": [branch("x"), branch("y")]});
    let mut value = json!({});
    for _ in 0..60 {
        value = json!({"c": value});
    }
    let validator = Validator::compile(&bomb).unwrap();
    assert_eq!(
        validator.check("args", &value)[0].to_string(),
        "args: expected a value that can be checked in bounded time, got one that this tool's \
         recursive schema makes too costly. Pass a smaller or less nested value.",
    );
    assert!(!validator.accepts(&value));
}

#[test]
fn ordinary_recursive_schema_is_checked_at_every_level() {
    let tree = json!({"type": "object", "properties": {
        "v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#"}},
    }, "required": ["v"]});
    let mut value = json!({"v": "x"});
    for _ in 0..120 {
        value = json!({"v": 1, "kids": [value]});
    }
    let findings = Validator::compile(&tree).unwrap().check("args", &value);
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0].path.ends_with("kids[0].kids[0].v"),
        "{}",
        findings[0].path
    );
}

#[test]
fn large_value_is_checked_completely() {
    let row = json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}});
    let schema = json!({"type": "array", "items": {"anyOf": [row, {"type": "null"}]}});
    let mut rows: Vec<Value> = (0..100_000).map(|n| json!({"n": n, "s": "x"})).collect();
    let validator = Validator::compile(&schema).unwrap();
    assert!(validator.accepts(&json!(rows)));
    rows.push(json!(5));
    assert_eq!(
        validator.check("result", &json!(rows))[0].to_string(),
        "result[100000]: expected an object or null, got 5",
    );
}

#[test]
fn catastrophic_pattern_has_bounded_cost() {
    let schema = json!({"properties": {"s": {"pattern": "^(?=(a+)+$)(a+)+$"}}});
    let value = json!({"s": format!("{}!", "a".repeat(64))});
    let findings = Validator::compile(&schema).unwrap().check("args", &value);
    assert_eq!(findings.len(), 1);
}

#[test]
fn hidden_characters_are_visible_in_message() {
    check(
        &json!({"properties": {"s": {"enum": ["a"]}}}),
        &json!({"s": "a\u{202e}\n"}),
        &["args.s: expected \"a\", got \"a\\u202e\\n\""],
    );
}
