//! Searches tools by words, best first, in the requested detail.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use airlock_core::search;
use codegen::declare::Level;
use codegen::description::Description;
use serde_json::{Map, Value, json};
use tokio::task::spawn_blocking;

use super::args::{names, only, sanitize, text_of};
use super::filter::{Filter, category_of};
use super::{ListedTool, ToolIndex};
use crate::broker::{ServerState, ServerStatus, ToolSnapshot};

pub(crate) const LIMIT_DEFAULT: usize = 10;
pub(crate) const LIMIT_MAX: usize = 50;
const QUERY_BYTES_MAX: usize = 2_000;
/// Maximum length of what a tool's text says about its deprecation, in characters.
const DEPRECATION_CHARS_MAX: usize = 200;

struct SearchRequest<'a> {
    query: &'a str,
    is_regex: bool,
    servers: Vec<String>,
    filter: Filter,
    level: Level,
    limit: usize,
}

/// The best tools that match.
pub(crate) struct SearchResult<'a> {
    tool_index: &'a ToolIndex,
    pub(crate) best: Vec<&'a ListedTool>,
    /// The number of all tools that match.
    pub(crate) total: usize,
    pub(crate) level: Level,
}

/// Answers `search_tools`. Tools of the `hidden` servers are not found.
pub(crate) async fn search<'a>(
    tool_index: &'a ToolIndex,
    args: &Map<String, Value>,
    hidden: &BTreeSet<String>,
) -> Result<SearchResult<'a>, String> {
    let wanted = wanted(args)?;
    check(tool_index, &wanted)?;
    let places = if wanted.is_regex {
        // The search computes for a while, so it runs on a blocking thread.
        let (tools, pattern) = (Arc::clone(&tool_index.tools), wanted.query.to_owned());
        let matching = spawn_blocking(move || matching(&tools, &pattern));
        matching.await.map_err(|_| "the search failed")??
    } else {
        places(tool_index, &wanted)?
    };
    Ok(found(tool_index, &wanted, places, hidden))
}

/// Answers `airlock.search` on the current thread.
pub(crate) fn search_now<'a>(
    tool_index: &'a ToolIndex,
    args: &Map<String, Value>,
    hidden: &BTreeSet<String>,
) -> Result<SearchResult<'a>, String> {
    let wanted = wanted(args)?;
    check(tool_index, &wanted)?;
    let places = places(tool_index, &wanted)?;
    Ok(found(tool_index, &wanted, places, hidden))
}

fn wanted(args: &Map<String, Value>) -> Result<SearchRequest<'_>, String> {
    only(
        args,
        &[
            "query", "mode", "servers", "groups", "tags", "category", "detail", "limit", "session",
        ],
    )?;
    let query = text_of(args, "query")?.unwrap_or_default().trim();
    if query.len() > QUERY_BYTES_MAX {
        return Err(format!("`query` is longer than {QUERY_BYTES_MAX} bytes"));
    }
    let is_regex = match text_of(args, "mode")? {
        None | Some("words") => false,
        Some("regex") => true,
        Some(_) => return Err("`mode` is neither `words` nor `regex`".into()),
    };
    let level = match text_of(args, "detail")? {
        Some("names") => Level::Names,
        None | Some("lines") => Level::Lines,
        Some("signatures") => Level::Signatures,
        Some("full") => Level::Full,
        Some(_) => {
            return Err(
                "invalid `detail`; expected `names`, `lines`, `signatures` or `full`".into(),
            );
        }
    };
    let limit = match args.get("limit") {
        None | Some(Value::Null) => LIMIT_DEFAULT,
        Some(limit) => limit
            .as_u64()
            .and_then(|limit| usize::try_from(limit).ok())
            .filter(|limit| (1..=LIMIT_MAX).contains(limit))
            .ok_or_else(|| format!("`limit` is not a number from 1 to {LIMIT_MAX}"))?,
    };
    Ok(SearchRequest {
        query,
        is_regex,
        servers: names(args, "servers")?,
        filter: Filter {
            groups: names(args, "groups")?,
            tags: names(args, "tags")?,
            category: text_of(args, "category")?.map(str::to_owned),
        },
        level,
        limit,
    })
}

/// Checks that the servers, groups, tags and category of the request exist.
fn check(tool_index: &ToolIndex, wanted: &SearchRequest<'_>) -> Result<(), String> {
    let known = |name: &String| {
        let mut tools = tool_index.tools.iter();
        let mut servers = tool_index.known.servers.iter();
        tools.any(|shown| *shown.tool.id.server.0 == **name)
            || servers.any(|server| server.name == *name)
    };
    if let Some(category) = &wanted.filter.category {
        let categories = categories(tool_index);
        if !categories.contains(category) {
            let unknown = sanitize(category);
            return Err(no_category(&unknown, &categories));
        }
    }
    if let Some(unknown) = wanted.servers.iter().find(|name| !known(name)) {
        let servers = tool_index.servers();
        let unknown = sanitize(unknown);
        let names = tool_index.known.servers.iter().map(|it| it.name.as_str());
        let meant = codegen::closest::closest(&unknown, names);
        let hint = meant.map(|it| format!("did you mean `{it}`? "));
        return Err(format!(
            "there is no server `{unknown}`; {}there are {servers}",
            hint.unwrap_or_default()
        ));
    }
    Ok(())
}

