//! Tests of the lock: how changes are described, and which locks are refused.

use serde_json::json;

use super::*;

fn lock(tools: &[Value]) -> Lock {
    let tool = |said: &Value| {
        let description = Description::parse("s", said).unwrap();
        (
            description.name.clone(),
            LockedTool::new(said, &description),
        )
    };
    let server = LockedServer {
        target: "npx thing".into(),
        says: Some("thing 1.0".into()),
        tools: tools.iter().map(tool).collect(),
    };
    Lock {
        servers: [("s".to_owned(), server)].into(),
        ..Lock::default()
    }
}

fn tool(extra: &Value) -> Value {
    let mut tool = json!({
        "name": "t", "description": "Finds things in the store, quickly and without asking anybody.",
        "annotations": {"readOnlyHint": true},
        "inputSchema": {"type": "object", "properties": {
            "q": {"type": "string", "description": "Words."},
            "sort": {"type": "string", "enum": ["up", "down"]},
            "n": {"type": "integer", "maximum": 5},
        }, "required": ["q"]},
    });
    for (pointer, value) in extra.as_object().unwrap() {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = tool.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => drop(parent.shift_remove(key)),
            value => drop(parent.insert(key.to_owned(), value.clone())),
        }
    }
    tool
}

fn check(extra: Value, expected: &[(ChangeKind, &str)]) {
    let changes = diff(&lock(&[tool(&json!({}))]), &lock(&[tool(&extra)]));
    let found: Vec<(ChangeKind, String)> =
        changes.iter().map(|it| (it.kind, it.to_string())).collect();
    let expected: Vec<(ChangeKind, String)> =
        expected.iter().map(|it| (it.0, it.1.to_owned())).collect();
    assert_eq!(found, expected, "{extra}");
}

#[test]
fn every_change_is_described() {
    use ChangeKind::*;
    check(json!({}), &[]);
    check(json!({"/_meta": {"a": 1}}), &[]);
    check(
        json!({"/description": "Finds things in the store, quickly and after asking somebody."}),
        &[(
            TextChanged,
            "s.t: description changed to \"… store, quickly and after asking somebody.\" from \"… store, quickly and without asking anybody.\"",
        )],
    );
    check(
        json!({"/annotations/readOnlyHint": false}),
        &[(
            AnnotationChanged,
            "s.t: annotations.readOnlyHint changed to false from true",
        )],
    );
    check(
        json!({"/annotations": null}),
        &[(
            AnnotationChanged,
            "s.t: annotations.readOnlyHint is no longer true",
        )],
    );
    check(
        json!({"/inputSchema/properties/x": {}}),
        &[(ArgumentAdded, "s.t: args.x is new and optional")],
    );
    check(
        json!({"/inputSchema/properties/x": {}, "/inputSchema/required": ["q", "x"]}),
        &[(RequiredArgumentAdded, "s.t: args.x is new and required")],
    );
    check(
        json!({"/inputSchema/properties/n": null}),
        &[(ArgumentRemoved, "s.t: args.n removed")],
    );
    check(
        json!({"/inputSchema/required": ["q", "n"]}),
        &[(ArgumentRequired, "s.t: args.n is now required")],
    );
    check(
        json!({"/inputSchema/required": []}),
        &[(ArgumentOptional, "s.t: args.q is now optional")],
    );
    check(
        json!({"/inputSchema/properties/n/type": "number"}),
        &[(
            TypeChanged,
            "s.t: args.n changed to \"number\" from \"integer\"",
        )],
    );
    check(
        json!({"/inputSchema/properties/n/maximum": 9}),
        &[(SchemaChanged, "s.t: args.n `maximum` changed to 9 from 5")],
    );
    check(
        json!({"/inputSchema/properties/q/description": "W\u{202e}."}),
        &[(
            TextChanged,
            "s.t: args.q (description) changed to \"W\\u202e.\" from \"Words.\"",
        )],
    );
    check(
        json!({"/inputSchema/properties/sort/enum": ["up", "down", "any"]}),
        &[(EnumWidened, "s.t: args.sort may also be \"any\"")],
    );
    check(
        json!({"/inputSchema/properties/sort/enum": ["up"]}),
        &[(EnumNarrowed, "s.t: args.sort may no longer be \"down\"")],
    );
    check(
        json!({"/inputSchema/properties/sort/enum": ["up", "x"]}),
        &[(
            EnumChanged,
            "s.t: args.sort may also be \"x\"; may no longer be \"down\"",
        )],
    );
    check(
        json!({"/inputSchema/additionalProperties": false}),
        &[(
            SchemaChanged,
            "s.t: args `additionalProperties` is now false",
        )],
    );
    check(
        json!({"/outputSchema": {"type": "object"}}),
        &[(OutputAdded, "s.t: result now has a type")],
    );
}

#[test]
fn servers_and_tools_are_matched_by_name() {
    let before = lock(&[tool(&json!({}))]);
    let mut after = lock(&[]);
    let server = after.servers.get_mut("s").unwrap();
    server.target = "npx other".into();
    server.says = None;
    after
        .servers
        .insert("u".into(), before.servers["s"].clone());
    let found: Vec<String> = diff(&before, &after)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        [
            "s.*: target changed to \"npx other\" from \"npx thing\"",
            "s.*: reported name changed to nothing from \"thing 1.0\"",
            "s.t: tool removed",
            "u.*: new server, 1 tool",
        ]
    );
}

#[test]
fn lock_round_trips_with_stable_text() {
    let mut said = tool(&json!({}));
    let lock_of = lock(&[said.clone()]);
    let value: Value = serde_json::from_str(&lock_of.text()).unwrap();
    assert_eq!(Lock::read(&value), Ok(lock_of.clone()));
    // The order in which a server sends members is not a change.
    let members = said["inputSchema"]["properties"].as_object_mut().unwrap();
    let turned: Map<String, Value> = members.clone().into_iter().rev().collect();
    *members = turned;
    assert_eq!(lock(&[said]).text(), lock_of.text());
}

#[test]
fn hand_edited_lock_is_refused() {
    let check = |pointer: &str, to: Value, part: &str| {
        let mut value = serde_json::to_value(lock(&[tool(&json!({}))])).unwrap();
        *value.pointer_mut(pointer).unwrap() = to;
        let bad = Lock::read(&value).unwrap_err().to_string();
        assert!(bad.contains(part), "{pointer}: {bad}");
    };
    check("/version", json!(2), "version 2");
    check(
        "/servers/s/tools/t/description/description",
        json!("x"),
        "digest of `s.t`",
    );
    check(
        "/servers/s/tools/t/digest",
        json!("sha256:0"),
        "not a sha256 digest",
    );
    check("/servers/s/says", json!(5), "string");
    check(
        "/servers",
        json!({"s": {"target": "x", "tools": {}, "more": 1}}),
        "more",
    );
}

#[test]
fn lock_distinguishes_known_changed_and_unknown() {
    let lock = lock(&[tool(&json!({}))]);
    let digest = lock.servers["s"].tools["t"].digest;
    assert_eq!(lock.holds("s", "t", digest), Some(true));
    assert_eq!(lock.holds("s", "t", Digest::sha256(b"x")), Some(false));
    assert_eq!(
        (lock.holds("s", "u", digest), lock.holds("u", "t", digest)),
        (None, None)
    );
}
