//! Prints one line of JSON for each saved `tools/list` reply named on the command line: `cargo run
//! -p codegen --example levels -- FILE…`. The line contains the text of the reply's tools at every
//! level, and the server's own text. `cargo xtask bench tokens` counts the tokens in it.
#![expect(clippy::disallowed_methods, reason = "an example reads files")]

use std::error::Error;
use std::path::Path;

use codegen::declare::{Level, declare};
use codegen::description::Description;
use codegen::stub::StubTable;
use serde_json::{Map, Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    for file in std::env::args().skip(1) {
        let line = measured(Path::new(&file)).map_err(|error| format!("{file}: {error}"))?;
        println!("{line}");
    }
    Ok(())
}

fn measured(file: &Path) -> Result<Value, Box<dyn Error>> {
    let reply: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let tools = reply
        .get("tools")
        .or_else(|| reply.get("result")?.get("tools"));
    let tools = tools
        .and_then(Value::as_array)
        .ok_or("the reply has no `tools`")?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let server = name.split('.').next().unwrap_or_default();
    let mut descriptions = Vec::new();
    for tool in tools {
        match Description::parse(server, tool) {
            Ok(description) => descriptions.push(description),
            Err(bad) => eprintln!("skipped: {bad}"),
        }
    }
    let table = StubTable::build(&descriptions);
    let text = |level| declare(&table, &descriptions, level, &|_, _| true).text;
    Ok(json!({
        "server": server,
        "raw": descriptions.iter().map(as_sent).collect::<Vec<String>>(),
        "names": text(Level::Names),
        "lines": text(Level::Lines),
        "signatures": text(Level::Signatures),
        "full": text(Level::Full),
    }))
}

/// Returns the part of a tool that a host would show to its model without airlock.
fn as_sent(description: &Description) -> String {
    let mut tool = Map::new();
    tool.insert("name".to_owned(), json!(description.name));
    if let Some(text) = &description.text {
        tool.insert("description".to_owned(), json!(text));
    }
    let schema = Value::clone(&description.input_schema);
    tool.insert("inputSchema".to_owned(), schema);
    if let Some(schema) = &description.output_schema {
        tool.insert("outputSchema".to_owned(), Value::clone(schema));
    }
    Value::Object(tool).to_string()
}
