//! A script made to be watched, for a second look at one that has failed. The
//! watched script does what the script does, and says on its console what is
//! about to fail and what that was made of:
//!
//! ```text
//! data.items.map(f)   becomes   look__c(2, look__t = look__r(look__r(data, 0).items, 1, 0), look__t.map, [f])
//! ```
//!
//! A script that met a limit says where it is instead ([`follow`]).
//!
//! What it says is heard here, and put into words with the script's own text.
//! Of values only their kind, their size and the names of their members are told.

mod heard;
mod place;
mod rewrite;
mod stopped;
mod ticks;
mod words;

use oxc_allocator::Allocator;
use oxc_ast_visit::Visit;
use oxc_semantic::SemanticBuilder;
use oxc_span::Span;

use crate::check::parse::Parsed;
use crate::check::{Form, Weight, form, parse};
use heard::Hearing;
use place::Place;
pub use stopped::Stopped;
use ticks::Spot;

/// What all names that the watched text adds begin with, and each line that it says.
const MARK: &str = "look__";
/// What a function is called that is handed to another.
const CALLBACK: &str = "<callback>";
/// Characters of the script that a message quotes.
const QUOTED_MAX: usize = 60;
const ERRORS: &str = include_str!("watch/errors.js");
const LIMITS: &str = include_str!("watch/limits.js");

/// Larger scripts are not looked at twice.
pub const SCRIPT_BYTES_MAX: usize = 256 * 1024;

/// A watched script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    pub text: String,
    places: Vec<Place>,
}

/// What was found out about an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub line: u32,
    pub column: u32,
    /// Absent where the engine's own words say it.
    pub message: Option<String>,
    /// Where it was, innermost first, as far as the script called itself there.
    pub stack: Vec<Frame>,
    /// Something inside a call went wrong and nobody saw what: the call is the next best place.
    pub is_around: bool,
}

/// A function of the script, and where in it something was going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub function: String,
    pub line: u32,
    pub column: u32,
}

/// The watched form of a script without types; `None` when it cannot be had. The caller sees to
/// the stack that [`Weight`] asks for.
#[must_use]
pub fn watch(script: &str) -> Option<Watched> {
    read(script, |parsed, form| {
        let built = SemanticBuilder::new().build(&parsed.program);
        let is_one = matches!(form, Form::Function | Form::Module);
        let scoping = built.semantic.scoping();
        let mut rewriter = rewrite::Rewriter::new(parsed, scoping, is_one);
        rewriter.visit_program(&parsed.program);
        let (text, places) = rewriter.finish();
        let text = framed(form, ERRORS, &own(parsed, text));
        Watched { text, places }
    })
}

/// A script that says where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    pub text: String,
    spots: Vec<Spot>,
}

/// The same script, as one that says where it is, for a second look at one that met a limit.
#[must_use]
pub fn follow(script: &str) -> Option<Followed> {
    read(script, |parsed, form| {
        let is_one = matches!(form, Form::Function | Form::Expression);
        let mut ticker = ticks::Ticker::new(parsed, is_one);
        ticker.visit_program(&parsed.program);
        let (text, spots) = ticker.finish();
        let text = framed(form, LIMITS, &own(parsed, text));
        Followed { text, spots }
    })
}

fn read<T>(script: &str, make: impl FnOnce(&Parsed<'_>, Form) -> T) -> Option<T> {
    if script.len() > SCRIPT_BYTES_MAX || script.contains(MARK) {
        return None;
    }
    if Weight::of(script).too_deep_at.is_some() {
        return None;
    }
    let allocator = Allocator::default();
    let parsed = parse::parse(&allocator, "script.js", script).ok()?;
    let form = form::of(&parsed.program, script);
    (!parsed.typescript).then(|| make(&parsed, form))
}

/// Without the brackets in which a function without a name was parsed: it stands where one may.
fn own(parsed: &Parsed<'_>, text: String) -> String {
    if parsed.shift == 0 {
        return text;
    }
    let inside = text.strip_prefix('(').and_then(|it| it.strip_suffix("\n)"));
    inside.map_or_else(|| text.clone(), str::to_owned)
}

/// The watched text as the guest takes it: the watcher before it, and what tells its end around it.
fn framed(form: Form, watcher: &str, text: &str) -> String {
    let text = match text.strip_prefix("#!") {
        Some(rest) => format!("//{rest}"),
        None => text.to_owned(),
    };
    let watcher: String = watcher
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |all, line| all + line.trim() + "\n");
    let end = "catch (look__error) { throw look__e(look__error) }";
    match form {
        Form::Body => format!("{watcher}try {{\n{text}\n}} {end}"),
        Form::Function => format!(
            "{watcher}const look__main =\n{text}\n;try {{ return await look__main(input) }} {end}"
        ),
        Form::Expression => {
            format!("{watcher}try {{ const look__main =\n{text}\n;return await look__main }} {end}")
        }
        Form::Module => format!("{watcher}\n{text}"),
    }
}

impl Watched {
    /// What the watched script said about the error that ended it, which has this name.
    #[must_use]
    pub fn found<'t>(
        &self,
        console: impl IntoIterator<Item = &'t str>,
        name: &str,
    ) -> Option<Found> {
        let hearing = Hearing::of(console.into_iter().filter_map(|it| it.strip_prefix(MARK)));
        let note = hearing.of_end(name)?;
        let place = self.places.get(note.place)?;
        Some(words::found(&self.places, place, note))
    }
}

impl Followed {
    /// Where the script was when a limit struck, by what it said last.
    #[must_use]
    pub fn stopped<'t>(
        &self,
        console: impl IntoIterator<Item = &'t str>,
        is_recursion: bool,
    ) -> Option<Stopped> {
        let lines = console.into_iter().filter_map(|it| it.strip_prefix(MARK));
        stopped::of(&self.spots, lines, is_recursion)
    }
}

/// A stretch of the script as a message quotes it.
fn quote(script: &str, span: Span) -> String {
    let text = script.get(span.start as usize..span.end as usize);
    let words: Vec<_> = text.unwrap_or_default().split_whitespace().collect();
    shorten(&words.join(" ").replace(" .", ".").replace(" ?.", "?."))
}

/// The beginning of a long text, and its end, which is what fails.
fn shorten(text: &str) -> String {
    let count = text.chars().count();
    if count <= QUOTED_MAX {
        return text.to_owned();
    }
    let head: String = text.chars().take(QUOTED_MAX / 3).collect();
    let tail: String = text.chars().skip(count - QUOTED_MAX * 2 / 3 + 1).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests;
