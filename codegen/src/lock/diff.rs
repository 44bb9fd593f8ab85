//! Describes the changes between two locks for authors and reviewers of scripts: by arguments,
//! types and texts instead of lines of JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::order::moved_lists;
use super::{Lock, LockedServer};
use crate::text;

const SHOWN_CHARS_MAX: usize = 160;
const DEPTH_MAX: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    ServerAdded,
    ServerRemoved,
    /// The command or address has changed: a different program may answer there.
    TargetChanged,
    /// The server reports another name or version.
    SaysChanged,
    ToolAdded,
    ToolRemoved,
    /// Text that a model reads has changed.
    TextChanged,
    AnnotationChanged,
    ArgumentAdded,
    /// Scripts without the new argument are now wrong.
    RequiredArgumentAdded,
    ArgumentRemoved,
    ArgumentRequired,
    ArgumentOptional,
    TypeChanged,
    EnumWidened,
    EnumNarrowed,
    EnumChanged,
    /// A list has the same members in another order.
    Reordered,
    /// A change of a bound, a pattern, a default, or anything else in a schema.
    SchemaChanged,
    OutputAdded,
    OutputRemoved,
    OutputChanged,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Change {
    pub server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub kind: ChangeKind,
    /// Path in the tool, such as `args.limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub text: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = self.tool.as_deref().unwrap_or("*");
        write!(f, "{}.{tool}: ", self.server)?;
        match &self.path {
            Some(path) => write!(f, "{path} {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Returns all changes from `old` to `new`, sorted by server and tool.
#[must_use]
pub fn diff(old: &Lock, new: &Lock) -> Vec<Change> {
    let mut changes = Vec::new();
    for name in keys(&old.servers, &new.servers) {
        let mut say = |kind, text: String| {
            changes.push(Change {
                server: name.clone(),
                tool: None,
                kind,
                path: None,
                text,
            });
        };
        match (old.servers.get(&name), new.servers.get(&name)) {
            (None, Some(server)) => say(
                ChangeKind::ServerAdded,
                format!("new server, {}", tools(server)),
            ),
            (Some(server), None) => say(
                ChangeKind::ServerRemoved,
                format!("server removed, {}", tools(server)),
            ),
            (Some(before), Some(after)) => {
                if before.target != after.target {
                    let text = format!(
                        "target changed to {} from {}",
                        quote(&after.target),
                        quote(&before.target)
                    );
                    say(ChangeKind::TargetChanged, text);
                }
                if before.says != after.says {
                    let word =
                        |says: &Option<String>| says.as_deref().map_or("nothing".to_owned(), quote);
                    let text = format!(
                        "reported name changed to {} from {}",
                        word(&after.says),
                        word(&before.says)
                    );
                    say(ChangeKind::SaysChanged, text);
                }
                changes.extend(between(&name, before, after));
            }
            (None, None) => {}
        }
    }
    changes
}

fn between(server: &str, before: &LockedServer, after: &LockedServer) -> Vec<Change> {
    let mut changes = Vec::new();
    for name in keys(&before.tools, &after.tools) {
        let mut tool = ToolDiff {
            server,
            tool: &name,
            changes: Vec::new(),
        };
        match (before.tools.get(&name), after.tools.get(&name)) {
            (None, Some(_)) => tool.say(ChangeKind::ToolAdded, None, "new tool".into()),
            (Some(_), None) => tool.say(ChangeKind::ToolRemoved, None, "tool removed".into()),
            (Some(old), Some(new)) if old.digest != new.digest => {
                tool.descriptions(&old.description, &new.description);
            }
            _ => {}
        }
        changes.extend(tool.changes);
    }
    changes
}

struct ToolDiff<'a> {
    server: &'a str,
    tool: &'a str,
    changes: Vec<Change>,
}

impl ToolDiff<'_> {
    fn say(&mut self, kind: ChangeKind, path: Option<&str>, text: String) {
        self.changes.push(Change {
            server: self.server.to_owned(),
            tool: Some(self.tool.to_owned()),
            kind,
            path: path.map(str::to_owned),
            text,
        });
    }

    fn descriptions(&mut self, old: &Map<String, Value>, new: &Map<String, Value>) {
        let (before, mut now) = (Value::Object(old.clone()), Value::Object(new.clone()));
        for field in moved_lists(old, &now) {
            let text = "has the same members in another order; `exempt` in the lock file accepts \
                        any order";
            self.say(ChangeKind::Reordered, Some(&field), text.to_owned());
            if let (Some(before), Some(now)) = (before.pointer(&field), now.pointer_mut(&field)) {
                *now = before.clone();
            }
        }
        let nothing = Map::new();
        let new = now.as_object().unwrap_or(&nothing);
        for key in ["title", "description"] {
            self.words(key, old.get(key), new.get(key));
        }
        self.annotations(old.get("annotations"), new.get("annotations"));
        self.schemas("args", old.get("inputSchema"), new.get("inputSchema"), 0);
        match (old.get("outputSchema"), new.get("outputSchema")) {
            (None, Some(_)) => self.say(
                ChangeKind::OutputAdded,
                Some("result"),
                "now has a type".into(),
            ),
            (Some(_), None) => self.say(
                ChangeKind::OutputRemoved,
                Some("result"),
                "no longer has a type".into(),
            ),
            (old, new) => {
                let from = self.changes.len();
                self.schemas("result", old, new, 0);
                for change in self.changes.iter_mut().skip(from) {
                    if change.kind != ChangeKind::TextChanged {
                        change.kind = ChangeKind::OutputChanged;
                    }
                }
            }
        }
        if self.changes.is_empty() {
            // The digests differ, so the change is reported without details.
            self.say(
                ChangeKind::SchemaChanged,
                None,
                "the description changed".into(),
            );
        }
    }

    fn words(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        if old == new {
            return;
        }
        let text = match (old, new) {
            (None, Some(new)) => format!("is new: {}", value(new)),
            (Some(old), None) => format!("removed: {}", value(old)),
            (old, new) => words_changed(old, new),
        };
        self.say(ChangeKind::TextChanged, Some(path), text);
    }

    fn annotations(&mut self, old: Option<&Value>, new: Option<&Value>) {
        let members =
            |it: Option<&Value>| it.and_then(Value::as_object).cloned().unwrap_or_default();
        let (old, new) = (members(old), members(new));
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let (before, after) = (old.get(name), new.get(name));
            if before != after {
                let path = crate::validate::member_path("annotations", name);
                self.say(
                    ChangeKind::AnnotationChanged,
                    Some(&path),
                    became(before, after),
                );
            }
        }
    }

    fn schemas(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>, depth: usize) {
        if old == new {
            return;
        }
        let (Some(before), Some(after)) = (
            old.and_then(Value::as_object),
            new.and_then(Value::as_object),
        ) else {
            return self.say(ChangeKind::SchemaChanged, Some(path), became(old, new));
        };
        if depth > DEPTH_MAX {
            return self.say(
                ChangeKind::SchemaChanged,
                Some(path),
                "changed at a deeply nested place".into(),
            );
        }
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for keyword in names {
            let (old, new) = (before.get(keyword), after.get(keyword));
            match keyword.as_str() {
                _ if old == new => {}
                "properties" => self.properties(path, before, after, depth),
                "required" => self.required(path, before, after),
                "items" | "additionalProperties" if is_object(old) && is_object(new) => {
                    self.schemas(&format!("{path}[]"), old, new, depth + 1);
                }
                "$defs" | "definitions" => self.definitions(path, old, new, depth),
                "description" | "title" => self.words(&format!("{path} ({keyword})"), old, new),
                "type" => self.say(ChangeKind::TypeChanged, Some(path), became(old, new)),
                "enum" => self.enumeration(path, old, new),
                keyword => {
                    let text = format!("`{}` {}", text::neutralise(keyword), became(old, new));
                    self.say(ChangeKind::SchemaChanged, Some(path), text);
                }
            }
        }
    }

    fn properties(
        &mut self,
        path: &str,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        depth: usize,
    ) {
        let members = |it: &Map<String, Value>| {
            it.get("properties")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default()
        };
        let (before, after) = (members(old), members(new));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            let path = crate::validate::member_path(path, name);
            match (before.get(name), after.get(name)) {
                (None, Some(_)) if is_required(new, name) => {
                    self.say(
                        ChangeKind::RequiredArgumentAdded,
                        Some(&path),
                        "is new and required".into(),
                    );
                }
                (None, Some(_)) => self.say(
                    ChangeKind::ArgumentAdded,
                    Some(&path),
                    "is new and optional".into(),
                ),
                (Some(_), None) => {
                    self.say(ChangeKind::ArgumentRemoved, Some(&path), "removed".into())
                }
                (old, new) => self.schemas(&path, old, new, depth + 1),
            }
        }
    }

    /// Compares `required` for properties that both schemas have.
    fn required(&mut self, path: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        let both = |name: &&String| has(old, name) == has(new, name);
        let names: BTreeSet<String> = required(old).union(&required(new)).cloned().collect();
        for name in names.iter().filter(both) {
            let path = crate::validate::member_path(path, name);
            match (is_required(old, name), is_required(new, name)) {
                (false, true) => self.say(
                    ChangeKind::ArgumentRequired,
                    Some(&path),
                    "is now required".into(),
                ),
                (true, false) => self.say(
                    ChangeKind::ArgumentOptional,
                    Some(&path),
                    "is now optional".into(),
                ),
                _ => {}
            }
        }
    }

    fn definitions(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>, depth: usize) {
        let members =
            |it: Option<&Value>| it.and_then(Value::as_object).cloned().unwrap_or_default();
        let (before, after) = (members(old), members(new));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            let path = format!("{path} ({})", text::clip(&text::neutralise(name), 60));
            self.schemas(&path, before.get(name), after.get(name), depth + 1);
        }
    }

    fn enumeration(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        let (Some(before), Some(after)) =
            (old.and_then(Value::as_array), new.and_then(Value::as_array))
        else {
            let text = format!("`enum` {}", became(old, new));
            return self.say(ChangeKind::EnumChanged, Some(path), text);
        };
        let only = |a: &[Value], b: &[Value]| -> Vec<String> {
            a.iter().filter(|it| !b.contains(it)).map(value).collect()
        };
        let (gone, added) = (only(before, after), only(after, before));
        let kind = match (gone.is_empty(), added.is_empty()) {
            (true, false) => ChangeKind::EnumWidened,
            (false, true) => ChangeKind::EnumNarrowed,
            _ => ChangeKind::EnumChanged,
        };
        let mut parts = Vec::new();
        if !added.is_empty() {
            parts.push(format!("may also be {}", added.join(", ")));
        }
        if !gone.is_empty() {
            parts.push(format!("may no longer be {}", gone.join(", ")));
        }
        if parts.is_empty() {
            parts.push("lists its values in another order".into());
        }
        self.say(
            kind,
            Some(path),
            text::clip(&parts.join("; "), SHOWN_CHARS_MAX),
        );
    }
}

