//! The check before a run: from what `codegen` finds to what the run machine
//! and the report know of it.

use std::collections::HashSet;

use airlock_core::catalog::Tool;
use airlock_core::code::Code;
use airlock_core::decide::Standing;
use airlock_core::effect::GuestUsage;
use airlock_core::limits::{Limit, Limits};
use airlock_core::report::{ReportedError, ReportedFinding, ReportedSeverity};
use airlock_core::run::ScriptCheck;
use codegen::check::typed::{Page, TypedFinding};
use codegen::check::{Checked, Finding, FindingCode, Form, Severity, Surface};

use super::shelf::Known;
use super::{Cancel, Inner, Script};
use crate::budget::{Busy, Share};
use crate::config::Secrets;
use crate::sandbox::{CheckLimits, Checker, JsEngine};
use crate::tsc::{Compiler, Heard};

/// What a certain finding does to a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Check {
    /// It stops the run before any effect.
    #[default]
    Stop,
    /// It stands in the report, and the script runs as far as it gets.
    Warn,
}

/// What can be said of a script without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// How the script is written, when it can be parsed.
    pub form: Option<Form>,
    /// Whether it has types, which are taken out before it runs.
    pub is_typescript: bool,
    pub findings: Vec<ReportedFinding>,
    /// Findings beyond the bound, which are counted and not kept.
    pub findings_dropped: usize,
}

impl CheckReport {
    /// Whether a run of the script would be stopped.
    #[must_use]
    pub fn has_error(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|it| it.severity == ReportedSeverity::Error)
    }

    /// Of a script against the tools of `surface`.
    pub(crate) async fn of(
        (name, text): (&str, &str),
        surface: Surface<'_>,
        secrets: &Secrets,
        compiler: &Compiler,
        limits: &CheckLimits,
    ) -> Self {
        let (checked, _) = check(name, text, surface, limits).await;
        let heard = ask(compiler, name, text, &checked, &surface).await;
        let (findings, dropped) = all(&checked, heard, secrets);
        Self {
            form: checked.form,
            is_typescript: checked.blanked.is_some(),
            findings,
            findings_dropped: checked.findings_dropped + dropped,
        }
    }

    /// Of a script that is not even looked at.
    pub(super) fn too_long(limits: &Limits) -> Self {
        let next = "Make the script smaller.";
        Self::unread(Code::LimitSource, limits.says(Limit::Source), next)
    }

    /// Of a script for which there was no room.
    pub(super) fn busy(busy: &Busy) -> Self {
        Self::unread(Code::Busy, busy.to_string(), "Check it again later.")
    }

    fn unread(code: Code, message: String, next: &str) -> Self {
        let finding = ReportedFinding {
            severity: ReportedSeverity::Error,
            code: code.as_str().to_owned(),
            line: 0,
            column: 0,
            message,
            suggestion: Some(next.to_owned()),
        };
        Self {
            form: None,
            is_typescript: false,
            findings: vec![finding],
            findings_dropped: 0,
        }
    }
}

/// What the run machine is told. Of a tool that was not disclosed, and of one whose calls are
/// refused because it has changed, no finding says what it takes.
pub(super) async fn before_run(
    script: &Script,
    broker: &Inner,
    (known, standing): (&Known, &Standing),
    (share, cancel): (&Share, &Cancel),
) -> ScriptCheck {
    let limits = broker.limits_of(script);
    if script.text.len() > limits.script_bytes_max as usize {
        return ScriptCheck::default();
    }
    let told = told(known, standing);
    let lacking = broker.sandbox.engine().map_or(&[][..], JsEngine::lacks);
    let surface = known.surface().telling(&told).lacking(lacking);
    let (name, text) = (&script.name, &script.text);
    let check_limits = CheckLimits::of(&limits).within(share.clone());
    let check_limits = check_limits.stopped_by(cancel.stop_handle().clone());
    let (checked, usage) = check(name, text, surface, &check_limits).await;
    let stops = script.check == Check::Stop;
    let error = checked.first_error().filter(|_| stops);
    let asking = ask(&broker.compiler, name, text, &checked, &surface);
    let heard = cancel.or(asking).await.unwrap_or(Heard::Nobody);
    ScriptCheck {
        rejection: error.map(|it| rejection(it, name, &broker.secrets)),
        findings: all(&checked, heard, &broker.secrets).0,
        blanked: checked.blanked,
        guest_cpu_us: usage.guest_cpu_us,
    }
}

