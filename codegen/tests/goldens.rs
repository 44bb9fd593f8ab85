//! `goldens/NAME.json` contains tools. `NAME.d.ts` contains the full declarations, and `NAME.txt`
//! the shorter levels and the degraded types. With `AIRLOCK_BLESS=1` the texts are rewritten
//! instead of compared.
#![expect(clippy::disallowed_methods, reason = "goldens are files")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its input has failed"
)]

use std::fs;
use std::path::{Path, PathBuf};

use codegen::declare::{Level, declare};
use codegen::description::Description;
use codegen::stub::StubTable;
use serde_json::Value;

#[test]
fn goldens_match() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    let inputs: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .collect();
    assert!(inputs.len() >= 4, "goldens are missing");
    let bless = std::env::var("AIRLOCK_BLESS").is_ok_and(|it| it == "1");
    for input in inputs {
        let (full, brief) = render(&input);
        check(&input.with_extension("d.ts"), &full, bless);
        check(&input.with_extension("txt"), &brief, bless);
    }
}

fn check(path: &Path, text: &str, bless: bool) {
    if bless {
        fs::write(path, text).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        text,
        expected,
        "{} differs; AIRLOCK_BLESS=1 rewrites it",
        path.display()
    );
}

fn render(input: &Path) -> (String, String) {
    let tools: Value = serde_json::from_slice(&fs::read(input).unwrap()).unwrap();
    let mut descriptions = Vec::new();
    let mut brief = String::new();
    for (server, listed) in tools.as_object().unwrap() {
        for tool in listed.as_array().unwrap() {
            match Description::parse(server, tool) {
                Ok(description) => descriptions.push(description),
                Err(bad) => brief.push_str(&format!("skipped: {bad}\n")),
            }
        }
    }
    let table = StubTable::build(&descriptions);
    let text = |level| declare(&table, &descriptions, level, &|_, _| true);
    for (title, level) in [
        ("names", Level::Names),
        ("lines", Level::Lines),
        ("signatures", Level::Signatures),
    ] {
        brief.push_str(&format!("--- {title}\n{}", text(level).text));
    }
    brief.push_str("--- notes\n");
    table
        .notes
        .iter()
        .for_each(|note| brief.push_str(&format!("{note}\n")));
    let full = text(Level::Full);
    brief.push_str("--- degraded\n");
    for tool in &full.degraded {
        for found in &tool.found {
            let line = format!(
                "{}.{} {}: {}\n",
                tool.server, tool.wire_name, found.path, found.reason
            );
            brief.push_str(&line);
        }
    }
    (full.text, brief)
}
