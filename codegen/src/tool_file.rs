//! Tool files: the user's additions to, or replacements for, a server's description of one tool.
//! The format is `tool_descriptions/format.schema.json`, from which [`crate::tool_file_format`] is
//! generated.
//!
//! A file can change what models read, and never what calls are accepted. Only the server defines
//! the arguments, and the output schema if it has one.

pub mod check;
mod file_name;
mod other_forms;
mod place;
pub mod pull;

use std::sync::{Arc, LazyLock};

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

pub use file_name::file_name;

use crate::canonical;
use crate::closest::closest;
use crate::description::{Description, deprecation_text};
use crate::lazy_json::LazyJson;
use crate::tool_file_format::Argument;
pub use crate::tool_file_format::ToolFile;
use crate::validate::{Severity, Validator};
use crate::{text, unwrap};

/// The schema of the format, as stored in the repository.
pub const FORMAT: &str = include_str!("../../tool_descriptions/format.schema.json");
/// Maximum number of errors reported for one file. Finding the line of each takes a pass over the
/// file.
const FAULTS_MAX: usize = 50;
/// The name of the whole file in paths.
const ROOT: &str = "file";

/// An error in a tool file, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFileFault {
    /// Line number, from 1.
    pub line: usize,
    pub severity: Severity,
    /// What is wrong, why, and the correction if it is obvious.
    pub text: String,
}

/// A parsed file, with its text to find the lines of later errors.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadToolFile {
    pub file: Arc<ToolFile>,
    /// The file in the format.
    pub value: Value,
    text: String,
    /// The file as it was written.
    written: Value,
}

/// Reads a file. `value` is the parsed `text`, in the format or in another form that can be
/// converted to it.
pub fn read(text: &str, value: Value) -> Result<ReadToolFile, Vec<ToolFileFault>> {
    static FORMAT_CHECK: LazyLock<Option<Validator>> = LazyLock::new(|| {
        let schema: Value = serde_json::from_str(FORMAT).ok()?;
        Validator::compile(&schema).ok()
    });
    let written = value.clone();
    let value = other_forms::converted(value);
    let fault = |path: &str, why: String| ToolFileFault {
        line: place::line_of(text, ROOT, &other_forms::written_path(&written, path)),
        severity: Severity::Error,
        text: why,
    };
    let findings = match &*FORMAT_CHECK {
        Some(format) => format.errors(ROOT, &value),
        None => return Err(vec![fault(ROOT, "the format's schema is invalid".into())]),
    };
    if !findings.is_empty() {
        let faults = findings.iter();
        return Err(faults
            .map(|finding| fault(&finding.path, finding.to_string()))
            .collect());
    }
    match ToolFile::deserialize(&value) {
        Ok(file) => Ok(ReadToolFile {
            file: Arc::new(file),
            value,
            text: text.to_owned(),
            written,
        }),
        Err(error) => Err(vec![fault(ROOT, error.to_string())]),
    }
}

impl ReadToolFile {
    pub(crate) fn fault(&self, severity: Severity, path: &str, text: String) -> ToolFileFault {
        ToolFileFault {
            line: place::line_of(
                &self.text,
                ROOT,
                &other_forms::written_path(&self.written, path),
            ),
            severity,
            text,
        }
    }

    /// Returns the part of a file that the digest of the full description covers: everything that
    /// is shown.
    fn content(&self) -> Value {
        let mut content = self.value.clone();
        if let Some(members) = content.as_object_mut() {
            members.retain(|key, _| !matches!(&**key, "$schema" | "upstream" | "pulled"));
        }
        content
    }
}

