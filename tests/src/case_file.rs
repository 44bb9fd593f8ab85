//! Reads the header of a hostile script: what trick it plays, under which
//! limits, and how its run has to end.
//!
//! A header is the first block of `// key: value` lines. An unknown key is an
//! error, so that a misspelt expectation never passes unseen. The keys are
//! listed in `tests/hostile/README.md`.

mod asking;
mod folder;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airlock::sandbox::JsEngine;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

pub use asking::{About, Asking, Before, Between, But, Given, Told};
pub use folder::Attack;

use crate::engine::engine;

/// One hostile script with what its header expects.
#[derive(Debug, Clone, Default)]
pub struct CaseFile {
    /// File name without its extension.
    pub name: String,
    /// The id in the catalogue of cases, or its class.
    pub case: String,
    /// What is handed to the broker.
    pub script: String,
    /// Outcome words, any of which will do.
    pub expect: Vec<String>,
    pub value: Option<Value>,
    pub error_name: Option<String>,
    pub error_contains: Vec<String>,
    pub error_bytes_max: Option<usize>,
    pub code: Option<String>,
    pub line: Option<u64>,
    pub console_contains: Vec<String>,
    pub console_bytes_max: Option<usize>,
    /// How often a tool was reached, by `server.tool`.
    pub calls: BTreeMap<String, usize>,
    /// What the calls became, in their order.
    pub outcomes: Option<Vec<String>>,
    /// The arguments that reached tools, in their order.
    pub args: Option<Vec<Value>>,
    /// Limits that differ from [`default_limits`].
    pub limits: Map<String, Value>,
    pub seed: Option<u64>,
    /// What is certainly wrong with the script is only said: the trick lies behind the check.
    pub check_warns: bool,
    /// A second run gives the same value.
    pub same_twice: bool,
    /// What the process may keep of the run, when the usual bound does not fit.
    pub kept_mib_max: Option<u64>,
    /// The decisions stand in the journal in the order of the calls.
    pub journal_order: bool,
    /// The shipped policies decide, over the labels of `labels.toml`, and nobody answers.
    pub policies: bool,
    /// Labels that earlier runs of the session left behind.
    pub session: Vec<String>,
    /// Parts of the journal's text.
    pub journal_contains: Vec<String>,
    /// What the report says that the run had read.
    pub labels: Option<Vec<String>>,
    /// What is asked, answered, and was said yes to before.
    pub asking: Asking,
    /// What is wrong with the folder of policies: nothing is started then.
    pub folder: Option<Attack>,
}

/// Every case file of a folder, sorted by name.
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
        bail!("a header names its `case` and what to `expect`");
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
        "policies" => bail!("takes `shipped`, or is left out"),
        "session" => case.session = alternatives(value),
        "journal" => case.journal_contains.push(value.into()),
        "labels" if value == "none" => case.labels = Some(Vec::new()),
        "labels" => case.labels = Some(alternatives(value)),
        "folder" => case.folder = Some(Attack::parse(value)?),
        "why" => {}
        _ if asking::set(&mut case.asking, key, value)? => {}
        _ => bail!("is not a key of a case file"),
    }
    Ok(())
}

fn yes(value: &str) -> Result<bool> {
    match value {
        "yes" => Ok(true),
        _ => bail!("takes `yes`, or is left out"),
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
        bail!("takes name=number");
    }
    Ok(pairs
        .into_iter()
        .flatten()
        .map(|(key, number)| (key.to_owned(), number)))
}

/// Writes out `{{"text" * count}}`, so that a file stays readable whose trick is its size.
fn expanded(text: &str) -> Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{\"") {
        let (inside, behind) = after.split_once("}}").context("`{{` without `}}`")?;
        let (quoted, count) = inside
            .rsplit_once("\" * ")
            .context("`{{\"text\" * count}}`")?;
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
    fn a_header_is_read_and_the_rest_is_the_script() {
        let text = "// case: X-1\n// expect: ok | limit:cpu\n// calls: box.echo=2\n// limits: calls_max=3\nreturn 1;\n// value: 2\n";
        let case = parse("x", text).unwrap();
        assert_eq!((case.case.as_str(), case.expect.len()), ("X-1", 2));
        assert_eq!(case.calls.get("box.echo"), Some(&2));
        assert_eq!(case.limits.get("calls_max"), Some(&Value::from(3)));
        assert_eq!(case.value, None, "the header ends where the script begins");
        assert_eq!(case.script, text, "positions stay true");
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        assert!(parse("x", "// case: X\n// expects: ok\n").is_err());
        assert!(parse("x", "// case: X\nreturn 1;\n").is_err());
    }

    #[test]
    fn a_repetition_is_written_out() {
        let case = parse("x", "// case: X\n// expect: ok\n// expand: yes\n// strip header: yes\n{{\"ab\" * 3}}{{\"`${\" * 2}};").unwrap();
        assert_eq!(case.script, "ababab`${`${;");
    }
}
