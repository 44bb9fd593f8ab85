//! Instruments a failed script, which then runs a second time to explain its failure. The
//! instrumented script behaves like the original. Before an operation fails, the script prints on
//! its console which operation fails, and where the operands came from:
//!
//! ```text
//! data.items.map(f)   becomes   look__c(2, look__t = look__r(look__r(data, 0).items, 1, 0), look__t.map, [f])
//! ```
//!
//! For a script that reached a limit, the instrumented form reports its location instead
//! ([`follow`]).
//!
//! This module reads the printed lines and turns them into messages that quote the script. The
//! lines describe values only by their kind, their size and the names of their members.

mod budget;
mod locations;
mod open_waits;
mod place;
mod return_values;
mod rewrite;
mod stop_location;
mod transcript;
mod wording;

use codegen_shared::finding::Form;
use codegen_shared::message::{Failure, InstrumentPass, Secret, Stop, Wait};
use oxc_allocator::Allocator;
use oxc_ast::ast::{BindingIdentifier, IdentifierReference};
use oxc_ast_visit::Visit;
use oxc_semantic::SemanticBuilder;
use oxc_span::Span;

use crate::check::parse::ParsedScript;
use crate::check::{form, parse};
use locations::Location;
use place::Place;
use transcript::Transcript;

/// Prefix of all names that the instrumentation adds, and of each line that it prints.
const MARK: &str = "look__";
/// In a stack, the name of a function that is passed to another function.
const CALLBACK: &str = "<callback>";
/// Maximum number of the script's characters that a message quotes.
const QUOTED_MAX: usize = 60;
/// Number of bytes read at each end of a text that is too long to quote.
const QUOTED_ENDS_BYTES: usize = 512;
/// Maximum length of a name in characters; a longer one is shortened like a quotation.
const NAME_CHARS_MAX: usize = 100;
const ERRORS: &str = include_str!("instrument/errors.js");
/// Appended to `ERRORS` when operators are instrumented too.
const CLOSER: &str = include_str!("instrument/closer.js");
const WAITS: &str = include_str!("instrument/waits.js");
const LIMITS: &str = include_str!("instrument/limits.js");
/// The line of `limits.js` that sets the first step, and whether each step is reported.
const BEGIN: &str = "let next = 1, isExact = false;";

/// Maximum size of a script that is instrumented.
const SCRIPT_BYTES_MAX: usize = 256 * 1024;

/// An instrumented script that reports errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstrumentedScript {
    pub(crate) text: String,
    places: Vec<Place>,
    /// Names that the script declares; they are suggested in place of an undeclared name.
    names: Vec<String>,
    /// Location of the script's only returned value.
    returned: Option<(u32, u32)>,
    secret: Secret,
}

fn mark(secret: Secret) -> String {
    format!("{MARK}{:016x}", secret.0)
}

/// Returns the lines that the instrumentation printed, without their prefix.
fn lines_of<'t>(
    secret: Secret,
    console: impl IntoIterator<Item = &'t str>,
) -> impl Iterator<Item = &'t str> {
    let mark = mark(secret);
    let lines = console.into_iter();
    lines.filter_map(move |it| it.strip_prefix(mark.as_str()))
}

/// Instruments a script without types. Returns `None` if that is impossible or too much work. The
/// secret must be new for each script.
#[must_use]
pub(crate) fn instrument(
    script: &str,
    secret: Secret,
    look: InstrumentPass,
) -> Option<InstrumentedScript> {
    read(script, |parsed, form| {
        let built = SemanticBuilder::new().build(&parsed.program);
        let scoping = built.semantic.scoping();
        let mut rewriter = rewrite::Rewriter::new(parsed, scoping, look, form);
        rewriter.visit_program(&parsed.program);
        let (text, places) = rewriter.finish()?;
        let more = match look {
            InstrumentPass::Calls => "",
            InstrumentPass::Operators => CLOSER,
            InstrumentPass::Awaits => WAITS,
        };
        let watcher = format!("{ERRORS}{more}");
        let text = framed(form, &watcher, secret, &own(parsed, text));
        let names = scoping.symbol_names().map(str::to_owned).collect();
        Some(InstrumentedScript {
            text,
            places,
            names,
            returned: return_values::place(parsed, form),
            secret,
        })
    })
}

/// An instrumented script that reports its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TracedScript {
    pub(crate) text: String,
    script: String,
    spots: Vec<Location>,
    secret: Secret,
}

