//! Checks whether a tool file still fits its server's description: examples against the schemas,
//! names of other tools, and the digest of the last compared description.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{FAULTS_MAX, ROOT, ReadToolFile, ToolFileFault};
use crate::closest::closest;
use crate::description::Description;
use crate::validate::{Severity, Validator};

/// Maximum number of arguments whose examples are checked; each needs a compiled schema.
const ARGUMENTS_MAX: usize = 200;

/// Returns all mismatches. `upstream` is the server's own description, `tools` are the names of all
/// its tools, and `others` are those of all servers as `server.tool`.
#[must_use]
pub fn against(
    read: &ReadToolFile,
    upstream: &Description,
    tools: &BTreeSet<String>,
    others: &BTreeSet<String>,
) -> Vec<ToolFileFault> {
    let (full, mut faults) = upstream.clone().with_file(read);
    let file = &*read.file;
    if let Some(seen) = &file.upstream
        && *seen != upstream.upstream.to_string()
    {
        let why = format!(
            "the server's description has changed since: it is {} now. Compare, then write that",
            upstream.upstream
        );
        faults.push(read.fault(Severity::Warning, "file.upstream", why));
    }
    faults.extend(examples(read, &full));
    faults.extend(arguments(read, &full));
    let replacement = file.deprecation.as_ref();
    let replacement = replacement.and_then(|it| it.replacement.as_ref());
    let related = file.related_tools.iter().enumerate();
    let named = related
        .map(|(at, tool)| (format!("file.related_tools[{at}]"), tool))
        .chain(replacement.map(|tool| ("file.deprecation.replacement".to_owned(), tool)));
    for (path, tool) in named {
        if faults.len() >= FAULTS_MAX {
            break;
        }
        if !tools.contains(tool) && !others.contains(tool) {
            let all = tools.iter().chain(others).map(String::as_str);
            let near = closest(tool, all);
            let near = near.map_or_else(String::new, |near| format!(". Did you mean `{near}`?"));
            let why = format!("there is no tool `{tool}`{near}");
            faults.push(read.fault(Severity::Error, &path, why));
        }
    }
    faults
}

fn examples(read: &ReadToolFile, full: &Description) -> Vec<ToolFileFault> {
    let input = Validator::compile(&full.input_schema).ok();
    let output = full
        .output_root()
        .and_then(|root| compile_within(full, root));
    let mut faults = Vec::new();
    for (at, example) in read.file.examples.iter().enumerate() {
        if faults.len() >= FAULTS_MAX {
            break;
        }
        let path = format!("{ROOT}.examples[{at}].input");
        let value = Value::Object(example.input.clone());
        faults.extend(unfit(read, input.as_ref(), &path, &value));
        if let Some(value) = &example.output {
            let path = format!("{ROOT}.examples[{at}].output");
            faults.extend(unfit(read, output.as_ref(), &path, value));
        }
    }
    faults
}

fn arguments(read: &ReadToolFile, full: &Description) -> Vec<ToolFileFault> {
    let mut faults = Vec::new();
    let with_examples = read.file.arguments.iter();
    let with_examples = with_examples.filter(|(_, argument)| !argument.examples.is_empty());
    for (name, argument) in with_examples.take(ARGUMENTS_MAX) {
        let pointer = full
            .input_schema
            .get("properties")
            .and_then(|it| it.get(name));
        let Some(schema) = pointer.and_then(|schema| compile_in(&full.input_schema, schema)) else {
            continue;
        };
        let base = crate::validate::member_path("file.arguments", name);
        for (at, example) in argument.examples.iter().enumerate() {
            if faults.len() >= FAULTS_MAX {
                return faults;
            }
            let path = format!("{base}.examples[{at}]");
            faults.extend(unfit(read, Some(&schema), &path, example));
        }
    }
    faults
}

fn unfit(
    read: &ReadToolFile,
    schema: Option<&Validator>,
    path: &str,
    value: &Value,
) -> Vec<ToolFileFault> {
    let findings = schema.map(|schema| schema.check(path, value));
    let findings = findings.unwrap_or_default().into_iter();
    findings
        .map(|finding| read.fault(finding.severity, &finding.path, finding.to_string()))
        .collect()
}

fn compile_within(full: &Description, root: &Value) -> Option<Validator> {
    compile_in(full.output_schema.as_deref()?, root)
}

/// Compiles a part of a schema with the definitions that the part may refer to.
fn compile_in(whole: &Value, part: &Value) -> Option<Validator> {
    let mut schema = part.clone();
    let members = schema.as_object_mut()?;
    for keyword in ["$schema", "$defs", "definitions"] {
        if let Some(found) = whole.get(keyword) {
            members
                .entry(keyword.to_owned())
                .or_insert_with(|| found.clone());
        }
    }
    Validator::compile(&schema).ok()
}
