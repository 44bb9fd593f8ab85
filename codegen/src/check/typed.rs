//! Selects the errors worth reporting from a TypeScript compiler's output for a script. This module
//! starts no compiler: a [`Page`] contains the compiler's input and reads its output.
//!
//! A compiler reports many errors in scripts that run correctly, so every finding here is a
//! warning. Errors of syntax, unknown names and missing types are omitted.

mod tsc_output;

use codegen_shared::lines::Lines;

use super::{CheckResult, Finding, FindingCode, Form, Surface};

pub use tsc_output::BadTscOutput;

/// Maximum number of compiler findings that are kept; the rest are counted.
const FINDINGS_MAX: usize = 20;

/// Compiler options. The compiler reads no file that the script or the declarations name, so a
/// script that imports a file of this machine learns nothing about it.
const OPTIONS: [&str; 17] = [
    "--noEmit",
    "--strict",
    "--pretty",
    "false",
    "--noResolve",
    "--target",
    "esnext",
    "--lib",
    "esnext",
    "--module",
    "esnext",
    "--moduleDetection",
    "force",
    "--types",
    "",
    "--useUnknownInCatchVariables",
    "false",
];

/// Declarations of the globals that every script has in addition to its servers.
const SANDBOX: &str = include_str!("typed/sandbox.d.ts");

/// A script, the sandbox and the tools, as input files for a compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<'a> {
    pub files: [(&'static str, String); 3],
    text: &'a str,
    /// Number of lines before the script in its file.
    lines_before: u32,
}

/// A compiler's finding, at the line and column of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedFinding {
    /// The compiler's code, such as `ts2339`.
    pub code: String,
    pub line: u32,
    pub column: u32,
    pub message: String,
    pub suggestion: Option<String>,
}

/// The compiler's findings that are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypedFindings {
    /// Findings in the order of the script.
    pub kept: Vec<TypedFinding>,
    pub dropped: usize,
}

impl<'a> Page<'a> {
    /// Creates the input files. `checked` is the result of the check of the same script. Returns
    /// `None` if the script does not parse.
    #[must_use]
    pub fn new(
        name: &str,
        text: &'a str,
        checked: &CheckResult,
        surface: &Surface<'_>,
    ) -> Option<Self> {
        let form = checked.form?;
        if checked.findings.iter().any(|it| it.code.is_syntax()) {
            return None;
        }
        let is_typescript = checked.blanked.is_some() || name.ends_with(".ts");
        let file = if is_typescript {
            "script.ts"
        } else {
            "script.js"
        };
        let (before, after) = around(form, text);
        Some(Self {
            files: [
                ("sandbox.d.ts", SANDBOX.to_owned()),
                ("tools.d.ts", surface.declarations()),
                (file, format!("{before}{text}{after}")),
            ],
            text,
            lines_before: u32::from(!before.is_empty()),
        })
    }

    /// Returns the compiler's arguments, relative to the folder of the files.
    #[must_use]
    pub fn args(&self) -> Vec<&'static str> {
        let mut args = OPTIONS.to_vec();
        if self.is_javascript() {
            // JavaScript is checked with looser rules: objects are open, and parameters are
            // optional.
            args.extend(["--allowJs", "--checkJs", "--noImplicitAny", "false"]);
        }
        args.extend(self.files.iter().map(|(name, _)| *name));
        args
    }

    fn is_javascript(&self) -> bool {
        let [.., (script, _)] = &self.files;
        script.ends_with(".js")
    }

    /// Returns the findings in the compiler's output `said` that are not in `own`.
    pub fn findings(&self, said: &str, own: &[Finding]) -> Result<TypedFindings, BadTscOutput> {
        let [.., (script, _)] = &self.files;
        let lines = Lines::new(self.text, 0);
        let mut found = TypedFindings::default();
        for error in tsc_output::read(said, script)? {
            if error.is_noise(self.is_javascript()) {
                continue;
            }
            let place = error.line.checked_sub(self.lines_before);
            let Some(line) = place.and_then(|line| lines.line(line)) else {
                continue;
            };
            let finding = error.finding(line, self.lines_before);
            if finding.is_reported_by(own, line) || found.kept.contains(&finding) {
                continue;
            }
            if found.kept.len() < FINDINGS_MAX {
                found.kept.push(finding);
            } else {
                found.dropped += 1;
            }
        }
        found.kept.sort_by_key(|it| (it.line, it.column));
        Ok(found)
    }
}

/// Returns the text before and after a script that makes it a module. The script itself begins on a
/// new line, so its columns stay the same.
fn around(form: Form, text: &str) -> (&'static str, &'static str) {
    match form {
        Form::Body => ("async function script() {\n", "\n}\n"),
        Form::Function if is_unnamed(text) => ("export default (\n", "\n)\n"),
        Form::Function | Form::Expression | Form::Module => ("", "\n"),
    }
}

/// Whether a text is a function without a name, which is not a valid statement.
fn is_unnamed(text: &str) -> bool {
    let start = tsc_output::after_comments(text);
    let start = start.strip_prefix("async").unwrap_or(start).trim_start();
    let rest = start.strip_prefix("function").map(str::trim_start);
    rest.is_some_and(|rest| rest.starts_with(['(', '*', '<']))
}

impl TypedFinding {
    /// Whether the check already reported the same error: at the same location, or on the same line
    /// with a shared name.
    fn is_reported_by(&self, own: &[Finding], line: &str) -> bool {
        let at_its_place = line.chars().skip(self.column as usize - 1);
        let word: String = at_its_place
            .take_while(|it| tsc_output::is_in_name(*it))
            .collect();
        let mut names = tsc_output::quoted(&self.message, '\'');
        names.push(&word);
        own.iter().any(|own| {
            let has_name = |it: &&str| it.split('.').any(|it| names.contains(&it));
            let shares_name = tsc_output::quoted(&own.message, '`').iter().any(has_name);
            match own.code {
                // The compiler reports this error where a name for the arguments is used.
                FindingCode::MissingArgument if shares_name => true,
                FindingCode::MissingAwait if own.line == self.line => {
                    shares_name || self.message.contains("'Promise<")
                }
                // The compiler finds this error in an array that was parsed as an index of the call
                // before it.
                FindingCode::MissingAwait if own.line < self.line && self.code == "ts2695" => true,
                // The compiler finds this error in the keys of an object that should have another
                // type.
                FindingCode::WrongType if own.line == self.line && self.code == "ts2353" => true,
                _ => own.line == self.line && (own.column == self.column || shares_name),
            }
        })
    }
}

#[cfg(test)]
mod tests;
