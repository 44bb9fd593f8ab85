//! Groups and tags: what there is to choose tools by, and choosing by them. A
//! server is a group of its own; further groups and all tags come from tool files.
//! An answer depends on the request alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::rpc::{Refusal, shown};
use super::shelf::{Shelf, Shown};
use crate::broker::Known;

/// The tag of tools that the configuration knows to only read.
const READ_ONLY: &str = "read-only";
const NAMES_MAX: usize = 200;
const KEYS: [&str; 2] = ["groups", "tags"];

/// Tools in any of the groups that have all of the tags; no group means every group, and no
/// category every category. A `tools/list` knows no category.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) groups: Vec<String>,
    pub(super) tags: Vec<String>,
    pub(super) category: Option<String>,
}

impl Filter {
    /// The filter of a `tools/list`; none when the request has none, or one that chooses nothing.
    pub(super) fn read(params: &Value) -> Result<Option<Self>, Refusal> {
        let filter = match params.get("filter") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(filter)) => filter,
            Some(_) => return Err(Refusal::invalid("`filter` is not an object")),
        };
        // What is not understood would widen the list without a word.
        if let Some(other) = filter.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let message = format!(
                "`filter` has no `{}`; there are {}",
                shown(other),
                KEYS.join(" and ")
            );
            return Err(Refusal::invalid(message));
        }
        let read = Self {
            groups: strings(filter, "groups")?,
            tags: strings(filter, "tags")?,
            category: None,
        };
        Ok(Some(read).filter(|it| *it != Self::default()))
    }

    pub(super) fn fits(&self, known: &Known, shown: &Shown) -> bool {
        let (groups, tags) = (groups_of(known, shown), tags_of(known, shown));
        (self.groups.is_empty() || self.groups.iter().any(|it| groups.contains(it)))
            && self.tags.iter().all(|it| tags.contains(it))
            && (self.category.is_none() || self.category == category_of(known, shown))
    }
}

fn strings(filter: &Map<String, Value>, key: &str) -> Result<Vec<String>, Refusal> {
    let wrong = || Refusal::invalid(format!("`filter.{key}` is not a list of strings"));
    let items = match filter.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) if items.len() <= NAMES_MAX => items,
        Some(_) => return Err(wrong()),
    };
    let text = |item: &Value| item.as_str().map(str::to_owned);
    items
        .iter()
        .map(text)
        .collect::<Option<_>>()
        .ok_or_else(wrong)
}

pub(super) fn groups_of(known: &Known, shown: &Shown) -> Vec<String> {
    let file = known
        .description(&shown.tool.id)
        .and_then(|it| it.file.as_ref());
    let mut groups = vec![shown.tool.id.server.0.to_string()];
    for group in file.iter().flat_map(|file| &file.groups) {
        if !groups.contains(group) {
            groups.push(group.clone());
        }
    }
    groups
}

/// What a tool file says.
pub(super) fn category_of(known: &Known, shown: &Shown) -> Option<String> {
    let file = known.description(&shown.tool.id)?.file.as_ref()?;
    let category = file.category.as_ref()?;
    Some(codegen::text::neutralise(category))
}

pub(super) fn tags_of(known: &Known, shown: &Shown) -> Vec<String> {
    let file = known
        .description(&shown.tool.id)
        .and_then(|it| it.file.as_ref());
    let mut tags: Vec<String> = file.iter().flat_map(|it| it.tags.clone()).collect();
    let read_only = READ_ONLY.to_owned();
    if shown.tool.effects.is_known_read_only() && !tags.contains(&read_only) {
        tags.push(read_only);
    }
    tags
}

/// `groups/list`.
pub(super) fn groups(shelf: &Shelf) -> Value {
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    let mut servers = BTreeSet::new();
    let known = shelf.broker.known();
    for shown in shelf.tools.iter() {
        servers.insert(&*shown.tool.id.server.0);
        for group in groups_of(&known, shown) {
            *groups.entry(group).or_default() += 1;
        }
    }
    let entry = |(name, count): (&String, &usize)| {
        let what = if servers.contains(name.as_str()) {
            format!("All {count} tools of the server `{name}`")
        } else {
            format!("{count} tools that are used together")
        };
        json!({"name": name, "title": name, "description": what})
    };
    json!({"groups": groups.iter().map(entry).collect::<Vec<_>>()})
}

/// `tags/list`.
pub(super) fn tags(shelf: &Shelf) -> Value {
    let mut tags: BTreeMap<String, usize> = BTreeMap::new();
    let known = shelf.broker.known();
    for shown in shelf.tools.iter() {
        for tag in tags_of(&known, shown) {
            *tags.entry(tag).or_default() += 1;
        }
    }
    let entry = |(name, count): (&String, &usize)| {
        let what = match name.as_str() {
            READ_ONLY => format!("{count} tools that only read, as the configuration says"),
            _ => format!("{count} tools across all groups"),
        };
        json!({"name": name, "description": what})
    };
    json!({"tags": tags.iter().map(entry).collect::<Vec<_>>()})
}
