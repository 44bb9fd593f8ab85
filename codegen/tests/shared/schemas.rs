//! Generates schemas and values that fit each other often enough for useful tests.

use proptest::prelude::*;
use serde_json::{Value, json};

fn name() -> impl Strategy<Value = String> {
    proptest::sample::select(vec!["a", "b", "x-c"]).prop_map(str::to_owned)
}

fn scalar_schema() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec![
        json!({"type": "string"}),
        json!({"type": "string", "minLength": 1}),
        json!({"type": "integer"}),
        json!({"type": "integer", "minimum": 1, "exclusiveMaximum": 3}),
        json!({"type": "number"}),
        json!({"type": "boolean"}),
        json!({"type": "null"}),
        json!({"type": ["string", "null"]}),
        json!({"type": "string", "nullable": true}),
        json!({"const": 1}),
        json!({"enum": ["s", 1, null]}),
        json!({"type": "string", "enum": ["s", 1]}),
        json!(true),
        json!({"$ref": "#/$defs/d"}),
    ])
}

pub(crate) fn schema() -> impl Strategy<Value = Value> {
    scalar_schema().prop_recursive(3, 24, 4, |inner| {
        let properties = proptest::collection::btree_map(name(), inner.clone(), 0..3);
        let required = proptest::sample::subsequence(vec!["a", "b"], 0..=2);
        let rest = proptest::option::of(prop_oneof![any::<bool>().prop_map(Value::from), inner.clone()]);
        let object = (properties, required, rest, proptest::option::of(inner.clone())).prop_map(
            |(properties, required, rest, pattern)| {
                let mut schema = json!({"type": "object", "properties": properties, "required": required});
                let fields = schema.as_object_mut().unwrap();
                if let Some(rest) = rest {
                    fields.insert("additionalProperties".to_owned(), rest);
                }
                if let Some(pattern) = pattern {
                    let named = fields.get("properties").and_then(Value::as_object).unwrap();
                    if !named.contains_key("x-c") {
                        fields.insert("patternProperties".to_owned(), json!({"^x-": pattern}));
                    }
                }
                schema
            },
        ).boxed();
        let array = (inner.clone(), 0..2).prop_map(|(items, min)| json!({"type": "array", "items": items, "minItems": min}));
        let tuple = (inner.clone(), inner.clone(), any::<bool>(), 0..3).prop_map(|(first, second, more, min)| {
            json!({"type": "array", "prefixItems": [first, second], "items": more, "minItems": min})
        });
        let any_of = proptest::collection::vec(inner.clone(), 1..4).prop_map(|it| json!({"anyOf": it})).boxed();
        let all_of = (object.clone(), object.clone()).prop_map(|(a, b)| json!({"allOf": [a, b]}));
        let both = (object.clone(), any_of.clone()).prop_map(|(mut object, any_of)| {
            let fields = object.as_object_mut().unwrap();
            fields.extend(any_of.as_object().unwrap().clone());
            object
        });
        prop_oneof![4 => object, 2 => array, 1 => tuple, 2 => any_of, 1 => all_of, 1 => both]
    })
}

pub(crate) fn value() -> impl Strategy<Value = Value> {
    let scalar = proptest::sample::select(vec![
        json!("s"),
        json!(""),
        json!(1),
        json!(2),
        json!(3),
        json!(1.5),
        json!(true),
        json!(null),
    ]);
    scalar.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => proptest::collection::btree_map(name(), inner, 0..4).prop_map(|it| json!(it)),
        ]
    })
}
