//! The check before a run: converts the findings of `codegen` for the run machine and the report.

use std::collections::HashMap;

use airlock_core::catalog::Tool;
use airlock_core::code::Code;
use airlock_core::decide::DecisionContext;
use airlock_core::effect::GuestUsage;
use airlock_core::limits::{Limit, Limits};
use airlock_core::report::{ReportedError, ReportedFinding, ReportedSeverity};
use airlock_core::run::ScriptCheck;
use codegen::check::typed::{Page, TypedFinding};
use codegen::check::{CheckResult, Finding, FindingCode, Form, Severity, Surface, ToolMention};
use codegen::description::Description;

use super::tool_snapshot::ToolSnapshot;
use super::{Cancel, CheckPolicy, Inner, Script};
use crate::secrets::Secrets;
use crate::tsc::{Compiler, TscOutcome};
use airlock_sandbox::budget::{Busy, RunShare};
use airlock_sandbox::{CheckLimits, Checker, JsEngine};

/// The result of checking a script without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// The form of the script, if it can be parsed.
    pub form: Option<Form>,
    /// Whether the script has types, which are removed before it runs.
    pub is_typescript: bool,
    pub findings: Vec<ReportedFinding>,
    /// The number of findings beyond the maximum. They are counted, not kept.
    pub findings_dropped: usize,
}

impl CheckReport {
    /// Returns whether a run of the script would be stopped.
    #[must_use]
    pub fn has_error(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|it| it.severity == ReportedSeverity::Error)
    }

    /// Checks a script against the tools of `surface`.
    pub(crate) async fn new(
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

    /// Returns the report for a script that is too long to be read.
    pub(super) fn too_long(limits: &Limits) -> Self {
        let next = "Make the script smaller.";
        Self::unread(Code::LimitSource, limits.says(Limit::Source), next)
    }

    /// Returns the report for a script that got no share of the budget.
    pub(super) fn busy(busy: &Busy) -> Self {
        Self::unread(
            Code::Busy,
            busy.to_string(),
            "Check the script again later.",
        )
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

/// Checks a script for the run machine. No finding reveals the parameters of a tool that was not
/// disclosed, or of a tool that is refused because it has changed.
pub(super) async fn before_run(
    script: &Script,
    broker: &Inner,
    (known, decision_context): (&ToolSnapshot, &DecisionContext),
    (share, cancel): (&RunShare, &Cancel),
) -> ScriptCheck {
    let limits = broker.limits_of(script);
    if script.text.len() > limits.script_bytes_max as usize {
        return ScriptCheck::default();
    }
    let mentions = mentions(known, decision_context);
    let lacking = broker.sandbox.engine().map_or(&[][..], JsEngine::lacks);
    let surface = known.surface().mentioning(&mentions).lacking(lacking);
    let (name, text) = (&script.name, &script.text);
    let check_limits = CheckLimits::from_limits(&limits).within(share.clone());
    let check_limits = check_limits.stopped_by(cancel.stop_handle().clone());
    let (checked, usage) = check(name, text, surface, &check_limits).await;
    let stops = script.check == CheckPolicy::Stop;
    let error = checked.first_error().filter(|_| stops);
    let asking = ask(&broker.compiler, name, text, &checked, &surface);
    let heard = cancel.or(asking).await.unwrap_or(TscOutcome::NotAsked);
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
    checked: &CheckResult,
    surface: &Surface<'_>,
) -> TscOutcome {
    if compiler.is_disabled() {
        return TscOutcome::NotAsked;
    }
    match Page::new(name, text, checked, surface) {
        Some(page) => compiler.ask(&page, &checked.findings).await,
        None => TscOutcome::NotAsked,
    }
}

/// Returns for each description, in order, what findings may contain about its tool. The result is
/// empty if they may describe all tools.
pub(super) fn mentions(
    known: &ToolSnapshot,
    decision_context: &DecisionContext,
) -> Vec<ToolMention> {
    let may_tell = |tool: &Tool| {
        tool.pinned != Some(false) && !tool.stale && decision_context.disclosed.allows(tool)
    };
    let limited: HashMap<(&str, &str), ToolMention> = decision_context
        .catalog
        .tools()
        .filter_map(|tool| {
            let mention = match () {
                () if tool.denied => ToolMention::Nothing,
                () if !may_tell(tool) => ToolMention::Name,
                () => return None,
            };
            Some(((&*tool.id.server.0, &*tool.id.tool.0), mention))
        })
        .collect();
    if limited.is_empty() {
        return Vec::new();
    }
    let mention = |it: &Description| limited.get(&(&*it.server, &*it.name)).copied();
    let all = known.descriptions.iter();
    all.map(|it| mention(it).unwrap_or(ToolMention::Everything))
        .collect()
}

async fn check(
    name: &str,
    text: &str,
    surface: Surface<'_>,
    limits: &CheckLimits,
) -> (CheckResult, GuestUsage) {
    match Checker::embedded() {
        Ok(checker) => checker.check(name, text, &surface, limits).await,
        Err(why) => {
            let finding = Finding {
                severity: Severity::Error,
                code: FindingCode::TooComplex,
                line: 1,
                column: 1,
                message: format!("the script cannot be checked: {why}"),
                suggestion: Some(
                    "Run the script again when the machine has more free memory.".to_owned(),
                ),
            };
            let checked = CheckResult {
                form: None,
                blanked: None,
                findings: vec![finding],
                findings_dropped: 0,
            };
            (checked, GuestUsage::default())
        }
    }
}

/// Returns all findings in the order of the script, and how many were dropped.
fn all(
    checked: &CheckResult,
    heard: TscOutcome,
    secrets: &Secrets,
) -> (Vec<ReportedFinding>, usize) {
    let mut findings: Vec<_> = checked.findings.iter().map(of_check).collect();
    let mut dropped = 0;
    match heard {
        TscOutcome::NotAsked => {}
        TscOutcome::Findings(typed) => {
            findings.extend(typed.kept.into_iter().map(of_compiler));
            findings.sort_by_key(|it| (it.line, it.column));
            dropped = typed.dropped;
        }
        TscOutcome::Nothing { why } => findings.push(unheard(&why)),
    }
    // A script may contain a credential, and a finding quotes the script.
    for found in &mut findings {
        secrets.redact_text(&mut found.message);
        let suggestion = found.suggestion.iter_mut();
        suggestion.for_each(|text| secrets.redact_text(text));
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

/// Converts a finding of the compiler. It is only a warning, because scripts with type errors often
/// run correctly.
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

/// Returns a note that the compiler could not be used. The run continues without it.
fn unheard(why: &str) -> ReportedFinding {
    ReportedFinding {
        severity: ReportedSeverity::Note,
        code: "tsc-unheard".to_owned(),
        line: 0,
        column: 0,
        message: format!("this check did not use the TypeScript compiler: {why}"),
        suggestion: Some(
            "Choose another compiler with `--tsc`, or none with `--no-tsc`; in a configuration file: `tsc = …`."
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
    secrets.redact_text(&mut message);
    ReportedError {
        name: name.to_owned(),
        message,
        code,
        line: Some(finding.line),
        column: Some(finding.column),
        stack: format!("    at {script}:{}:{}", finding.line, finding.column),
    }
}
