//! Tools for tests: the fixtures next to the goldens, and descriptions of real servers if
//! `AIRLOCK_CORPUS` names their folder.

use std::fs;
use std::path::{Path, PathBuf};

use codegen::description::Description;
use serde_json::Value;

/// The tools of one file.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) name: String,
    pub(crate) descriptions: Vec<Description>,
}

/// Returns the fixtures, and the corpus if there is one.
#[allow(dead_code, reason = "not every test uses both")]
pub(crate) fn all() -> Vec<Tools> {
    fixtures()
        .into_iter()
        .chain(corpus().into_iter().flatten())
        .collect()
}

/// Returns the fixtures: `{SERVER: [TOOL…]}` in each file.
#[allow(dead_code, reason = "not every test uses both")]
pub(crate) fn fixtures() -> Vec<Tools> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    files(&folder)
        .iter()
        .map(|file| Tools {
            name: stem(file),
            descriptions: fixture(file).filter_map(Result::ok).collect(),
        })
        .collect()
}

/// Returns every tool of a fixture, including invalid ones.
pub(crate) fn fixture(
    file: &Path,
) -> impl Iterator<Item = Result<Description, codegen::description::BadTool>> {
    let servers = read(file).as_object().unwrap().clone();
    servers.into_iter().flat_map(|(server, tools)| {
        let tools = tools.as_array().unwrap().clone();
        tools
            .into_iter()
            .map(move |tool| Description::parse(&server, &tool))
    })
}

/// Returns replies to `tools/list`, one per file, or `None` after printing the reason.
#[allow(dead_code, reason = "not every test uses both")]
pub(crate) fn corpus() -> Option<Vec<Tools>> {
    let Some(folder) = std::env::var_os("AIRLOCK_CORPUS").map(PathBuf::from) else {
        println!("SKIP: AIRLOCK_CORPUS names no folder with `tools/*.json` and `stress.json`");
        return None;
    };
    let mut found = files(&folder.join("tools"));
    found.push(folder.join("stress.json"));
    Some(found.iter().map(|file| listed(file)).collect())
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut found: Vec<PathBuf> = entries
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "json"))
        .collect();
    found.sort();
    found
}

fn listed(file: &Path) -> Tools {
    let whole = read(file);
    let tools = whole
        .get("tools")
        .or_else(|| whole.get("result")?.get("tools"));
    let tools = tools.and_then(Value::as_array).unwrap().iter();
    let name = stem(file);
    Tools {
        descriptions: tools
            .map(|tool| Description::parse(&name, tool).unwrap())
            .collect(),
        name,
    }
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

fn stem(file: &Path) -> String {
    let name = file.file_name().unwrap().to_str().unwrap();
    name.split('.').next().unwrap().to_owned()
}
