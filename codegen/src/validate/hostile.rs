//! Tests with schemas and values that are made to be expensive. Each test ends quickly.

use serde_json::{Map, Value, json};

use super::Validator;

/// Returns definitions `l0` to `l<levels>`. Each applies the next one twice; the last is `end`.
fn doubling(levels: usize, end: Value) -> Map<String, Value> {
    let mut defs = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        defs.insert(format!("l{level}"), json!({"anyOf": [next, next]}));
    }
    defs.insert(format!("l{levels}"), end);
    defs
}

/// Returns schemas with `it` under each keyword, each with a value that the keyword applies to.
fn places(it: &Value) -> Vec<(Value, Value)> {
    let mut places = Vec::new();
    for keyword in [
        "propertyNames",
        "additionalProperties",
        "unevaluatedProperties",
    ] {
        places.push((json!({keyword: it}), json!({"x": "x"})));
    }
    for keyword in ["properties", "patternProperties"] {
        places.push((json!({keyword: {"x": it}}), json!({"x": "x"})));
    }
    for keyword in ["items", "contains", "unevaluatedItems"] {
        places.push((json!({keyword: it}), json!(["x"])));
    }
    for keyword in ["items", "prefixItems"] {
        places.push((json!({keyword: [it]}), json!(["x"])));
    }
    places.push((
        json!({"items": [true], "additionalItems": it}),
        json!([1, "x"]),
    ));
    for keyword in ["dependentSchemas", "dependencies"] {
        places.push((json!({keyword: {"x": it}}), json!({"x": "x"})));
    }
    for keyword in ["not", "if"] {
        places.push((json!({keyword: it}), json!("x")));
    }
    places
}

fn merged(base: Value, more: &Value) -> Value {
    let (Value::Object(mut base), Value::Object(more)) = (base, more.clone()) else {
        panic!("two objects")
    };
    base.extend(more);
    Value::Object(base)
}

#[test]
fn endlessly_doubling_part_is_refused_everywhere() {
    let start = json!({"$ref": "#/$defs/l0"});
    for (schema, _) in places(&start) {
        // Another part of the schema contains itself; the doubling part does not.
        let around = json!({"$defs": merged(json!({"self": {"items": {"$ref": "#/$defs/self"}}}),
            &Value::Object(doubling(60, json!({"type": "null"}))))});
        let schema = merged(schema, &around);
        assert!(Validator::compile(&schema).is_err(), "{schema}");
    }
}

#[test]
fn doubling_part_containing_the_whole_is_refused_everywhere() {
    let start = json!({"$ref": "#/$defs/l0"});
    for (schema, value) in places(&start) {
        let end = json!({"type": "null", "properties": {"z": {"$ref": "#"}}});
        let schema = merged(schema, &json!({"$defs": doubling(60, end)}));
        let validator = Validator::compile(&schema).unwrap();
        assert!(!validator.accepts(&value), "{schema}");
    }
}

#[test]
fn long_key_is_not_repeated_per_part() {
    let inner: Map<String, Value> = (0..100_000).map(|n| (format!("k{n}"), json!(n))).collect();
    let value = json!({ "x".repeat(1024 * 1024): inner });
    let schema =
        json!({"properties": {"a": {}}, "additionalProperties": {"additionalProperties": true}});
    assert_eq!(
        Validator::compile(&schema).unwrap().check("args", &value),
        []
    );
    let schema = json!({"additionalProperties": {"additionalProperties": {"type": "string"}}});
    let schemas = [
        schema.clone(),
        json!({"anyOf": [schema, {"additionalProperties": {"maxProperties": 1}}]}),
    ];
    for schema in schemas {
        let findings = Validator::compile(&schema).unwrap().check("args", &value);
        let length: usize = findings.iter().map(|it| it.to_string().len()).sum();
        assert!((1..500).contains(&length), "{length}");
    }
}

#[test]
fn many_keys_beside_many_missing_ones_are_not_all_compared() {
    let value: Map<String, Value> = (0..40_000)
        .map(|n| (format!("a_long_key_{n}"), json!(n)))
        .collect();
    let required: Vec<String> = (0..60).map(|n| format!("another_long_key_{n}")).collect();
    let schema = json!({"required": required, "properties": {"b": {}}, "additionalProperties": {"const": 0}});
    let validator = Validator::compile(&schema).unwrap();
    assert!(!validator.check("args", &Value::Object(value)).is_empty());
    let zeros = json!("0".repeat(1024 * 1024));
    let found = Validator::compile(&json!({"type": "number"}))
        .unwrap()
        .check("args", &zeros);
    assert!(found[0].to_string().len() < 300);
}

#[test]
fn many_alternatives_over_many_faults_end_soon() {
    let branch = |n: usize| json!({"additionalProperties": {"const": n}});
    let branches: Vec<Value> = (0..20).map(branch).collect();
    let value: Map<String, Value> = (0..5_000).map(|n| (format!("k{n}"), json!("x"))).collect();
    let validator = Validator::compile(&json!({"oneOf": branches})).unwrap();
    assert!(!validator.check("args", &Value::Object(value)).is_empty());
}

#[test]
fn marking_what_was_evaluated_does_not_double_with_each_level() {
    let mut defs = Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        let schema = json!({"allOf": [next], "unevaluatedProperties": {"type": "string"}});
        defs.insert(format!("l{level}"), schema);
    }
    defs.insert(
        "l60".into(),
        json!({"properties": {"a": {"type": "string"}}}),
    );
    let schema = json!({"$ref": "#/$defs/l0", "$defs": defs});
    if let Ok(validator) = Validator::compile(&schema) {
        let _ = validator.check("args", &json!({"a": "x", "b": "y", "c": 1}));
    }
}

#[test]
fn names_that_are_looked_for_in_the_whole_document_are_few() {
    let one = |n: usize| (format!("k{n}"), json!({"$ref": "#a"}));
    let properties: Map<String, Value> = (0..5_000).map(one).collect();
    let schema = json!({"properties": properties, "$defs": {"a": {"$anchor": "a"}}});
    assert!(Validator::compile(&schema).is_err());
}
