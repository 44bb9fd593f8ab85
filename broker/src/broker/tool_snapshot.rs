//! All known tools at one moment: the catalog and rules, descriptions, stubs, and the state of
//! their servers.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use airlock_core::decide::DecisionContext;
use airlock_core::id::ToolId;
use airlock_core::problem::Problem;
use airlock_core::search::Document;
use codegen::check::{Absent, EncodedTools, Surface};
use codegen::description::Description;
use codegen::stub::StubTable;

use super::server_tools::search_text;
use super::status::ServerStatus;
use super::tools::SearchTexts;
use crate::upstream::GroupsAndTags;

/// A snapshot of all known tools. A run keeps the snapshot with which it started.
#[derive(Debug)]
pub(crate) struct ToolSnapshot {
    pub(crate) decision_context: DecisionContext,
    pub(crate) descriptions: Arc<Vec<Description>>,
    /// The search text of each description, if it has been built.
    pub(crate) texts: Arc<Vec<Option<SearchTexts>>>,
    pub(crate) stubs: Arc<StubTable>,
    /// The names in `stubs`, encoded for the checker when the first script is checked.
    pub(super) names: Arc<OnceLock<EncodedTools>>,
    pub(crate) problems: Vec<Problem>,
    /// The problems that do not belong to a single server. They are also in `problems`.
    pub(super) other_problems: Vec<Problem>,
    pub(crate) servers: Vec<ServerStatus>,
    /// What the servers say about their groups and tags, without repeated names.
    pub(crate) groups_and_tags: Arc<GroupsAndTags>,
    /// The servers whose tools are unknown, with the reasons.
    pub(super) absent: Vec<Absent>,
    /// Positions in `descriptions`, by server and by tool.
    pub(super) by_name: Arc<ByName>,
}

pub(super) type ByName = HashMap<String, HashMap<String, usize>>;

impl ToolSnapshot {
    /// Returns the names and types against which scripts are checked.
    pub(crate) fn surface(&self) -> Surface<'_> {
        let names = self.names.get_or_init(|| EncodedTools::new(&self.stubs));
        Surface::new(&self.stubs, &self.descriptions)
            .encoded(names)
            .without(&self.absent)
    }

    /// Returns the search document of a tool.
    pub(crate) fn document(description: &Description) -> Document {
        search_text::document(description)
    }

    /// Returns the search document without the parameters, for which the schema would have to be
    /// parsed.
    pub(crate) fn without_parameters(description: &Description) -> Document {
        search_text::without_parameters(description)
    }

    /// Whether a rule denies every call of the tool.
    pub(crate) fn is_denied(&self, tool: &ToolId) -> bool {
        let found = self.decision_context.catalog.find(tool);
        found.is_some_and(|tool| tool.denied)
    }

    pub(crate) fn description(&self, tool: &ToolId) -> Option<&Description> {
        let tools = self.by_name.get(&*tool.server.0)?;
        self.descriptions.get(*tools.get(&*tool.tool.0)?)
    }
}