/// Instruments a script that reached a limit, so that it reports its location. From step `from` on,
/// it reports each step; an earlier pass returned that step.
#[must_use]
pub(crate) fn follow(script: &str, secret: Secret, from: Option<u64>) -> Option<TracedScript> {
    read(script, |parsed, form| {
        let is_one = matches!(form, Form::Function | Form::Expression);
        let mut ticker = locations::LocationWriter::new(parsed, is_one);
        ticker.visit_program(&parsed.program);
        let (text, spots) = ticker.finish()?;
        let limits = match from {
            Some(from) => LIMITS.replace(BEGIN, &format!("let next = {from}, isExact = true;")),
            None => LIMITS.to_owned(),
        };
        let text = framed(form, &limits, secret, &own(parsed, text));
        Some(TracedScript {
            text,
            script: parsed.text.to_owned(),
            spots,
            secret,
        })
    })
}

fn read<T>(script: &str, make: impl FnOnce(&ParsedScript<'_>, Form) -> Option<T>) -> Option<T> {
    if script.len() > SCRIPT_BYTES_MAX || script.contains(MARK) {
        return None;
    }
    let allocator = Allocator::default();
    let parsed = parse::parse(&allocator, false, script).ok()?;
    if parsed.typescript || (script.contains('\\') && EscapedNameFinder::is_in(&parsed)) {
        return None;
    }
    let form = form::detect(&parsed.program, script);
    make(&parsed, form)
}

/// Finds a name of the instrumentation that the script writes with escapes, because a text search
/// does not find such a name.
struct EscapedNameFinder {
    is_there: bool,
}

impl EscapedNameFinder {
    fn is_in(parsed: &ParsedScript<'_>) -> bool {
        let mut looking = Self { is_there: false };
        looking.visit_program(&parsed.program);
        looking.is_there
    }
}

impl<'a> Visit<'a> for EscapedNameFinder {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.is_there |= it.name.starts_with(MARK);
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.is_there |= it.name.starts_with(MARK);
    }
}

/// Removes the parentheses in which a function without a name was parsed. They are not needed,
/// because the function is placed where an expression is allowed.
fn own(parsed: &ParsedScript<'_>, text: String) -> String {
    if parsed.shift == 0 {
        return text;
    }
    let inside = text.strip_prefix('(').and_then(|it| it.strip_suffix("\n)"));
    inside.map_or_else(|| text.clone(), str::to_owned)
}

/// Builds the script for the guest: the runtime code of the instrumentation, then the script in a
/// wrapper that reports how the script ended.
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

impl InstrumentedScript {
    /// Explains the error that ended the script, from what the script printed; `name` is the
    /// error's name.
    pub(crate) fn failure<'t>(
        &self,
        console: impl IntoIterator<Item = &'t str>,
        name: &str,
    ) -> Option<Failure> {
        let transcript = Transcript::parse(lines_of(self.secret, console));
        let Some(note) = transcript.of_end(name) else {
            return self.not_returned(&transcript);
        };
        let place = self.places.get(note.place)?;
        let mut found = wording::failure(&self.places, &self.names, place, note);
        found.because = note.because.and_then(|number| {
            let note = transcript.note(number)?;
            let place = self.places.get(note.place)?;
            Some(wording::because(&self.places, &self.names, place, note))
        });
        Some(found)
    }

    /// Returns the location of the `return` whose value could not be serialised. Returns `None` if
    /// an error ended the script.
    fn not_returned(&self, transcript: &Transcript) -> Option<Failure> {
        let (line, column) = self.returned.filter(|_| !transcript.has_end())?;
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

    /// Returns what the script was waiting for when no event was left to continue it.
    pub(crate) fn wait<'t>(&self, console: impl IntoIterator<Item = &'t str>) -> Option<Wait> {
        open_waits::locate(&self.places, lines_of(self.secret, console))
    }
}

impl TracedScript {
    /// Returns where the script was when it reached a limit, from its last report.
    pub(crate) fn stop<'t>(
        &self,
        console: impl IntoIterator<Item = &'t str>,
        is_recursion: bool,
    ) -> Option<Stop> {
        let lines = lines_of(self.secret, console);
        stop_location::locate(&self.script, &self.spots, lines, is_recursion)
    }
}

/// Quotes a range of the script for a message.
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
    // Erased types have left blanks in the script.
    for (wide, narrow) in [(" .", "."), (" ?.", "?."), (" )", ")")] {
        line = line.replace(wide, narrow);
    }
    line
}

/// Returns a name of the script for a message, shortened if it is long.
fn name(text: &str) -> String {
    if text.chars().nth(NAME_CHARS_MAX).is_some() {
        return shorten(text);
    }
    text.to_owned()
}

/// Keeps the beginning and the end of a long text; the failing part is at the end.
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
