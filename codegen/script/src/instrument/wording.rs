//! Turns the notes of an instrumented script into messages that quote the script.

mod operations;
mod unusable;

use super::place::{Key, NestedPattern, Place, SiteKind, ValueOrigin};
use super::transcript::{Note, Value};
use crate::check::OF_AN_ARRAY;
use crate::closest::closest;
use crate::text::literal;
use codegen_shared::message::{Failure, Frame};

/// Maximum number of member names listed.
const KEYS_TOLD_MAX: usize = 12;
const KEY_CHARS_MAX: usize = 40;
/// Maximum number of frames in a stack.
pub(super) const FRAMES_MAX: usize = 12;

pub(super) fn failure(places: &[Place], names: &[String], place: &Place, note: &Note) -> Failure {
    let inner = inner(place, note);
    let (line, column) = inner.map_or((place.line, place.column), |it| (it.line, it.column));
    Failure {
        line,
        column,
        message: message(place, names, note),
        because: None,
        stack: stack(places, place, note, (line, column)),
        is_around: note.around,
        is_sure: !note.around && (!note.inside || note.missing.is_some()),
    }
}

/// Describes the earlier error that an error repeats or names as its cause.
pub(super) fn because(places: &[Place], names: &[String], place: &Place, note: &Note) -> String {
    let Failure {
        line,
        column,
        message,
        ..
    } = failure(places, names, place, note);
    match message {
        Some(message) => format!("the cause, at {line}:{column}: {message}"),
        None => format!("the cause is at {line}:{column}"),
    }
}

/// Returns the frames of a place and of the active calls around it.
fn stack(places: &[Place], place: &Place, note: &Note, at: (u32, u32)) -> Vec<Frame> {
    let frame = |place: &Place, (line, column)| Frame {
        function: place.function.clone(),
        line,
        column,
    };
    let around = note.stack.iter().filter_map(|call| places.get(*call));
    std::iter::once(frame(place, at))
        .chain(around.map(|call| frame(call, (call.line, call.column))))
        .take(FRAMES_MAX)
        .collect()
}

fn inner<'p>(place: &'p Place, note: &Note) -> Option<&'p NestedPattern> {
    match &place.what {
        SiteKind::Apart { inner, .. } => inner.get(note.path?),
        _ => None,
    }
}

fn message(place: &Place, names: &[String], note: &Note) -> Option<String> {
    if let SiteKind::Name {
        name,
        declared_in_line,
    } = &place.what
    {
        return Some(not_there(name, *declared_in_line, names));
    }
    if let Some(message) = operations::message(place, note) {
        return Some(message);
    }
    let value = note.value.as_ref()?;
    let parent = note.parent.as_ref();
    let told = TracedValue {
        value,
        parent,
        from: place.from.as_ref(),
        up: note.up,
    };
    match &place.what {
        SiteKind::Inside { pattern, from } => {
            Some(unusable::inside(pattern, from.as_deref(), value))
        }
        SiteKind::Read { of, member } => Some(unusable::read(of, member, told)),
        SiteKind::Call { callee, given, .. } if note.inside => {
            unusable::given(callee, given, note.missing, told)
        }
        SiteKind::Call { .. } if note.around => None,
        SiteKind::Call {
            callee, on, member, ..
        } => Some(unusable::called(
            callee,
            on.as_deref(),
            member.as_deref(),
            told,
        )),
        SiteKind::New { callee } => Some(unusable::constructed(callee, told)),
        SiteKind::Apart {
            pattern,
            of,
            is_each,
            ..
        } => Some(match inner(place, note) {
            Some(inner) if *is_each => unusable::each_apart(&inner.pattern, of, value),
            None if *is_each => unusable::each_apart(pattern, of, value),
            Some(inner) => unusable::inner_apart(inner, of, told),
            None => unusable::apart(pattern, of, told),
        }),
        SiteKind::Given { pattern, number } => {
            let of = format!("argument {number} of `{}`", place.function);
            Some(unusable::taken(pattern, &of, value))
        }
        SiteKind::Over { of } => Some(unusable::iterated(of, told)),
        // These have no value, or `operations` describes them.
        SiteKind::Throw
        | SiteKind::Tool
        | SiteKind::Name { .. }
        | SiteKind::Operation { .. }
        | SiteKind::Held { .. }
        | SiteKind::Constant { .. }
        | SiteKind::Write { .. }
        | SiteKind::Extends { .. }
        | SiteKind::Super
        | SiteKind::This
        | SiteKind::Private { .. }
        | SiteKind::Wait { .. } => None,
    }
}

