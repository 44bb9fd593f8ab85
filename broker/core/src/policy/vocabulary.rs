//! The names that rules can use: the tools of a run with their groups and arguments, as a Cedar
//! schema. Everything comes from the configuration and from the pinned descriptions.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{EntityId, EntityTypeName, EntityUid, Schema};
use codegen::shape::ToolShape;
use serde_json::{Map, Value as Json, json};

use super::fact::{FACTS, UNMODELLED};
use super::mentions::{APPROVAL, ARGS};
use super::model::Record;
use super::values::listed;
use crate::catalog::Effects;
use crate::id::ToolId;

/// Group of the tools that the configuration calls read-only.
pub const READ_ONLY: &str = "read-only";
/// Group of the tools that the configuration calls destructive.
pub const DESTRUCTIVE: &str = "destructive";
pub(crate) const SERVER: &str = "server:";
const GROUP: &str = "group:";
/// Prefixes of groups and tags from tool files.
const FILE_WORDS: [&str; 2] = ["file-group:", "tag:"];

pub const ACTION: &str = "Action";
pub const PRINCIPAL: &str = "Run";
pub const RESOURCE: &str = "Server";

/// The names that the rules of a run can use.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    pub tools: BTreeMap<String, ToolWords>,
    pub groups: BTreeSet<String>,
    /// Servers of this run whose tools are not known yet.
    pub unseen: BTreeSet<String>,
    /// What the configuration names; `None` if no configuration is known.
    pub configured: Option<ConfiguredWords>,
}

/// The names in a configuration that facts can contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfiguredWords {
    /// Names of the roots.
    pub roots: BTreeSet<String>,
    /// All labels of tools and of the input, such as `private:mail`.
    pub labels: BTreeSet<String>,
}

/// One tool: its groups, and its arguments as far as Cedar can express them.
#[derive(Debug, Clone)]
pub struct ToolWords {
    pub groups: BTreeSet<String>,
    pub args: Record,
    /// Possible texts of arguments, if the input schema lists them.
    pub values: BTreeMap<String, BTreeSet<String>>,
}

impl Vocabulary {
    #[must_use]
    pub fn new() -> Self {
        Self {
            tools: BTreeMap::new(),
            groups: [READ_ONLY, DESTRUCTIVE].map(str::to_owned).into(),
            unseen: BTreeSet::new(),
            configured: None,
        }
    }

    /// Adds a tool; `groups` are the groups that the configuration puts it in.
    pub fn add(
        &mut self,
        tool: &ToolId,
        effects: Effects,
        groups: &BTreeSet<String>,
        shape: &ToolShape,
    ) {
        let mut all: BTreeSet<String> = groups.iter().map(|it| format!("{GROUP}{it}")).collect();
        all.insert(format!("{SERVER}{}", tool.server.0));
        if effects.is_known_read_only() {
            all.insert(READ_ONLY.to_owned());
        }
        if effects.destructive == Some(true) {
            all.insert(DESTRUCTIVE.to_owned());
        }
        self.groups.extend(all.iter().cloned());
        let words = ToolWords {
            groups: all,
            args: Record::from_shape(shape),
            values: listed(shape),
        };
        self.tools.insert(tool.to_string(), words);
    }

    /// Adds the groups and tags that a tool file gives to a tool. Rules may use them to forbid,
    /// never to permit.
    pub fn add_file_words(&mut self, tool: &ToolId, groups: &[String], tags: &[String]) {
        let Some(words) = self.tools.get_mut(&tool.to_string()) else {
            return;
        };
        for (prefix, names) in FILE_WORDS.into_iter().zip([groups, tags]) {
            let all = names.iter().map(|name| format!("{prefix}{name}"));
            words.groups.extend(all);
        }
        self.groups.extend(words.groups.iter().cloned());
    }

    /// Adds a group that rules may name although no tool is in it.
    pub fn add_group(&mut self, name: &str) {
        self.groups.insert(format!("{GROUP}{name}"));
    }

    /// Adds a server whose tools are not known yet. Rules about them are checked once the tools are
    /// known; until then these rules apply to nothing.
    pub fn add_unseen(&mut self, server: &str) {
        self.unseen.insert(server.to_owned());
    }

    /// Returns the groups and tags that tool files have added.
    pub(crate) fn file_words(&self) -> impl Iterator<Item = &str> {
        self.groups
            .iter()
            .map(String::as_str)
            .filter(|it| is_file_word(it))
    }

    pub(crate) fn servers(&self) -> impl Iterator<Item = &str> {
        let seen = self.groups.iter().filter_map(|it| it.strip_prefix(SERVER));
        seen.chain(self.unseen.iter().map(String::as_str))
    }

    /// Whether a tool or group with this name may turn out to have members that are not known yet.
    pub(crate) fn may_hold_unseen(&self, name: &str) -> bool {
        let is_seen = self.tools.contains_key(name)
            || (name.starts_with(SERVER) && self.groups.contains(name));
        !self.unseen.is_empty() && !is_seen
    }

    /// Builds the Cedar schema. `strangers` are actions that rules name and that belong to servers
    /// outside this run. They exist in the schema and apply to nothing.
    pub fn schema(&self, strangers: &BTreeSet<String>) -> Result<Schema, String> {
        let group = |name: &String| (name.clone(), json!({}));
        let mut actions: Map<_, _> = self.groups.iter().chain(strangers).map(group).collect();
        for (name, words) in &self.tools {
            actions.insert(name.clone(), action(words));
        }
        let entities = json!({PRINCIPAL: {}, RESOURCE: {}});
        let schema = json!({"": {"entityTypes": entities, "actions": actions}});
        Schema::from_json_value(schema).map_err(|error| error.to_string())
    }
}

fn action(words: &ToolWords) -> Json {
    let member = |group: &String| json!({ "id": group });
    let mut context: Map<String, Json> = FACTS
        .iter()
        .map(|fact| (fact.name.to_owned(), fact.schema()))
        .collect();
    let texts = json!({"type": "Set", "element": {"type": "String"}});
    context.insert(UNMODELLED.to_owned(), texts);
    context.insert(APPROVAL.to_owned(), json!({"type": "Long"}));
    context.insert(ARGS.to_owned(), words.args.schema());
    json!({
        "memberOf": words.groups.iter().map(member).collect::<Vec<_>>(),
        "appliesTo": {
            "principalTypes": [PRINCIPAL],
            "resourceTypes": [RESOURCE],
            "context": {"type": "Record", "attributes": context},
        },
    })
}

/// Returns the names of the `context` members that rules can read.
pub(crate) fn context_names() -> impl Iterator<Item = &'static str> {
    let own = [ARGS, APPROVAL, UNMODELLED];
    FACTS.iter().map(|fact| fact.name).chain(own)
}

pub fn action_uid(name: &str) -> Option<EntityUid> {
    uid(ACTION, name)
}

pub(crate) fn principal_uid() -> Option<EntityUid> {
    uid(PRINCIPAL, "run")
}

pub(crate) fn resource_uid() -> Option<EntityUid> {
    uid(RESOURCE, "server")
}

fn uid(kind: &str, name: &str) -> Option<EntityUid> {
    let kind: EntityTypeName = kind.parse().ok()?;
    Some(EntityUid::from_type_name_and_id(kind, EntityId::new(name)))
}

/// Whether the action name has a prefix that only tool files use.
pub(crate) fn is_file_word(name: &str) -> bool {
    FILE_WORDS.iter().any(|prefix| name.starts_with(prefix))
}
