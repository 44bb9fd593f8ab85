//! Groups and tags: lists them, and filters tools by them. Each server is a group; further groups
//! and all tags come from tool files and from servers. Their titles and descriptions come from the
//! servers' own lists. A reply depends only on the request.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::args::sanitize;
use super::{ListedTool, ToolIndex};
use crate::broker::ToolSnapshot;

/// The tag of tools that are read-only according to the configuration.
const READ_ONLY: &str = "read-only";
const NAMES_MAX: usize = 200;
const KEYS: [&str; 2] = ["groups", "tags"];

/// A filter that matches tools in any of the groups that have all of the tags. A filter without
/// groups matches every group, and a filter without a category matches every category. `tools/list`
/// has no category.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) groups: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) category: Option<String>,
}

impl Filter {
    /// Reads the filter of a `tools/list`. Returns `None` if there is no filter, or if it restricts
    /// nothing.
    pub(crate) fn read(params: &Value) -> Result<Option<Self>, String> {
        let filter = match params.get("filter") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(filter)) => filter,
            Some(_) => return Err("`filter` is not an object".to_owned()),
        };
        // An unknown key must be an error, because ignoring it would silently widen the list.
        if let Some(other) = filter.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!(
                "unknown key `{}` in `filter`; expected {}",
                sanitize(other),
                KEYS.join(" or ")
            ));
        }
        let read = Self {
            groups: strings(filter, "groups")?,
            tags: strings(filter, "tags")?,
            category: None,
        };
        Ok(Some(read).filter(|it| *it != Self::default()))
    }

    pub(crate) fn fits(&self, known: &ToolSnapshot, shown: &ListedTool) -> bool {
        let (groups, tags) = (groups_of(known, shown), tags_of(known, shown));
        (self.groups.is_empty() || self.groups.iter().any(|it| groups.contains(it)))
            && self.tags.iter().all(|it| tags.contains(it))
            && (self.category.is_none() || self.category == category_of(known, shown))
    }
}

fn strings(filter: &Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`filter.{key}` is not a list of strings");
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

pub(crate) fn groups_of(known: &ToolSnapshot, shown: &ListedTool) -> Vec<String> {
    let file = known
        .description(&shown.tool.id)
        .and_then(|it| it.metadata.as_ref());
    let mut groups = vec![shown.tool.id.server.0.to_string()];
    for group in file.iter().flat_map(|file| &file.groups) {
        if !groups.contains(group) {
            groups.push(group.clone());
        }
    }
    groups
}

/// Returns the category from the tool file, or from the server.
pub(crate) fn category_of(known: &ToolSnapshot, shown: &ListedTool) -> Option<String> {
    let file = known.description(&shown.tool.id)?.metadata.as_ref()?;
    let category = file.category.as_ref()?;
    Some(codegen::text::neutralise(category))
}

pub(crate) fn tags_of(known: &ToolSnapshot, shown: &ListedTool) -> Vec<String> {
    let file = known
        .description(&shown.tool.id)
        .and_then(|it| it.metadata.as_ref());
    let mut tags: Vec<String> = file.iter().flat_map(|it| it.tags.clone()).collect();
    let read_only = READ_ONLY.to_owned();
    if shown.tool.effects.is_known_read_only() && !tags.contains(&read_only) {
        tags.push(read_only);
    }
    tags
}

fn counted(tools: usize) -> String {
    match tools {
        1 => "1 tool".to_owned(),
        _ => format!("{tools} tools"),
    }
}

/// Answers `groups/list`.
pub(crate) fn groups(tool_index: &ToolIndex) -> Value {
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    let mut servers = BTreeSet::new();
    let known = tool_index.broker.known();
    for shown in tool_index.tools.iter() {
        servers.insert(&*shown.tool.id.server.0);
        for group in groups_of(&known, shown) {
            *groups.entry(group).or_default() += 1;
        }
    }
    let entry = |(name, count): (&String, &usize)| {
        let about = known.groups_and_tags.groups.get(name);
        let title = about.and_then(|it| it.title.as_ref()).unwrap_or(name);
        let said = about.and_then(|it| it.description.clone());
        let what = if servers.contains(name.as_str()) {
            format!("{} of the server `{name}`", counted(*count))
        } else {
            said.unwrap_or_else(|| format!("{} in this group", counted(*count)))
        };
        json!({"name": name, "title": title, "description": what})
    };
    json!({"groups": groups.iter().map(entry).collect::<Vec<_>>()})
}

/// Answers `tags/list`.
pub(crate) fn tags(tool_index: &ToolIndex) -> Value {
    let mut tags: BTreeMap<String, usize> = BTreeMap::new();
    let known = tool_index.broker.known();
    for shown in tool_index.tools.iter() {
        for tag in tags_of(&known, shown) {
            *tags.entry(tag).or_default() += 1;
        }
    }
    let entry = |(name, count): (&String, &usize)| {
        let about = known.groups_and_tags.tags.get(name);
        let said = about.and_then(|it| it.description.clone());
        let what = match name.as_str() {
            READ_ONLY => format!(
                "{} that the configuration marks as read-only",
                counted(*count)
            ),
            _ => said.unwrap_or_else(|| format!("{} with this tag", counted(*count))),
        };
        json!({"name": name, "description": what})
    };
    json!({"tags": tags.iter().map(entry).collect::<Vec<_>>()})
}
