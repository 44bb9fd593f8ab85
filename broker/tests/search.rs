//! Measures how well search finds tools for labelled queries. `AIRLOCK_CORPUS` names the folder of
//! the corpus. `cargo xtask bench search` runs this test and prints its figures.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use airlock::core::search::{Document, Index};
use serde_json::Value;

const AT: usize = 10;

#[test]
fn shipped_ranker_meets_labelled_queries() {
    let Some(folder) = corpus() else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP: search: AIRLOCK_CORPUS names no folder that contains `search`"
        );
        return;
    };
    for (name, recall_min) in [("stabletoolbench", 0.82), ("metatool", 0.76)] {
        let found = measure(&folder, name);
        let SearchFigures {
            recall,
            tools,
            queries,
            p50_us,
        } = found;
        println!(
            "{name}: recall@{AT} {recall:.4} over {queries} queries and {tools} tools, p50 {p50_us} us"
        );
        assert!(
            recall >= recall_min,
            "{name}: {recall} is below {recall_min}"
        );
    }
}

struct SearchFigures {
    recall: f64,
    tools: usize,
    queries: usize,
    p50_us: u128,
}

fn measure(folder: &std::path::Path, name: &str) -> SearchFigures {
    let tools = lines(&folder.join(format!("{name}.tools.jsonl")));
    let queries = lines(&folder.join(format!("{name}.queries.jsonl")));
    let index = Index::new(tools.iter().map(document));
    let places: HashMap<&str, usize> = tools
        .iter()
        .enumerate()
        .filter_map(|(place, tool)| Some((tool["id"].as_str()?, place)))
        .collect();
    let (mut recall, mut took) = (0.0, Vec::new());
    for query in &queries {
        let wanted: HashSet<usize> = query["relevant"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|id| places.get(id.as_str()?).copied())
            .collect();
        let since = Instant::now();
        let ranked = index.ranked(query["query"].as_str().unwrap_or_default());
        took.push(since.elapsed().as_micros());
        let found = ranked.iter().take(AT).filter(|it| wanted.contains(it));
        recall += found.count() as f64 / wanted.len().max(1) as f64;
    }
    took.sort_unstable();
    SearchFigures {
        recall: recall / queries.len().max(1) as f64,
        tools: tools.len(),
        queries: queries.len(),
        p50_us: took.get(took.len() / 2).copied().unwrap_or_default(),
    }
}

fn document(tool: &Value) -> Document {
    let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
    let parameters = tool["params"].as_object();
    let names = parameters.map(|it| it.keys().cloned().collect::<Vec<_>>());
    let about = parameters.map(|it| it.values().filter_map(Value::as_str).collect::<Vec<_>>());
    Document {
        name: text("name"),
        server: text("server"),
        text: text("description"),
        parameters: names.unwrap_or_default().join(" "),
        about_parameters: about.unwrap_or_default().join(" "),
    }
}

fn corpus() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("AIRLOCK_CORPUS")?).join("search");
    folder.is_dir().then_some(folder)
}

/// Returns the JSON lines of a file. Unreadable lines are dropped, which lowers the recall.
fn lines(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}
