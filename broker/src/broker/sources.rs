//! Builds the snapshot of all tools, and the rules for them, from servers, tool files and the
//! configuration.

use std::sync::Arc;

use airlock_core::catalog::Catalog;
use airlock_core::decide::DecisionContext;
use airlock_core::flow::{LabelConfig, LabelMisfit, UnmatchedLabelRule};
use airlock_core::id::ToolId;
use airlock_core::problem::Problem;
use airlock_core::rules::{PatternRule, Rules};
use airlock_core::session::DisclosedTools;
use codegen::check::Absent;
use codegen::description::Description;
use codegen::names;
use codegen::text::neutralise;

use super::server_registry::ServerRegistry;
use super::server_tools::ServerTools;
use super::status::{ServerState, ServerStatus};
use super::tool_checks::CheckRegistry;
use super::tool_snapshot::{ByName, ToolSnapshot};
use super::tools::{ToolSet, idle};
use super::{BuildError, lock_check, policies};
use crate::config::{PolicyConfig, UnmatchedPattern};
use crate::tool_files::LoadedToolFiles;

/// The inputs that do not change during the life of a broker.
pub(super) struct ToolSources {
    /// The in-process tools.
    pub(super) own: Vec<ServerTools>,
    pub(super) label_config: Arc<LabelConfig>,
    pub(super) policies: PolicyConfig,
    pub(super) rules: Vec<PatternRule>,
    pub(super) approver_is_there: bool,
}

/// The rules, and the problems found in them. They depend on the set of tools, but not on tool
/// files.
#[derive(Clone)]
pub(super) struct LoadedRules {
    rules: Arc<Rules>,
    problems: Vec<Problem>,
}

impl ToolSources {
    /// Builds the tools and the rules.
    pub(super) fn assemble(
        &self,
        server_registry: &ServerRegistry,
        files: &LoadedToolFiles,
        checks: &mut CheckRegistry,
    ) -> Result<(ToolSnapshot, LoadedRules), BuildError> {
        let tools = self.tools(server_registry, files, checks);
        let ruling = self.ruling(server_registry, &tools)?;
        Ok((known(tools, server_registry, &ruling), ruling))
    }

    /// Builds the tools, and keeps the existing rules.
    pub(super) fn described(
        &self,
        server_registry: &ServerRegistry,
        files: &LoadedToolFiles,
        checks: &mut CheckRegistry,
        ruling: &LoadedRules,
    ) -> ToolSnapshot {
        known(
            self.tools(server_registry, files, checks),
            server_registry,
            ruling,
        )
    }

    pub(super) fn offered<'a>(
        &'a self,
        server_registry: &'a ServerRegistry,
    ) -> Vec<&'a ServerTools> {
        server_registry.offered().chain(&self.own).collect()
    }

    fn tools(
        &self,
        server_registry: &ServerRegistry,
        files: &LoadedToolFiles,
        checks: &mut CheckRegistry,
    ) -> ToolSet {
        ToolSet::build(
            &self.offered(server_registry),
            files,
            &self.label_config,
            checks,
        )
    }

    /// Returns the problems of servers and tools that are refused because of the lock file.
    pub(super) fn locked(&self, server_registry: &ServerRegistry) -> Vec<Problem> {
        let offered = self.offered(server_registry);
        let lock = server_registry.lock();
        lock.map_or_else(Vec::new, |lock| lock_check::problems(lock, &offered))
    }

    fn ruling(
        &self,
        server_registry: &ServerRegistry,
        tools: &ToolSet,
    ) -> Result<LoadedRules, BuildError> {
        let mut problems = self.locked(server_registry);
        // A rule that matches no known tool may match a tool of a server that is not connected yet.
        let is_complete = !server_registry.is_incomplete();
        let unfitting = labels_unfitting(&self.label_config, tools, is_complete)?;
        let policies =
            policies::load(&self.policies, tools, server_registry.unseen())?.map(Arc::new);
        if is_complete {
            problems.extend(unfitting);
            problems.extend(self.unmatched_patterns(server_registry, tools));
        }
        problems.extend(policies.iter().flat_map(|it| policies::problems(it)));
        let mut rules = Rules::new(self.rules.clone(), self.approver_is_there);
        if let Some(policies) = policies {
            rules = rules.with_policies(policies);
        }
        let ids: Vec<&ToolId> = tools.catalog.tools().map(|tool| &tool.id).collect();
        let all = is_complete.then_some(ids.as_slice());
        problems.extend(rules.idle(all).into_iter().map(idle));
        Ok(LoadedRules {
            rules: Arc::new(rules),
            problems,
        })
    }
}

impl ToolSources {
    /// Returns the problems of patterns in groups and in servers' tables that match no tool.
    fn unmatched_patterns(
        &self,
        server_registry: &ServerRegistry,
        tools: &ToolSet,
    ) -> Vec<Problem> {
        let ids: Vec<&ToolId> = tools.catalog.tools().map(|tool| &tool.id).collect();
        let mut unmatched = self.policies.unmatched(&ids);
        for server in self.offered(server_registry) {
            let own = ids.iter().filter(|it| *it.server.0 == *server.server);
            let own: Vec<&str> = own.map(|it| &*it.tool.0).collect();
            unmatched.extend(server.trust.unmatched(&server.server, &own));
        }
        let problem = |it: UnmatchedPattern| {
            let what = format!("{} ({})", it.what(), it.origin);
            Problem::new("pattern-unmatched", what, UnmatchedPattern::WHY, it.next())
        };
        unmatched.into_iter().map(problem).collect()
    }
}

