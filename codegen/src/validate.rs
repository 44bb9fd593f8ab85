//! Checks whether a value fits a schema, and suggests corrections if it does not.
//!
//! Schemas come from servers, so they are examined before they are compiled. References to other
//! documents are never fetched. A check is refused if the schema makes it too costly. `format` is
//! only an annotation, as in the current JSON Schema draft.

mod cost;
mod explain;
mod finding;
mod guard;
mod unknown;

use jsonschema::{Draft, PatternOptions};
use serde_json::Value;

pub(crate) use explain::member_path;
pub use finding::{Finding, Severity};
pub use guard::BadSchema;

/// Maximum number of findings in one result; further ones would repeat the first.
const FINDINGS_MAX: usize = 20;
/// Maximum number of validator errors examined for these findings.
const ERRORS_MAX: usize = 100;
/// Maximum number of nodes of a value that is searched for every error. In a larger value, only the
/// first error is reported.
const NODES_EXPLAINED_MAX: u64 = 50_000;
/// Maximum memory for the errors of one search; each error contains the texts of two paths.
const FAULTS_BYTES_MAX: u64 = 64 * 1024 * 1024;
const FAULT_BYTES: u64 = 256;

/// A schema that is compiled once and used for many values.
#[derive(Debug)]
pub struct Validator {
    schema: Value,
    compiled: jsonschema::Validator,
    plan: cost::Plan,
    /// Whether an object of the schema allows keys that it does not mention.
    leaves_keys_unsaid: bool,
}

impl Validator {
    pub fn compile(schema: &Value) -> Result<Self, BadSchema> {
        let weight = guard::examine(schema)?;
        let schema = guard::normalised(schema);
        let compiled = compile(&schema)?;
        let plan = cost::Plan::new(&schema, weight);
        Ok(Self {
            leaves_keys_unsaid: unknown::leaves_keys_unsaid(&schema),
            schema,
            compiled,
            plan,
        })
    }

    /// Returns the errors of `value`, and keys that are probably mistakes. `root` is the name of
    /// the value in messages (`args`, `result`). The value fits if no finding is a
    /// [`Severity::Error`].
    #[must_use]
    pub fn check(&self, root: &str, value: &Value) -> Vec<Finding> {
        if !self.plan.affords(value, nodes(value)) {
            return vec![Finding::too_costly(root)];
        }
        let mut findings = self.errors(root, value);
        findings.extend(self.doubts(root, value));
        findings.truncate(FINDINGS_MAX);
        findings
    }

    /// Returns only the errors. This is cheap for a value that fits: the search for probable
    /// mistakes takes tens of times as long.
    #[must_use]
    pub fn errors(&self, root: &str, value: &Value) -> Vec<Finding> {
        let nodes = nodes(value);
        if !self.plan.affords(value, nodes) {
            return vec![Finding::too_costly(root)];
        }
        if self.compiled.is_valid(value) {
            return Vec::new();
        }
        let explain = explain::Explain {
            schema: &self.schema,
            root_name: root,
            value,
        };
        let faults = self.plan.faults(value, nodes);
        let bytes = |faults: u64| {
            faults.saturating_mul(FAULT_BYTES.saturating_add(cost::path_bytes(value)))
        };
        let mut findings = if nodes <= NODES_EXPLAINED_MAX && bytes(faults.all) <= FAULTS_BYTES_MAX
        {
            explain.all(self.compiled.iter_errors(value).take(ERRORS_MAX))
        } else if bytes(faults.in_one.max(1)) <= FAULTS_BYTES_MAX {
            let first = self.compiled.validate(value).err();
            explain.all(first)
        } else {
            vec![Finding::too_large_to_explain(root)]
        };
        findings.dedup();
        findings.truncate(FINDINGS_MAX);
        findings
    }

    /// Returns only the probable mistakes: keys that the schema neither names nor forbids.
    #[must_use]
    pub fn doubts(&self, root: &str, value: &Value) -> Vec<Finding> {
        if self.leaves_keys_unsaid && self.plan.affords(value, nodes(value)) {
            unknown::warn(&self.schema, root, value)
        } else {
            Vec::new()
        }
    }

    /// Whether `value` fits. Cheaper than [`Self::errors`] if no findings are needed.
    #[must_use]
    pub fn accepts(&self, value: &Value) -> bool {
        self.plan.affords(value, nodes(value)) && self.compiled.is_valid(value)
    }
}

/// Compiles a schema. Without `$schema` it is read as the current draft, or as an older draft if
/// only that one supports its spelling (`items: [...]`, `exclusiveMinimum: true`).
fn compile(schema: &Value) -> Result<jsonschema::Validator, BadSchema> {
    let declared = schema.get("$schema").is_some();
    let drafts: &[Option<Draft>] = if declared {
        &[None]
    } else {
        &[
            Some(Draft::Draft202012),
            Some(Draft::Draft7),
            Some(Draft::Draft4),
        ]
    };
    let mut first_error = None;
    for draft in drafts {
        match compile_as(schema, *draft) {
            Ok(compiled) => return Ok(compiled),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or(BadSchema::TooLarge))
}

fn compile_as(schema: &Value, draft: Option<Draft>) -> Result<jsonschema::Validator, BadSchema> {
    const BACKTRACKS_MAX: usize = 100_000;
    const REGEX_BYTES_MAX: usize = 1024 * 1024;
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACKS_MAX)
        .size_limit(REGEX_BYTES_MAX)
        .dfa_size_limit(REGEX_BYTES_MAX);
    #[expect(
        clippy::disallowed_methods,
        reason = "only this function compiles schemas"
    )]
    let options = jsonschema::options()
        .offline()
        .should_validate_formats(false)
        .with_pattern_options(patterns);
    let options = match draft {
        Some(draft) => options.with_draft(draft),
        None => options,
    };
    options.build(schema).map_err(|error| BadSchema::Invalid {
        path: error.instance_path().to_string(),
        why: crate::text::clip(&crate::text::neutralise(&error.to_string()), 200),
    })
}

/// Returns the number of JSON values in `value`.
pub fn nodes(value: &Value) -> u64 {
    let mut count = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        count += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
