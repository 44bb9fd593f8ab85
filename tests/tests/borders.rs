//! Checks the dependencies of each crate against a reviewed list, and that the shipped broker has
//! no Wasm compiler.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tests::binary::{cargo, workspace};

type Names = BTreeSet<String>;

#[derive(Debug, Default, PartialEq)]
struct Border {
    house: Names,
    normal: Names,
    dev: Names,
    build: Names,
}

#[test]
fn crates_depend_only_on_listed_crates() {
    let allowed = allowed();
    let found = found();
    assert_eq!(
        allowed.keys().collect::<Vec<_>>(),
        found.keys().collect::<Vec<_>>(),
        "tests/borders.toml names every crate of the workspace"
    );
    for (name, border) in &found {
        assert_eq!(
            border, &allowed[name],
            "direct dependencies of `{name}` (left) and tests/borders.toml (right)"
        );
    }
}

#[test]
fn shipped_broker_contains_no_wasm_compiler() {
    let output = cargo()
        .args([
            "tree",
            "--offline",
            "--package",
            "airlock",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8(output.stdout).unwrap();
    let names: Names = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect();
    assert!(
        names.contains("wasmtime"),
        "the tree does not contain wasmtime:\n{tree}"
    );
    // Container types that the runtime shares with the compiler. They compile nothing.
    let containers = ["cranelift-bforest", "cranelift-bitset", "cranelift-entity"];
    let compilers: Vec<_> = names
        .iter()
        .filter(|name| {
            ["cranelift", "winch", "wasm-encoder", "boa_", "oxc"]
                .iter()
                .any(|word| name.contains(word))
        })
        .filter(|name| !containers.contains(&name.as_str()))
        .collect();
    assert!(compilers.is_empty(), "{compilers:?}");
}

fn allowed() -> BTreeMap<String, Border> {
    let text = std::fs::read_to_string(workspace().join("tests/borders.toml")).unwrap();
    let table: BTreeMap<String, BTreeMap<String, Names>> = toml::from_str(&text).unwrap();
    table
        .into_iter()
        .map(|(name, kinds)| (name, border(kinds)))
        .collect()
}

fn border(kinds: BTreeMap<String, Names>) -> Border {
    let mut border = Border::default();
    for (kind, names) in kinds {
        *match kind.as_str() {
            "house" => &mut border.house,
            "normal" => &mut border.normal,
            "dev" => &mut border.dev,
            "build" => &mut border.build,
            _ => panic!("unknown kind of dependency `{kind}`"),
        } = names;
    }
    border
}

fn found() -> BTreeMap<String, Border> {
    let output = cargo()
        .args([
            "metadata",
            "--offline",
            "--no-deps",
            "--format-version",
            "1",
        ])
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            (
                package["name"].as_str().unwrap().to_owned(),
                direct(package),
            )
        })
        .collect()
}

fn direct(package: &Value) -> Border {
    let mut border = Border::default();
    for dependency in package["dependencies"].as_array().unwrap() {
        let names = match (dependency["kind"].as_str(), dependency["path"].is_string()) {
            (_, true) => &mut border.house,
            (None, _) => &mut border.normal,
            (Some("dev"), _) => &mut border.dev,
            (Some("build"), _) => &mut border.build,
            (Some(other), _) => panic!("unknown kind of dependency `{other}`"),
        };
        names.insert(dependency["name"].as_str().unwrap().to_owned());
    }
    border
}
