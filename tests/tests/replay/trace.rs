//! Reads recorded traces: a script, what its tools answer, and which calls are
//! the attack.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use toml::Value;

#[derive(Debug, Clone)]
pub(crate) struct Trace {
    pub(crate) id: String,
    /// How an attack goes about it; empty for a benign task.
    pub(crate) way: String,
    pub(crate) script: String,
    /// Labels that earlier runs of the session left behind.
    pub(crate) session: Vec<String>,
    /// JSON texts by tool, one for each call, the last one for all further ones; an error when
    /// it begins with `!`.
    pub(crate) results: BTreeMap<String, Vec<String>>,
    pub(crate) attack: Vec<Attack>,
}

/// Calls that must not be made without a person.
#[derive(Debug, Clone)]
pub(crate) struct Attack {
    pub(crate) tool: String,
    /// Of the calls of this tool, only the nth; all of them without a number.
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
            bail!("the trace `{}` stands twice", trace.id);
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
        bail!("`{id}`: `{key}` is no key of a trace");
    }
    if id.is_empty() || text("what").is_empty() || text("script").is_empty() {
        bail!("`{id}`: a trace has an id, says what it is about, and has a script");
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
