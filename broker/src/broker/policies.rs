//! The policies of a broker: its tools as a vocabulary, and the rules held
//! against it.

use std::collections::BTreeSet;

use airlock_core::id::ToolId;
use airlock_core::policy::{Finding, Policies, Vocabulary};
use airlock_core::problem::Problem;
use codegen::shape::ToolShape;

use super::BuildError;
use super::tools::Tools;
use crate::config::PolicyConfig;

/// None where no folder is named.
pub(super) fn load(config: &PolicyConfig, tools: &Tools) -> Result<Option<Policies>, BuildError> {
    if config.is_empty() {
        return Ok(None);
    }
    Policies::load(
        &config.files,
        vocabulary(config, tools),
        config.needs_permit,
    )
    .map(Some)
    .map_err(BuildError::Policies)
}

fn vocabulary(config: &PolicyConfig, tools: &Tools) -> Vocabulary {
    let mut vocabulary = Vocabulary::new();
    for group in config.groups.keys() {
        vocabulary.add_group(group);
    }
    for tool in tools.catalog.tools() {
        let description = tools.descriptions.iter().find(|description| {
            *description.server == *tool.id.server.0 && *description.name == *tool.id.tool.0
        });
        if let Some(description) = description {
            let groups = groups_of(config, &tool.id);
            vocabulary.add_tool(tool, &groups, &ToolShape::of(description));
        }
    }
    vocabulary
}

fn groups_of(config: &PolicyConfig, tool: &ToolId) -> BTreeSet<String> {
    let groups = config.groups.iter();
    groups
        .filter(|(_, patterns)| patterns.iter().any(|pattern| pattern.matches(tool)))
        .map(|(name, _)| name.clone())
        .collect()
}

/// What somebody should know although it stops nothing.
pub(super) fn problems(policies: &Policies) -> Option<Problem> {
    let is_empty = policies.rules().is_empty() && policies.needs_permit();
    is_empty.then(|| {
        Problem::new(
            "policy-empty",
            "the policy folders hold no rule",
            "what no rule permits is denied",
            "write a permit into a file that ends in .cedar",
        )
    })
}

/// The first finding, and how many there are.
pub(super) fn summary(findings: &[Finding]) -> String {
    let first = findings
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    match findings.len() {
        0 | 1 => first,
        many => format!("{first} (and {} more)", many - 1),
    }
}
