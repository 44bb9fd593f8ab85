//! A second look at a script that failed. The engine knows positions for calls
//! and hardly elsewhere, and says of a missing value only that it was missing.
//! So the host runs a failed script once more, with the same outcomes and no
//! call leaving, and this time every place that reads from a value is watched:
//!
//! ```text
//! data.items.map(f)   becomes   airlock_at(airlock_at(data, 0).items, 1).map(f)
//! ```
//!
//! What is found changes the words and the place of the report, nothing else.

pub(crate) mod spans;
mod watch;

use boa_engine::{Context, JsArgs, JsResult, JsValue};
use rustc_hash::FxHashMap;
use sandbox_protocol::ScriptError;

use crate::run::Run;
pub(crate) use watch::watch;

/// The function that watched places call.
pub(crate) const WATCHER: &str = "airlock_at";

/// Characters of the script that a message quotes.
const QUOTED_MAX: usize = 60;

/// What a place does with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Use {
    Read(String),
    Destructured,
    Iterated,
}

#[derive(Debug)]
struct Place {
    line: u32,
    column: u32,
    /// The expression's own text.
    text: String,
    used: Use,
}

/// A call, and where its bracket is in the watched text.
#[derive(Debug)]
struct Callee {
    line: u32,
    column: u32,
    watched_column: u32,
    text: String,
}

/// A script made to be watched.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(crate) text: String,
    places: Vec<Place>,
    callees: Vec<Callee>,
    /// Where each name is first used.
    names: FxHashMap<String, (u32, u32)>,
}

/// What a watched run has found so far: a place and the value that was not there.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    missing: Vec<(usize, &'static str)>,
}

/// `airlock_at(value, place)`: the value, noted when there is none.
pub(crate) fn at(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let value = args.get_or_undefined(0);
    if value.is_null_or_undefined()
        && let Some(place) = args.get_or_undefined(1).as_i32()
    {
        let what = if value.is_null() { "null" } else { "undefined" };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        Run::of(context)?
            .sightings
            .borrow_mut()
            .missing
            .push((place, what));
    }
    Ok(value.clone())
}

impl Watched {
    /// Says better what a watched run failed with.
    pub(crate) fn improve(&self, error: &mut ScriptError, sightings: &Sightings) {
        let engine_words = error.message.as_str();
        if error.name == "ReferenceError" {
            self.place_name(error);
        } else if error.name != "TypeError" {
        } else if engine_words == "not a callable function" {
            self.name_callee(error);
        } else if engine_words.contains("'null' or 'undefined'")
            || engine_words.starts_with("Cannot destructure")
            || engine_words.ends_with("is not iterable")
        {
            self.name_missing(error, sightings);
        }
    }

    fn place_name(&self, error: &mut ScriptError) {
        let name = error.message.strip_suffix(" is not defined");
        if let Some(&(line, column)) = name.and_then(|name| self.names.get(name))
            && error.line == 0
        {
            (error.line, error.column) = (line, column);
        }
    }

    fn name_callee(&self, error: &mut ScriptError) {
        let callee = self
            .callees
            .iter()
            .find(|callee| (callee.line, callee.watched_column) == (error.line, error.column));
        if let Some(callee) = callee {
            error.message = format!("`{}` is not a function", callee.text);
            error.column = callee.column;
        }
    }

    fn name_missing(&self, error: &mut ScriptError, sightings: &Sightings) {
        let seen = sightings
            .missing
            .iter()
            .rev()
            .filter_map(|&(place, what)| self.places.get(place).map(|place| (place, what)));
        let Some((place, what)) = seen
            .into_iter()
            .find(|(place, _)| error.line == 0 || place.line == error.line)
        else {
            return;
        };
        let Place {
            line,
            column,
            text,
            used,
        } = place;
        (error.line, error.column) = (*line, *column);
        error.message = match used {
            Use::Read(member) => format!("cannot read `{member}` of `{text}`, which is {what}"),
            Use::Destructured => format!("cannot take `{text}` apart, which is {what}"),
            Use::Iterated => format!("cannot iterate over `{text}`, which is {what}"),
        };
    }
}
