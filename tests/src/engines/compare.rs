//! Runs one script in both sandboxes and finds the first difference.

use std::fmt;

use airlock::sandbox::{JsEngine, SandboxError};

use super::generate::GeneratedScript;
use super::known;
use super::runner::{End, EngineRunner, ScriptOutput};

/// A script that the engines run differently.
#[derive(Debug, Clone)]
pub struct Difference {
    pub made: GeneratedScript,
    pub boa: String,
    pub quickjs: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.made.statements.iter().flat_map(|it| it.lines()) {
            writeln!(f, "    {line}")?;
        }
        writeln!(f, "  boa:     {}", self.boa)?;
        writeln!(f, "  quickjs: {}", self.quickjs)
    }
}

/// The result of a comparison.
#[derive(Debug, Clone)]
pub enum Comparison {
    Same,
    Different(Box<Difference>),
    /// Not compared: the script reached a limit, or contains a known difference.
    Open,
}

/// The sandboxes of both engines.
#[derive(Debug)]
pub struct Pair {
    pub boa: EngineRunner,
    pub quickjs: EngineRunner,
}

impl Pair {
    /// # Errors
    /// Fails if the program does not contain both engines.
    pub fn open() -> Result<Self, SandboxError> {
        Ok(Self {
            boa: EngineRunner::new(JsEngine::Boa)?,
            quickjs: EngineRunner::new(JsEngine::QuickJs)?,
        })
    }

    #[must_use]
    pub fn compare(&self, made: &GeneratedScript) -> Comparison {
        let statements = made.statements.join("\n");
        if known::is_left_out(&statements) {
            return Comparison::Open;
        }
        let script = made.script();
        let boa = self.boa.run(&script);
        let quickjs = self.quickjs.run(&script);
        if is_open(&boa.end) || is_open(&quickjs.end) {
            return Comparison::Open;
        }
        let [mut boa, mut quickjs] = [boa, quickjs].map(|shown| lines(shown, &script));
        if known::is_unordered(&statements) {
            boa.sort();
            quickjs.sort();
        }
        let at = boa.iter().zip(&quickjs).take_while(|(a, b)| a == b).count();
        if at == boa.len() && at == quickjs.len() {
            return Comparison::Same;
        }
        let line = |lines: &[String]| {
            let line = lines.get(at).map_or("nothing more", String::as_str);
            line.to_owned()
        };
        let difference = Difference {
            made: made.clone(),
            boa: line(&boa),
            quickjs: line(&quickjs),
        };
        match known::is_known(&difference, &statements) {
            true => Comparison::Open,
            false => Comparison::Different(Box::new(difference)),
        }
    }
}

fn is_open(end: &End) -> bool {
    matches!(end, End::Limit(_))
}

/// Returns everything that is compared, one item per line.
fn lines(shown: ScriptOutput, script: &str) -> Vec<String> {
    let mut lines: Vec<String> = shown
        .lines
        .iter()
        .map(|line| without_engines_words(line, script))
        .collect();
    lines.push(match shown.end {
        End::Done(value) => format!("done {value}"),
        End::Failed(error) => {
            let said = match is_said(&error.message, script) || !error.code.is_empty() {
                true => error.message,
                false => String::new(),
            };
            let (code, ticket) = (error.code, error.ticket);
            // Parsers report different lines for a syntax error.
            let line = if error.name == "SyntaxError" {
                0
            } else {
                error.line
            };
            format!("failed {} {said} {code} {ticket:?} line {line}", error.name)
        }
        End::Other(state) => state,
        End::Limit(limit) => format!("limit {limit}"),
        End::Fault(why) => format!("fault {why}"),
    });
    lines
}

/// Removes stacks, and error messages of the engine. A message that the script contains is kept.
fn without_engines_words(line: &str, script: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('⟦') {
        kept.push_str(before);
        let (message, after) = after.split_once('⟧').unwrap_or((after, ""));
        kept.push_str(own_words(message, script));
        rest = after;
    }
    kept.push_str(rest);
    let lines = kept.lines().filter(|line| !line.starts_with("    at "));
    let lines = lines.map(|line| without_headlines_words(line, script));
    lines.collect::<Vec<_>>().join("\n")
}

/// Removes the engine's message from an error that the console shows, and keeps its name.
fn without_headlines_words(line: &str, script: &str) -> String {
    match line.split_once("Error: ") {
        Some((before, words)) if !is_said(words, script) => format!("{before}Error"),
        _ => line.to_owned(),
    }
}

/// Whether a script contains this text in quotes. Without the quotes, the engine's message may
/// match a name in the script by chance.
fn is_said(words: &str, script: &str) -> bool {
    ['\'', '"', '`']
        .iter()
        .any(|quote| script.contains(&format!("{quote}{words}{quote}")))
}

fn own_words<'a>(words: &'a str, script: &str) -> &'a str {
    match words.len() > 2 && script.contains(words) {
        true => words,
        false => "…",
    }
}
