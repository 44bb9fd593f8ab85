//! The check before a run: everything that can be known to be wrong with a
//! script before anything happens. One parse serves the syntax errors, the form,
//! the blanking of types, and the findings about calls.
//!
//! A finding of severity [`Severity::Error`](codegen_shared::finding::Severity) is certain: the
//! line cannot do what it says, whatever the input. What is only likely is a warning. Nothing here
//! runs the script, and nothing replaces the validation of each call.
//!
//! The parser recurses, and how deep a script takes it has no bound here: the sandbox around the
//! guest has one.

mod awaiting;
mod blank;
mod calls;
mod classes;
mod expect;
mod findings;
pub(crate) mod form;
mod known;
mod names;
pub(crate) mod parse;
mod reading;
mod refuse;
mod results;
mod surface;
mod values;
mod zones;

use codegen_shared::finding::{Checked, FindingCode, Form};
use codegen_shared::lines::Lines;
use codegen_shared::message::{CheckRequest, Reply};
use guest_common::nesting;
use oxc_allocator::Allocator;
use oxc_semantic::SemanticBuilder;
use sandbox_protocol::codec::CodecError;

pub(crate) use names::is_global;
pub(crate) use results::OF_AN_ARRAY;

use findings::Findings;
use parse::Parsed;
use reading::Reading;
use surface::Surface;

/// Checks a script, or says of which tools it needs the shapes for that.
pub(crate) fn check(request: &CheckRequest<'_>) -> Result<Reply, CodecError> {
    let surface = Surface::of(request)?;
    let text = request.script;
    let allocator = Allocator::default();
    let checked = match parse::parse(&allocator, request.is_typescript, text) {
        Err(wrong) => {
            let mut findings = Findings::new(Lines::new(text, 0));
            refuse_deep_nesting(text, &mut findings);
            if !findings.has_error() {
                findings.error(FindingCode::Syntax, wrong.at, wrong.message, wrong.help);
            }
            finish(None, None, findings)
        }
        Ok(parsed) => check_parsed(text, &parsed, &surface),
    };
    let wanted = surface.into_wanted();
    Ok(if wanted.is_empty() {
        Reply::Checked(checked)
    } else {
        Reply::ShapesWanted(wanted)
    })
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
    refuse_deep_nesting(own, &mut findings);
    if !findings.has_error() {
        let mut reading = Reading::new(semantic, surface, form, findings);
        reading.read();
        findings = reading.findings;
    }
    finish(Some(form), blanked.filter(|it| it != text), findings)
}

/// Line and column of what opens one level too many.
pub(crate) fn too_deep_at(text: &str) -> Option<(u32, u32)> {
    // The scan stops behind it.
    let (line, column) = nesting::scan(text).too_deep_at?;
    Some((line, column.saturating_sub(1).max(1)))
}

/// The engines refuse what nests this deeply, with the same scan.
fn refuse_deep_nesting(text: &str, findings: &mut Findings<'_>) {
    if let Some(place) = too_deep_at(text) {
        findings.error_at(
            FindingCode::TooDeep,
            place,
            "the script is nested too deeply".to_owned(),
            Some("Give inner parts names of their own.".to_owned()),
        );
    }
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
