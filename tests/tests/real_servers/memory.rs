//! Tests `server-memory`: nested arguments, and effects on a file.

use serde_json::json;
use tests::command::Home;
use tests::real_servers::installed;

use crate::{stdio, value, with};

#[test]
fn memory() {
    let Some(servers) = installed() else { return };
    let home = Home::new();
    let file = home.path().join("memory.jsonl");
    let server = with(
        stdio(&servers.npm("server-memory"), &[]),
        "env",
        json!({"MEMORY_FILE_PATH": file}),
    );
    let code = r#"
const made = await memory.create_entities({
  entities: [
    { name: "Ada", entityType: "person", observations: ["wrote notes"] },
    { name: "Engine", entityType: "machine", observations: [] },
  ],
});
await memory.create_relations({ relations: [{ from: "Ada", to: "Engine", relationType: "described" }] });
const graph = await memory.read_graph({});
const found = await memory.search_nodes({ query: "notes" });
const wrong = await memory.create_entities(structuredClone({ entities: [{ name: "x" }] })).catch((e) => e.code);
return { made, graph, found, wrong };
"#;
    let value = value(&home, &json!({"memory": server}), code);
    assert_eq!(
        value["made"]["entities"][0],
        json!({"name": "Ada", "entityType": "person", "observations": ["wrote notes"]})
    );
    assert_eq!(
        value["graph"]["relations"],
        json!([{"from": "Ada", "to": "Engine", "relationType": "described"}])
    );
    assert_eq!(value["graph"]["entities"].as_array().unwrap().len(), 2);
    assert_eq!(value["found"]["entities"][0]["name"], "Ada");
    assert_eq!(value["wrong"], "invalid-arguments");
    assert!(
        std::fs::read_to_string(file).unwrap().contains("Ada"),
        "the server did not write the file"
    );
}
