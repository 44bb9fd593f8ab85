//! What the check of a script costs before a run: every script of the test's
//! cases, against 200 tools, without `tsc`. Prints one JSON object of medians in
//! microseconds; `cargo xtask bench check` asks it.

#![expect(
    clippy::disallowed_methods,
    reason = "a bench measures and prints; the crate does neither"
)]

use std::path::Path;
use std::time::Instant;
use std::{fs, thread};

use codegen::check::{STACK_BYTES_MIN, Surface, check};
use codegen::description::Description;
use codegen::stub::StubTable;
use serde_json::{Map, Value, json};

const TOOLS: usize = 200;
const ROUNDS: usize = 100;
const FILES: [&str; 4] = ["right", "wrong-arguments", "wrong-awaits", "wrong-names"];

fn main() {
    let measuring = thread::Builder::new().stack_size(STACK_BYTES_MIN);
    let medians = measuring.spawn(measure).map(thread::JoinHandle::join);
    match medians {
        Ok(Ok(medians)) => println!("{medians}"),
        _ => std::process::exit(1),
    }
}

fn measure() -> Value {
    let descriptions = descriptions();
    let table = StubTable::build(&descriptions);
    let surface = Surface::new(&table, &descriptions);
    let mut each: Vec<f64> = scripts()
        .iter()
        .map(|script| median_us(script, &surface))
        .collect();
    each.sort_by(f64::total_cmp);
    let mut medians = Map::new();
    medians.insert("tools".to_owned(), descriptions.len().into());
    medians.insert("scripts".to_owned(), each.len().into());
    medians.insert(
        "median".to_owned(),
        each.get(each.len() / 2).copied().into(),
    );
    medians.insert("slowest".to_owned(), each.last().copied().into());
    Value::Object(medians)
}

fn median_us(script: &str, surface: &Surface<'_>) -> f64 {
    let mut samples: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(&check("script", script, surface));
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    samples.get(ROUNDS / 2).copied().unwrap_or(f64::NAN)
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/check"))
}

/// A file's scripts stand below lines that begin with `===`.
fn scripts() -> Vec<String> {
    FILES
        .iter()
        .filter_map(|name| fs::read_to_string(folder().join(format!("{name}.cases"))).ok())
        .flat_map(|text| {
            let text = format!("\n{text}");
            let blocks = text.split("\n=== ").skip(1);
            blocks
                .filter_map(|block| block.split_once('\n').map(|(_, script)| script.to_owned()))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The tools of the cases, and as many others as make 200.
fn descriptions() -> Vec<Description> {
    let text = fs::read_to_string(folder().join("tools.json")).unwrap_or_default();
    let listed: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
    let mut descriptions: Vec<Description> = listed
        .iter()
        .flat_map(|(server, tools)| {
            tools
                .as_array()
                .into_iter()
                .flatten()
                .map(move |it| (server, it))
        })
        .filter_map(|(server, tool)| Description::parse(server, tool).ok())
        .collect();
    let others = (descriptions.len()..TOOLS).filter_map(|number| {
        let schema = json!({"type": "object", "required": ["id"], "properties": {
            "id": {"type": "string"}, "limit": {"type": "integer", "minimum": 1},
            "order": {"enum": ["asc", "desc"]}, "fields": {"type": "array", "items": {"type": "string"}},
        }});
        let tool = json!({"name": format!("list_things_{number}"), "inputSchema": schema});
        Description::parse(&format!("store{}", number % 5), &tool).ok()
    });
    descriptions.extend(others.collect::<Vec<_>>());
    descriptions
}
