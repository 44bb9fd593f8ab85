//! The configured program that extracts values for scripts.

use airlock_core::problem::Problem;
use serde::Deserialize;

use super::invalid_at;
use crate::shell_words;
use airlock_sandbox::units;

const WALL_MS: u64 = 60_000;

/// The command that is started for each value, and its time limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractCommand {
    pub program: String,
    pub args: Vec<String>,
    pub wall_ms: u64,
}

/// The table `[extract]` of a configuration file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileExtract {
    command: CommandLine,
    timeout: Option<String>,
}

/// A command line as one text, or as a list of words.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum CommandLine {
    Text(String),
    Words(Vec<String>),
}

pub(super) fn read((table, origin): (FileExtract, String)) -> Result<ExtractCommand, Problem> {
    let wrong = |why: String, next: &str| {
        let what = format!("invalid table `[extract]` ({origin})");
        invalid_at(&origin, what, why, next)
    };
    let words = match table.command {
        CommandLine::Words(words) => words,
        CommandLine::Text(text) => {
            let words = shell_words::split(&text);
            let advice = "close the quote, or remove the last backslash";
            words.map_err(|bad| wrong(format!("invalid command: {bad}"), advice))?
        }
    };
    let Some((program, args)) = words.split_first().filter(|(it, _)| !it.is_empty()) else {
        return Err(wrong("the command is empty".into(), "write a command"));
    };
    let wall_ms = match table.timeout {
        None => WALL_MS,
        Some(text) => units::duration_ms(&text)
            .map_err(|bad| wrong(format!("`timeout`: {bad}"), "correct the duration"))?,
    };
    Ok(ExtractCommand {
        program: program.clone(),
        args: args.to_vec(),
        wall_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(&str, &[&str], u64), &str>) {
        let table: FileExtract = toml::from_str(text).unwrap();
        match (read((table, "airlock.toml:3".into())), expected) {
            (Ok(found), Ok((program, args, wall_ms))) => {
                assert_eq!(
                    (&*found.program, found.wall_ms),
                    (program, wall_ms),
                    "{text}"
                );
                assert_eq!(found.args, args, "{text}");
            }
            (Err(problem), Err(why)) => assert!(problem.why.contains(why), "{text}: {problem}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn extract_command_is_text_or_words_with_timeout() {
        check(
            "command = \"ask -m 'a b'\"",
            Ok(("ask", &["-m", "a b"], 60_000)),
        );
        check(
            "command = [\"ask\", \"a b\"]\ntimeout = \"5s\"",
            Ok(("ask", &["a b"], 5_000)),
        );
        check("command = \" \"", Err("empty"));
        check("command = []", Err("empty"));
        check("command = \"a 'b\"", Err("never closed"));
        check("command = \"a\"\ntimeout = \"soon\"", Err("timeout"));
        let unknown: Result<FileExtract, _> = toml::from_str("command = \"a\"\nmodel = \"b\"");
        assert!(unknown.unwrap_err().message().contains("unknown field"));
    }
}
