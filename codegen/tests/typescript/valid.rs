//! Tests that every declaration is valid TypeScript, and that types list what they do not express.

use std::collections::BTreeMap;

use codegen::declare::{Level, declare};
use codegen::stub::StubTable;

use crate::compiler;
use crate::tools::{Tools, corpus, fixtures};

fn check(batch: &str, sets: &[Tools]) {
    let mut texts = BTreeMap::new();
    let mut degraded = 0;
    for set in sets {
        let table = StubTable::build(&set.descriptions);
        for (suffix, level) in [("full", Level::Full), ("signatures", Level::Signatures)] {
            let declared = declare(&table, &set.descriptions, level, &|_, _| true);
            texts.insert(format!("{}.{suffix}", set.name), declared.text);
            for tool in declared.degraded.iter().filter(|_| level == Level::Full) {
                assert!(!tool.found.is_empty(), "{tool:?}");
                for found in &tool.found {
                    degraded += 1;
                    assert!(
                        !found.path.is_empty() && !found.reason.is_empty(),
                        "{tool:?}"
                    );
                    println!(
                        "{}.{} {}: {}",
                        tool.server, tool.wire_name, found.path, found.reason
                    );
                }
            }
        }
    }
    let tools: usize = sets.iter().map(|it| it.descriptions.len()).sum();
    println!(
        "{tools} tools in {} texts, {degraded} degraded places",
        texts.len()
    );
    if let Some(compiler) = compiler::installed() {
        assert_eq!(compiler.errors(batch, &texts), BTreeMap::new());
    }
}

#[test]
fn fixture_declarations_are_strict_typescript() {
    check("fixtures", &fixtures());
}

#[test]
fn corpus_declarations_are_strict_typescript() {
    if let Some(sets) = corpus() {
        check("corpus", &sets);
    }
}
