//! Measures how long the check of a script before a run takes, including the checker's guest. It
//! checks every script of the check's test cases against 200 and against 2,000 tools, without
//! `tsc`. It prints one JSON object of medians in microseconds, which `cargo xtask bench check`
//! reads.

use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Instant;

use airlock::sandbox::{CheckLimits, Checker, spawn_large};
use codegen::check::{EncodedTools, Surface};
use codegen::description::Description;
use codegen::stub::StubTable;
use serde_json::{Map, Value, json};

const TOOLS: usize = 200;
const MANY_TOOLS: usize = 2_000;
const ROUNDS: usize = 100;
const FILES: [&str; 4] = ["right", "wrong-arguments", "wrong-awaits", "wrong-names"];

fn main() {
    let (done, medians) = channel();
    let started = spawn_large(move || drop(done.send(measure())));
    match started.map(|()| medians.recv()) {
        Ok(Ok(Some(medians))) => println!("{medians}"),
        _ => std::process::exit(1),
    }
}

fn measure() -> Option<Value> {
    let [few, many] = [TOOLS, MANY_TOOLS].map(each_us);
    let (few, many) = (few?, many?);
    let middle = |each: &[f64]| each.get(each.len() / 2).copied();
    let mut medians = Map::new();
    medians.insert("scripts".to_owned(), few.len().into());
    medians.insert("median".to_owned(), middle(&few).into());
    medians.insert("slowest".to_owned(), few.last().copied().into());
    medians.insert("many".to_owned(), middle(&many).into());
    Some(Value::Object(medians))
}

/// Returns the median time of each script with `tools` tools, the fastest first.
fn each_us(tools: usize) -> Option<Vec<f64>> {
    let descriptions = descriptions(tools);
    let table = StubTable::build(&descriptions);
    let encoded = EncodedTools::new(&table);
    let surface = Surface::new(&table, &descriptions).encoded(&encoded);
    let checker = Checker::embedded().ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().ok()?;
    let mut each: Vec<f64> = scripts()
        .iter()
        .map(|script| median_us(|| runtime.block_on(check(&checker, script, &surface))))
        .collect();
    each.sort_by(f64::total_cmp);
    Some(each)
}

async fn check(checker: &Checker, script: &str, surface: &Surface<'_>) {
    let limits = CheckLimits::default();
    std::hint::black_box(&checker.check("script", script, surface, &limits).await);
}

fn median_us(mut check: impl FnMut()) -> f64 {
    let mut samples: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            check();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    samples.get(ROUNDS / 2).copied().unwrap_or(f64::NAN)
}

fn folder() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../codegen/script/tests/check"
    ))
}

/// Returns the scripts of all case files. In a file, each script follows a line that begins with
/// `===`.
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

/// Returns the tools of the cases, plus generated tools up to `tools` in total.
fn descriptions(tools: usize) -> Vec<Description> {
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
    let others = (descriptions.len()..tools).filter_map(|number| {
        let schema = json!({"type": "object", "required": ["id"], "properties": {
            "id": {"type": "string"}, "limit": {"type": "integer", "minimum": 1},
            "order": {"enum": ["asc", "desc"]}, "fields": {"type": "array", "items": {"type": "string"}},
        }});
        let tool = json!({"name": format!("list_things_{number}"), "inputSchema": schema});
        Description::parse(&format!("store{}", number % 20), &tool).ok()
    });
    descriptions.extend(others.collect::<Vec<_>>());
    descriptions
}
