//! Twelve servers and more than a thousand tools behind one.

use std::time::{Duration, Instant};

use serde_json::json;
use tests::stdio_host::text;

use crate::fixtures::{Site, twelve};

#[test]
fn the_list_of_a_thousand_tools_is_a_few_lines_and_search_finds_each() {
    let fixtures = twelve();
    let mut site = Site::new();
    for it in &fixtures {
        site.server(&it.name.replace('_', "-"), &it.tools, "");
    }
    // All of them, however slow the machine is.
    let mut host = site.host(&["--start-wait", "60s"]);
    let list = host.request("tools/list", &json!({}));
    let bytes = list.to_string().len();
    assert!(bytes < 4_096, "{bytes} bytes");
    let listed: usize = fixtures.iter().map(|it| it.tools.len()).sum();
    let found = host.call("search_tools", &json!({"detail": "names", "limit": 50}));
    let total = found["structuredContent"]["total"].as_u64().unwrap();
    assert!(total >= 1_000 && total <= listed as u64, "{total}");
    for fixture in &fixtures {
        let server = fixture.name.replace('_', "-");
        let tool = fixture.tools[0]["name"].as_str().unwrap();
        let args = json!({"query": tool, "servers": [server], "detail": "names"});
        let found = host.call("search_tools", &args);
        assert!(text(&found).contains(tool), "{server}.{tool}: {found}");
    }
}

/// `cargo xtask bench serve` runs it and shows the figures.
#[test]
fn the_first_search_is_answered_at_once_and_every_other_too() {
    const SEARCHES: usize = 300;
    // An unoptimised broker on a busy machine is no measure of anything but of being stuck.
    let slack = if cfg!(debug_assertions) { 50 } else { 1 };
    let fixtures = twelve();
    let mut site = Site::new();
    for it in &fixtures {
        site.server(&it.name.replace('_', "-"), &it.tools, "");
    }
    let search = |words: &str| json!({"query": words});
    // Whoever starts a second time knows all tools from the first.
    let mut host = site.host(&["--start-wait", "60s"]);
    host.call("search_tools", &search("create a file"));
    drop(host);
    let since = Instant::now();
    let mut host = site.host(&["--start-wait", "60s"]);
    let greeted = since.elapsed();
    host.request("tools/list", &json!({}));
    let listed = since.elapsed();
    let since = Instant::now();
    let found = host.call("search_tools", &search("create a file"));
    let first = since.elapsed();
    assert!(found["structuredContent"]["total"].as_u64() > Some(0));

    let queries: Vec<String> = fixtures
        .iter()
        .flat_map(|it| &it.tools)
        .filter_map(|tool| tool["description"].as_str())
        .map(|about| {
            about
                .split_whitespace()
                .take(8)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    let mut took: Vec<Duration> = (0..SEARCHES)
        .map(|number| {
            let query = search(&queries[number * 7 % queries.len()]);
            let since = Instant::now();
            host.call("search_tools", &query);
            since.elapsed()
        })
        .collect();
    took.sort_unstable();
    let (p50, p99) = (took[SEARCHES / 2], took[SEARCHES * 99 / 100]);
    let list = host.request("tools/list", &json!({})).to_string().len();
    let tools = queries.len();
    println!(
        "{tools} tools of 12 servers, over stdio: tools/list {list} bytes, handshake \
         {greeted:.1?} and list {listed:.1?} after the start, first search {first:.2?}, search_tools p50 {p50:.0?} p99 {p99:.0?}"
    );
    assert!(first < Duration::from_millis(20) * slack, "{first:?}");
    assert!(p50 < Duration::from_millis(1) * slack, "{p50:?}");
}
