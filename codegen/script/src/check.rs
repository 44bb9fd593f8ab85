//! The check before a run: finds every error in a script that can be known before the run. The
//! script is parsed once for syntax errors, its form, the removal of types, and the findings about
//! calls.
//!
//! A finding of severity [`Severity::Error`](codegen_shared::finding::Severity) is certain: the
//! line cannot work, whatever the input. A likely mistake is a warning. The check does not run the
//! script, and it does not replace the validation of each call.
//!
//! The parser recurses without a depth limit of its own. The sandbox around the guest limits its
//! stack.

mod awaiting;
mod callbacks;
mod calls;
mod context;
mod erase_types;
mod expect;
mod findings;
pub(crate) mod form;
mod names;
pub(crate) mod parse;
mod refuse;
mod results;
mod static_value;
mod surface;
mod values;
mod zones;

use codegen_shared::finding::{CheckResult, FindingCode, Form};
use codegen_shared::lines::Lines;
use codegen_shared::message::{CheckRequest, Reply};
use guest_common::nesting;
use oxc_allocator::Allocator;
use oxc_semantic::SemanticBuilder;
use sandbox_protocol::codec::CodecError;

pub(crate) use names::is_global;
pub(crate) use results::OF_AN_ARRAY;

use context::CheckContext;
use findings::Findings;
use parse::ParsedScript;
use surface::Surface;

/// Checks a script, or returns the tools whose shapes the check needs.
pub(crate) fn check(request: &CheckRequest<'_>) -> Result<Reply, CodecError> {
    let surface = Surface::decode(request)?;
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

fn check_parsed(text: &str, parsed: &ParsedScript<'_>, surface: &Surface<'_>) -> CheckResult {
    let mut findings = Findings::new(Lines::new(parsed.text, parsed.shift));
    let built = SemanticBuilder::new()
        .with_build_nodes(true)
        .with_check_syntax_error(true)
        .build(&parsed.program);
    parse::report(&built, &mut findings);
    let semantic = &built.semantic;
    refuse::refuse(semantic, &mut findings);
    let blanked = parsed
        .typescript
        .then(|| erase_types::erase_types(semantic, parsed));
    let own = blanked.as_deref().unwrap_or(text);
    let form = form::detect(&parsed.program, own);
    form::check(&parsed.program, form, parsed, &mut findings);
    refuse_deep_nesting(own, &mut findings);
    if !findings.has_error() {
        let mut reading = CheckContext::new(semantic, surface, form, findings);
        reading.read();
        findings = reading.findings;
    }
    finish(Some(form), blanked.filter(|it| it != text), findings)
}

/// Returns the line and column of the bracket that exceeds the depth limit.
pub(crate) fn too_deep_at(text: &str) -> Option<(u32, u32)> {
    // The scan stops after the bracket.
    let (line, column) = nesting::scan(text).too_deep_at?;
    Some((line, column.saturating_sub(1).max(1)))
}

/// Reports nesting that the engines refuse too; they use the same scan.
fn refuse_deep_nesting(text: &str, findings: &mut Findings<'_>) {
    if let Some(place) = too_deep_at(text) {
        findings.error_at(
            FindingCode::TooDeep,
            place,
            "the script is nested too deeply".to_owned(),
            Some("Move inner parts into variables.".to_owned()),
        );
    }
}

fn finish(form: Option<Form>, blanked: Option<String>, findings: Findings<'_>) -> CheckResult {
    let (findings, findings_dropped) = findings.into_sorted();
    CheckResult {
        form,
        blanked,
        findings,
        findings_dropped,
    }
}
