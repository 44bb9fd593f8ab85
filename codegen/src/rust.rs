//! Generates Rust types for programs that embed the broker, one module per tool, where possible. A
//! schema without a Rust type is listed with the reason and becomes plain JSON. Each call still
//! checks what Rust cannot express: bounds, patterns, defaults.

mod normal;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use typify::{TypeSpace, TypeSpaceSettings};

use crate::declare::DegradedTool;
use crate::description::Description;
use crate::names;
use crate::shape::Degraded;
use crate::text;
use crate::unwrap;

/// The text of one file, and what it does not express.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RustTypes {
    pub text: String,
    pub degraded: Vec<DegradedTool>,
}

/// Why a schema has no Rust type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no Rust type can be generated: {why}")]
pub struct NoRustType {
    pub why: String,
}

const HEADER: &str = "\
//! Arguments and results of tools, made from their descriptions. Needs the
//! crates `serde` (with `derive`) and `serde_json`.
#![allow(clippy::all, clippy::pedantic, clippy::restriction, nonstandard_style, missing_docs, missing_debug_implementations, unused_imports, unreachable_pub, rustdoc::all)]
";

/// Generates types of all tools, in modules `server::tool`, in sorted order.
///
/// Generating a type may panic. The panic is caught here and reported as a degraded tool, but the
/// process's panic hook still runs.
#[must_use]
pub fn of_tools(descriptions: &[Description]) -> RustTypes {
    let mut sorted: Vec<&Description> = descriptions.iter().collect();
    sorted.sort_by(|a, b| (&a.server, &a.name).cmp(&(&b.server, &b.name)));
    let mut types = RustTypes::default();
    let mut body = String::new();
    let by_server: Vec<&[&Description]> = sorted.chunk_by(|a, b| a.server == b.server).collect();
    let servers: Vec<&str> = by_server
        .iter()
        .filter_map(|tools| Some(tools.first()?.server.as_str()))
        .collect();
    for (server, module) in by_server.into_iter().zip(module_names(&servers)) {
        let names: Vec<&str> = server.iter().map(|tool| tool.name.as_str()).collect();
        body.push_str(&format!("pub mod {module} {{\n"));
        for (tool, module) in server.iter().zip(module_names(&names)) {
            let mut degraded = Vec::new();
            body.push_str(&tool_module(tool, &module, &mut degraded));
            if !degraded.is_empty() {
                types.degraded.push(DegradedTool {
                    server: tool.server.clone(),
                    wire_name: tool.name.clone(),
                    found: degraded,
                });
            }
        }
        body.push_str("}\n");
    }
    types.text = format!("{HEADER}\n{}", formatted(&body));
    types
}

/// Generates the types of one of airlock's own schemas, under the name `root`.
pub fn of_schema(root: &str, schema: &Value) -> Result<String, NoRustType> {
    let (schema, _) = normal::normalised(root, schema);
    let found = catch_unwind(AssertUnwindSafe(|| written(schema)));
    found.unwrap_or_else(|_| {
        Err(NoRustType {
            why: "the schema's form has no Rust counterpart".into(),
        })
    })
}

fn written(schema: Value) -> Result<String, NoRustType> {
    let no_type = |why: &dyn std::fmt::Display| NoRustType {
        why: text::clip(&text::neutralise(&why.to_string()), 200),
    };
    let mut settings = TypeSpaceSettings::default();
    settings.with_derive("PartialEq".to_owned());
    settings.with_map_type("::std::collections::BTreeMap".to_owned());
    let mut space = TypeSpace::new(&settings);
    let schema = serde_json::from_value(schema).map_err(|error| no_type(&error))?;
    let root = space
        .add_root_schema(schema)
        .map_err(|error| no_type(&error))?;
    if root.is_none() {
        return Err(no_type(&"it has no name"));
    }
    if space.uses_chrono() || space.uses_uuid() || space.uses_regress() {
        return Err(no_type(&"its types need additional crates"));
    }
    let file = syn::parse2::<syn::File>(space.to_stream()).map_err(|error| no_type(&error))?;
    if file.items.iter().any(is_of_a_box) {
        return Err(no_type(&"one of its types contains only itself"));
    }
    match file.items.iter().find_map(repeated_name) {
        Some(name) => Err(no_type(&format!(
            "two of its members would have the name `{name}`"
        ))),
        None => Ok(prettyplease::unparse(&file)),
    }
}

