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

mod budget;
mod heard;
mod place;
mod returned;
mod rewrite;
mod stopped;
mod ticks;
mod waiting;
mod words;

use codegen_shared::finding::Form;
use codegen_shared::message::{Failure, Look, Secret, Stop, Wait};
use oxc_allocator::Allocator;
use oxc_ast::ast::{BindingIdentifier, IdentifierReference};
use oxc_ast_visit::Visit;
use oxc_semantic::SemanticBuilder;
use oxc_span::Span;

use crate::check::parse::Parsed;
use crate::check::{form, parse};
use heard::Hearing;
use place::Place;
use ticks::Spot;

/// What all names that the watched text adds begin with, and each line that it says.
const MARK: &str = "look__";
/// What a function is called that is handed to another.
const CALLBACK: &str = "<callback>";
/// Characters of the script that a message quotes.
const QUOTED_MAX: usize = 60;
/// Bytes at each end of a longer stretch that are looked at for that.
const QUOTED_ENDS_BYTES: usize = 512;
/// Names beyond this are told as a stretch is.
const NAME_CHARS_MAX: usize = 100;
const ERRORS: &str = include_str!("instrument/errors.js");
/// What stands behind it where more is watched.
const CLOSER: &str = include_str!("instrument/closer.js");
const WAITS: &str = include_str!("instrument/waits.js");
const LIMITS: &str = include_str!("instrument/limits.js");
/// Where it is written from which pass on what is said.
const BEGIN: &str = "let next = 1, isExact = false;";

/// Larger scripts are not looked at twice.
const SCRIPT_BYTES_MAX: usize = 256 * 1024;

/// A watched script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instrumented {
    pub(crate) text: String,
    places: Vec<Place>,
    /// What the script declares, for a name that nothing does.
    names: Vec<String>,
    /// Where the script's only value is returned.
    returned: Option<(u32, u32)>,
    secret: Secret,
}

fn mark(secret: Secret) -> String {
    format!("{MARK}{:016x}", secret.0)
}

/// The lines of the instrumentation, without their mark.
fn lines_of<'t>(
    secret: Secret,
    console: impl IntoIterator<Item = &'t str>,
) -> impl Iterator<Item = &'t str> {
    let mark = mark(secret);
    let lines = console.into_iter();
    lines.filter_map(move |it| it.strip_prefix(mark.as_str()))
}

/// The watched form of a script without types; `None` when it cannot be had, or not without more
/// work than it is worth./// The caller takes another secret each time.
#[must_use]
pub(crate) fn instrument(script: &str, secret: Secret, look: Look) -> Option<Instrumented> {
    read(script, |parsed, form| {
        let built = SemanticBuilder::new().build(&parsed.program);
        let scoping = built.semantic.scoping();
        let mut rewriter = rewrite::Rewriter::new(parsed, scoping, look, form);
        rewriter.visit_program(&parsed.program);
        let (text, places) = rewriter.finish()?;
        let more = match look {
            Look::First => "",
            Look::Closer => CLOSER,
            Look::Waits => WAITS,
        };
        let watcher = format!("{ERRORS}{more}");
        let text = framed(form, &watcher, secret, &own(parsed, text));
        let names = scoping.symbol_names().map(str::to_owned).collect();
        Some(Instrumented {
            text,
            places,
            names,
            returned: returned::place(parsed, form),
            secret,
        })
    })
}

/// A script that says where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Followed {
    pub(crate) text: String,
    script: String,
    spots: Vec<Spot>,
    secret: Secret,
}

/// The same script, as one that says where it is, for a second look at one that met a limit. From
/// a pass on that an earlier look heard of last, it says so at each.
#[must_use]
pub(crate) fn follow(script: &str, secret: Secret, from: Option<u64>) -> Option<Followed> {
    read(script, |parsed, form| {
        let is_one = matches!(form, Form::Function | Form::Expression);
        let mut ticker = ticks::Ticker::new(parsed, is_one);
        ticker.visit_program(&parsed.program);
        let (text, spots) = ticker.finish()?;
        let limits = match from {
            Some(from) => LIMITS.replace(BEGIN, &format!("let next = {from}, isExact = true;")),
            None => LIMITS.to_owned(),
        };
        let text = framed(form, &limits, secret, &own(parsed, text));
        Some(Followed {
            text,
            script: parsed.text.to_owned(),
            spots,
            secret,
        })
    })
}

