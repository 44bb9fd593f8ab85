//! Reads the script and its input. Both are read completely, within limits, before anything else
//! happens.

use std::io::Read;
use std::path::Path;

use airlock_core::json::{self, Bounds};
use airlock_core::limits::Limits;
use airlock_core::problem::Problem;
use serde_json::Value;

use super::options::usage;
use crate::config::choice;
use airlock_sandbox::units::show_bytes;

/// The maximum length of an input, and the error for a longer one.
#[derive(Clone, Copy)]
struct Limit {
    name: &'static str,
    code: &'static str,
    bytes_max: u64,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// Returns the script's name, which its errors contain, and its text.
pub(super) fn script(
    path: Option<&Path>,
    code: Option<String>,
    limits: &Limits,
) -> Result<(String, String), Problem> {
    let limit = Limit {
        name: "script",
        code: "limit-source",
        bytes_max: u64::from(limits.script_bytes_max),
    };
    let (name, text) = match (path, code) {
        (None, Some(code)) => ("-e".to_owned(), read(code.as_bytes(), "the script", limit)?),
        (Some(path), None) if path == Path::new("-") => (
            "stdin".to_owned(),
            read(std::io::stdin().lock(), "the script on stdin", limit)?,
        ),
        (Some(path), None) => {
            let name = path
                .file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned();
            (name, read_file(path, "the script", limit)?)
        }
        (None, None) => {
            let next = "name a file, or add `-e CODE`, such as `airlock run -e 'return 1 + 1'`";
            return Err(usage(
                "missing script",
                "neither a file nor -e was given",
                next,
            ));
        }
        (Some(_), Some(_)) => {
            let why = "a file and -e were both given";
            return Err(usage(
                "two scripts were given",
                why,
                "remove `-e`, or the file",
            ));
        }
    };
    if text.trim().is_empty() {
        let next = "write at least a `return`, such as 'return 1 + 1'";
        let what = format!("the script {name} is empty");
        return Err(usage(what, "it contains only white space", next));
    }
    let text = text
        .strip_prefix(BYTE_ORDER_MARK)
        .map(str::to_owned)
        .unwrap_or(text);
    Ok((name, text))
}

/// Returns the JSON of a flag, such as `--input`: the argument itself, or the content of `@FILE`.
pub(super) fn input(flag: &str, argument: &str, limits: &Limits) -> Result<Value, Problem> {
    let limit = Limit {
        name: "input",
        code: "limit-payload",
        bytes_max: u64::from(limits.input_bytes_max),
    };
    let text = match argument.strip_prefix('@') {
        Some("-") => read(std::io::stdin().lock(), "the input on stdin", limit)?,
        Some(path) => read_file(Path::new(path), "the input", limit)?,
        None => argument.to_owned(),
    };
    json::read(text.as_bytes(), Bounds::WIDEST).map_err(|bad| {
        let is_name = !argument.contains(['{', '[', '"', '@']) && argument.contains(['.', '/']);
        let next = match is_name || Path::new(argument).is_file() {
            true => format!("to read a file, write `@{argument}`"),
            false => format!("write JSON, such as {flag} '{{\"a\": 1}}', or {flag} @FILE"),
        };
        usage(format!("invalid value for `{flag}`"), bad.to_string(), next)
    })
}

/// Reads a secret from a file, without the final line ending.
pub(super) fn secret(path: &Path) -> Result<String, Problem> {
    let bytes = file(path, "the secret", SECRET_BYTES_MAX)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        let what = format!("the secret {} cannot be read", path.display());
        usage(what, "the file is not UTF-8 text", "save the file as UTF-8")
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Reads any other file completely. `kind` is its name in messages.
pub(super) fn file(path: &Path, kind: &str, bytes_max: u64) -> Result<Vec<u8>, Problem> {
    let what = format!("{kind} {} cannot be read", path.display());
    let unreadable =
        |error: std::io::Error| usage(what.clone(), error.to_string(), choice::path(path, &error));
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > bytes_max {
        let why = format!("the file is larger than {}", show_bytes(bytes_max));
        return Err(usage(what, why, "name a smaller file"));
    }
    Ok(bytes)
}

fn read_file(path: &Path, kind: &str, limit: Limit) -> Result<String, Problem> {
    let what = format!("{kind} {}", path.display());
    let file = std::fs::File::open(path).map_err(|error| {
        usage(
            format!("{what} cannot be read"),
            error.to_string(),
            choice::path(path, &error),
        )
    })?;
    read(file, &what, limit)
}

fn read(source: impl Read, what: &str, limit: Limit) -> Result<String, Problem> {
    let cannot = |why: String, next: &str| usage(format!("{what} cannot be read"), why, next);
    let mut bytes = Vec::new();
    source
        .take(limit.bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| cannot(error.to_string(), "check the path"))?;
    if bytes.len() as u64 > limit.bytes_max {
        let why = format!("the text is larger than {}", show_bytes(limit.bytes_max));
        let next = format!(
            "shorten the text, or allow more with --limit {}=…",
            limit.name
        );
        return Err(Problem {
            code: limit.code.into(),
            ..cannot(why, &next)
        });
    }
    String::from_utf8(bytes).map_err(|error| {
        let why = format!(
            "the text is not valid UTF-8 at byte {}",
            error.utf8_error().valid_up_to()
        );
        cannot(why, "save the text as UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir::TempDir;

    fn check(path: Option<&Path>, code: Option<&str>, expected: Result<&str, &str>) {
        let found = script(path, code.map(str::to_owned), &Limits::default());
        match (found, expected) {
            (Ok((_, text)), Ok(expected)) => assert_eq!(text, expected),
            (Err(problem), Err(why)) => {
                assert!(
                    problem.why.contains(why) && problem.code == "usage",
                    "{problem}"
                );
            }
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn script_comes_from_one_source_and_is_utf8() {
        let scratch = TempDir::new();
        let file = scratch.file("a.js", "\u{feff}return 1");
        check(Some(&file), None, Ok("return 1"));
        check(None, Some("return 2"), Ok("return 2"));
        check(None, None, Err("neither"));
        check(Some(&file), Some("x"), Err("both"));
        check(None, Some(" \n"), Err("white space"));
        check(Some(Path::new("/nowhere.js")), None, Err("No such file"));
        check(Some(scratch.path()), None, Err("directory"));
        std::fs::write(scratch.path().join("b.js"), b"a\xff").unwrap();
        check(
            Some(&scratch.path().join("b.js")),
            None,
            Err("not valid UTF-8 at byte 1"),
        );
    }

    #[test]
    fn input_json_comes_from_text_or_file() {
        let scratch = TempDir::new();
        let file = format!("@{}", scratch.file("in.json", "[1]").display());
        let limits = Limits::default();
        assert_eq!(
            input("--input", "{\"a\":1}", &limits),
            Ok(serde_json::json!({"a": 1}))
        );
        assert_eq!(input("--input", &file, &limits), Ok(serde_json::json!([1])));
        assert_eq!(
            input("--input", "{a:1}", &limits).unwrap_err().what,
            "invalid value for `--input`"
        );
        let reserved = r#"{"$serde_json::private::RawValue":"[1]"}"#;
        assert_eq!(
            input("--input", reserved, &limits).unwrap().to_string(),
            reserved
        );
        let small = Limits {
            input_bytes_max: 2,
            ..limits
        };
        assert!(
            input("--input", &file, &small)
                .unwrap_err()
                .why
                .contains("larger than 2B")
        );
    }

    #[test]
    fn a_script_beyond_its_limit_is_refused_wherever_it_comes_from() {
        let limits = Limits {
            script_bytes_max: 8,
            ..Limits::default()
        };
        let scratch = TempDir::new();
        let file = scratch.file("a.js", "return 12");
        for (path, code) in [(Some(&*file), None), (None, Some("return 12".to_owned()))] {
            let problem = script(path, code, &limits).unwrap_err();
            assert_eq!(
                (&*problem.code, &*problem.why),
                ("limit-source", "the text is larger than 8B")
            );
            assert!(problem.next.contains("--limit script="), "{problem}");
        }
        assert!(script(None, Some("return 1".to_owned()), &limits).is_ok());
    }
}
