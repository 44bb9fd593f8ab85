//! Descriptions of real servers, when the folder that holds them is named by
//! `AIRLOCK_CORPUS`: everything renders, always to the same bytes, and the order
//! in which tools are listed changes nothing.
#![expect(clippy::disallowed_methods, reason = "the corpus is a folder of files")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its input has failed"
)]

use std::fs;
use std::path::{Path, PathBuf};

use codegen::declare::{Level, declare};
use codegen::description::Description;
use codegen::stub::StubTable;
use codegen::validate::{BadSchema, Validator};
use serde_json::Value;

const LEVELS: [Level; 4] = [Level::Names, Level::Lines, Level::Signatures, Level::Full];

fn corpus() -> Option<Vec<Vec<Description>>> {
    let Some(folder) = std::env::var_os("AIRLOCK_CORPUS").map(PathBuf::from) else {
        println!("skipped: AIRLOCK_CORPUS names no folder");
        return None;
    };
    let mut files: Vec<PathBuf> = fs::read_dir(folder.join("tools"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.push(folder.join("stress.json"));
    files.sort();
    Some(files.iter().map(|file| descriptions(file)).collect())
}

fn descriptions(file: &Path) -> Vec<Description> {
    let whole: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let tools = whole
        .get("tools")
        .or_else(|| whole.get("result")?.get("tools"))
        .unwrap();
    let server = file
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .split('.')
        .next()
        .unwrap();
    let tools = tools.as_array().unwrap().iter();
    tools
        .map(|tool| Description::parse(server, tool).unwrap())
        .collect()
}

#[test]
fn every_tool_renders_at_every_level_twice_the_same() {
    for tools in corpus().into_iter().flatten() {
        let table = StubTable::build(&tools);
        for level in LEVELS {
            let text = declare(&table, &tools, level, &|_, _| true).text;
            assert!(!text.is_empty());
            assert_eq!(text, declare(&table, &tools, level, &|_, _| true).text);
        }
    }
}

#[test]
fn the_order_of_the_listing_changes_no_name_and_no_text() {
    for tools in corpus().into_iter().flatten() {
        let mut shuffled = tools.clone();
        shuffled.reverse();
        let middle = shuffled.len() / 3;
        shuffled.rotate_left(middle);
        let (table, other) = (StubTable::build(&tools), StubTable::build(&shuffled));
        for level in LEVELS {
            let text = declare(&table, &tools, level, &|_, _| true).text;
            assert_eq!(text, declare(&other, &shuffled, level, &|_, _| true).text);
        }
    }
}

#[test]
fn every_description_of_a_property_stands_in_the_full_text() {
    for tools in corpus().into_iter().flatten() {
        let table = StubTable::build(&tools);
        let text = declare(&table, &tools, Level::Full, &|_, _| true).text;
        for tool in &tools {
            for (name, prose) in property_texts(&tool.input_schema) {
                let folded = codegen::text::neutralise(prose);
                let repeats_the_name = codegen::closest::closest(&folded, [name]) == Some(name);
                assert!(
                    text.contains(&folded) || repeats_the_name,
                    "{}.{name}: {folded}",
                    tool.name
                );
            }
        }
    }
}

fn property_texts(schema: &Value) -> Vec<(&str, &str)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let texts = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, property)| {
            Some((name.as_str(), property.get("description")?.as_str()?))
        });
    texts.collect()
}

#[test]
fn every_schema_compiles_unless_it_refers_outside() {
    for tool in corpus().into_iter().flatten().flatten() {
        for schema in [Some(&tool.input_schema), tool.output_schema.as_ref()]
            .into_iter()
            .flatten()
        {
            match Validator::compile(schema) {
                Ok(_) | Err(BadSchema::ExternalReference { .. }) => {}
                Err(bad) => panic!("{}.{}: {bad}", tool.server, tool.name),
            }
        }
    }
}
