//! The policies of a broker: builds the vocabulary from its tools, and checks the rules against it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use airlock_core::catalog::Effects;
use airlock_core::id::{ServerName, ToolId, ToolName};
use airlock_core::policy::{Policies, Vocabulary};
use airlock_core::problem::Problem;
use airlock_core::rules::Rules;
use codegen::description::Description;

use super::BuildError;
use super::tools::{self, ToolSet};
use crate::config::{Config, PolicyConfig, ServerConfig};

/// Returns `None` if no folder is configured. `unseen` names servers whose tools are not known yet.
pub(super) fn load<'a>(
    config: &PolicyConfig,
    tools: &'a ToolSet,
    unseen: impl Iterator<Item = &'a str>,
) -> Result<Option<Policies>, BuildError> {
    let by_name = |it: &Description| (it.server.clone(), it.name.clone());
    let all = tools.descriptions.iter().map(|it| (by_name(it), it));
    let all: HashMap<(String, String), &Description> = all.collect();
    let known = tools.catalog.tools().filter_map(|tool| {
        let name = (tool.id.server.0.to_string(), tool.id.tool.0.to_string());
        Some((tool.id.clone(), tool.effects, *all.get(&name)?))
    });
    held_against(config, known, unseen)
}

/// Returns the rules of the configuration for descriptions from a file. Their servers are not
/// connected.
pub(crate) fn rules_of(config: &Config, descriptions: &[Description]) -> Result<Rules, BuildError> {
    let rules = Rules::new(config.rules.clone(), false);
    Ok(match policies_of(config, descriptions)? {
        Some(policies) => rules.with_policies(Arc::new(policies)),
        None => rules,
    })
}

fn policies_of(
    config: &Config,
    descriptions: &[Description],
) -> Result<Option<Policies>, BuildError> {
    let known = configured(config, descriptions);
    let is_seen = |server: &str| descriptions.iter().any(|it| it.server == server);
    let configured = config.servers.iter().map(|it| &*it.spec.name.0);
    let unseen = configured.filter(|server| !is_seen(server));
    held_against(&config.policies, known, unseen)
}

/// Returns the names that rules can use for descriptions from a file, with the groups and the marks
/// of the configuration.
pub(crate) fn vocabulary_of(config: &Config, descriptions: &[Description]) -> Vocabulary {
    let known = configured(config, descriptions);
    vocabulary(&config.policies, known, std::iter::empty())
}

/// Returns the descriptions with the effects that the configuration states.
fn configured<'a>(
    config: &'a Config,
    descriptions: &'a [Description],
) -> impl Iterator<Item = (ToolId, Effects, &'a Description)> {
    descriptions.iter().filter_map(|description| {
        let server = ServerName::parse(&description.server).ok()?;
        let of_server = |it: &&ServerConfig| it.spec.name == server;
        let trust = config.servers.iter().find(of_server);
        let trust = trust.map(|it| it.trust.clone()).unwrap_or_default();
        let tool = ToolName(description.name.as_str().into());
        let effects = tools::effects(description, &trust);
        Some((ToolId { server, tool }, effects, description))
    })
}

fn held_against<'a>(
    config: &PolicyConfig,
    known: impl Iterator<Item = (ToolId, Effects, &'a Description)>,
    unseen: impl Iterator<Item = &'a str>,
) -> Result<Option<Policies>, BuildError> {
    if config.is_empty() {
        return Ok(None);
    }
    let vocabulary = vocabulary(config, known, unseen);
    Policies::load(&config.files, vocabulary, config.needs_permit)
        .map(Some)
        .map_err(BuildError::Policies)
}

fn vocabulary<'a>(
    config: &PolicyConfig,
    known: impl Iterator<Item = (ToolId, Effects, &'a Description)>,
    unseen: impl Iterator<Item = &'a str>,
) -> Vocabulary {
    let mut vocabulary = Vocabulary::new();
    for group in config.groups.keys() {
        vocabulary.add_group(group);
    }
    unseen.for_each(|server| vocabulary.add_unseen(server));
    vocabulary.configured.clone_from(&config.words);
    for (tool, effects, description) in known {
        let groups = groups_of(config, &tool);
        vocabulary.add(
            &tool,
            effects,
            &groups,
            &codegen::shape::tool_shape(description),
        );
        if let Some(file) = &description.file {
            vocabulary.add_file_words(&tool, &file.groups, &file.tags);
        }
    }
    vocabulary
}

fn groups_of(config: &PolicyConfig, tool: &ToolId) -> BTreeSet<String> {
    let groups = config.groups.iter();
    groups
        .filter(|(_, patterns)| patterns.iter().any(|it| it.pattern.matches(tool)))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Returns a problem that does not stop the broker but that the user should know.
pub(crate) fn problems(policies: &Policies) -> Option<Problem> {
    let is_empty = policies.rules().is_empty() && policies.needs_permit();
    is_empty.then(|| {
        Problem::new(
            "policy-empty",
            "the policy folders contain no rule",
            "calls that no rule permits are denied",
            "write a `permit` rule into a file whose name ends in `.cedar`",
        )
    })
}