async fn ask(
    compiler: &Compiler,
    name: &str,
    text: &str,
    checked: &Checked,
    surface: &Surface<'_>,
) -> Heard {
    if compiler.is_nobody() {
        return Heard::Nobody;
    }
    match Page::of(name, text, checked, surface) {
        Some(page) => compiler.ask(&page, &checked.findings).await,
        None => Heard::Nobody,
    }
}

/// Which descriptions may be told of, in their order; empty when all may.
fn told(known: &Known, standing: &Standing) -> Vec<bool> {
    let may_tell =
        |tool: &Tool| tool.pinned != Some(false) && !tool.stale && standing.disclosed.allows(tool);
    let hidden: HashSet<(&str, &str)> = standing
        .catalog
        .tools()
        .filter(|tool| !may_tell(tool))
        .map(|tool| (&*tool.id.server.0, &*tool.id.tool.0))
        .collect();
    if hidden.is_empty() {
        return Vec::new();
    }
    let descriptions = known.descriptions.iter();
    descriptions
        .map(|it| !hidden.contains(&(&*it.server, &*it.name)))
        .collect()
}

async fn check(
    name: &str,
    text: &str,
    surface: Surface<'_>,
    limits: &CheckLimits,
) -> (Checked, GuestUsage) {
    match Checker::embedded() {
        Ok(checker) => checker.check(name, text, &surface, limits).await,
        Err(why) => {
            let finding = Finding {
                severity: Severity::Error,
                code: FindingCode::TooComplex,
                line: 1,
                column: 1,
                message: format!("the script cannot be checked: {why}"),
                suggestion: Some("Run it again when the machine has room.".to_owned()),
            };
            let checked = Checked {
                form: None,
                blanked: None,
                findings: vec![finding],
                findings_dropped: 0,
            };
            (checked, GuestUsage::default())
        }
    }
}

/// Everything that was found, in the order of the script, and how much was left out.
fn all(checked: &Checked, heard: Heard, secrets: &Secrets) -> (Vec<ReportedFinding>, usize) {
    let mut findings: Vec<_> = checked.findings.iter().map(of_check).collect();
    let mut dropped = 0;
    match heard {
        Heard::Nobody => {}
        Heard::Findings(typed) => {
            findings.extend(typed.kept.into_iter().map(of_compiler));
            findings.sort_by_key(|it| (it.line, it.column));
            dropped = typed.dropped;
        }
        Heard::Nothing { why } => findings.push(unheard(&why)),
    }
    // A script may hold a credential, and a finding quotes the script.
    for found in &mut findings {
        secrets.strike_text(&mut found.message);
        let suggestion = found.suggestion.iter_mut();
        suggestion.for_each(|text| secrets.strike_text(text));
    }
    (findings, dropped)
}

fn of_check(it: &Finding) -> ReportedFinding {
    ReportedFinding {
        severity: match it.severity {
            Severity::Error => ReportedSeverity::Error,
            Severity::Warning => ReportedSeverity::Warning,
        },
        code: it.code.as_str().to_owned(),
        line: it.line,
        column: it.column,
        message: it.message.clone(),
        suggestion: it.suggestion.clone(),
    }
}

/// Much that a compiler calls an error runs well.
fn of_compiler(it: TypedFinding) -> ReportedFinding {
    ReportedFinding {
        severity: ReportedSeverity::Warning,
        code: it.code,
        line: it.line,
        column: it.column,
        message: it.message,
        suggestion: it.suggestion,
    }
}

/// The compiler is a help, and the run does without.
fn unheard(why: &str) -> ReportedFinding {
    ReportedFinding {
        severity: ReportedSeverity::Note,
        code: "tsc-unheard".to_owned(),
        line: 0,
        column: 0,
        message: format!("the TypeScript compiler has no part in this check: {why}"),
        suggestion: Some(
            "Choose another one with `--tsc`, or none with `--no-tsc`; in a configuration file: `tsc = …`."
                .to_owned(),
        ),
    }
}

fn rejection(finding: &Finding, script: &str, secrets: &Secrets) -> ReportedError {
    let (name, code) = match finding.code {
        FindingCode::TooComplex => ("CheckError", Code::ScriptTooComplex),
        code if code.is_syntax() => ("SyntaxError", Code::ScriptError),
        _ => ("CheckError", Code::CheckFailed),
    };
    let mut message = finding.to_string();
    secrets.strike_text(&mut message);
    ReportedError {
        name: name.to_owned(),
        message,
        code,
        line: Some(finding.line),
        column: Some(finding.column),
        stack: format!("    at {script}:{}:{}", finding.line, finding.column),
    }
}
