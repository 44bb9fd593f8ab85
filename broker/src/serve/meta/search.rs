//! `search_tools`: from words to tools, in the detail that is wanted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use airlock_core::search;
use codegen::declare::Level;
use serde_json::{Map, Value, json};
use tokio::task::spawn_blocking;

use super::{Answered, names, only};
use crate::broker::Known;
use crate::serve::awaiting;
use crate::serve::filter::{Filter, category_of};
use crate::serve::rpc::{put, text_of};
use crate::serve::shelf::{Shelf, Shown};

const LIMIT_DEFAULT: usize = 10;
const LIMIT_MAX: usize = 50;
const QUERY_BYTES_MAX: usize = 2_000;

pub(super) fn description() -> Value {
    json!({
        "name": super::SEARCH,
        "title": "Search tools",
        "description": "Finds tools by what they do. Best first, grouped by server. An empty query lists tools.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do, in plain words"},
                "mode": {"type": "string", "enum": ["words", "regex"], "default": "words"},
                "servers": {"type": "array", "items": {"type": "string"}, "description": "Only tools of these servers"},
                "groups": {"type": "array", "items": {"type": "string"}, "description": "In any of these groups"},
                "tags": {"type": "array", "items": {"type": "string"}, "description": "With all of these tags"},
                "category": {"type": "string", "description": "In this category"},
                "detail": {"type": "string", "enum": ["names", "lines", "signatures"], "default": "lines"},
                "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
            },
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
}

struct Wanted<'a> {
    query: &'a str,
    is_regex: bool,
    servers: Vec<String>,
    filter: Filter,
    level: Level,
    limit: usize,
}

pub(super) async fn call(shelf: &Shelf, args: &Map<String, Value>) -> Answered {
    match search(shelf, args).await {
        Ok((wanted, found)) => answer(shelf, &wanted, &found),
        Err(why) => Answered::wrong(why),
    }
}

async fn search<'a>(
    shelf: &'a Shelf,
    args: &'a Map<String, Value>,
) -> Result<(Wanted<'a>, Vec<&'a Shown>), String> {
    let wanted = wanted(args)?;
    check(shelf, &wanted)?;
    let places = if wanted.is_regex {
        // It computes for a while, which is no work for a thread that others wait for.
        let (tools, pattern) = (Arc::clone(&shelf.tools), wanted.query.to_owned());
        let matching = spawn_blocking(move || matching(&tools, &pattern));
        matching.await.map_err(|_| "the search failed")??
    } else {
        places(shelf, &wanted)?
    };
    let found = found(shelf, &wanted, places);
    Ok((wanted, found))
}

/// `airlock.search`: what a program is told of a search.
pub(in crate::serve) fn search_in_script(
    shelf: &Shelf,
    args: &Map<String, Value>,
) -> Result<Value, String> {
    let wanted = wanted(args)?;
    check(shelf, &wanted)?;
    let found = found(shelf, &wanted, places(shelf, &wanted)?);
    let best: Vec<&Shown> = found.iter().take(wanted.limit).copied().collect();
    Ok(structured(shelf, &wanted, &best, found.len()))
}

