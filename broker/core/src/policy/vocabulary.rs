//! What rules can speak of: the tools of a run with their groups and arguments,
//! as a Cedar schema. Everything comes from our configuration and from the
//! pinned descriptions.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{EntityId, EntityTypeName, EntityUid, Schema};
use codegen::shape::ToolShape;
use serde_json::{Map, Value as Json, json};

use super::fact::{FACTS, UNMODELLED};
use super::mentions::{APPROVAL, ARGS};
use super::model::{Lost, Record};
use super::values::listed;
use crate::catalog::Effects;
use crate::id::ToolId;

/// Tools that our configuration says only read.
pub const READ_ONLY: &str = "read-only";
/// Tools that our configuration says destroy something.
pub const DESTRUCTIVE: &str = "destructive";
pub(super) const SERVER: &str = "server:";
const GROUP: &str = "group:";
/// Groups and tags that tool files say.
const FILE_WORDS: [&str; 2] = ["file-group:", "tag:"];

pub(super) const ACTION: &str = "Action";
pub(super) const PRINCIPAL: &str = "Run";
pub(super) const RESOURCE: &str = "Server";

/// The words of the rules of a run.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    pub(super) tools: BTreeMap<String, Words>,
    pub(super) groups: BTreeSet<String>,
    /// Servers of this run whose tools nobody knows yet.
    pub(super) unseen: BTreeSet<String>,
    /// The names of the configured roots; none where they are not known.
    pub(super) roots: BTreeSet<String>,
}

/// One tool: the groups that it is in, and its arguments as far as Cedar can say them.
#[derive(Debug, Clone)]
pub(super) struct Words {
    pub(super) groups: BTreeSet<String>,
    pub(super) args: Record,
    /// The texts that arguments can be, where the input schema lists them.
    pub(super) values: BTreeMap<String, BTreeSet<String>>,
}

impl Vocabulary {
    #[must_use]
    pub fn new() -> Self {
        Self {
            tools: BTreeMap::new(),
            groups: [READ_ONLY, DESTRUCTIVE].map(str::to_owned).into(),
            unseen: BTreeSet::new(),
            roots: BTreeSet::new(),
        }
    }

    /// `groups`: the names of those that our configuration puts the tool in.
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
        let words = Words {
            groups: all,
            args: Record::of(shape),
            values: listed(shape),
        };
        self.tools.insert(tool.to_string(), words);
    }

    /// What tool files say of a tool that was added. Rules may forbid by it and permit nothing.
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

    /// A group that rules may name although no tool is in it.
    pub fn add_group(&mut self, name: &str) {
        self.groups.insert(format!("{GROUP}{name}"));
    }

    /// A server of which nobody knows yet what tools it has. What rules say of it is looked at
    /// when somebody does; until then they are about nothing there.
    pub fn add_unseen(&mut self, server: &str) {
        self.unseen.insert(server.to_owned());
    }

    /// A root that the configuration has.
    pub fn add_root(&mut self, name: &str) {
        self.roots.insert(name.to_owned());
    }

    /// The arguments of which no rule sees anything, as JSON pointers.
    #[must_use]
    pub fn unmodelled(&self, tool: &ToolId, args: &Json) -> Option<BTreeSet<String>> {
        let words = self.tools.get(&tool.to_string())?;
        let mut lost = Lost::default();
        words.args.values(args.as_object()?, |_| true, &mut lost);
        Some(lost.pointers.into_iter().collect())
    }

    /// The groups and tags that tool files say here.
    pub(super) fn file_words(&self) -> impl Iterator<Item = &str> {
        self.groups
            .iter()
            .map(String::as_str)
            .filter(|it| is_file_word(it))
    }

    pub(super) fn servers(&self) -> impl Iterator<Item = &str> {
        let seen = self.groups.iter().filter_map(|it| it.strip_prefix(SERVER));
        seen.chain(self.unseen.iter().map(String::as_str))
    }

    /// Whether a tool or group of this name may have members that nobody knows yet.
    pub(super) fn may_hold_unseen(&self, name: &str) -> bool {
        let is_seen = self.tools.contains_key(name)
            || (name.starts_with(SERVER) && self.groups.contains(name));
        !self.unseen.is_empty() && !is_seen
    }

    /// `strangers`: actions that are named and belong to servers that are not here. They
    /// exist and apply to nothing.
    pub(super) fn schema(&self, strangers: &BTreeSet<String>) -> Result<Schema, String> {
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

fn action(words: &Words) -> Json {
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

/// Members of `context` that rules can read.
pub(super) fn context_names() -> impl Iterator<Item = &'static str> {
    let own = [ARGS, APPROVAL, UNMODELLED];
    FACTS.iter().map(|fact| fact.name).chain(own)
}

pub(super) fn action_uid(name: &str) -> Option<EntityUid> {
    uid(ACTION, name)
}

pub(super) fn principal_uid() -> Option<EntityUid> {
    uid(PRINCIPAL, "run")
}

pub(super) fn resource_uid() -> Option<EntityUid> {
    uid(RESOURCE, "server")
}

fn uid(kind: &str, name: &str) -> Option<EntityUid> {
    let kind: EntityTypeName = kind.parse().ok()?;
    Some(EntityUid::from_type_name_and_id(kind, EntityId::new(name)))
}

/// Whether an action is named as only tool files name some.
pub(super) fn is_file_word(name: &str) -> bool {
    FILE_WORDS.iter().any(|prefix| name.starts_with(prefix))
}
