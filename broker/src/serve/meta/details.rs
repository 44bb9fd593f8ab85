//! `get_tool_details`, and what it has in common with the resource: showing
//! full descriptions, which makes their tools callable in this session.

use std::sync::Arc;

use airlock_core::catalog::Tool;
use codegen::declare::Level;
use serde_json::{Map, Value, json};

use super::{Answered, names, only};
use crate::broker::{Described, Known};
use crate::serve::desk::Desk;
use crate::serve::request::Request;
use crate::serve::rpc;
use crate::serve::session::HostSession;
use crate::serve::shelf::{Shelf, Shown};

/// Names that are listed of all there are, for all that was not found together.
const AVAILABLE_SHOWN_MAX: usize = 100;
/// Each gets some, however many there are.
const AVAILABLE_SHOWN_MIN: usize = 2;

pub(super) fn description() -> Value {
    json!({
        "name": super::DETAILS,
        "title": "Get tool details",
        "description": "Full descriptions of tools by name, as TypeScript declarations or JSON. Needed once per session before a tool can be called.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "tools": {"type": "array", "items": {"type": "string"}, "description": "Names such as server.tool"},
                "format": {"type": "string", "enum": ["typescript", "json"], "default": "typescript"},
            },
            "required": ["tools"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
}

pub(super) fn call(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
    args: &Map<String, Value>,
) -> Answered {
    let (wanted, as_json) = match wanted(args) {
        Ok(wanted) => wanted,
        Err(why) => return Answered::wrong(why),
    };
    let shelved = match disclose(desk, shelf, &request.session, &wanted) {
        Ok(shelved) => shelved,
        Err(too_often) => return Answered::wrong(too_often),
    };
    let is_error = shelved.found.is_empty();
    let text = if as_json || is_error {
        let mut entries = shelved.entries;
        if let Some(handle) = &request.handle {
            entries.insert("session".into(), handle.clone().into());
        }
        Value::Object(entries).to_string()
    } else {
        let mut text = declared(&shelved);
        if let Some(handle) = &request.handle {
            text.push_str(&format!(
                "// give run_script and call_tool: session = \"{handle}\"\n"
            ));
        }
        text
    };
    Answered::Done {
        text,
        structured: None,
        is_error,
    }
}

/// `airlock.describe`: the text of declarations, or the full descriptions by name.
pub(in crate::serve) fn describe_in_script<'a>(
    args: &Map<String, Value>,
    disclose: impl FnOnce(&[String]) -> Result<Shelved<'a>, String>,
) -> Result<Described, String> {
    let (wanted, as_json) = wanted(args)?;
    let shelved = disclose(&wanted)?;
    if shelved.found.is_empty() {
        return Err(Value::Object(shelved.entries).to_string());
    }
    let current = shelved.current().into_iter();
    let disclosed = current
        .map(|tool| (tool.id.clone(), tool.description_digest))
        .collect();
    let value = if as_json {
        Value::Object(shelved.entries)
    } else {
        declared(&shelved).into()
    };
    Ok(Described { value, disclosed })
}

/// Which tools are asked for, and whether as JSON.
fn wanted(args: &Map<String, Value>) -> Result<(Vec<String>, bool), String> {
    only(args, &["tools", "name", "format", "session"])?;
    let mut wanted = names(args, "tools")?;
    wanted.extend(names(args, "name")?);
    if wanted.is_empty() {
        return Err("name the tools, such as {\"tools\": [\"server.tool\"]}".into());
    }
    match args.get("format").map(Value::as_str) {
        None | Some(Some("typescript")) => Ok((wanted, false)),
        Some(Some("json")) => Ok((wanted, true)),
        Some(_) => Err("`format` is neither `typescript` nor `json`".into()),
    }
}

fn declared(shelved: &Shelved<'_>) -> String {
    let mut text = Shelf::declared(&shelved.known, &shelved.found, Level::Full);
    for (name, entry) in &shelved.entries {
        if entry.get("error").is_some() {
            let available = entry.get("available_tools").cloned().unwrap_or_default();
            text.push_str(&format!(
                "// `{name}` was not found; there are {available}\n"
            ));
        }
    }
    for shown in &shelved.found {
        if let Some(why) = shown.tool.input.unusable() {
            text.push_str(&format!("// `{}` cannot be called: {why}\n", shown.name));
        }
    }
    text
}

/// Descriptions that were shown, and errors for names that no tool has.
pub(in crate::serve) struct Shelved<'a> {
    /// What all of it was taken from: a list may change at any moment, and what is disclosed is
    /// what was shown.
    known: Arc<Known>,
    pub(in crate::serve) found: Vec<&'a Shown>,
    /// By the names that were asked for, in their order.
    pub(in crate::serve) entries: Map<String, Value>,
}

impl Shelved<'_> {
    /// The tools with the digests of what was shown.
    fn current(&self) -> Vec<Arc<Tool>> {
        let catalog = &self.known.standing.catalog;
        let found = self.found.iter();
        found.map(|shown| shown.in_catalog(catalog)).collect()
    }
}

/// Shows full descriptions and remembers in the session that they were shown.
pub(in crate::serve) fn disclose<'a>(
    desk: &Desk,
    shelf: &'a Shelf,
    session: &HostSession,
    wanted: &[String],
) -> Result<Shelved<'a>, String> {
    let fetched = session.fetch(desk.now_ms());
    shelf.broker.note_fetch(fetched.is_err());
    fetched.map_err(|too_often| too_often.to_string())?;
    let shelved = look_up(shelf, wanted);
    session.disclose(&shelved.current());
    Ok(shelved)
}

/// Full descriptions by name, disclosed to nobody.
pub(in crate::serve) fn look_up<'a>(shelf: &'a Shelf, wanted: &[String]) -> Shelved<'a> {
    let known = shelf.broker.known();
    let mut found: Vec<&Shown> = Vec::new();
    let mut entries = Map::new();
    let unknown = wanted.iter().filter(|name| shelf.find(name).is_none());
    let each = AVAILABLE_SHOWN_MAX / unknown.count().max(1);
    for name in wanted {
        let entry = match shelf.find(name) {
            Some(shown) => {
                if !found.iter().any(|it| it.name == shown.name) {
                    found.push(shown);
                }
                Shelf::full(&known, shown, name)
            }
            None => json!({
                "error": format!("Tool '{}' not found", rpc::shown(name)),
                "available_tools": available(shelf, name, each.max(AVAILABLE_SHOWN_MIN)),
            }),
        };
        entries.insert(rpc::shown(name), entry);
    }
    Shelved {
        known,
        found,
        entries,
    }
}

/// All names, or those that come closest when there are more than `shown_max`.
fn available(shelf: &Shelf, name: &str, shown_max: usize) -> Vec<String> {
    let all = || shelf.tools.iter().map(|shown| shown.name.clone());
    if shelf.tools.len() <= shown_max {
        return all().collect();
    }
    let closest = codegen::closest::closest(name, shelf.tools.iter().map(|it| it.name.as_str()));
    let ranked = shelf.ranked(name);
    let ranked = ranked.iter().filter_map(|place| shelf.tools.get(*place));
    let mut names: Vec<String> = closest.map(str::to_owned).into_iter().collect();
    for shown in ranked {
        if names.len() >= shown_max {
            break;
        }
        if !names.contains(&shown.name) {
            names.push(shown.name.clone());
        }
    }
    if names.is_empty() {
        names.extend(all().take(shown_max));
    }
    names
}