fn wanted(args: &Map<String, Value>) -> Result<Wanted<'_>, String> {
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
        Some(_) => {
            return Err("invalid `detail`; expected `names`, `lines` or `signatures`".into());
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
    Ok(Wanted {
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

/// Whether there is what it is narrowed to.
fn check(shelf: &Shelf, wanted: &Wanted<'_>) -> Result<(), String> {
    let known = |name: &String| {
        let mut tools = shelf.tools.iter();
        let mut servers = shelf.known.servers.iter();
        tools.any(|shown| *shown.tool.id.server.0 == **name)
            || servers.any(|server| server.name == *name)
    };
    if let Some(category) = &wanted.filter.category {
        let categories = categories(shelf);
        if !categories.contains(category) {
            let unknown = crate::serve::rpc::shown(category);
            return Err(no_category(&unknown, &categories));
        }
    }
    if let Some(unknown) = wanted.servers.iter().find(|name| !known(name)) {
        let servers = shelf.servers();
        let unknown = crate::serve::rpc::shown(unknown);
        return Err(format!(
            "there is no server `{unknown}`; there are {servers}"
        ));
    }
    Ok(())
}

fn places(shelf: &Shelf, wanted: &Wanted<'_>) -> Result<Vec<usize>, String> {
    match (wanted.query, wanted.is_regex) {
        ("", _) => Ok((0..shelf.tools.len()).collect()),
        (pattern, true) => matching(&shelf.tools, pattern),
        (query, false) => Ok(shelf.ranked(query)),
    }
}

/// Nobody can stop it meanwhile, so that it stops by itself.
fn matching(tools: &[Shown], pattern: &str) -> Result<Vec<usize>, String> {
    const WALL: Duration = Duration::from_millis(if cfg!(test) { 10_000 } else { 100 });
    let begun = Instant::now();
    let texts = tools.iter().map(|shown| {
        let document = shown.without_parameters();
        (shown.name.clone(), document.text)
    });
    let found = search::matching(pattern, texts, || begun.elapsed() < WALL);
    found.map_err(|bad| bad.to_string())
}

fn found<'a>(shelf: &'a Shelf, wanted: &Wanted<'_>, places: Vec<usize>) -> Vec<&'a Shown> {
    let chosen = |shown: &&Shown| {
        wanted.servers.is_empty()
            || wanted
                .servers
                .iter()
                .any(|it| **it == *shown.tool.id.server.0)
    };
    let shown = places
        .into_iter()
        .filter_map(|place| shelf.tools.get(place));
    let now = shelf.broker.known();
    let fits =
        |shown: &&Shown| wanted.filter == Filter::default() || wanted.filter.fits(&now, shown);
    shown.filter(chosen).filter(fits).collect()
}

fn categories(shelf: &Shelf) -> BTreeSet<String> {
    let known = shelf.broker.known();
    let of = |shown: &Shown| category_of(&known, shown);
    shelf.tools.iter().filter_map(of).collect()
}

fn no_category(unknown: &str, categories: &BTreeSet<String>) -> String {
    let there: Vec<&str> = categories.iter().map(String::as_str).collect();
    if there.is_empty() {
        "no tool has a category; leave `category` out".to_owned()
    } else {
        format!(
            "there is no category `{unknown}`; there are {}",
            there.join(", ")
        )
    }
}

fn answer(shelf: &Shelf, wanted: &Wanted<'_>, found: &[&Shown]) -> Answered {
    let total = found.len();
    let best: Vec<&Shown> = found.iter().take(wanted.limit).copied().collect();
    if best.is_empty() {
        let absent = awaiting::absent_in_words(shelf);
        let text = format!(
            "{absent}no tool fits; try other words. Servers: {}",
            shelf.servers()
        );
        return Answered::Done {
            text,
            structured: Some(structured(shelf, wanted, &best, total)),
            is_error: false,
        };
    }
    let known = shelf.broker.known();
    let mut text = match wanted.level {
        Level::Signatures => shelf.declarations(&best, Level::Signatures),
        level => grouped(&known, &best, level == Level::Lines),
    };
    if total > best.len() {
        let more = total - best.len();
        text.push_str(&format!("… and {more} more that fit less well\n"));
    }
    text.push_str(&awaiting::absent_in_words(shelf));
    Answered::Done {
        text: text.trim_end().to_owned(),
        structured: Some(structured(shelf, wanted, &best, total)),
        is_error: false,
    }
}

fn structured(shelf: &Shelf, wanted: &Wanted<'_>, best: &[&Shown], total: usize) -> Value {
    let known = shelf.broker.known();
    let entry = |shown: &&Shown| {
        let mut entry = json!({"name": shown.name, "server": &*shown.tool.id.server.0});
        if wanted.level != Level::Names {
            put(&mut entry, "description", shown.summary());
            put_metadata(&known, shown, &mut entry);
        }
        entry
    };
    let tools: Vec<_> = best.iter().map(entry).collect();
    let mut structured = json!({"tools": tools, "total": total});
    awaiting::put_absent(shelf, &mut structured);
    structured
}

/// Under each server its tools, both in the order of their best.
fn grouped(known: &Known, best: &[&Shown], with_text: bool) -> String {
    let mut servers: Vec<&str> = Vec::new();
    for shown in best {
        let server = &*shown.tool.id.server.0;
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    let mut text = String::new();
    for server in servers {
        text.push_str(&format!("{server}:\n"));
        for shown in best.iter().filter(|it| *it.tool.id.server.0 == *server) {
            text.push_str(&format!("  {}", shown.name));
            let summary = if with_text {
                shown.summary()
            } else {
                String::new()
            };
            if !summary.is_empty() {
                text.push_str(&format!(": {summary}"));
            }
            let description = known.description(&shown.tool.id);
            if let Some(why) = description.and_then(|it| it.claims.deprecated.as_ref()) {
                let why = codegen::text::neutralise(why);
                let between = if why.is_empty() { "" } else { ": " };
                text.push_str(&format!(" [deprecated{between}{why}]"));
            }
            text.push('\n');
        }
    }
    text
}

/// What helps to choose between tools that do the same; the rest is in their details.
fn put_metadata(known: &Known, shown: &Shown, entry: &mut Value) {
    let Some(description) = known.description(&shown.tool.id) else {
        return;
    };
    if let Some(why) = &description.claims.deprecated {
        put(entry, "deprecated", codegen::text::neutralise(why));
    }
    let Some(file) = &description.file else {
        return;
    };
    for (key, said) in [("category", &file.category), ("version", &file.version)] {
        if let Some(said) = said {
            put(entry, key, codegen::text::neutralise(said));
        }
    }
    let replacement = file.deprecation.as_ref();
    if let Some(replacement) = replacement.and_then(|it| it.replacement.as_ref()) {
        put(entry, "replacement", replacement.to_string());
    }
}
