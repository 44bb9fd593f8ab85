//! Tests `mcp-server-sqlite`, which uses an older SDK and has no output schemas.

use serde_json::{Value, json};
use tests::command::Home;
use tests::real_servers::{RealServers, installed};

use crate::{stdio, value};

pub(crate) fn sqlite(servers: &RealServers, home: &Home) -> Value {
    stdio(
        &servers.sqlite(),
        &["--db-path", home.path().join("notes.db").to_str().unwrap()],
    )
}

#[test]
fn sqlite_works_without_output_schemas() {
    let Some(servers) = installed() else { return };
    let home = Home::new();
    let code = r#"
const made = await db.create_table({ query: "create table notes (id integer, text text)" });
const wrote = await db.write_query({ query: "insert into notes values (1, 'it''s'), (2, null)" });
const rows = await db.read_query({ query: "select * from notes order by id" });
const tables = await db.list_tables();
const refused = await db.read_query({ query: "delete from notes" });
return { made, wrote, rows, tables, refused };
"#;
    let value = value(&home, &json!({"db": sqlite(servers, &home)}), code);
    assert_eq!(value["made"], "Table created successfully");
    // Python's notation is not JSON, so the result stays a string.
    assert_eq!(value["wrote"], "[{'affected_rows': 2}]");
    assert_eq!(
        value["rows"],
        "[{'id': 1, 'text': \"it's\"}, {'id': 2, 'text': None}]"
    );
    assert_eq!(value["tables"], "[{'name': 'notes'}]");
    assert!(
        value["refused"].as_str().unwrap().starts_with("Error: "),
        "the server reports a success, so airlock does too"
    );
}
