//! Tests with arbitrary tools: nothing panics or hangs, and the output keeps its guarantees.

use codegen::declare::{Level, declare};
use codegen::description::Description;
use codegen::stub::StubTable;
use codegen::text::is_invisible;
use codegen::validate::Validator;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const KEYWORDS: [&str; 40] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "$defs",
    "definitions",
    "$id",
    "$anchor",
    "$schema",
    "dependentRequired",
    "dependentSchemas",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minItems",
    "pattern",
    "format",
    "default",
    "examples",
    "description",
    "title",
    "deprecated",
    "nullable",
    "uniqueItems",
];

const WORDS: [&str; 24] = [
    "object",
    "array",
    "string",
    "integer",
    "null",
    "a",
    "b",
    "",
    "__proto__",
    "a-b",
    "#",
    "#/$defs/a",
    "#/properties/b",
    "#/properties/a/items",
    "https://example.com/x",
    "^x-",
    "(a+)+$",
    "*/ evil",
    "line\nbreak\u{2028}",
    "\u{202e}hidden\u{200b}",
    "日本語",
    "new",
    "int32",
    "http://json-schema.org/draft-07/schema#",
];

fn word() -> impl Strategy<Value = String> {
    proptest::sample::select(&WORDS[..]).prop_map(str::to_owned)
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![3 => proptest::sample::select(&KEYWORDS[..]).prop_map(str::to_owned), 1 => word()]
}

/// Generates JSON that is similar enough to a schema to reach every branch.
fn schema_like() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => word().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => (-5_i64..20).prop_map(Value::from),
        1 => Just(json!(1e300)),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(5, 60, 5, |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => proptest::collection::vec((key(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn tool() -> impl Strategy<Value = Value> {
    let schema = || {
        schema_like().prop_map(|it| {
            if it.is_object() {
                it
            } else {
                json!({"properties": {"a": it}})
            }
        })
    };
    (
        word(),
        word(),
        schema(),
        schema(),
        proptest::option::of(schema_like()),
    )
        .prop_map(|(name, text, input, properties, output)| {
            let mut input = input.as_object().cloned().unwrap_or_default();
            input.insert("type".to_owned(), json!("object"));
            input.entry("properties").or_insert(properties);
            json!({"name": name, "description": text, "inputSchema": input, "outputSchema": output})
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_tools_render_deterministically_without_hidden_characters(tools in proptest::collection::vec(tool(), 1..4)) {
        let parsed: Vec<Description> =
            tools.iter().filter_map(|tool| Description::parse("s", tool).ok()).collect();
        let table = StubTable::build(&parsed);
        for level in [Level::Names, Level::Lines, Level::Signatures, Level::Full] {
            let declared = declare(&table, &parsed, level, &|_, _| true);
            prop_assert!(!declared.text.chars().any(|c| c != '\n' && is_invisible(c)), "{}", declared.text);
            prop_assert_eq!(declared, declare(&table, &parsed, level, &|_, _| true));
        }
    }

    #[test]
    fn arbitrary_schema_compiles_or_is_refused(schema in schema_like(), value in schema_like()) {
        if let Ok(validator) = Validator::compile(&schema) {
            let findings = validator.check("args", &value);
            let fits = findings.iter().all(|it| it.severity == codegen::validate::Severity::Warning);
            prop_assert_eq!(fits, validator.accepts(&value), "{:?}", findings);
            for finding in findings {
                prop_assert!(!finding.to_string().chars().any(is_invisible), "{}", finding);
            }
        }
    }
}