fn not_there(name: &str, declared_in_line: Option<u32>, names: &[String]) -> String {
    let meant = || {
        let others = names.iter().map(String::as_str);
        closest(name, others.filter(|it| *it != name))
    };
    match (
        declared_in_line,
        declared_in_line.map_or_else(meant, |_| None),
    ) {
        (Some(line), _) => format!("`{name}` is used before line {line} gives it a value"),
        (None, Some(meant)) => format!("`{name}` is not defined; did you mean `{meant}`?"),
        (None, None) => format!("`{name}` is not defined"),
    }
}

/// A value and its known origin.
#[derive(Clone, Copy)]
struct TracedValue<'n> {
    value: &'n Value,
    parent: Option<&'n Value>,
    from: Option<&'n ValueOrigin>,
    up: usize,
}

impl TracedValue<'_> {
    /// Describes the value, its origin, and the alternatives that its parent offers.
    fn which(self) -> String {
        format!("{}{}", self.kind(), self.origin())
    }

    fn kind(self) -> String {
        let await_it = match self.value.kind.as_str() {
            "promise" => ": await it",
            _ => "",
        };
        format!("{}{await_it}", kind(self.value))
    }

    fn origin(self) -> String {
        let (Some(from), Some(parent)) = (self.from, self.parent) else {
            return String::new();
        };
        let read = match (from.named_in_line, &from.key) {
            (Some(line), Key::Name(name)) => {
                let member = member(name);
                let link = match (from.outer.is_some(), member.starts_with('[')) {
                    (false, _) => "",
                    (true, false) => "?",
                    (true, true) => "?.",
                };
                format!(" (`{}{link}{member}` of line {line})", from.of)
            }
            (Some(line), Key::Computed(name)) => format!(" (`{}{name}` of line {line})", from.of),
            (None, _) => String::new(),
        };
        let mut above = Some(from);
        for _ in 0..self.up {
            above = above.and_then(|it| it.outer.as_deref());
        }
        let about = above.map(|it| about_parent(&it.of, parent, &it.key));
        format!("{read}{}", about.unwrap_or_default())
    }
}

/// Describes the object without the requested member.
fn about_parent(of: &str, parent: &Value, key: &Key) -> String {
    let size = parent.size;
    match parent.kind.as_str() {
        "promise" => format!("; `{of}` is a Promise: await it"),
        "object" => format!("; `{of}` {}{}", keys(parent), meant(of, parent, key)),
        "error" if parent.keys.is_empty() => format!("; `{of}` is an Error"),
        "error" => {
            let meant = meant(of, parent, key);
            format!("; `{of}` is an Error and {}{meant}", keys(parent))
        }
        "array" => {
            let meant = meant_of(key, &OF_AN_ARRAY);
            format!("; `{of}` is an array of {size}{meant}")
        }
        "string" if parent.looks => {
            format!("; `{of}` is a string that looks like JSON: use JSON.parse")
        }
        "string" => format!("; `{of}` is a string{}", meant_of(key, STRING_MEMBERS)),
        "map" => format!("; `{of}` is a Map of {size}: read its entries with `get`"),
        "set" => format!("; `{of}` is a Set of {size}: use `has`"),
        "function" => format!("; `{of}` is a function: call it"),
        "null" | "undefined" => String::new(),
        _ => format!("; `{of}` is {}", kind(parent)),
    }
}

