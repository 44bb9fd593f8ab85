//! Tests tools whose names are hard to write or hard to distinguish. A script can call each of
//! these tools, under a name that does not depend on the order of the tool list.

use airlock::{Broker, InProcessTool, Script};
use serde_json::{Value, json};

const NAMES: [&str; 12] = [
    "get-user",
    "get_user",
    "get.user",
    "class",
    "2fa",
    "then",
    "__proto__",
    "日本語",
    "naïve",
    "new",
    "constructor",
    "toJSON",
];

/// Calls every visible member of `odd` once as `odd.member` and once as `odd_member`.
const SCRIPT: &str = "
const reached = {};
for (const member of Object.keys(odd)) {
  const [short, flat] = [await odd[member]({}), await globalThis['odd_' + member]({})];
  reached[member] = [short.name, flat.name];
}
return { reached, awaited: (await odd) === odd, prototype: Object.getPrototypeOf(odd) };
";

fn tool(name: &'static str) -> InProcessTool {
    let description = json!({"name": name, "inputSchema": {"type": "object"}});
    InProcessTool::new("odd", description, move |_: Value| async move {
        Ok(json!({"name": name}))
    })
}

async fn reached(order: &[&'static str]) -> Value {
    let state = tempfile::tempdir().unwrap();
    let mut builder = Broker::builder()
        .state_dir(state.path())
        .allow("odd.*")
        .unwrap();
    for name in order {
        builder = builder.tool(tool(name));
    }
    let broker = builder.build().await.unwrap();
    let report = broker.run(Script::body(SCRIPT)).report().await;
    broker.close().await;
    let report = serde_json::to_value(report).unwrap();
    assert_eq!(report["status"], "done", "{report}");
    report["value"].clone()
}

#[tokio::test]
async fn odd_names_are_callable_and_order_independent() {
    let value = reached(&NAMES).await;
    assert_eq!(
        (&value["awaited"], &value["prototype"]),
        (&json!(true), &Value::Null),
        "{value}"
    );
    let members = value["reached"].as_object().unwrap();
    let wire_names: Vec<&str> = members.values().map(|it| it[0].as_str().unwrap()).collect();
    for name in NAMES {
        assert!(wire_names.contains(&name), "{name}: {members:?}");
    }
    assert_eq!(wire_names.len(), NAMES.len(), "{members:?}");
    for (member, both) in members {
        assert_eq!(both[0], both[1], "odd.{member} and odd_{member}");
    }
    for exact in ["get_user", "class", "日本語", "naïve"] {
        assert_eq!(members[exact][0], exact);
    }
    let mut order = NAMES;
    for _ in 0..3 {
        order.rotate_left(5);
        order.swap(0, 7);
        assert_eq!(reached(&order).await, value, "{order:?}");
    }
}
