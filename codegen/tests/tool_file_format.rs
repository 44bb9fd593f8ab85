//! Tests that the Rust types of tool files match the format's schema. With `AIRLOCK_BLESS=1` the
//! types are rewritten instead of compared.
#![expect(clippy::disallowed_methods, reason = "goldens are files")]

use std::fs;
use std::path::Path;

use codegen::{rust, tool_file};
use serde_json::Value;

const HEADER: &str = "\
//! The format of tool files as Rust types. Generated from
//! `tool_descriptions/format.schema.json` by `cargo xtask bless -p codegen`; do not edit.
#![allow(clippy::all, clippy::pedantic, clippy::restriction, missing_debug_implementations, unreachable_pub, rustdoc::all)]

";

#[test]
fn tool_file_types_match_schema() {
    let schema: Value = serde_json::from_str(tool_file::FORMAT).unwrap();
    let types = rust::of_schema("ToolFile", &schema).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tool_file_format.rs");
    let text = format!("{HEADER}{types}");
    if std::env::var("AIRLOCK_BLESS").is_ok_and(|it| it == "1") {
        fs::write(&golden, text).unwrap();
    } else {
        let found = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(
            found, text,
            "stale; `cargo xtask bless -p codegen` rewrites it"
        );
    }
}