fn keys(value: &Value) -> String {
    if value.keys.is_empty() {
        return "has no members".to_owned();
    }
    // A long name is probably data, and a shortened name is of no use.
    let short = value
        .keys
        .iter()
        .filter(|key| key.chars().count() <= KEY_CHARS_MAX);
    let told: Vec<_> = short
        .take(KEYS_TOLD_MAX)
        .map(|key| display_key(key))
        .collect();
    let more = match value.of.saturating_sub(told.len()) {
        0 => String::new(),
        more if told.is_empty() => return format!("has {more} members"),
        more => format!(" and {more} more"),
    };
    format!("has: {}{more}", told.join(", "))
}

/// Suggests the only array in an object, if the script iterates over the object itself.
fn list_in(of: &str, value: &Value) -> String {
    match value.lists.as_slice() {
        [list] => format!("; did you mean `{of}{}`?", member(list)),
        _ => String::new(),
    }
}

fn own_keys(value: &Value) -> Option<String> {
    (!value.keys.is_empty()).then(|| format!("; it {}", keys(value)))
}

/// Writes a name unchanged if it is an identifier, and in quotes otherwise.
fn display_key(key: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    if !key.is_empty() && key.chars().all(is_word) {
        key.to_owned()
    } else {
        literal(key)
    }
}

fn meant(of: &str, parent: &Value, key: &Key) -> String {
    let Key::Name(name) = key else {
        return String::new();
    };
    let others = parent.keys.iter().map(String::as_str);
    let others = others.filter(|it| it != name && it.chars().count() <= KEY_CHARS_MAX);
    match (closest(name, others), parent.lists.as_slice()) {
        (Some(close), _) => format!("; did you mean `{of}{}`?", member(close)),
        (None, [list]) if OF_AN_ARRAY.contains(&name.as_str()) => {
            format!("; did you mean `{of}{}.{name}`?", member(list))
        }
        (None, _) => String::new(),
    }
}

fn member(key: &str) -> String {
    let shown = display_key(key);
    if shown.starts_with('"') {
        format!("[{shown}]")
    } else {
        format!(".{shown}")
    }
}

fn meant_of(key: &Key, members: &[&str]) -> String {
    let Key::Name(name) = key else {
        return String::new();
    };
    let other = OTHER_NAMES.iter().find(|(foreign, _)| foreign == name);
    let known = other
        .map(|(_, own)| *own)
        .filter(|own| members.contains(own));
    let others = members.iter().copied().filter(|it| it != name);
    let close = || closest(name, others).filter(|it| it.len().abs_diff(name.len()) <= 2);
    match known.or_else(close) {
        Some(close) => format!("; did you mean `{close}`?"),
        None => String::new(),
    }
}

fn kind(value: &Value) -> String {
    match value.kind.as_str() {
        "undefined" | "null" => value.kind.clone(),
        "array" => format!("an array of {}", value.size),
        "object" => "an object".to_owned(),
        "error" => "an Error".to_owned(),
        "promise" => "a Promise".to_owned(),
        "map" => format!("a Map of {}", value.size),
        "set" => format!("a Set of {}", value.size),
        "date" => "a Date".to_owned(),
        "string" | "number" | "boolean" | "bigint" | "symbol" | "function" => {
            format!("a {}", value.kind)
        }
        _ => "something else".to_owned(),
    }
}

/// Names that other languages use for a member.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("append", "push"),
    ("add", "push"),
    ("contains", "includes"),
    ("has", "includes"),
    ("len", "length"),
    ("size", "length"),
    ("count", "length"),
    ("each", "forEach"),
    ("select", "filter"),
    ("collect", "map"),
    ("first", "at"),
    ("last", "at"),
    ("upper", "toUpperCase"),
    ("lower", "toLowerCase"),
    ("strip", "trim"),
    ("startswith", "startsWith"),
    ("endswith", "endsWith"),
    ("format", "replace"),
];

const STRING_MEMBERS: &[&str] = &[
    "at",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "concat",
    "endsWith",
    "includes",
    "indexOf",
    "lastIndexOf",
    "length",
    "localeCompare",
    "match",
    "matchAll",
    "normalize",
    "padEnd",
    "padStart",
    "repeat",
    "replace",
    "replaceAll",
    "search",
    "slice",
    "split",
    "startsWith",
    "substring",
    "toLowerCase",
    "toUpperCase",
    "trim",
    "trimEnd",
    "trimStart",
];
