//! What a value was used for that it cannot be used for: read, called,
//! constructed, taken apart, gone over.

use super::{Told, about_parent, kind, list_in, member, own_keys};
use crate::instrument::heard::Value;
use crate::instrument::place::{Given, Inner, Key, Step};

pub(super) fn read(of: &str, member: &str, told: Told<'_>) -> String {
    // `null.x`, as it stands in the script.
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
    told: Told<'_>,
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

/// An argument that what was called does not take. Where nothing is missing it is a text that was
/// wanted, and something that was read from one already.
pub(super) fn given(
    callee: &str,
    given: &[Given],
    missing: Option<usize>,
    told: Told<'_>,
) -> Option<String> {
    let Some(missing) = missing else {
        let text = &given.first()?.text;
        let what = kind(told.value);
        let own = own_keys(told.value).unwrap_or_default();
        return Some(format!(
            "`{callee}` takes a text, and `{text}` is {what} already{own}"
        ));
    };
    let Given { text, from } = given.get(missing)?;
    let from = from.as_ref();
    let what = Told { from, ..told }.which();
    Some(if *text == told.value.kind {
        format!("`{callee}` cannot take {text} for an argument")
    } else {
        format!("`{callee}` cannot take `{text}` for an argument, which is {what}")
    })
}

pub(super) fn constructed(callee: &str, told: Told<'_>) -> String {
    if told.value.kind == "function" {
        return format!(
            "`{callee}` is not a constructor but a function that is called without `new`"
        );
    }
    let what = told.which();
    format!("`{callee}` is not a constructor but {what}")
}

pub(super) fn iterated(of: &str, told: Told<'_>) -> String {
    let what = told.which();
    let own = match told.value.kind.as_str() {
        "object" => own_keys(told.value).unwrap_or_default() + &list_in(of, told.value),
        _ => String::new(),
    };
    format!("cannot iterate over `{of}`, which is {what}{own}")
}

pub(super) fn apart(pattern: &str, of: &str, told: Told<'_>) -> String {
    let what = told.which();
    format!("cannot take `{pattern}` from `{of}`, which is {what}")
}

/// In the head of a loop.
pub(super) fn each_apart(pattern: &str, of: &str, value: &Value) -> String {
    let what = kind(value);
    format!("cannot take `{pattern}` from each value of `{of}`: one is {what}")
}

/// A pattern in a pattern.
pub(super) fn inner_apart(inner: &Inner, of: &str, told: Told<'_>) -> String {
    let Inner { pattern, path, .. } = inner;
    let (above, key) = match path.as_slice() {
        [above @ .., Step::Name(name)] => (above, Key::Name(name.clone())),
        [above @ .., Step::Index(at)] => (above, Key::Computed(at.to_string())),
        [] => (path.as_slice(), Key::Computed(String::new())),
    };
    let (above, whole) = (along(of, above), along(of, path));
    let parent = told.parent;
    let tail = parent.map_or_else(String::new, |it| about_parent(&above, it, &key));
    let what = kind(told.value);
    format!("cannot take `{pattern}` from `{whole}`, which is {what}{tail}")
}

/// A pattern in a pattern, by what it stood for there.
pub(super) fn inside(pattern: &str, from: Option<&str>, value: &Value) -> String {
    let from = from.map_or_else(
        || "its place in the list".to_owned(),
        |from| format!("`{from}`"),
    );
    taken(pattern, &from, value)
}

pub(super) fn taken(pattern: &str, from: &str, value: &Value) -> String {
    let what = kind(value);
    format!("cannot take `{pattern}` from {from}, which is {what}")
}

/// What is taken apart, and the way to a part of it.
fn along(of: &str, path: &[Step]) -> String {
    path.iter().fold(of.to_owned(), |whole, step| match step {
        Step::Name(name) => whole + &member(name),
        Step::Index(at) => format!("{whole}[{at}]"),
    })
}
