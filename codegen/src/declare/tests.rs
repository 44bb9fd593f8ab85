//! Tests of the types and texts of single schemas. Goldens cover whole descriptions.

use super::*;
use serde_json::{Value, json};

fn tool(name: &str, input: &Value) -> Description {
    Description::parse("s", &json!({"name": name, "inputSchema": input})).unwrap()
}

fn render(tools: &[Description], level: Level) -> Declarations {
    declare(&StubTable::build(tools), tools, level, &|_, _| true)
}

/// Returns the type of a required property `v` with this schema, and what the type cannot express.
fn type_of(schema: &Value) -> (String, Vec<String>) {
    let input = json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
    let declared = render(&[tool("t", &input)], Level::Signatures);
    let line = declared
        .text
        .lines()
        .find_map(|line| line.strip_prefix("t(a: { v: "))
        .unwrap_or(&declared.text);
    let text = line.strip_suffix(" }): Promise<any>").unwrap_or(line);
    let found = declared.degraded.into_iter().flat_map(|it| it.found);
    (
        text.to_owned(),
        found
            .map(|it| format!("{}: {}", it.path, it.reason))
            .collect(),
    )
}

#[track_caller]
fn check(schema: Value, expected: &str) {
    assert_eq!(
        type_of(&schema),
        (expected.to_owned(), Vec::new()),
        "{schema}"
    );
}

#[track_caller]
fn check_degraded(schema: Value, expected: &str, reason: &str) {
    assert_eq!(
        type_of(&schema),
        (expected.to_owned(), vec![reason.to_owned()]),
        "{schema}"
    );
}

