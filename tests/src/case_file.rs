//! Reads the header of a hostile script: the id of its attack, its limits, and how its run must
//! end.
//!
//! A header is the first block of `// key: value` lines. An unknown key is an error, so that a
//! misspelt expectation is never ignored. The keys are listed in `tests/hostile/README.md`.

mod asking;
mod folder;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airlock::sandbox::JsEngine;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

pub use asking::{
    AnswerScope, ApprovalCase, ApproverReply, ChangeBetween, EarlierRun, GrantMismatch, PriorGrant,
};
pub use folder::Attack;

use crate::engine::engine;

/// One hostile script with the expectations from its header.
#[derive(Debug, Clone, Default)]
pub struct CaseFile {
    /// File name without its extension.
    pub name: String,
    /// The case's id in the catalogue, or its class.
    pub case: String,
    /// The text passed to the broker.
    pub script: String,
    /// The allowed outcomes. The run must end with one of them.
    pub expect: Vec<String>,
    pub value: Option<Value>,
    pub error_name: Option<String>,
    pub error_contains: Vec<String>,
    pub error_bytes_max: Option<usize>,
    pub code: Option<String>,
    pub line: Option<u64>,
    pub console_contains: Vec<String>,
    pub console_bytes_max: Option<usize>,
    /// Number of calls that reached each tool, by `server.tool`.
    pub calls: BTreeMap<String, usize>,
    /// Outcomes of the calls, in their order.
    pub outcomes: Option<Vec<String>>,
    /// The arguments that reached tools, in their order.
    pub args: Option<Vec<Value>>,
    /// Limits that differ from the stage's default ones.
    pub limits: Map<String, Value>,
    pub seed: Option<u64>,
    /// Whether definite script errors are only reported, because the attack follows the check.
    pub check_warns: bool,
    /// Whether a second run must give the same value.
    pub same_twice: bool,
    /// Maximum memory in MiB that the process may keep after the run, if not the default.
    pub kept_mib_max: Option<u64>,
    /// Whether the journal must contain the decisions in the order of the calls.
    pub journal_order: bool,
    /// Whether the shipped policies decide, with the labels of `labels.toml`, and no question is
    /// answered.
    pub policies: bool,
    /// Labels that earlier runs left in the session.
    pub session: Vec<String>,
    /// Texts that the journal must contain.
    pub journal_contains: Vec<String>,
    /// Labels that the report must list as read.
    pub labels: Option<Vec<String>>,
    /// Questions, answers and earlier grants.
    pub asking: ApprovalCase,
    /// How the policy folder is damaged. The broker must refuse to start with it.
    pub folder: Option<Attack>,
}

/// Reads every case file of a folder, sorted by name.
pub fn read_folder(folder: &Path) -> Result<Vec<CaseFile>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "js"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<CaseFile> {
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let text = std::fs::read_to_string(path)?;
    parse(&name, &text).with_context(|| path.display().to_string())
}

pub fn parse(name: &str, text: &str) -> Result<CaseFile> {
    let mut case = CaseFile {
        name: name.into(),
        ..CaseFile::default()
    };
    let (mut expand, mut strip) = (false, false);
    let mut on_quickjs = None;
    let mut body = text;
    while let Some((line, rest)) = body.split_once('\n') {
        let Some((key, value)) = line
            .strip_prefix("// ")
            .and_then(|line| line.split_once(": "))
        else {
            break;
        };
        match key {
            "expand" => expand = yes(value)?,
            "strip header" => strip = yes(value)?,
            "expect on quickjs" => on_quickjs = Some(alternatives(value)),
            _ => set(&mut case, key, value).with_context(|| format!("`{key}`"))?,
        }
        body = rest;
    }
    if case.case.is_empty() || case.expect.is_empty() {
        bail!("the header needs the keys `case` and `expect`");
    }
    asking::check(&case.asking)?;
    if let Some(expect) = on_quickjs.filter(|_| engine() == JsEngine::QuickJs) {
        (case.expect, case.value) = (expect, None);
    }
    let script = if strip { body } else { text };
    case.script = if expand {
        expanded(script)?
    } else {
        script.to_owned()
    };
    Ok(case)
}

