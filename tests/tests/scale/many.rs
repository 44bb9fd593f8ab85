//! Tests twelve servers with more than a thousand tools behind one `airlock serve`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::patience::is_measured;
use tests::stdio_host::{StdioHost, text};

use crate::fixtures::{Fixture, Site, twelve};

#[test]
fn thousand_tools_list_in_few_lines_and_search_finds_each() {
    let fixtures = twelve();
    let mut site = Site::new();
    for it in &fixtures {
        site.server(&server_of(it), &it.tools, "");
    }
    // The first request waits for all servers, also on a slow machine.
    let mut host = site.host(&[]);
    let list = host.request("tools/list", &json!({}));
    let bytes = list.to_string().len();
    assert!(bytes < 4_096, "{bytes} bytes");
    let listed: usize = fixtures.iter().map(|it| it.tools.len()).sum();
    let found = host.call("search_tools", &json!({"detail": "names", "limit": 50}));
    let total = found["structuredContent"]["total"].as_u64().unwrap();
    assert!(total >= 1_000 && total <= listed as u64, "{total}");
    for fixture in &fixtures {
        let server = server_of(fixture);
        let tool = fixture.tools[0]["name"].as_str().unwrap();
        let args = json!({"query": tool, "servers": [server], "detail": "names"});
        let found = host.call("search_tools", &args);
        assert!(text(&found).contains(tool), "{server}.{tool}: {found}");
    }
}

/// `cargo xtask bench serve` runs this test on a release build and shows the times.
#[test]
fn first_and_later_searches_are_fast() {
    const SEARCHES: usize = 300;
    // A debug build on a busy machine only shows that no request waits for the silent server, which
    // would take a minute.
    let (slack, count) = if is_measured() { (1, 15) } else { (500, 1) };
    let fixtures = twelve();
    let site = twelve_once_seen(&fixtures);
    let starts: Vec<Start> = (0..count).map(|_| Start::measure(&site)).collect();
    let of = |part: fn(&Start) -> Duration| median(starts.iter().map(part).collect());
    let (greeted, searched) = (of(|it| it.greeted), of(|it| it.searched));
    let first = of(|it| it.searched - it.greeted);

    let mut host = site.host(&[]);
    let list = host.request("tools/list", &json!({})).to_string().len();
    let queries = queries(&fixtures);
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
    let tools = queries.len();
    println!(
        "{tools} tools of 12 servers over stdio, one of them silent, medians of {count} starts: \
         process to handshake {greeted:.1?}, process to first search answered {searched:.1?}, \
         handshake to first search answered {first:.1?}; \
         search_tools p50 {p50:.0?} p99 {p99:.0?}; tools/list {list} bytes"
    );
    assert!(searched < Duration::from_millis(20) * slack, "{searched:?}");
    assert!(p50 < Duration::from_millis(1) * slack, "{p50:?}");
    assert!(list < 4_096, "{list} bytes");
}

/// Returns a site whose twelve servers have all connected once. One of them is silent from now on.
/// A thirteenth server has never connected, and an earlier start has already waited for it.
fn twelve_once_seen(fixtures: &[Fixture]) -> Site {
    let mut site = Site::new();
    let (silent, others) = fixtures.split_last().unwrap();
    for it in others {
        site.server(&server_of(it), &it.tools, "");
    }
    site.slow(&server_of(silent), &silent.tools, Some("may-start"), "");
    let may_start = site.home.write("may-start", "");
    let mut host = site.host(&[]);
    let found = host.call("search_tools", &search("create a file"));
    assert!(found["structuredContent"].get("absent_servers").is_none());
    std::fs::remove_file(may_start).unwrap();
    site.slow("never", &silent.tools, Some("this-file-never-comes"), "");
    let found = site
        .host(&["--start-wait", "50ms"])
        .call("search_tools", &search("create a file"));
    assert!(text(&found).contains("never"), "{found}");
    site
}

/// Two durations since the start of a process.
struct Start {
    /// Time until the handshake is answered.
    greeted: Duration,
    /// Time until the search that immediately follows the handshake is answered.
    searched: Duration,
}

impl Start {
    fn measure(site: &Site) -> Self {
        // Uses the default waiting times.
        let mut command = site.command(&[]);
        let since = Instant::now();
        let mut host = StdioHost::start(&mut command, &json!({}));
        let greeted = since.elapsed();
        let found = host.call("search_tools", &search("create a file"));
        let searched = since.elapsed();
        assert!(found["structuredContent"]["total"].as_u64() > Some(0));
        Self { greeted, searched }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn search(words: &str) -> Value {
    json!({"query": words})
}

fn server_of(fixture: &Fixture) -> String {
    fixture.name.replace('_', "-")
}

/// Returns the first words of every description.
fn queries(fixtures: &[Fixture]) -> Vec<String> {
    let tools = fixtures.iter().flat_map(|it| &it.tools);
    let said = tools.filter_map(|tool| tool["description"].as_str());
    let head = |about: &str| {
        about
            .split_whitespace()
            .take(8)
            .collect::<Vec<_>>()
            .join(" ")
    };
    said.map(head).collect()
}
