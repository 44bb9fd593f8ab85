//! A script made to be watched, for a second look at one that has failed. The
//! watched script does what the script does, and says on its console what is
//! about to fail and what that was made of:
//!
//! ```text
//! data.items.map(f)   becomes   look__c(2, look__t = look__r(look__r(data, 0).items, 1, 0), look__t.map, [f])
//! ```
//!
//! What it says is heard here, and put into words with the script's own text.
//! Of values only their kind, their size and the names of their members are told.

mod heard;
mod place;
mod rewrite;
mod words;

use oxc_allocator::Allocator;
use oxc_ast_visit::Visit;
use oxc_semantic::SemanticBuilder;

use crate::check::{Form, Weight, form, parse};
use heard::Hearing;
use place::Place;

/// What all names that the watched text adds begin with, and each line that it says.
const MARK: &str = "look__";
const ERRORS: &str = include_str!("watch/errors.js");

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
    if script.len() > SCRIPT_BYTES_MAX || script.contains(MARK) {
        return None;
    }
    if Weight::of(script).too_deep_at.is_some() {
        return None;
    }
    let allocator = Allocator::default();
    let parsed = parse::parse(&allocator, "script.js", script).ok()?;
    if parsed.typescript {
        return None;
    }
    let form = form::of(&parsed.program, script);
    let built = SemanticBuilder::new().build(&parsed.program);
    let mut rewriter = rewrite::Rewriter::new(
        parsed.text,
        built.semantic.scoping(),
        matches!(form, Form::Function | Form::Module),
    );
    rewriter.visit_program(&parsed.program);
    let (text, places) = rewriter.finish();
    Some(Watched {
        text: framed(form, &text),
        places,
    })
}

/// The watched text as the guest takes it: the watcher before it, and what tells its end around it.
fn framed(form: Form, text: &str) -> String {
    let text = match text.strip_prefix("#!") {
        Some(rest) => format!("//{rest}"),
        None => text.to_owned(),
    };
    let watcher: String = ERRORS
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

#[cfg(test)]
mod tests;
