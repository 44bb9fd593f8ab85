//! What a TypeScript compiler has to say of a script, and what of that is worth
//! repeating. Nothing here starts one: a [`Page`] is what it is given, and reads
//! what it answers.
//!
//! A compiler calls much an error that runs well, so all that it says is a
//! warning; syntax, names and what lacks a type are not its business here.

mod said;

use codegen_shared::lines::Lines;

use super::{Checked, Finding, FindingCode, Form, Surface};

pub use said::Unreadable;

/// Findings of a compiler that are kept; the rest are counted.
const FINDINGS_MAX: usize = 20;

/// What the compiler is told besides the files. It reads nothing that they name: a script
/// that imports a file of this machine learns nothing about it.
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

/// Globals of every script besides its servers.
const SANDBOX: &str = include_str!("typed/sandbox.d.ts");

/// A script, the sandbox and the tools, as files for a compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<'a> {
    pub files: [(&'static str, String); 3],
    text: &'a str,
    /// Lines of the script's file before the script.
    lines_before: u32,
}

/// What a compiler found, in the script's own lines and columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedFinding {
    /// The compiler's own code, such as `ts2339`.
    pub code: String,
    pub line: u32,
    pub column: u32,
    pub message: String,
    pub suggestion: Option<String>,
}

/// What is left of a compiler's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypedFindings {
    /// In the order of their places.
    pub kept: Vec<TypedFinding>,
    pub dropped: usize,
}

impl<'a> Page<'a> {
    /// `checked` is what the check found of this very script. There is no page of what
    /// cannot be parsed.
    #[must_use]
    pub fn of(name: &str, text: &'a str, checked: &Checked, surface: &Surface<'_>) -> Option<Self> {
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

    /// What the compiler is started with, in the folder of the files.
    #[must_use]
    pub fn args(&self) -> Vec<&'static str> {
        let mut args = OPTIONS.to_vec();
        if self.is_javascript() {
            // Read as such: objects are open, and parameters may be left out.
            args.extend(["--allowJs", "--checkJs", "--noImplicitAny", "false"]);
        }
        args.extend(self.files.iter().map(|(name, _)| *name));
        args
    }

    fn is_javascript(&self) -> bool {
        let [.., (script, _)] = &self.files;
        script.ends_with(".js")
    }

    /// What the compiler's output says that `own` findings do not say already.
    pub fn findings(&self, said: &str, own: &[Finding]) -> Result<TypedFindings, Unreadable> {
        let [.., (script, _)] = &self.files;
        let lines = Lines::new(self.text, 0);
        let mut found = TypedFindings::default();
        for error in said::read(said, script)? {
            if error.is_noise(self.is_javascript()) {
                continue;
            }
            let place = error.line.checked_sub(self.lines_before);
            let Some(line) = place.and_then(|line| lines.line(line)) else {
                continue;
            };
            let finding = error.finding(line, self.lines_before);
            if finding.is_said_by(own, line) || found.kept.contains(&finding) {
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

/// What stands around a script so that it is a module. The text itself begins a line, so
/// that columns stay what they are.
fn around(form: Form, text: &str) -> (&'static str, &'static str) {
    match form {
        Form::Body => ("async function script() {\n", "\n}\n"),
        Form::Function if is_unnamed(text) => ("export default (\n", "\n)\n"),
        Form::Function | Form::Expression | Form::Module => ("", "\n"),
    }
}

/// Whether a text is a function that has no name, which is no statement.
fn is_unnamed(text: &str) -> bool {
    let start = said::after_comments(text);
    let start = start.strip_prefix("async").unwrap_or(start).trim_start();
    let rest = start.strip_prefix("function").map(str::trim_start);
    rest.is_some_and(|rest| rest.starts_with(['(', '*', '<']))
}

impl TypedFinding {
    /// The check said it already: the same place, or the same line and a name in common.
    fn is_said_by(&self, own: &[Finding], line: &str) -> bool {
        let at_its_place = line.chars().skip(self.column as usize - 1);
        let word: String = at_its_place
            .take_while(|it| said::is_in_name(*it))
            .collect();
        let mut names = said::quoted(&self.message, '\'');
        names.push(&word);
        own.iter().any(|own| {
            let has_name = |it: &&str| it.split('.').any(|it| names.contains(&it));
            let shares_name = said::quoted(&own.message, '`').iter().any(has_name);
            match own.code {
                // The compiler says it where a name for the arguments is used.
                FindingCode::MissingArgument if shares_name => true,
                FindingCode::MissingAwait if own.line == self.line => {
                    shares_name || self.message.contains("'Promise<")
                }
                // Items of a list that was taken for an index of the call before it.
                FindingCode::MissingAwait if own.line < self.line && self.code == "ts2695" => true,
                // The keys of an object that should be something else.
                FindingCode::WrongType if own.line == self.line && self.code == "ts2353" => true,
                _ => own.line == self.line && (own.column == self.column || shares_name),
            }
        })
    }
}

#[cfg(test)]
mod tests;
