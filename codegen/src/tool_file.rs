//! Tool files: what somebody here says of one tool instead of, or besides, what
//! its server says. The format is `tool_descriptions/format.schema.json`, from
//! which [`format`] is generated.
//!
//! A file can change what is read and never what is accepted: the arguments, and
//! an output schema where there is one, stay the server's to say.

pub mod check;
mod file_name;
#[rustfmt::skip]
pub mod format;
mod place;
pub mod pull;

use std::sync::{Arc, LazyLock};

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

pub use file_name::file_name;
pub use format::ToolFile;

use crate::canonical::{self, Digest};
use crate::closest::closest;
use crate::description::Description;
use crate::later::Later;
use crate::validate::{Severity, Validator};
use crate::{text, unwrap};

/// The schema of the format, as it stands in the repository.
pub const FORMAT: &str = include_str!("../../tool_descriptions/format.schema.json");
/// Faults of one file: for each, the file is gone through to find its line.
const FAULTS_MAX: usize = 50;
/// What findings call a whole file.
const ROOT: &str = "file";

/// One thing that is wrong with a tool file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// 1-based.
    pub line: usize,
    pub severity: Severity,
    /// What, why and, when there is an obvious one, the correction.
    pub text: String,
}

/// A file that was read, with its text for the lines of later findings.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    pub file: Arc<ToolFile>,
    pub value: Value,
    text: String,
}

/// Reads a file. `value` is what its `text` spells.
pub fn read(text: &str, value: Value) -> Result<Read, Vec<Fault>> {
    static FORMAT_CHECK: LazyLock<Option<Validator>> = LazyLock::new(|| {
        let schema: Value = serde_json::from_str(FORMAT).ok()?;
        Validator::compile(&schema).ok()
    });
    let fault = |path: &str, why: String| Fault {
        line: place::line_of(text, ROOT, path),
        severity: Severity::Error,
        text: why,
    };
    let findings = match &*FORMAT_CHECK {
        Some(format) => format.errors(ROOT, &value),
        None => return Err(vec![fault(ROOT, "the format itself cannot be read".into())]),
    };
    if !findings.is_empty() {
        let faults = findings.iter();
        return Err(faults
            .map(|finding| fault(&finding.path, finding.to_string()))
            .collect());
    }
    match ToolFile::deserialize(&value) {
        Ok(file) => Ok(Read {
            file: Arc::new(file),
            value,
            text: text.to_owned(),
        }),
        Err(error) => Err(vec![fault(ROOT, error.to_string())]),
    }
}

impl Read {
    pub(crate) fn fault(&self, severity: Severity, path: &str, text: String) -> Fault {
        Fault {
            line: place::line_of(&self.text, ROOT, path),
            severity,
            text,
        }
    }

    /// What the digest of a full description covers of a file: all that somebody reads.
    fn content(&self) -> Value {
        let mut content = self.value.clone();
        if let Some(members) = content.as_object_mut() {
            members.retain(|key, _| !matches!(&**key, "$schema" | "upstream" | "pulled"));
        }
        content
    }
}

impl Description {
    /// The full description: the server's with what a file says of it, and what of the file
    /// does not fit the server's.
    #[must_use]
    pub fn with_file(mut self, read: &Read) -> (Self, Vec<Fault>) {
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
        self.digest = full_digest(self.upstream, &read.content());
        self.file = Some(Arc::clone(&read.file));
        (self, faults)
    }

    /// The schema that results are checked against. What was only seen is no promise.
    #[must_use]
    pub fn checked_output(&self) -> Option<&Later> {
        self.output_schema
            .as_ref()
            .filter(|_| !self.output_is_observed)
    }

    /// The schema of what the script is given, and the document that its references are about.
    #[must_use]
    pub fn output_root(&self) -> Option<&Value> {
        let schema = self.output_schema.as_deref()?;
        let inner = unwrap::inner_schema(schema).filter(|_| self.unwraps());
        Some(inner.unwrap_or(schema))
    }
}

fn full_digest(upstream: Digest, content: &Value) -> Digest {
    canonical::digest(&json!({"upstream": upstream, "file": content}))
}

fn deprecation_text(deprecation: &format::Deprecation) -> String {
    let parts = [
        deprecation.since.as_ref().map(|it| format!("since {it}")),
        deprecation.message.clone(),
        deprecation
            .replacement
            .as_ref()
            .map(|it| format!("use `{it}` instead")),
        deprecation
            .removal
            .as_ref()
            .map(|it| format!("{it} will not have it")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Puts words beside what the server declares of an argument. Fails with a suggestion when it
/// declares no such argument.
fn describe_argument(
    input: &mut Value,
    name: &str,
    argument: &format::Argument,
) -> Result<(), String> {
    let properties = input.get_mut("properties").and_then(Value::as_object_mut);
    let Some(properties) = properties else {
        return Err("; it declares none by name".into());
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

/// A file in the one form in which files are written: indented by two, the members in the
/// order of the format, a line feed at the end.
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
