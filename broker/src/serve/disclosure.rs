//! Which tools a session may call, and the documented errors for those it may not.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use airlock_core::session::{DESCRIPTIONS_URI, Disclosed};
use codegen::uses::Uses;
use serde_json::{Value, json};

use super::desk::Desk;
use super::rpc::{self, shown};
use super::session::{HostSession, Listed};
use super::shelf::Shelf;

/// What lists of tools have shown last, to any host.
#[derive(Debug, Default)]
pub(super) struct Latest(Mutex<Option<Listed>>);

/// What a run of this session may call: what it has read, and what the list has shown at once. A
/// host that has not asked for the list here, such as one that keeps it or has no session, is
/// held to the one that was shown last, or else to what there is when it first calls.
pub(super) fn of(desk: &Desk, shelf: &Shelf, session: &HostSession) -> Disclosed {
    if shelf.at_once.is_some() {
        let latest = || desk.latest_list().get();
        session.assume_list(|| latest().unwrap_or_else(|| shelf.listed()));
    }
    session.disclosed()
}

/// The list of tools is shown in this session.
pub(super) fn list(desk: &Desk, shelf: &Shelf, session: &HostSession) {
    let shown = match &shelf.at_once {
        Some(_) => shelf.listed(),
        None => Listed::default(),
    };
    session.note_list(&shown);
    desk.latest_list().put(shown);
}

impl Latest {
    fn get(&self) -> Option<Listed> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn put(&self, shown: Listed) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
    }
}

/// Tools that a script uses, or says that it will, and that were neither disclosed nor are
/// described by the script itself; an error for names that no tool has.
pub(super) fn missing(
    (desk, shelf): (&Desk, &Shelf),
    session: &HostSession,
    uses: &Uses,
    declared: &[String],
) -> Result<Vec<String>, Value> {
    let unknown: Vec<_> = declared
        .iter()
        .filter(|name| shelf.find(name).is_none())
        .map(|name| shown(name))
        .collect();
    if !unknown.is_empty() {
        let message = format!(
            "There is no tool '{}'; find tools with search_tools.",
            unknown.join("', '")
        );
        return Err(json!({"error": {"code": "TOOL_NOT_FOUND", "message": message}}));
    }
    let disclosed = of(desk, shelf, session);
    // Which tools it reads about first, only the run knows; each call is held to that.
    if uses.described.others {
        return Ok(Vec::new());
    }
    let described = uses.described.names.iter();
    let described: HashSet<&str> = described
        .filter_map(|name| Some(shelf.find(name)?.name.as_str()))
        .collect();
    let is_used = |tool: &super::shelf::Shown| {
        let Uses { members, names, .. } = uses;
        let member = (tool.global.clone(), tool.tool.member.clone());
        members.contains(&member)
            || (!tool.tool.flat.is_empty() && names.contains(&tool.tool.flat))
            || declared.iter().any(|name| {
                shelf
                    .find(name)
                    .is_some_and(|found| found.name == tool.name)
            })
    };
    // Each call is held to what its description says now.
    let catalog = shelf.broker.catalog();
    let is_allowed = |tool: &super::shelf::Shown| disclosed.allows(&tool.in_catalog(&catalog));
    let missing = shelf
        .tools
        .iter()
        .filter(|tool| !is_allowed(tool) && !described.contains(tool.name.as_str()))
        .filter(|tool| is_used(tool));
    Ok(missing.map(|tool| tool.name.clone()).collect())
}

/// The documented error; for several tools at once it names them all.
pub(super) fn required(names: &[String]) -> Value {
    let uri = format!("{DESCRIPTIONS_URI}?tools={}", names.join(","));
    let message = match names {
        [name] => format!("Tool '{name}' requires fetching its description before use."),
        _ => format!(
            "Tools '{}' require fetching their descriptions before use.",
            names.join("', '")
        ),
    };
    let mut error = json!({
        "code": "TOOL_DESCRIPTION_REQUIRED",
        "message": message,
        "resource_uri": uri,
    });
    if names.len() > 1 {
        rpc::put(&mut error, "tools", names);
    }
    json!({ "error": error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_has_the_documented_shape_and_names_all_tools_at_once() {
        let one = required(&["fs.read".into()]);
        assert_eq!(
            one,
            json!({"error": {
                "code": "TOOL_DESCRIPTION_REQUIRED",
                "message": "Tool 'fs.read' requires fetching its description before use.",
                "resource_uri": "resource:///tool_descriptions?tools=fs.read",
            }})
        );
        let two = required(&["fs.read".into(), "git.log".into()]);
        assert_eq!(
            two["error"]["resource_uri"],
            "resource:///tool_descriptions?tools=fs.read,git.log"
        );
        assert_eq!(two["error"]["tools"], json!(["fs.read", "git.log"]));
    }
}