fn read<T>(script: &str, make: impl FnOnce(&Parsed<'_>, Form) -> Option<T>) -> Option<T> {
    if script.len() > SCRIPT_BYTES_MAX || script.contains(MARK) {
        return None;
    }
    let allocator = Allocator::default();
    let parsed = parse::parse(&allocator, false, script).ok()?;
    if parsed.typescript || (script.contains('\\') && Escaped::is_in(&parsed)) {
        return None;
    }
    let form = form::of(&parsed.program, script);
    make(&parsed, form)
}

/// Looks for a name of the watcher's that is written with escapes, which the text does not show.
struct Escaped {
    is_there: bool,
}

impl Escaped {
    fn is_in(parsed: &Parsed<'_>) -> bool {
        let mut looking = Self { is_there: false };
        looking.visit_program(&parsed.program);
        looking.is_there
    }
}

impl<'a> Visit<'a> for Escaped {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.is_there |= it.name.starts_with(MARK);
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.is_there |= it.name.starts_with(MARK);
    }
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
fn framed(form: Form, watcher: &str, secret: Secret, text: &str) -> String {
    let text = match text.strip_prefix("#!") {
        Some(rest) => format!("//{rest}"),
        None => text.to_owned(),
    };
    let watcher: String = watcher
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |all, line| all + line.trim() + "\n")
        .replace("'look__'", &format!("'{}'", mark(secret)));
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

impl Instrumented {
    /// What the watched script said about the error that ended it, which has this name.
    pub(crate) fn failure<'t>(
        &self,
        console: impl IntoIterator<Item = &'t str>,
        name: &str,
    ) -> Option<Failure> {
        let hearing = Hearing::of(lines_of(self.secret, console));
        let Some(note) = hearing.of_end(name) else {
            return self.not_returned(&hearing);
        };
        let place = self.places.get(note.place)?;
        let mut found = words::failure(&self.places, &self.names, place, note);
        found.because = note.because.and_then(|number| {
            let note = hearing.note(number)?;
            let place = self.places.get(note.place)?;
            Some(words::because(&self.places, &self.names, place, note))
        });
        Some(found)
    }

    /// Where the value was returned that could not be: nothing ended the script before.
    fn not_returned(&self, hearing: &Hearing) -> Option<Failure> {
        let (line, column) = self.returned.filter(|_| !hearing.has_end())?;
        Some(Failure {
            line,
            column,
            message: None,
            because: None,
            stack: Vec::new(),
            is_around: true,
            is_sure: true,
        })
    }

    /// What the script was waiting for when nothing was left to happen.
    pub(crate) fn wait<'t>(&self, console: impl IntoIterator<Item = &'t str>) -> Option<Wait> {
        waiting::of(&self.places, lines_of(self.secret, console))
    }
}

impl Followed {
    /// Where the script was when a limit struck, by what it said last.
    pub(crate) fn stop<'t>(
        &self,
        console: impl IntoIterator<Item = &'t str>,
        is_recursion: bool,
    ) -> Option<Stop> {
        let lines = lines_of(self.secret, console);
        stopped::of(&self.script, &self.spots, lines, is_recursion)
    }
}

/// A stretch of the script as a message quotes it.
fn quote(script: &str, span: Span) -> String {
    let text = script.get(span.start as usize..span.end as usize);
    let text = text.unwrap_or_default();
    if text.len() <= QUOTED_ENDS_BYTES * 2 {
        return shorten(&in_one_line(text));
    }
    let (head, _) = text.split_at(text.floor_char_boundary(QUOTED_ENDS_BYTES));
    let (_, tail) = text.split_at(text.ceil_char_boundary(text.len() - QUOTED_ENDS_BYTES));
    ends(&in_one_line(head), &in_one_line(tail))
}

fn in_one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let mut line = words.join(" ");
    // Types are blanks in a script that had some.
    for (wide, narrow) in [(" .", "."), (" ?.", "?."), (" )", ")")] {
        line = line.replace(wide, narrow);
    }
    line
}

/// A name of the script, or what a message says of a long one.
fn name(text: &str) -> String {
    if text.chars().nth(NAME_CHARS_MAX).is_some() {
        return shorten(text);
    }
    text.to_owned()
}

/// The beginning of a long text, and its end, which is what fails.
fn shorten(text: &str) -> String {
    if text.chars().nth(QUOTED_MAX).is_none() {
        return text.to_owned();
    }
    ends(text, text)
}

fn ends(head: &str, tail: &str) -> String {
    let head: String = head.chars().take(QUOTED_MAX / 3).collect();
    let behind = QUOTED_MAX * 2 / 3 - 1;
    let from = tail.char_indices().rev().nth(behind - 1);
    let tail = tail.split_at(from.map_or(0, |(at, _)| at)).1;
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests;