/// Whether the item is an implementation for `Box`. For a type that only contains a box, the
/// generator writes a conversion that conflicts with one in the standard library.
fn is_of_a_box(item: &syn::Item) -> bool {
    let syn::Item::Impl(found) = item else {
        return false;
    };
    let syn::Type::Path(path) = &*found.self_ty else {
        return false;
    };
    let last = path.path.segments.last();
    last.is_some_and(|last| last.ident == "Box")
}

/// Returns a name that occurs twice in one type: such code parses but does not compile.
fn repeated_name(item: &syn::Item) -> Option<String> {
    let names: Vec<String> = match item {
        syn::Item::Struct(found) => {
            let names = found.fields.iter().filter_map(|it| it.ident.as_ref());
            names.map(ToString::to_string).collect()
        }
        syn::Item::Enum(found) => {
            let names = found.variants.iter().map(|it| &it.ident);
            names.map(ToString::to_string).collect()
        }
        _ => Vec::new(),
    };
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(name.clone()))
}

fn tool_module(tool: &Description, module: &str, degraded: &mut Vec<Degraded>) -> String {
    let output = tool.output_schema.as_deref();
    let output = output.map(|schema| match unwrap::inner_schema(schema) {
        // References in the inner schema are relative to the whole schema.
        Some(inner) if tool.unwraps() => with_definitions_of(schema, inner),
        _ => schema.clone(),
    });
    let args = part("args", "Args", Some(&tool.input_schema), degraded);
    let output = part("output", "Output", output.as_ref(), degraded);
    let doc = text::neutralise(tool.text.as_deref().unwrap_or_default());
    let doc = if doc.is_empty() {
        String::new()
    } else {
        format!("#[doc = {doc:?}]\n")
    };
    format!(
        "{doc}pub mod {module} {{\npub const NAME: &str = {:?};\npub use self::args::Args;\npub use self::output::Output;\n{args}{output}}}\n",
        tool.name
    )
}

/// Writes one of a tool's two schemas in its own module, so that equal names do not collide.
fn part(module: &str, root: &str, schema: Option<&Value>, degraded: &mut Vec<Degraded>) -> String {
    let plain = |value: &str| format!("pub mod {module} {{\npub type {root} = {value};\n}}\n");
    let anything = match root {
        "Args" => "::serde_json::Map<::std::string::String, ::serde_json::Value>",
        _ => "::serde_json::Value",
    };
    let Some(schema) = schema else {
        return plain(anything);
    };
    let (path, lost) = (
        if root == "Args" { "args" } else { "result" },
        normal::normalised(root, schema).1,
    );
    degraded.extend(lost.into_iter().map(|reason| Degraded {
        path: path.into(),
        reason,
    }));
    let found = of_schema(root, schema).and_then(|text| {
        let declared = [
            format!("pub struct {root} "),
            format!("pub struct {root}("),
            format!("pub struct {root};"),
            format!("pub enum {root} "),
            format!("pub type {root} "),
        ];
        if declared.iter().any(|it| text.contains(it)) {
            return Ok(text);
        }
        Err(NoRustType {
            why: "its type has no name".into(),
        })
    });
    match found {
        Ok(text) => format!("pub mod {module} {{\n{text}}}\n"),
        Err(bad) => {
            degraded.push(Degraded {
                path: path.into(),
                reason: bad.to_string(),
            });
            plain(anything)
        }
    }
}

fn with_definitions_of(whole: &Value, inner: &Value) -> Value {
    let mut inner = inner.clone();
    if let (Some(inner), Some(whole)) = (inner.as_object_mut(), whole.as_object()) {
        for keyword in ["$defs", "definitions"] {
            if let Some(found) = whole.get(keyword) {
                inner.insert(keyword.to_owned(), found.clone());
            }
        }
    }
    inner
}

fn formatted(body: &str) -> String {
    syn::parse_file(body).map_or_else(|_| body.to_owned(), |file| prettyplease::unparse(&file))
}

/// Returns distinct Rust identifiers. They depend on the set of names only.
fn module_names(wire_names: &[&str]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let members = names::members(wire_names);
    let distinct = |member: &String| {
        let mut name = module_name(member);
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        name
    };
    members.iter().map(distinct).collect()
}

/// Turns a JavaScript identifier into a Rust one, which cannot contain `$`.
fn module_name(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| if c == '$' || c == '-' { '_' } else { c })
        .collect();
    match syn::parse_str::<syn::Ident>(&name) {
        Ok(_) => name,
        Err(_) => format!("{name}_"),
    }
}

#[cfg(test)]
mod tests;