fn places(tool_index: &ToolIndex, wanted: &SearchRequest<'_>) -> Result<Vec<usize>, String> {
    match (wanted.query, wanted.is_regex) {
        ("", _) => Ok((0..tool_index.tools.len()).collect()),
        (pattern, true) => matching(&tool_index.tools, pattern),
        (query, false) => Ok(tool_index.ranked(query)),
    }
}

/// Returns the tools that match a regular expression. The search cannot be cancelled, so it stops
/// by itself after a time limit.
fn matching(tools: &[ListedTool], pattern: &str) -> Result<Vec<usize>, String> {
    const WALL: Duration = Duration::from_millis(if cfg!(test) { 10_000 } else { 100 });
    let begun = Instant::now();
    let texts = tools.iter().map(|shown| {
        let document = shown.without_parameters();
        (shown.name.clone(), document.text)
    });
    let found = search::matching(pattern, texts, || begun.elapsed() < WALL);
    found.map_err(|bad| bad.to_string())
}

fn found<'a>(
    tool_index: &'a ToolIndex,
    wanted: &SearchRequest<'_>,
    places: Vec<usize>,
    hidden: &BTreeSet<String>,
) -> SearchResult<'a> {
    let is_hidden = |shown: &&ListedTool| hidden.contains(&*shown.tool.id.server.0);
    let chosen = |shown: &&ListedTool| {
        wanted.servers.is_empty()
            || wanted
                .servers
                .iter()
                .any(|it| **it == *shown.tool.id.server.0)
    };
    let shown = places
        .into_iter()
        .filter_map(|place| tool_index.tools.get(place));
    let now = tool_index.broker.known();
    let fits =
        |shown: &&ListedTool| wanted.filter == Filter::default() || wanted.filter.fits(&now, shown);
    let shown = shown.filter(|it| !is_hidden(it));
    let mut best: Vec<&ListedTool> = shown.filter(chosen).filter(fits).collect();
    let total = best.len();
    best.truncate(wanted.limit);
    SearchResult {
        tool_index,
        best,
        total,
        level: wanted.level,
    }
}

fn categories(tool_index: &ToolIndex) -> BTreeSet<String> {
    let known = tool_index.broker.known();
    let of = |shown: &ListedTool| category_of(&known, shown);
    tool_index.tools.iter().filter_map(of).collect()
}

fn no_category(unknown: &str, categories: &BTreeSet<String>) -> String {
    let there: Vec<&str> = categories.iter().map(String::as_str).collect();
    if there.is_empty() {
        "no tool has a category; remove `category`".to_owned()
    } else {
        format!(
            "there is no category `{unknown}`; there are {}",
            there.join(", ")
        )
    }
}

impl SearchResult<'_> {
    /// Returns the result as structured content.
    pub(crate) fn structured(&self) -> Value {
        let known = self.tool_index.broker.known();
        let entry = |shown: &&ListedTool| {
            let mut entry = Map::new();
            entry.insert("name".into(), shown.name.as_str().into());
            entry.insert("server".into(), (*shown.tool.id.server.0).into());
            if self.level != Level::Names {
                entry.insert("description".into(), shown.summary().into());
                put_metadata(&known, shown, &mut entry);
            }
            Value::Object(entry)
        };
        let tools: Vec<_> = self.best.iter().map(entry).collect();
        let absent = absent_servers(self.tool_index);
        match absent.is_empty() {
            true => json!({"tools": tools, "total": self.total}),
            false => json!({"tools": tools, "total": self.total, "absent_servers": absent}),
        }
    }
}

/// Returns the servers whose tools are not searched, or cannot be called now.
fn absent_servers(tool_index: &ToolIndex) -> Vec<Value> {
    let absent =
        |it: &&ServerStatus| it.tools.is_none() || matches!(it.state, ServerState::Unavailable(_));
    let servers = tool_index.known.servers.iter().filter(absent);
    let entry = |it: &ServerStatus| json!({"name": it.name, "state": it.state.word()});
    servers.map(entry).collect()
}

/// Returns what a server says about its deprecated tool: in its metadata, or in the tool's text as
/// `DEPRECATED: …`, which a summary leaves out.
pub(crate) fn deprecation(description: &Description) -> Option<String> {
    const MARK: &str = "DEPRECATED";
    if let Some(why) = &description.claims.deprecated {
        return Some(why.clone());
    }
    let text = description.text.as_deref()?;
    let (_, why) = text.split_once(MARK)?;
    let why = why.split_inclusive(['.', '\n']).next().unwrap_or_default();
    let why = why.trim_start_matches([':', ']', ')', ' ']).trim();
    Some(why.chars().take(DEPRECATION_CHARS_MAX).collect())
}

/// Adds the fields that help to choose between similar tools. `get_tool_details` returns all other
/// fields.
fn put_metadata(known: &ToolSnapshot, shown: &ListedTool, entry: &mut Map<String, Value>) {
    let Some(description) = known.description(&shown.tool.id) else {
        return;
    };
    if let Some(why) = deprecation(description) {
        entry.insert("deprecated".into(), codegen::text::neutralise(&why).into());
    }
    let Some(file) = &description.metadata else {
        return;
    };
    for (key, said) in [("category", &file.category), ("version", &file.version)] {
        if let Some(said) = said {
            entry.insert(key.into(), codegen::text::neutralise(said).into());
        }
    }
    let replacement = file.deprecation.as_ref();
    if let Some(replacement) = replacement.and_then(|it| it.replacement.as_ref()) {
        entry.insert("replacement".into(), replacement.to_string().into());
    }
}