#[test]
fn optional_and_nullable_differ() {
    check(json!({"type": ["string", "null"]}), "string|null");
    check(
        json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        "string|null",
    );
    check(json!({"type": "string", "nullable": true}), "string|null");
    check(
        json!({"properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}}}),
        "{ a?: string; b?: string|null }",
    );
}

#[test]
fn enums_are_literals_and_array_unions_parenthesised() {
    check(
        json!({"enum": ["a", "", 1, null, true]}),
        "\"a\"|\"\"|1|null|true",
    );
    check(json!({"const": 3}), "3");
    check(json!({"const": {"a": [1, "x"]}}), "{ \"a\": [1, \"x\"] }");
    check(
        json!({"type": "array", "items": {"enum": ["a", "b"]}}),
        "(\"a\"|\"b\")[]",
    );
    check(json!({"type": "string", "enum": ["a", 1]}), "\"a\"");
    check(json!({"type": "array"}), "any[]");
}

#[test]
fn tuples_have_required_and_rest_items() {
    let pair = json!([{"type": "number"}, {"enum": ["a", "b"]}]);
    check(
        json!({"prefixItems": pair, "items": false, "minItems": 2}),
        "[number, \"a\"|\"b\"]",
    );
    check(
        json!({"prefixItems": pair, "items": false}),
        "[number?, (\"a\"|\"b\")?]",
    );
    check(
        json!({"items": pair, "minItems": 1, "additionalItems": {"type": "null"}}),
        "[number, (\"a\"|\"b\")?, ...null[]]",
    );
    check(
        json!({"items": pair, "minItems": 2, "maxItems": 2}),
        "[number, \"a\"|\"b\"]",
    );
    check(
        json!({"prefixItems": pair, "minItems": 2}),
        "[number, \"a\"|\"b\", ...any[]]",
    );
}

#[test]
fn objects_declare_extra_keys() {
    let a = json!({"a": {"type": "string"}});
    check(json!({"properties": a}), "{ a?: string }");
    check(
        json!({"properties": a, "additionalProperties": false, "required": ["a"]}),
        "{ a: string }",
    );
    check(
        json!({"properties": a, "additionalProperties": true}),
        "{ a?: string; [k: string]: any }",
    );
    check(
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        "{ [k: string]: int }".to_owned().as_str(),
    );
    check(
        json!({"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false}),
        "{ [k: `x-${string}`]: string }",
    );
    check(
        json!({"type": "object", "propertyNames": {"enum": ["p", "q"]}, "additionalProperties": {"type": "boolean"}}),
        "{ p?: boolean; q?: boolean }",
    );
    check(json!({"type": "object"}), "{ [k: string]: any }");
    check(
        json!({"type": "object", "additionalProperties": false}),
        "{ [k: string]: never }",
    );
    check(
        json!({"type": "object", "required": ["z"]}),
        "{ z: any; [k: string]: any }",
    );
}

#[test]
fn all_of_is_merged_and_contradiction_is_never() {
    let part = |name: &str| json!({"properties": {name: {"type": "string"}}, "required": [name]});
    check(
        json!({"allOf": [part("a"), part("b")]}),
        "{ a: string; b: string }",
    );
    check(
        json!({"allOf": [{"type": "string"}, {"minLength": 2}]}),
        "string",
    );
    check(
        json!({"type": "number", "allOf": [{"type": "integer"}]}),
        "int",
    );
    check(
        json!({"allOf": [{"type": "string"}, {"type": "number"}]}),
        "never",
    );
    check(
        json!({"type": "string", "anyOf": [{"const": "a"}, {"const": 1}]}),
        "\"a\"",
    );
    let closed = json!({"properties": {"a": {}}, "additionalProperties": false});
    check(json!({"allOf": [closed, part("b")]}), "never");
    check(
        json!({"properties": {"k": {"type": "string"}}, "required": ["k"], "oneOf": [part("a"), part("b")]}),
        "{ k: string } & ({ a: string } | { b: string })",
    );
}

#[test]
fn required_only_alternatives_keep_the_object() {
    let schema = json!({
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    });
    check_degraded(
        schema,
        "{ a?: string; b?: string }",
        "args.v: has a rule that a type cannot express: at least one of a, b",
    );
}

#[test]
fn inexpressible_parts_are_listed_as_degraded() {
    check_degraded(
        json!({"type": "string", "not": {"const": "x"}}),
        "string",
        "args.v: has a rule that a type cannot express: not {\"const\": \"x\"}",
    );
    check_degraded(
        json!({"$ref": "https://example.com/x.json"}),
        "any",
        "args.v: refers to \"https://example.com/x.json\", which is not part of the schema",
    );
    check_degraded(
        json!({"type": "text"}),
        "any",
        "args.v: has the unknown type \"text\"",
    );
    check_degraded(
        json!({"$ref": "#/properties/v"}),
        "any",
        "args.v: refers to itself endlessly",
    );
    check_degraded(
        json!({"type": "number", "enum": ["a"]}),
        "never",
        "args.v: lists no value that its type allows",
    );
    check_degraded(json!(5), "any", "args.v: is not a schema");
}

#[test]
fn recursive_type_gets_a_name() {
    let node = json!({"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}}});
    let input = json!({"properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}});
    let text = render(&[tool("t", &input)], Level::Signatures).text;
    assert_eq!(
        text,
        "type Node = { kids?: Node[] }\ndeclare const s: {\nt(a?: { tree?: Node }): Promise<any>\n}\n"
    );
}

#[test]
fn equal_named_types_are_shared_and_others_kept_apart() {
    let input = |kind: &str| {
        let long = "x".repeat(80);
        let error = json!({"type": "object", "description": long, "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Error"}}, "k": {"type": kind}}});
        json!({"properties": {"e": {"$ref": "#/$defs/Error"}}, "$defs": {"Error": error}})
    };
    let tools = [
        tool("a", &input("string")),
        tool("b", &input("number")),
        tool("c", &input("string")),
    ];
    let text = render(&tools, Level::Signatures).text;
    assert_eq!(
        text,
        "type Error2 = { kids?: Error2[]; k?: string }\n\
         type Error3 = { kids?: Error3[]; k?: number }\n\
         declare const s: {\n\
         a(a?: { e?: Error2 }): Promise<any>\n\
         b(a?: { e?: Error3 }): Promise<any>\n\
         c(a?: { e?: Error2 }): Promise<any>\n}\n"
    );
}

#[test]
fn shared_parameters_are_declared_once() {
    let input = json!({"properties": {
        "subscription_of_account": {"type": "string", "description": "Which one."},
        "retry_max_attempts": {"type": "integer"}, "own": {"type": "boolean"},
    }, "required": ["own"]});
    let tools: Vec<Description> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| tool(name, &input))
        .collect();
    let text = render(&tools[..3], Level::Full).text;
    assert!(!text.contains("type P"), "{text}");
    let mut tools = tools;
    tools.push(tool(
        "e",
        &json!({"properties": {"own": {"type": "boolean"}}}),
    ));
    let text = render(&tools, Level::Signatures).text;
    assert!(text.starts_with("type int = number\ntype P = {"), "{text}");
    assert!(text.contains("\na(a: P): Promise<any>\n"), "{text}");
    assert!(
        text.contains("\ne(a?: { own?: boolean }): Promise<any>\n"),
        "{text}"
    );
}

#[test]
fn note_is_printed_once_and_facts_always() {
    let input =
        json!({"properties": {"n": {"type": "number", "minimum": 1, "description": "How many."}}});
    let text = render(&[tool("a", &input), tool("b", &input)], Level::Full).text;
    assert_eq!(text.matches("How many.").count(), 1);
    assert_eq!(text.matches("// >=1").count(), 2);
}

#[test]
fn facts_precede_prose_on_one_line() {
    let input = json!({"properties": {"v": {
        "type": "string", "default": "a", "minLength": 1, "maxLength": 3, "pattern": "^[a-z]+$",
        "format": "slug", "examples": ["ab", "c"], "deprecated": true, "description": "First\nsecond.",
    }}});
    let text = render(&[tool("a", &input)], Level::Full).text;
    let line = text.lines().find(|line| line.contains("v?:")).unwrap();
    assert_eq!(
        line,
        " v?: string // =\"a\"; len 1..3; /^[a-z]+$/; slug; e.g. \"ab\", \"c\"; DEPRECATED; First second."
    );
}

#[test]
fn description_cannot_close_its_comment() {
    let hostile = "ok */ }; evil()\u{2028}// \u{202e}x\nnext";
    let input = json!({"properties": {"v": {"type": "string", "description": hostile}}});
    let tool = Description::parse(
        "s",
        &json!({"name": "t*/", "description": hostile, "inputSchema": input}),
    )
    .unwrap();
    let text = render(&[tool], Level::Full).text;
    assert_eq!(
        text,
        "declare const s: {\n// (t*\\/) ok *\\/ }; evil() // x next\nt__(a?: {\n v?: string // ok *\\/ }; evil() // x next\n}): Promise<any>\n}\n"
    );
}

#[test]
fn tags_and_wire_names_come_first() {
    let of = |annotations: Value| {
        let tool = json!({"name": "get-it", "description": "Gets it.", "inputSchema": {"properties": {}}, "annotations": annotations});
        let text = render(&[Description::parse("s", &tool).unwrap()], Level::Full).text;
        text.lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(
        of(json!({"readOnlyHint": true})),
        "// [read-only] (get-it) Gets it."
    );
    assert_eq!(
        of(json!({"destructiveHint": true, "deprecated": "use put"})),
        "// [deprecated: use put] [destructive] (get-it) Gets it."
    );
}

#[test]
fn results_are_typed_unwrapped_or_any() {
    let of = |output: Value| {
        let tool = json!({"name": "t", "inputSchema": {"properties": {}}, "outputSchema": output});
        let text = render(
            &[Description::parse("s", &tool).unwrap()],
            Level::Signatures,
        )
        .text;
        text.lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(
        of(json!({"properties": {"result": {"type": "string"}}, "required": ["result"]})),
        "t(): Promise<string>"
    );
    assert_eq!(
        of(json!({"properties": {"a": {"type": "string"}}})),
        "t(): Promise<{ a?: string }>"
    );
    assert_eq!(
        of(json!({"type": "array", "items": true})),
        "t(): Promise<any[]>"
    );
    assert_eq!(of(Value::Null), "t(): Promise<any>");
}

#[test]
fn short_levels_print_names_and_first_sentences() {
    let tool = |name: &str, text: &str| {
        Description::parse(
            "s",
            &json!({"name": name, "description": text, "inputSchema": {}}),
        )
        .unwrap()
    };
    let tools = [tool("get-b", "Gets b. And more."), tool("a", "")];
    assert_eq!(render(&tools, Level::Names).text, "s: a, get_b\n");
    assert_eq!(
        render(&tools, Level::Lines).text,
        "s:\n a\n get_b: Gets b.\n"
    );
}

#[test]
fn only_requested_tools_are_declared() {
    let tools = [tool("a", &json!({})), tool("b", &json!({}))];
    let declared = declare(
        &StubTable::build(&tools),
        &tools,
        Level::Names,
        &|_, tool| tool.wire_name == "b",
    );
    assert_eq!(declared.text, "s: b\n");
}
