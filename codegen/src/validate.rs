//! Whether a value fits a schema, and if not, what to write instead.
//!
//! Schemas come from servers: they are examined before they are compiled, nothing
//! is fetched for them, and a check whose cost a schema could blow up is refused.
//! `format` is an annotation here, as the current JSON Schema draft has it.

mod cost;
mod explain;
mod finding;
mod guard;
mod union;
mod unknown;

use jsonschema::{Draft, PatternOptions};
use serde_json::Value;

pub use cost::nodes;
pub(crate) use explain::member_path;
pub use finding::{Finding, Severity};
pub use guard::BadSchema;

/// Findings in one answer; the rest repeats what these say.
const FINDINGS_MAX: usize = 20;
/// Faults that are looked at for those findings.
const ERRORS_MAX: usize = 100;
/// Values up to this many nodes are searched for every fault, larger ones for the first.
const NODES_EXPLAINED_MAX: u64 = 50_000;
/// What the faults of one search may take, each with the texts of two paths.
const FAULTS_BYTES_MAX: u64 = 64 * 1024 * 1024;
const FAULT_BYTES: u64 = 256;

/// A schema, compiled once and used for every value.
#[derive(Debug)]
pub struct Validator {
    schema: Value,
    compiled: jsonschema::Validator,
    plan: cost::Plan,
    /// Whether there is anything to doubt at all.
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

    /// Everything that is wrong with `value`, which the messages call `root` (`args`, `result`),
    /// and what is probably not meant. The value fits when no finding is an [`Severity::Error`].
    #[must_use]
    pub fn check(&self, root: &str, value: &Value) -> Vec<Finding> {
        if !self.plan.affords(value, cost::nodes(value)) {
            return vec![Finding::too_costly(root)];
        }
        let mut findings = self.errors(root, value);
        findings.extend(self.doubts(root, value));
        findings.truncate(FINDINGS_MAX);
        findings
    }

    /// Only what makes the schema refuse `value`. A value that fits costs little here:
    /// the search for what is probably not meant takes tens of times as long.
    #[must_use]
    pub fn errors(&self, root: &str, value: &Value) -> Vec<Finding> {
        let nodes = cost::nodes(value);
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

    /// Only what the schema lets pass and is probably not meant: keys that it neither names
    /// nor forbids.
    #[must_use]
    pub fn doubts(&self, root: &str, value: &Value) -> Vec<Finding> {
        if self.leaves_keys_unsaid && self.plan.affords(value, cost::nodes(value)) {
            unknown::warn(&self.schema, root, value)
        } else {
            Vec::new()
        }
    }

    /// Whether `value` fits. Cheaper than [`Self::errors`] when nobody reads the findings.
    #[must_use]
    pub fn accepts(&self, value: &Value) -> bool {
        self.plan.affords(value, cost::nodes(value)) && self.compiled.is_valid(value)
    }
}

/// Schemas without `$schema` are read as the current draft, and as an older one
/// when only that makes sense of them (`items: [...]`, `exclusiveMinimum: true`).
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
        reason = "this is the one place that compiles schemas"
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

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
