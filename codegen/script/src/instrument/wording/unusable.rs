//! Describes a value that cannot be read, called, constructed, destructured or iterated.

use super::{TracedValue, about_parent, kind, list_in, member, own_keys};
use crate::instrument::place::{ArgumentSource, Key, NestedPattern, PathStep};
use crate::instrument::transcript::Value;

pub(super) fn read(of: &str, member: &str, told: TracedValue<'_>) -> String {
    // The script itself contains `null.x`.
    if of == told.value.kind {
        format!("cannot read `{member}` of {of}")
    } else {
        let what = told.which();
        format!("cannot read `{member}` of `{of}`, which is {what}")
    }
}

pub(super) fn called(
    callee: &str,
    on: Option<&str>,
    member: Option<&str>,
    told: TracedValue<'_>,
) -> String {
    let what = told.kind();
    let tail = match (on, told.parent) {
        (Some(on), Some(parent)) => {
            let key = match member {
                Some(member) => Key::Name(member.to_owned()),
                None => Key::Computed(String::new()),
            };
            about_parent(on, parent, &key)
        }
        _ => told.origin(),
    };
    format!("`{callee}` is not a function but {what}{tail}")
}

/// Describes an argument that the called function does not accept. If no argument is missing, the
/// function expected a string and got an object.
pub(super) fn given(
    callee: &str,
    given: &[ArgumentSource],
    missing: Option<usize>,
    told: TracedValue<'_>,
) -> Option<String> {
    let Some(missing) = missing else {
        let text = &given.first()?.text;
        let what = kind(told.value);
        let own = own_keys(told.value).unwrap_or_default();
        return Some(format!(
            "`{callee}` takes a string, but `{text}` is already {what}{own}"
        ));
    };
    let ArgumentSource { text, from } = given.get(missing)?;
    let from = from.as_ref();
    let what = TracedValue { from, ..told }.which();
    Some(if *text == told.value.kind {
        format!("`{callee}` cannot take {text} as an argument")
    } else {
        format!("`{callee}` cannot take `{text}` as an argument, which is {what}")
    })
}

pub(super) fn constructed(callee: &str, told: TracedValue<'_>) -> String {
    if told.value.kind == "function" {
        return format!(
            "`{callee}` is not a constructor but a function that is called without `new`"
        );
    }
    let what = told.which();
    format!("`{callee}` is not a constructor but {what}")
}

pub(super) fn iterated(of: &str, told: TracedValue<'_>) -> String {
    let what = told.which();
    let own = match told.value.kind.as_str() {
        "object" => own_keys(told.value).unwrap_or_default() + &list_in(of, told.value),
        _ => String::new(),
    };
    format!("cannot iterate over `{of}`, which is {what}{own}")
}

pub(super) fn apart(pattern: &str, of: &str, told: TracedValue<'_>) -> String {
    let what = told.which();
    format!("cannot take `{pattern}` from `{of}`, which is {what}")
}

/// Describes a value that the head of a loop destructures.
pub(super) fn each_apart(pattern: &str, of: &str, value: &Value) -> String {
    let what = kind(value);
    format!("cannot take `{pattern}` from each value of `{of}`: one is {what}")
}

/// Describes the value of a nested pattern.
pub(super) fn inner_apart(inner: &NestedPattern, of: &str, told: TracedValue<'_>) -> String {
    let NestedPattern { pattern, path, .. } = inner;
    let (above, key) = match path.as_slice() {
        [above @ .., PathStep::Name(name)] => (above, Key::Name(name.clone())),
        [above @ .., PathStep::Index(at)] => (above, Key::Computed(at.to_string())),
        [] => (path.as_slice(), Key::Computed(String::new())),
    };
    let (above, whole) = (along(of, above), along(of, path));
    let parent = told.parent;
    let tail = parent.map_or_else(String::new, |it| about_parent(&above, it, &key));
    let what = kind(told.value);
    format!("cannot take `{pattern}` from `{whole}`, which is {what}{tail}")
}

/// Describes the value of a nested pattern by the member that it destructures.
pub(super) fn inside(pattern: &str, from: Option<&str>, value: &Value) -> String {
    let from = from.map_or_else(
        || "its item in the array".to_owned(),
        |from| format!("`{from}`"),
    );
    taken(pattern, &from, value)
}

pub(super) fn taken(pattern: &str, from: &str, value: &Value) -> String {
    let what = kind(value);
    format!("cannot take `{pattern}` from {from}, which is {what}")
}

/// Writes the destructured expression with the path to one of its parts.
fn along(of: &str, path: &[PathStep]) -> String {
    path.iter().fold(of.to_owned(), |whole, step| match step {
        PathStep::Name(name) => whole + &member(name),
        PathStep::Index(at) => format!("{whole}[{at}]"),
    })
}