fn known(tools: ToolSet, server_registry: &ServerRegistry, ruling: &LoadedRules) -> ToolSnapshot {
    let mut other_problems = ruling.problems.clone();
    other_problems.extend(tools.problems);
    let mut by_name = ByName::new();
    for (place, it) in tools.descriptions.iter().enumerate() {
        let of_server = match by_name.get_mut(&it.server) {
            Some(of_server) => of_server,
            None => by_name.entry(it.server.clone()).or_default(),
        };
        of_server.insert(it.name.clone(), place);
    }
    ToolSnapshot {
        decision_context: DecisionContext {
            catalog: Arc::new(denied_marked(&tools.catalog, &ruling.rules)),
            rules: Arc::clone(&ruling.rules),
            disclosed: DisclosedTools::All,
            no_extractor: None,
        },
        descriptions: Arc::new(tools.descriptions),
        texts: Arc::new(tools.texts),
        names: Arc::default(),
        stubs: Arc::new(tools.stubs),
        problems: problems(server_registry, &other_problems),
        other_problems,
        absent: absent(server_registry),
        servers: server_registry.statuses(),
        groups_and_tags: Arc::new(server_registry.groups_and_tags()),
        by_name: Arc::new(by_name),
    }
}

/// Marks the tools whose calls are always denied by a rule.
fn denied_marked(catalog: &Catalog, rules: &Rules) -> Catalog {
    catalog.with_denied(|tool| rules.always_denied(tool.owner, &tool.id).is_some())
}

/// Returns the problems of servers, followed by all others.
pub(super) fn problems(
    server_registry: &ServerRegistry,
    other_problems: &[Problem],
) -> Vec<Problem> {
    server_registry
        .problems()
        .chain(other_problems)
        .cloned()
        .collect()
}

/// Returns the servers whose tools are unknown, with the reason. A script that names such a server
/// gets the reason as an error.
pub(super) fn absent(server_registry: &ServerRegistry) -> Vec<Absent> {
    let absent = |it: ServerStatus| {
        let (why, next) = match (it.tools, &it.state) {
            (None, ServerState::Unavailable(why)) => (
                format!("cannot be used now: {}", neutralise(why)),
                "airlock tries again. Run the script again later, or without this server.",
            ),
            (None, ServerState::Starting) => (
                "is still starting".to_owned(),
                "Run the script again in a moment.",
            ),
            _ => return None,
        };
        Some(Absent {
            global: names::globals(&[it.name.as_str()]).concat(),
            why,
            next: next.to_owned(),
        })
    };
    server_registry
        .statuses()
        .into_iter()
        .filter_map(absent)
        .collect()
}

/// Returns the label rules that match nothing. Such a rule is an error if its server is connected.
/// Otherwise it is a problem, because it may be meant for another run.
fn labels_unfitting(
    label_config: &LabelConfig,
    tools: &ToolSet,
    is_complete: bool,
) -> Result<Vec<Problem>, BuildError> {
    let takes = |id: &ToolId| {
        let description = tools
            .descriptions
            .iter()
            .find(|it| it.server == *id.server.0 && it.name == *id.tool.0)?;
        let properties = description.input_schema.get("properties")?.as_object()?;
        Some(properties.keys().cloned().collect())
    };
    let servers = tools.catalog.servers();
    let is_there = |server: &str| servers.iter().any(|it| *it.name.0 == *server);
    let mut problems = Vec::new();
    for unfitting in label_config.unfitting(&tools.catalog, takes) {
        let is_certain = unfitting.is_certain && (is_complete || is_there(&unfitting.server));
        let problem = labels_problem(unfitting);
        if is_certain {
            return Err(BuildError::Labels(problem));
        }
        problems.push(problem);
    }
    let misfits = misfits(label_config, &tools.descriptions).into_iter();
    problems.extend(misfits.map(|misfit| {
        let what = format!("{misfit} ({})", misfit.origin);
        Problem::new("label-unfitting", what, LabelMisfit::WHY, LabelMisfit::NEXT)
    }));
    Ok(problems)
}

/// Returns the labels that name arguments which a tool does not have.
pub(crate) fn misfits(label_config: &LabelConfig, tools: &[Description]) -> Vec<LabelMisfit> {
    let id = |it: &Description| ToolId::parse(&format!("{}.{}", it.server, it.name)).ok();
    let tools: Vec<_> = tools
        .iter()
        .filter_map(|it| Some((id(it)?, &*it.input_schema)))
        .collect();
    label_config.misfits(tools.iter().map(|(tool, schema)| (tool, *schema)))
}

fn labels_problem(unfitting: UnmatchedLabelRule) -> Problem {
    let next = unfitting.closest.map_or_else(
        || "`airlock types --detail names` lists all tools".to_owned(),
        |meant| format!("did you mean `{meant}`?"),
    );
    let what = format!("the labels in {} match nothing", unfitting.origin);
    Problem::new("config-invalid", what, unfitting.what, next)
}
