//! From what servers, files and our configuration say to everything that is
//! known of all tools, and the rules that hold for them.

use std::sync::Arc;

use airlock_core::decide::Standing;
use airlock_core::flow::{Sayings, Unfitting};
use airlock_core::id::ToolId;
use airlock_core::problem::Problem;
use airlock_core::rules::{Rule, Rules};
use airlock_core::session::Disclosed;
use codegen::check::Absent;
use codegen::names;
use codegen::text::neutralise;

use super::checks::AllChecks;
use super::offered::Offered;
use super::roster::Roster;
use super::shelf::{ByName, Known};
use super::status::{ServerState, ServerStatus};
use super::tools::{Tools, unmatched};
use super::{BuildError, locked, policies};
use crate::config::PolicyConfig;
use crate::tool_files::Loaded;

/// What does not change while a broker lives.
pub(super) struct Sources {
    /// The host's own tools.
    pub(super) own: Vec<Offered>,
    pub(super) sayings: Arc<Sayings>,
    pub(super) policies: PolicyConfig,
    pub(super) rules: Vec<Rule>,
    pub(super) approver_is_there: bool,
}

/// What decides, and what is to be said of it; it changes with the tools that there are, and
/// not with what tool files say of them.
#[derive(Clone)]
pub(super) struct Ruling {
    rules: Arc<Rules>,
    problems: Vec<Problem>,
}

impl Sources {
    /// Everything anew.
    pub(super) fn assemble(
        &self,
        roster: &Roster,
        files: &Loaded,
        checks: &mut AllChecks,
    ) -> Result<(Known, Ruling), BuildError> {
        let tools = self.tools(roster, files, checks);
        let ruling = self.ruling(roster, &tools)?;
        Ok((known(tools, roster, &ruling), ruling))
    }

    /// The same under the rules that there are.
    pub(super) fn described(
        &self,
        roster: &Roster,
        files: &Loaded,
        checks: &mut AllChecks,
        ruling: &Ruling,
    ) -> Known {
        known(self.tools(roster, files, checks), roster, ruling)
    }

    pub(super) fn offered<'a>(&'a self, roster: &'a Roster) -> Vec<&'a Offered> {
        roster.offered().chain(&self.own).collect()
    }

    fn tools(&self, roster: &Roster, files: &Loaded, checks: &mut AllChecks) -> Tools {
        Tools::of(&self.offered(roster), files, &self.sayings, checks)
    }

    /// What is refused because the lock file has something else.
    pub(super) fn locked(&self, roster: &Roster) -> Vec<Problem> {
        let offered = self.offered(roster);
        let lock = roster.lock();
        lock.map_or_else(Vec::new, |lock| locked::problems(lock, &offered))
    }

    fn ruling(&self, roster: &Roster, tools: &Tools) -> Result<Ruling, BuildError> {
        let mut problems = self.locked(roster);
        // What fits nothing may fit what is not there yet.
        let is_complete = !roster.is_incomplete();
        let unfitting = labels_unfitting(&self.sayings, tools, is_complete)?;
        let policies = policies::load(&self.policies, tools, roster.unseen())?.map(Arc::new);
        if is_complete {
            problems.extend(unfitting);
        }
        problems.extend(policies.iter().flat_map(|it| policies::problems(it)));
        let mut rules = Rules::new(self.rules.clone(), self.approver_is_there);
        if let Some(policies) = policies {
            rules = rules.with_policies(policies);
        }
        if is_complete {
            let idle = rules.unmatched(&tools.catalog).into_iter();
            problems.extend(idle.map(|(rule, closest)| unmatched(rule, closest)));
        }
        Ok(Ruling {
            rules: Arc::new(rules),
            problems,
        })
    }
}

fn known(tools: Tools, roster: &Roster, ruling: &Ruling) -> Known {
    let mut besides = ruling.problems.clone();
    besides.extend(tools.problems);
    let mut by_name = ByName::new();
    for (place, it) in tools.descriptions.iter().enumerate() {
        let of_server = match by_name.get_mut(&it.server) {
            Some(of_server) => of_server,
            None => by_name.entry(it.server.clone()).or_default(),
        };
        of_server.insert(it.name.clone(), place);
    }
    Known {
        standing: Standing {
            catalog: Arc::new(tools.catalog),
            rules: Arc::clone(&ruling.rules),
            disclosed: Disclosed::All,
        },
        descriptions: Arc::new(tools.descriptions),
        texts: Arc::new(tools.texts),
        names: Arc::default(),
        stubs: Arc::new(tools.stubs),
        problems: problems(roster, &besides),
        besides,
        absent: absent(roster),
        servers: roster.statuses(),
        by_name: Arc::new(by_name),
    }
}

/// What is wrong with servers, and what is wrong besides.
pub(super) fn problems(roster: &Roster, besides: &[Problem]) -> Vec<Problem> {
    roster.problems().chain(besides).cloned().collect()
}

/// Servers of which no tool is known, and why: a script that names one is told so.
pub(super) fn absent(roster: &Roster) -> Vec<Absent> {
    let absent = |it: ServerStatus| {
        let (why, next) = match (it.tools, &it.state) {
            (None, ServerState::Unavailable(why)) => (
                format!("cannot be used now: {}", neutralise(why)),
                "It is tried again. Run the script again later, or do without it.",
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
    roster.statuses().into_iter().filter_map(absent).collect()
}

/// A table of labels that fits nothing is a mistake where its server is there, and may be about
/// another run where it is not.
fn labels_unfitting(
    sayings: &Sayings,
    tools: &Tools,
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
    for unfitting in sayings.unfitting(&tools.catalog, takes) {
        let is_certain = unfitting.is_certain && (is_complete || is_there(&unfitting.server));
        let problem = labels_problem(unfitting);
        if is_certain {
            return Err(BuildError::Labels(problem));
        }
        problems.push(problem);
    }
    Ok(problems)
}

fn labels_problem(unfitting: Unfitting) -> Problem {
    let next = unfitting.closest.map_or_else(
        || "`airlock types --detail names` lists all tools".to_owned(),
        |meant| format!("did you mean `{meant}`?"),
    );
    let what = format!("the labels in {} fit nothing", unfitting.origin);
    Problem::new("config-invalid", what, unfitting.what, next)
}
