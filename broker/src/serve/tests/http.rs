//! What only HTTP has: statuses, headers, sessions that nobody else may use.

use super::host::House;
use super::wire::{fetch, headers_of};
use super::*;
use crate::serve::rpc;
use crate::upstream::era::MODERN_VERSION;

fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({});
    params["_meta"][rpc::VERSION_KEY] = MODERN_VERSION.into();
    params["_meta"][rpc::CAPABILITIES_KEY] = json!({});
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn legacy(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method})
}

async fn check(house: &House, message: &Value, change: &[(&str, &str)], expected: (u16, i64)) {
    let headers = headers_of(message, None);
    let kept = headers
        .iter()
        .filter(|(name, _)| !change.iter().any(|(it, _)| it == name));
    let mut headers: Vec<(&str, &str)> = kept.map(|(k, v)| (*k, v.as_str())).collect();
    headers.extend(change.iter().filter(|(_, value)| !value.is_empty()));
    let page = fetch(house.address(), "POST", &headers, &message.to_string()).await;
    let body: Value = serde_json::from_str(&page.body).unwrap_or_default();
    let code = body["error"]["code"].as_i64().unwrap_or_default();
    assert_eq!(
        (page.status, code),
        expected,
        "{message} {change:?} {page:?}"
    );
}

#[tokio::test]
async fn statuses_and_errors_are_those_of_the_protocol() {
    let house = House::open(settings()).await;
    let call = modern(
        "tools/call",
        json!({"name": "search_tools", "arguments": {}}),
    );
    let list = modern("tools/list", json!({}));
    check(&house, &list, &[], (200, 0)).await;
    check(&house, &call, &[], (200, 0)).await;
    check(
        &house,
        &call,
        &[("Mcp-Name", "=?base64?c2VhcmNoX3Rvb2xz?=")],
        (200, 0),
    )
    .await;
    for change in [
        [("Mcp-Name", "run_script")],
        [("Mcp-Name", "")],
        [("Mcp-Method", "tools/list")],
        [("Mcp-Method", "")],
        [("MCP-Protocol-Version", "2025-11-25")],
        [("MCP-Protocol-Version", "")],
    ] {
        check(&house, &call, &change, (400, -32_020)).await;
    }
    check(&house, &modern("tools/fly", json!({})), &[], (404, -32_601)).await;
    let mut other = list.clone();
    other["params"]["_meta"][rpc::VERSION_KEY] = "2099-01-01".into();
    check(&house, &other, &[], (400, -32_022)).await;
    let header = ("MCP-Protocol-Version", MODERN_VERSION);
    check(&house, &other, &[header], (400, -32_020)).await;
    let bare = legacy("tools/list");
    check(&house, &bare, &[], (400, -32_600)).await;
    check(
        &house,
        &bare,
        &[("Mcp-Session-Id", "nobody")],
        (404, -32_600),
    )
    .await;
    check(
        &house,
        &bare,
        &[("MCP-Protocol-Version", MODERN_VERSION)],
        (400, -32_602),
    )
    .await;
    check(
        &house,
        &bare,
        &[("MCP-Protocol-Version", "x")],
        (400, -32_022),
    )
    .await;
    check(
        &house,
        &list,
        &[("Origin", "http://evil.example")],
        (403, -32_600),
    )
    .await;
    check(&house, &list, &[("Host", "evil.example")], (403, -32_600)).await;
    check(&house, &list, &[("Content-Type", "text/plain")], (415, 0)).await;
    check(&house, &json!([list]), &[], (400, -32_600)).await;
    let page = fetch(house.address(), "GET", &[], "").await;
    assert_eq!(page.status, 406);
    let json = [("Content-Type", "application/json")];
    let page = fetch(house.address(), "POST", &json, "{").await;
    assert!(
        page.status == 400 && page.body.contains("-32700"),
        "{page:?}"
    );
}

#[tokio::test]
async fn a_session_of_the_older_era_ends_when_its_host_says_so() {
    let house = House::open(settings()).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let json = ("Content-Type", "application/json");
    let page = fetch(house.address(), "POST", &[json], &message.to_string()).await;
    let id = page
        .headers
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "));
    let id = id.unwrap().to_owned();
    let session = ("Mcp-Session-Id", id.as_str());
    check(&house, &legacy("tools/list"), &[session], (200, 0)).await;
    for status in [204, 404] {
        let page = fetch(house.address(), "DELETE", &[session], "").await;
        assert_eq!(page.status, status);
    }
    check(&house, &legacy("tools/list"), &[session], (404, -32_600)).await;
}

