//! The check before a run: everything that can be known to be wrong with a
//! script before anything happens. One parse serves the syntax errors, the form,
//! the blanking of types, and the findings about calls.
//!
//! A finding of severity [`Severity::Error`] is certain: the line cannot do what
//! it says, whatever the input. What is only likely is a warning. Nothing here
//! runs the script, and nothing replaces the validation of each call.
//!
//! The parser recurses: see [`Weight`] for the stack that a script may need.

mod awaiting;
mod blank;
mod calls;
mod classes;
mod expect;
mod finding;
pub(crate) mod form;
mod known;
pub(crate) mod lines;
mod names;
pub(crate) mod parse;
mod reading;
mod refuse;
mod results;
mod surface;
pub mod typed;
mod values;
mod weight;
mod zones;

use oxc_allocator::Allocator;
use oxc_semantic::SemanticBuilder;

pub use calls::ASKED_BY_THE_LANGUAGE;
pub use finding::{Finding, FindingCode, Severity};
pub use form::Form;
pub use names::is_global;
pub(crate) use results::OF_AN_ARRAY;
pub use surface::{Absent, Surface};
pub use weight::{STACK_BYTES_MIN, Weight};

use finding::Findings;
use lines::Lines;
use parse::Parsed;
use reading::Reading;

/// What the check found out about a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// How the script is written; unknown when it cannot be parsed.
    pub form: Option<Form>,
    /// The script with its types blanked. Absent when there are none: then it runs as it is.
    pub blanked: Option<String>,
    /// In the order of their places.
    pub findings: Vec<Finding>,
    /// Findings beyond the bound, which are counted and not kept: so many at least, since what has
    /// that much wrong with it is not read to its end.
    pub findings_dropped: usize,
}

impl Checked {
    /// The first finding that stops a run.
    #[must_use]
    pub fn first_error(&self) -> Option<&Finding> {
        self.findings
            .iter()
            .find(|finding| finding.severity == Severity::Error)
    }
}

/// Checks a script. Its `name` counts only for its ending: `.ts` is always TypeScript.
#[must_use]
pub fn check(name: &str, text: &str, surface: &Surface<'_>) -> Checked {
    let mut findings = Findings::new(Lines::new(text, 0));
    if let Some(at) = Weight::of(text).too_deep_at {
        findings.error(
            FindingCode::TooDeep,
            at,
            "the script is nested too deeply".to_owned(),
            Some("Give inner parts names of their own.".to_owned()),
        );
        return finish(None, None, findings);
    }
    let allocator = Allocator::default();
    match parse::parse(&allocator, name, text) {
        Err(wrong) => {
            findings.error(FindingCode::Syntax, wrong.at, wrong.message, wrong.help);
            finish(None, None, findings)
        }
        Ok(parsed) => check_parsed(text, &parsed, surface),
    }
}

fn check_parsed(text: &str, parsed: &Parsed<'_>, surface: &Surface<'_>) -> Checked {
    let mut findings = Findings::new(Lines::new(parsed.text, parsed.shift));
    let built = SemanticBuilder::new()
        .with_build_nodes(true)
        .with_check_syntax_error(true)
        .build(&parsed.program);
    parse::report(&built, &mut findings);
    let semantic = &built.semantic;
    refuse::refuse(semantic, &mut findings);
    let blanked = parsed.typescript.then(|| blank::blank(semantic, parsed));
    let own = blanked.as_deref().unwrap_or(text);
    let form = form::of(&parsed.program, own);
    form::check(&parsed.program, form, parsed, &mut findings);
    if !findings.has_error() {
        let mut reading = Reading::new(semantic, *surface, form, findings);
        reading.read();
        findings = reading.findings;
    }
    finish(Some(form), blanked.filter(|it| it != text), findings)
}

fn finish(form: Option<Form>, blanked: Option<String>, findings: Findings<'_>) -> Checked {
    let (findings, findings_dropped) = findings.into_sorted();
    Checked {
        form,
        blanked,
        findings,
        findings_dropped,
    }
}
