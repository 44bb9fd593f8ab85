//! Tests servers that are connected only when a call needs them.

use serde_json::json;
use tests::patience::PATIENCE;
use tests::stdio_host::text;

use crate::fixtures::{Site, tool};

const ON_DEMAND: &str = "start = \"on-demand\"\nabout = \"Maps, routes and places\"";

fn site() -> Site {
    let mut site = Site::new();
    site.server("word", &[tool("count", "Counts words.")], "");
    site.server("maps", &[tool("route", "Finds a way.")], ON_DEMAND);
    site
}

#[test]
fn on_demand_server_is_found_without_being_started() {
    let site = site();
    let mut host = site.host(&["--disclosure", "progressive"]);
    let list = host.request("tools/list", &json!({})).to_string();
    for name in [
        "search_available_servers",
        "enable_server",
        "disable_server",
    ] {
        assert!(list.contains(name), "{list}");
    }
    let found = host.call("search_tools", &json!({"query": "a way"}));
    assert!(text(&found).contains("not started"), "{found}");
    let found = host.call(
        "search_available_servers",
        &json!({"query": "route on a map"}),
    );
    let servers = &found["structuredContent"]["servers"];
    assert_eq!(servers[0]["name"], "maps");
    assert_eq!(servers[0]["state"], "on-demand");
    assert_eq!(servers[0]["about"], "Maps, routes and places");
    assert_eq!(site.heard("maps"), Vec::<String>::new());

    let enabled = host.call("enable_server", &json!({"server": "maps"}));
    assert!(text(&enabled).contains("maps.route"), "{enabled}");
    let mut found = json!(null);
    while !text(&found).contains("maps.route") {
        found = host.call("search_tools", &json!({"query": "finds a way"}));
    }
}

#[test]
fn on_demand_server_starts_stops_and_restarts() {
    let site = site();
    let mut host = site.host(&["--disclosure", "full"]);
    let run = json!({"code": "return await maps.route({text: 'home'})"});
    let ran = host.call("run_script", &run);
    assert!(text(&ran).contains("home"), "{ran}");
    let processes = |site: &Site| {
        let lines = site.heard("maps");
        let pids = lines.iter().map(|it| it.split(' ').next().unwrap());
        pids.map(str::to_owned)
            .collect::<std::collections::BTreeSet<_>>()
            .len()
    };
    assert_eq!(processes(&site), 1);
    let stopped = host.call("disable_server", &json!({"server": "maps"}));
    assert!(text(&stopped).contains("is stopped"), "{stopped}");
    let found = host.call("search_tools", &json!({"query": "finds a way"}));
    assert!(!text(&found).contains("maps.route"), "{found}");
    let enabled = host.call("enable_server", &json!({"server": "maps"}));
    assert!(text(&enabled).contains("maps.route"), "{enabled}");
    let found = host.call("search_tools", &json!({"query": "finds a way"}));
    assert!(text(&found).contains("maps.route"), "{found}");
    let ran = host.call("run_script", &run);
    assert!(text(&ran).contains("home"), "{ran}");
    assert_eq!(processes(&site), 2);
}

#[test]
fn idle_on_demand_server_is_disconnected() {
    let mut site = Site::new();
    let idle = "start = \"on-demand\"\nidle = \"50ms\"";
    site.server("maps", &[tool("route", "Finds a way.")], idle);
    let mut host = site.host(&[]);
    host.call("enable_server", &json!({"server": "maps"}));
    let state = |host: &mut tests::stdio_host::StdioHost| {
        let found = host.call("search_available_servers", &json!({}));
        found["structuredContent"]["servers"][0]["state"].clone()
    };
    // The list of servers shows the disconnection at once. Requesting the list does not reconnect.
    let since = std::time::Instant::now();
    while state(&mut host) != "on-demand" {
        assert!(since.elapsed() < PATIENCE, "still connected");
    }
}

#[test]
fn permanent_server_is_disabled_but_runs_on() {
    let site = site();
    let mut host = site.host(&[]);
    let stopped = host.call("disable_server", &json!({"server": "word"}));
    assert_eq!(stopped["structuredContent"]["state"], "disabled");
    assert_eq!(stopped["structuredContent"]["stopped"], false, "{stopped}");
    let started = host.call("enable_server", &json!({"server": "map"}));
    assert!(text(&started).contains("`maps`"), "{started}");
}