#[tokio::test]
async fn two_hundred_sessions_side_by_side_know_nothing_of_each_other() {
    let house = House::open(settings()).await;
    let tools = ["word.echo", "word.to-upper"];
    let mut hosts = Vec::new();
    for number in 0..200 {
        let way = WAYS[number % WAYS.len()];
        let mut host = house.host(way, json!({})).await;
        host.descriptions(&format!("?tools={}", tools[number / 4 % 2]))
            .await;
        hosts.push(host);
    }
    let asking = hosts
        .iter_mut()
        .enumerate()
        .map(|(number, host)| async move {
            let code = [
                "return (await word.echo({text: 'a'})).text",
                "return (await word.to_upper({text: 'a'})).text",
            ];
            let own = host.run(code[number / 4 % 2]).await;
            let other = host.run(code[1 - number / 4 % 2]).await;
            (own, other)
        });
    let results = futures_util::future::join_all(asking).await;
    for (number, (own, other)) in results.iter().enumerate() {
        let expected = ["a", "A"][number / 4 % 2];
        assert_eq!(
            own["structuredContent"]["value"], expected,
            "{number}: {own}"
        );
        assert!(
            text(other).contains("TOOL_DESCRIPTION_REQUIRED"),
            "{number}: {other}"
        );
    }
}

#[tokio::test]
async fn a_forged_or_foreign_handle_opens_nothing() {
    let house = House::open(settings()).await;
    let way = WAYS[3];
    let mut host = house.host(way, json!({})).await;
    host.descriptions("?tools=word.echo").await;
    let handle = host.handle.clone().unwrap();
    let handle = handle.as_str().unwrap();
    let id = handle.split_once('.').unwrap().0;
    let elsewhere = House::open(settings()).await;
    let mut foreign = elsewhere.host(way, json!({})).await;
    foreign.descriptions("?tools=word.echo").await;
    let of_elsewhere = foreign.handle.clone().unwrap();
    let forged = format!("{id}.{}", "0".repeat(64));
    for given in [json!(id), json!(forged), of_elsewhere, json!(""), json!(7)] {
        let mut other = house.host(way, json!({})).await;
        other.handle = Some(given.clone());
        let result = other.run("return await word.echo({})").await;
        assert!(
            text(&result).contains("TOOL_DESCRIPTION_REQUIRED"),
            "{given}"
        );
    }
    let mut same = house.host(way, json!({})).await;
    let args = json!({"code": "return (await word.echo({text: 'a'})).text", "session": handle});
    let result = same.call("run_script", args).await;
    assert_eq!(result["structuredContent"]["value"], "a", "{result}");
}

#[tokio::test]
async fn nobody_waits_for_anybody_elses_run() {
    let all = Settings {
        disclosure: Disclosure::Full,
        ..Settings::default()
    };
    let house = House::open(all).await;
    let asking = json!({"elicitation": {}});
    let mut slow = house.host(WAYS[2], asking).await;
    let slow_run =
        json!({"name": "run_script", "arguments": {"code": "return await word.ask({})"}});
    let waiting = slow.begin("tools/call", slow_run).await;
    let asked = slow.asked().await;
    let mut stuck = house.host(WAYS[3], json!({})).await;
    let stuck_run = json!({"name": "run_script", "arguments": {"code": "await clock.wait({})"}});
    stuck.begin("tools/call", stuck_run).await;
    let mut quick = house.host(WAYS[0], json!({})).await;
    let result = quick
        .run("return (await word.echo({text: 'now'})).text")
        .await;
    assert_eq!(result["structuredContent"]["value"], "now");
    let yes = json!({"action": "accept", "content": {"decision": "allow"}});
    let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": yes});
    slow.say(&reply.to_string()).await;
    let result = slow.answer_to(waiting).await.unwrap();
    assert_eq!(result["structuredContent"]["status"], "done", "{result}");
}

#[tokio::test]
async fn the_id_of_a_session_opens_nothing_without_its_seal() {
    let house = House::open(settings()).await;
    let mut host = house.host(WAYS[3], json!({})).await;
    host.call("get_tool_details", json!({"tools": ["word.echo"]}))
        .await;
    let handle = host.handle.take().unwrap();
    let (id, _) = handle.as_str().unwrap().split_once('.').unwrap();
    let params = json!({
        "name": "get_tool_details",
        "arguments": {"tools": ["word.to-upper"]},
        "requestState": format!("{id}~x"),
    });
    host.request("tools/call", params).await.unwrap();
    let other = host.handle.take().unwrap();
    assert!(!other.as_str().unwrap().starts_with(id), "{other}");
    check(
        &house,
        &legacy("ping"),
        &[("Mcp-Session-Id", id)],
        (404, rpc::INVALID_REQUEST),
    )
    .await;
}