fn set(case: &mut CaseFile, key: &str, value: &str) -> Result<()> {
    match key {
        "case" => case.case = value.into(),
        "expect" => case.expect = alternatives(value),
        "check" if value == "warn" => case.check_warns = true,
        "value" => case.value = Some(serde_json::from_str(value)?),
        "name" => case.error_name = Some(value.into()),
        "error" => case.error_contains.push(value.into()),
        "error bytes max" => case.error_bytes_max = Some(value.parse()?),
        "code" => case.code = Some(value.into()),
        "line" => case.line = Some(value.parse()?),
        "console" => case.console_contains.push(value.into()),
        "console bytes max" => case.console_bytes_max = Some(value.parse()?),
        "calls" => {
            case.calls = pairs(value)?
                .map(|(k, v)| Ok((k, v.parse()?)))
                .collect::<Result<_>>()?
        }
        "outcomes" => case.outcomes = Some(alternatives(value)),
        "args" => {
            let each = alternatives(value);
            case.args = Some(
                each.iter()
                    .map(|text| serde_json::from_str(text))
                    .collect::<Result<_, _>>()?,
            );
        }
        "limits" => {
            let numbers = pairs(value)?.map(|(k, v)| Ok((k, Value::from(v.parse::<u64>()?))));
            case.limits = numbers.collect::<Result<_>>()?;
        }
        "seed" => case.seed = Some(value.parse()?),
        "same twice" => case.same_twice = yes(value)?,
        "kept mib max" => case.kept_mib_max = Some(value.parse()?),
        "journal order" => case.journal_order = yes(value)?,
        "policies" if value == "shipped" => case.policies = true,
        "policies" => bail!("expected `shipped`"),
        "session" => case.session = alternatives(value),
        "journal" => case.journal_contains.push(value.into()),
        "labels" if value == "none" => case.labels = Some(Vec::new()),
        "labels" => case.labels = Some(alternatives(value)),
        "folder" => case.folder = Some(Attack::parse(value)?),
        "why" => {}
        _ if asking::set(&mut case.asking, key, value)? => {}
        _ => bail!("unknown key"),
    }
    Ok(())
}

fn yes(value: &str) -> Result<bool> {
    match value {
        "yes" => Ok(true),
        _ => bail!("expected `yes`"),
    }
}

fn alternatives(value: &str) -> Vec<String> {
    value.split(" | ").map(str::to_owned).collect()
}

fn pairs(value: &str) -> Result<impl Iterator<Item = (String, &str)>> {
    let pairs: Vec<_> = value
        .split_whitespace()
        .map(|pair| pair.split_once('='))
        .collect();
    if pairs.contains(&None) {
        bail!("expected NAME=NUMBER");
    }
    Ok(pairs
        .into_iter()
        .flatten()
        .map(|(key, number)| (key.to_owned(), number)))
}

/// Expands `{{"text" * count}}`, so that a case file with a huge script stays readable.
fn expanded(text: &str) -> Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{\"") {
        let (inside, behind) = after.split_once("}}").context("`{{` without `}}`")?;
        let (quoted, count) = inside
            .rsplit_once("\" * ")
            .context("expected `{{\"text\" * count}}`")?;
        let unit: String = serde_json::from_str(&format!("\"{quoted}\""))?;
        out.push_str(before);
        out.push_str(&unit.repeat(count.parse()?));
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_parsed_and_rest_is_script() {
        let text = "// case: X-1\n// expect: ok | limit:cpu\n// calls: box.echo=2\n// limits: calls_max=3\nreturn 1;\n// value: 2\n";
        let case = parse("x", text).unwrap();
        assert_eq!((case.case.as_str(), case.expect.len()), ("X-1", 2));
        assert_eq!(case.calls.get("box.echo"), Some(&2));
        assert_eq!(case.limits.get("calls_max"), Some(&Value::from(3)));
        assert_eq!(case.value, None, "the header ends where the script begins");
        assert_eq!(case.script, text, "positions stay correct");
    }

    #[test]
    fn misspelt_key_is_an_error() {
        assert!(parse("x", "// case: X\n// expects: ok\n").is_err());
        assert!(parse("x", "// case: X\nreturn 1;\n").is_err());
    }

    #[test]
    fn repetition_is_expanded() {
        let case = parse("x", "// case: X\n// expect: ok\n// expand: yes\n// strip header: yes\n{{\"ab\" * 3}}{{\"`${\" * 2}};").unwrap();
        assert_eq!(case.script, "ababab`${`${;");
    }
}
