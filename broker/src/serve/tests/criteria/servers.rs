//! Tests of advice to clients about servers: connect when needed, cache lists, and list again after
//! changes.

use std::time::Duration;

use super::super::fake_upstream::FakeUpstream;
use super::super::host::TestServer;
use super::super::*;
use super::shown;
use crate::config::ServerConfig;

shown! {
    servers_are_found_by_what_they_are_good_for: ["bp-registry"];
    a_server_is_connected_to_when_it_is_needed: ["bp-connect", "bp-brokered"];
    a_server_that_nobody_needs_is_left_and_keeps_its_place_in_the_list:
        ["bp-disconnect", "bp-boundary"];
    what_was_listed_once_is_told_from_memory: ["bp-cached", "pd-7.2-1", "pd-10.3-3"];
    a_list_that_changes_is_read_and_searched_anew: ["bp-refresh"];
    an_output_schema_becomes_the_type_of_the_result: ["bp-output-type"];
}

const PATIENCE: Duration = Duration::from_secs(600);

fn finds(text: &str) -> Value {
    let properties = json!({"from": {"type": "string"}});
    json!([{
        "name": "route",
        "description": text,
        "inputSchema": {"type": "object", "properties": properties},
        "outputSchema": {"type": "object", "properties": properties, "required": ["from"]},
    }])
}

/// Returns the on-demand server `maps`, and a host in front of it.
async fn on_demand(way: HostKind) -> (FakeUpstream, TestServer, Host) {
    let upstream = FakeUpstream::open(finds("Finds a way. It takes a while.")).await;
    let server = ServerConfig {
        idle: Some(Duration::from_secs(3_600)),
        about: Some("Maps, routes and places".into()),
        ..ServerConfig::new(upstream.spec("maps"))
    };
    let server = TestServer::before(server, settings()).await;
    let host = server.host(way, json!({})).await;
    (upstream, server, host)
}

async fn state(host: &mut Host) -> Value {
    let args = json!({"query": "a route on a map"});
    let found = host.call("search_available_servers", args).await;
    found["structuredContent"]["servers"][0].clone()
}

async fn servers_are_found_by_what_they_are_good_for(way: HostKind) {
    let (upstream, _house, mut host) = on_demand(way).await;
    let found = state(&mut host).await;
    assert_eq!(found["name"], "maps", "{found}");
    assert_eq!(found["about"], "Maps, routes and places");
    assert_eq!(found["state"], "on-demand");
    assert_eq!(
        upstream.heard("initialize"),
        0,
        "no call has needed the server yet"
    );
}

async fn a_server_is_connected_to_when_it_is_needed(way: HostKind) {
    let (upstream, _house, mut host) = on_demand(way).await;
    let details = json!({"tools": ["maps.route"]});
    let details = host.call("get_tool_details", details).await;
    assert!(text(&details).contains("Finds a way"), "{details}");
    assert_eq!(upstream.heard("initialize"), 1);
    assert_eq!(upstream.heard("tools/call"), 0);
    let ran = host
        .run("return (await maps.route({from: 'home'})).from")
        .await;
    assert_eq!(ran["structuredContent"]["value"], "home", "{ran}");
    assert_eq!(upstream.heard("tools/call"), 1);
    assert_eq!(upstream.heard("initialize"), 1);
}

async fn a_server_that_nobody_needs_is_left_and_keeps_its_place_in_the_list(way: HostKind) {
    let (_behind, _house, mut host) = on_demand(way).await;
    let enabled = host.call("enable_server", json!({"server": "maps"})).await;
    assert!(text(&enabled).contains("maps.route"), "{enabled}");
    let before = host.request("tools/list", json!({})).await.unwrap();
    assert_eq!(state(&mut host).await["state"], "connected");
    host.call("disable_server", json!({"server": "maps"})).await;
    assert_eq!(state(&mut host).await["state"], "disabled");
    let after = host.request("tools/list", json!({})).await.unwrap();
    assert!(before["tools"] == after["tools"], "{after}");
    let query = json!({"query": "finds a way"});
    let found = host.call("search_tools", query.clone()).await;
    assert!(!text(&found).contains("maps.route"), "{found}");
    host.call("enable_server", json!({"server": "maps"})).await;
    let found = host.call("search_tools", query).await;
    assert!(text(&found).contains("maps.route"), "{found}");
}

async fn what_was_listed_once_is_told_from_memory(way: HostKind) {
    let (upstream, _house, mut host) = on_demand(way).await;
    let details = json!({"tools": ["maps.route"], "format": "json"});
    let first = host.call("get_tool_details", details.clone()).await;
    host.call("search_tools", json!({"query": "way"})).await;
    let again = host.call("get_tool_details", details).await;
    assert!(text(&first).contains("Finds a way"), "{first}");
    assert_eq!(text(&first), text(&again));
    host.descriptions("?tools=maps.route").await;
    host.request("tools/list", json!({})).await.unwrap();
    assert_eq!(upstream.heard("tools/list"), 1);
}

async fn a_list_that_changes_is_read_and_searched_anew(way: HostKind) {
    let (upstream, _house, mut host) = on_demand(way).await;
    host.call("get_tool_details", json!({"tools": ["maps.route"]}))
        .await;
    upstream.list(finds("Draws a globe."));
    let globe = json!({"query": "globe"});
    let found = host.call("search_tools", globe.clone()).await;
    assert!(!text(&found).contains("globe."), "{found}");
    // The server reports the change during this call.
    host.run("return await maps.route({from: 'home'})").await;
    let since = std::time::Instant::now();
    loop {
        let found = host.call("search_tools", globe.clone()).await;
        if text(&found).contains("Draws a globe") {
            break;
        }
        assert!(since.elapsed() < PATIENCE, "{found}");
        tokio::task::yield_now().await;
    }
    assert_eq!(upstream.heard("tools/list"), 2);
    // The description that was shown is no longer the current one.
    let ran = host.run("return await maps.route({from: 'home'})").await;
    assert!(text(&ran).contains("TOOL_DESCRIPTION_REQUIRED"), "{ran}");
}

async fn an_output_schema_becomes_the_type_of_the_result(way: HostKind) {
    let (_behind, _house, mut host) = on_demand(way).await;
    let details = json!({"tools": ["maps.route"]});
    let details = host.call("get_tool_details", details).await;
    let said = text(&details);
    assert!(said.contains("Promise<{"), "{said}");
    assert!(
        said.contains("from: string") && said.contains("from?: string"),
        "{said}"
    );
}