impl Description {
    /// Applies a file to the server's description. Also returns the parts of the file that do not
    /// fit the server's description.
    #[must_use]
    pub fn with_file(mut self, read: &ReadToolFile) -> (Self, Vec<ToolFileFault>) {
        let mut faults = Vec::new();
        let file = &*read.file;
        if let Some(title) = &file.title {
            self.title = Some(title.clone());
        }
        if let Some(prose) = &file.description {
            self.text = Some(prose.clone());
        }
        if let Some(deprecation) = &file.deprecation {
            self.claims.deprecated = Some(deprecation_text(deprecation));
        }
        if !file.arguments.is_empty() {
            let mut schema = Value::clone(&self.input_schema);
            for (name, argument) in &file.arguments {
                if faults.len() >= FAULTS_MAX {
                    break;
                }
                if let Err(suggestion) = describe_argument(&mut schema, name, argument) {
                    let why = format!("the tool has no argument `{name}`{suggestion}");
                    let path = crate::validate::member_path("file.arguments", name);
                    faults.push(read.fault(Severity::Error, &path, why));
                }
            }
            self.input_schema = schema.into();
        }
        if !file.output_schema.is_empty() {
            if self.output_schema.is_some() {
                let why = "the server declares an `outputSchema` itself; this one is not used";
                faults.push(read.fault(Severity::Warning, "file.outputSchema", why.into()));
            } else {
                let seen = Value::Object(file.output_schema.clone());
                self.output_schema = Some(seen.into());
                self.output_is_observed = file.observed.is_some();
            }
        }
        let server = self.metadata.take();
        let mut shown = json!({"upstream": self.upstream, "file": read.content()});
        if let (Some(server), Some(members)) = (&server, shown.as_object_mut()) {
            members.insert(
                "server".into(),
                serde_json::to_value(&**server).unwrap_or_default(),
            );
        }
        self.digest = canonical::digest(&shown);
        self.file = Some(Arc::clone(&read.file));
        self.metadata = Some(match server {
            Some(server) => Arc::new(crate::description::joined(&server, file)),
            None => Arc::clone(&read.file),
        });
        (self, faults)
    }

    /// Returns the schema that results are checked against. An observed schema is not checked.
    #[must_use]
    pub fn checked_output(&self) -> Option<&LazyJson> {
        self.output_schema
            .as_ref()
            .filter(|_| !self.output_is_observed)
    }

    /// Returns the schema of the value that the script gets. Its references are relative to the
    /// whole output schema.
    #[must_use]
    pub fn output_root(&self) -> Option<&Value> {
        let schema = self.output_schema.as_deref()?;
        let inner = unwrap::inner_schema(schema).filter(|_| self.unwraps());
        Some(inner.unwrap_or(schema))
    }
}

/// Adds text to an argument that the server declares. If the server declares no such argument,
/// fails with a suggestion.
fn describe_argument(input: &mut Value, name: &str, argument: &Argument) -> Result<(), String> {
    let properties = input.get_mut("properties").and_then(Value::as_object_mut);
    let Some(properties) = properties else {
        return Err("; the tool declares no named arguments".into());
    };
    let Some(property) = properties.get_mut(name) else {
        let near = closest(name, properties.keys().map(String::as_str));
        return Err(near.map_or_else(String::new, |near| format!(". Did you mean `{near}`?")));
    };
    if *property == Value::Bool(true) {
        *property = Value::Object(Map::new());
    }
    if let Some(members) = property.as_object_mut() {
        if let Some(prose) = &argument.description {
            members.insert("description".into(), prose.as_str().into());
        }
        if !argument.examples.is_empty() {
            members.insert("examples".into(), argument.examples.clone().into());
        }
    }
    Ok(())
}

/// Formats a file: indented by two spaces, the members in the order of the format, with a line feed
/// at the end.
#[must_use]
pub fn formatted(value: &Value) -> String {
    let place = |key: &str| {
        ORDER
            .iter()
            .position(|it| *it == key)
            .unwrap_or(ORDER.len())
    };
    let sorted = match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| (place(key), key.as_str()));
            let owned = members
                .into_iter()
                .map(|(key, value)| (key.clone(), value.clone()));
            Value::Object(owned.collect())
        }
        other => other.clone(),
    };
    let text = serde_json::to_string_pretty(&sorted).unwrap_or_default();
    text::visible(&text) + "\n"
}

const ORDER: [&str; 19] = [
    "$schema",
    "name",
    "upstream",
    "pulled",
    "version",
    "title",
    "description",
    "category",
    "groups",
    "tags",
    "deprecation",
    "rate_limit",
    "related_tools",
    "usage_guidance",
    "error_guidance",
    "examples",
    "arguments",
    "outputSchema",
    "observed",
];

#[cfg(test)]
mod tests;
