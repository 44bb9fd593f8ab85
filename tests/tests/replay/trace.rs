//! Reads recorded traces. A trace has a script, the tools' answers, and the calls that are the
//! attack.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use toml::Value;

#[derive(Debug, Clone)]
pub(crate) struct Trace {
    pub(crate) id: String,
    /// The method of the attack; empty for a benign task.
    pub(crate) way: String,
    pub(crate) script: String,
    /// Labels that earlier runs left in the session.
    pub(crate) session: Vec<String>,
    /// The results of each tool as JSON texts, one for each call. The last one is the result of all
    /// further calls. A text that begins with `!` is an error.
    pub(crate) results: BTreeMap<String, Vec<String>>,
    pub(crate) attack: Vec<Attack>,
}

/// Calls that must not be made without a person's approval.
#[derive(Debug, Clone)]
pub(crate) struct Attack {
    pub(crate) tool: String,
    /// The position of the attack among the tool's calls, or `None` if every call of the tool is an
    /// attack.
    pub(crate) nth: Option<usize>,
}

pub(crate) fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/replay"))
}

pub(crate) fn read(name: &str) -> Result<Vec<Trace>> {
    let text = std::fs::read_to_string(folder().join(name))?;
    let file: toml::Table = text.parse().with_context(|| name.to_owned())?;
    let traces = file
        .get("trace")
        .and_then(Value::as_array)
        .context("no traces")?;
    let mut read: Vec<Trace> = Vec::new();
    for table in traces {
        let trace = one(table.as_table().context("a trace is a table")?)?;
        if read.iter().any(|it| it.id == trace.id) {
            bail!("duplicate trace `{}`", trace.id);
        }
        read.push(trace);
    }
    Ok(read)
}

fn one(table: &toml::Table) -> Result<Trace> {
    const KEYS: [&str; 7] = [
        "id", "way", "what", "script", "session", "results", "attack",
    ];
    let text = |key: &str| table.get(key).and_then(Value::as_str).unwrap_or_default();
    let id = text("id").to_owned();
    if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        bail!("`{id}`: unknown key `{key}`");
    }
    if id.is_empty() || text("what").is_empty() || text("script").is_empty() {
        bail!("`{id}`: a trace needs `id`, `what` and `script`");
    }
    let results = table.get("results").and_then(Value::as_table);
    Ok(Trace {
        way: text("way").to_owned(),
        script: text("script").to_owned(),
        session: texts(table.get("session")),
        results: results
            .into_iter()
            .flatten()
            .map(|(tool, answers)| (tool.clone(), texts(Some(answers))))
            .collect(),
        attack: texts(table.get("attack"))
            .iter()
            .map(|text| attack(text))
            .collect::<Result<_>>()?,
        id,
    })
}

fn attack(text: &str) -> Result<Attack> {
    let (tool, nth) = match text.split_once(' ') {
        Some((tool, nth)) => (tool, Some(nth.parse()?)),
        None => (text, None),
    };
    Ok(Attack {
        tool: tool.to_owned(),
        nth,
    })
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