fn is_object(value: Option<&Value>) -> bool {
    value.is_some_and(Value::is_object)
}

fn has(schema: &Map<String, Value>, name: &str) -> bool {
    schema
        .get("properties")
        .and_then(|it| it.get(name))
        .is_some()
}

fn required(schema: &Map<String, Value>) -> BTreeSet<String> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn is_required(schema: &Map<String, Value>, name: &str) -> bool {
    required(schema).contains(name)
}

fn became(old: Option<&Value>, new: Option<&Value>) -> String {
    match (old, new) {
        (None, Some(new)) => format!("is now {}", value(new)),
        (Some(old), None) => format!("is no longer {}", value(old)),
        (Some(old), Some(new)) => format!("changed to {} from {}", value(new), value(old)),
        (None, None) => "changed".into(),
    }
}

/// For two long texts, quotes only the differing part and a few characters around it.
fn words_changed(old: Option<&Value>, new: Option<&Value>) -> String {
    let (Some(old), Some(new)) = (old.and_then(Value::as_str), new.and_then(Value::as_str)) else {
        return became(old, new);
    };
    let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
    let same = |a: &[char], b: &[char]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let start = same(&old, &new);
    let (old_rest, new_rest) = (
        old.get(start..).unwrap_or_default(),
        new.get(start..).unwrap_or_default(),
    );
    let backwards = |it: &[char]| it.iter().rev().copied().collect::<Vec<char>>();
    let end = same(&backwards(old_rest), &backwards(new_rest));
    let part = |whole: &[char]| {
        const AROUND: usize = 20;
        let from = start.saturating_sub(AROUND);
        let to = (whole.len() - end + AROUND).min(whole.len());
        let middle: String = whole.get(from..to).unwrap_or_default().iter().collect();
        let (before, after) = (
            if from > 0 { "…" } else { "" },
            if to < whole.len() { "…" } else { "" },
        );
        quote(&format!("{before}{middle}{after}"))
    };
    format!("changed to {} from {}", part(&new), part(&old))
}

fn value(value: &Value) -> String {
    text::clip(&text::json(value), SHOWN_CHARS_MAX)
}

/// Quotes a server's text, with invisible characters as escapes.
fn quote(text: &str) -> String {
    text::clip(&text::literal(text), SHOWN_CHARS_MAX)
}

fn tools(server: &LockedServer) -> String {
    match server.tools.len() {
        1 => "1 tool".into(),
        count => format!("{count} tools"),
    }
}

fn keys<T>(a: &BTreeMap<String, T>, b: &BTreeMap<String, T>) -> BTreeSet<String> {
    a.keys().chain(b.keys()).cloned().collect()
}
