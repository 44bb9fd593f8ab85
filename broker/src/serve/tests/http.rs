//! Behaviour that exists only over HTTP: statuses, headers, and sessions that belong to one caller.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::host::{Host, TestServer};
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

async fn check(
    server: &TestServer,
    message: &Value,
    change: &[(&str, &str)],
    expected: (u16, i64),
) {
    let headers = headers_of(message, None);
    let kept = headers
        .iter()
        .filter(|(name, _)| !change.iter().any(|(it, _)| it == name));
    let mut headers: Vec<(&str, &str)> = kept.map(|(k, v)| (*k, v.as_str())).collect();
    headers.extend(change.iter().filter(|(_, value)| !value.is_empty()));
    let page = fetch(server.address(), "POST", &headers, &message.to_string()).await;
    let body: Value = serde_json::from_str(&page.body).unwrap_or_default();
    let code = body["error"]["code"].as_i64().unwrap_or_default();
    assert_eq!(
        (page.status, code),
        expected,
        "{message} {change:?} {page:?}"
    );
}

#[tokio::test]
async fn http_statuses_follow_the_protocol() {
    let server = TestServer::open(settings()).await;
    let call = modern(
        "tools/call",
        json!({"name": "search_tools", "arguments": {}}),
    );
    let list = modern("tools/list", json!({}));
    check(&server, &list, &[], (200, 0)).await;
    check(&server, &call, &[], (200, 0)).await;
    check(
        &server,
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
        check(&server, &call, &change, (400, -32_020)).await;
    }
    check(
        &server,
        &modern("tools/fly", json!({})),
        &[],
        (404, -32_601),
    )
    .await;
    let mut other = list.clone();
    other["params"]["_meta"][rpc::VERSION_KEY] = "2099-01-01".into();
    check(&server, &other, &[], (400, -32_022)).await;
    let header = ("MCP-Protocol-Version", MODERN_VERSION);
    check(&server, &other, &[header], (400, -32_020)).await;
    let bare = legacy("tools/list");
    check(&server, &bare, &[], (400, -32_600)).await;
    check(
        &server,
        &bare,
        &[("Mcp-Session-Id", "nobody")],
        (404, -32_600),
    )
    .await;
    check(
        &server,
        &bare,
        &[("MCP-Protocol-Version", MODERN_VERSION)],
        (400, -32_602),
    )
    .await;
    check(
        &server,
        &bare,
        &[("MCP-Protocol-Version", "x")],
        (400, -32_022),
    )
    .await;
    check(
        &server,
        &list,
        &[("Origin", "http://evil.example")],
        (403, -32_600),
    )
    .await;
    check(&server, &list, &[("Host", "evil.example")], (403, -32_600)).await;
    check(&server, &list, &[("Content-Type", "text/plain")], (415, 0)).await;
    check(&server, &json!([list]), &[], (400, -32_600)).await;
    let page = fetch(server.address(), "GET", &[], "").await;
    assert_eq!(page.status, 406);
    let json = [("Content-Type", "application/json")];
    let page = fetch(server.address(), "POST", &json, "{").await;
    assert!(
        page.status == 400 && page.body.contains("-32700"),
        "{page:?}"
    );
}

#[tokio::test]
async fn null_id_request_is_refused_in_both_eras() {
    let server = TestServer::open(settings()).await;
    for mut message in [legacy("tools/list"), modern("tools/list", json!({}))] {
        message["id"] = Value::Null;
        check(&server, &message, &[], (400, -32_600)).await;
    }
}

/// Tests a body with a declared length, and a body without one.
#[tokio::test]
async fn oversized_body_reports_limit() {
    let server = TestServer::open(settings()).await;
    let bytes = ServeSettings::default().message_bytes_max + 1;
    let said = format!("Content-Length: {bytes}\r\n\r\n{{");
    let sent = format!(
        "Transfer-Encoding: chunked\r\n\r\n{bytes:x}\r\n{}",
        " ".repeat(bytes)
    );
    for rest in [said, sent] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
        // The server closes the connection after its answer, perhaps while the rest is still being
        // sent.
        let _ = stream.write_all(format!("{head}{rest}").as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        let limit = format!(
            "longer than {} bytes",
            ServeSettings::default().message_bytes_max
        );
        assert!(answer.contains(&limit), "{answer}");
    }
    let list = modern("tools/list", json!({}));
    check(&server, &list, &[], (200, 0)).await;
}

#[tokio::test]
async fn older_era_session_ends_on_delete() {
    let server = TestServer::open(settings()).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let json = ("Content-Type", "application/json");
    let page = fetch(server.address(), "POST", &[json], &message.to_string()).await;
    let id = page
        .headers
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "));
    let id = id.unwrap().to_owned();
    let session = ("Mcp-Session-Id", id.as_str());
    check(&server, &legacy("tools/list"), &[session], (200, 0)).await;
    for status in [204, 404] {
        let page = fetch(server.address(), "DELETE", &[session], "").await;
        assert_eq!(page.status, status);
    }
    check(&server, &legacy("tools/list"), &[session], (404, -32_600)).await;
}

#[tokio::test]
async fn two_hundred_sessions_are_isolated() {
    let server = TestServer::open(settings()).await;
    let tools = ["word.echo", "word.to-upper"];
    let mut hosts = Vec::new();
    for number in 0..200 {
        let way = WAYS[number % WAYS.len()];
        let mut host = server.host(way, json!({})).await;
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

/// One of many hosts, with data that no other host may read.
struct OwnHost {
    host: Host,
    /// Address of a value that was too long for a result.
    place: String,
    /// The request of a waiting run, with its state. `None` in the older era.
    waiting: Option<Value>,
}

impl OwnHost {
    async fn of(server: &TestServer, number: usize) -> Self {
        let way = [WAYS[2], WAYS[3]][number % 2];
        let is_newer = way.era == Era::Modern;
        let abilities = if is_newer {
            json!({"elicitation": {}})
        } else {
            json!({})
        };
        let mut host = server.host(way, abilities).await;
        let long = host
            .run(&format!("return 'x'.repeat(60000) + {number}"))
            .await;
        let place = long["structuredContent"]["value_at"]["uri"]
            .as_str()
            .unwrap()
            .to_owned();
        let code = format!("return (await word.ask({{text: 'of {number}'}})).text");
        let mut params = json!({"name": "run_script", "arguments": {"code": code}});
        if is_newer {
            let first = host.request("tools/call", params.clone()).await.unwrap();
            params["requestState"] = first["requestState"].clone();
            let yes = json!({"action": "accept", "content": {"decision": "allow"}});
            params["inputResponses"] = json!({"call-1": yes});
        }
        let waiting = is_newer.then_some(params);
        Self {
            host,
            place,
            waiting,
        }
    }

    async fn reads(&mut self, place: &str) -> Result<Value, Value> {
        let read = json!({"uri": format!("{place}?from=59990")});
        self.host.request("resources/read", read).await
    }

    /// Tries another host's data, and then its own.
    async fn tries(mut self, number: usize, (place, waiting): (String, Option<Value>)) {
        let refused = self.reads(&place).await;
        assert!(refused.is_err(), "{number}: {refused:?}");
        if let Some(waiting) = waiting {
            let refused = self.host.request("tools/call", waiting).await.unwrap_err();
            assert_eq!(refused["code"], -32_602, "{number}: {refused}");
        }
        let own = self.place.clone();
        let read = self.reads(&own).await.unwrap();
        let end = read["contents"][0]["text"].as_str().unwrap();
        let end = end.trim_matches(['"', 'x']);
        assert_eq!(end, number.to_string());
        if let Some(waiting) = self.waiting.take() {
            let done = self.host.request("tools/call", waiting).await.unwrap();
            let value = &done["structuredContent"]["value"];
            assert_eq!(*value, format!("of {number}"), "{number}: {done}");
        }
    }
}

#[tokio::test]
async fn results_and_suspended_runs_are_private_to_sessions() {
    let all = ServeSettings {
        disclosure: Disclosure::Full,
        ..ServeSettings::default()
    };
    let server = TestServer::open(all).await;
    let hosts = (0..200).map(|number| OwnHost::of(&server, number));
    let hosts = futures_util::future::join_all(hosts).await;
    // Returns the data of the next host of the same era.
    let theirs = |number: usize| {
        let other = &hosts[(number + 2) % hosts.len()];
        (other.place.clone(), other.waiting.clone())
    };
    let theirs: Vec<_> = (0..hosts.len()).map(theirs).collect();
    let trying = hosts.into_iter().zip(theirs).enumerate();
    let trying = trying.map(|(number, (own, theirs))| own.tries(number, theirs));
    futures_util::future::join_all(trying).await;
}

#[tokio::test]
async fn forged_or_foreign_handle_is_refused() {
    let server = TestServer::open(settings()).await;
    let way = WAYS[3];
    let mut host = server.host(way, json!({})).await;
    host.descriptions("?tools=word.echo").await;
    let handle = host.handle.clone().unwrap();
    let handle = handle.as_str().unwrap();
    let id = handle.split_once('.').unwrap().0;
    let elsewhere = TestServer::open(settings()).await;
    let mut foreign = elsewhere.host(way, json!({})).await;
    foreign.descriptions("?tools=word.echo").await;
    let of_elsewhere = foreign.handle.clone().unwrap();
    let forged = format!("{id}.{}", "0".repeat(64));
    let truncated = &handle[..handle.len() - 1];
    let upper = handle.to_uppercase();
    let older = server.host(WAYS[2], json!({})).await.session();
    let twice = format!("{handle}.{handle}");
    for given in [
        json!(id),
        json!(forged),
        json!(truncated),
        json!(upper),
        json!(twice),
        json!(older),
        of_elsewhere,
        json!(""),
        json!(7),
    ] {
        let mut other = server.host(way, json!({})).await;
        other.handle = Some(given.clone());
        let params = json!({"name": "run_script", "arguments": {"code": "return 1"}});
        let refused = other.request("tools/call", params).await.unwrap_err();
        assert_eq!(refused["code"], rpc::INVALID_PARAMS, "{given}: {refused}");
    }
    // A caller's own state is not valid under another session id.
    let mut own = server.host(way, json!({"elicitation": {}})).await;
    own.descriptions("?tools=word.ask").await;
    let code = "return (await word.ask({text: 'a'})).text";
    let mut params = json!({"name": "run_script", "arguments": {"code": code}});
    let first = own.request("tools/call", params.clone()).await.unwrap();
    let (_, sealed) = first["requestState"]
        .as_str()
        .and_then(|it| it.split_once('~'))
        .unwrap();
    params["requestState"] = format!("{id}~{sealed}").into();
    own.handle = None;
    let refused = own.request("tools/call", params).await.unwrap_err();
    let why = refused["message"].as_str().unwrap();
    assert!(why.contains("was not issued for this request"), "{refused}");
    // A state without a valid seal finds no session, and neither does such a handle.
    for state in [
        format!("{id}~"),
        format!("{id}~x"),
        format!("{forged}~x"),
        format!("{older}~"),
    ] {
        let mut other = server.host(way, json!({})).await;
        let params = json!({"name": "search_tools", "arguments": {}, "requestState": state});
        let refused = other.request("tools/call", params).await.unwrap_err();
        assert_eq!(refused["code"], rpc::INVALID_PARAMS, "{state}: {refused}");
        let result = other.run("return await word.echo({})").await;
        assert!(
            text(&result).contains("TOOL_DESCRIPTION_REQUIRED"),
            "{state}"
        );
    }
    let mut same = server.host(way, json!({})).await;
    let args = json!({"code": "return (await word.echo({text: 'a'})).text", "session": handle});
    let result = same.call("run_script", args).await;
    assert_eq!(result["structuredContent"]["value"], "a", "{result}");
}

#[tokio::test]
async fn sessions_do_not_wait_for_other_runs() {
    let all = ServeSettings {
        disclosure: Disclosure::Full,
        ..ServeSettings::default()
    };
    let server = TestServer::open(all).await;
    let asking = json!({"elicitation": {}});
    let mut slow = server.host(WAYS[2], asking).await;
    let slow_run =
        json!({"name": "run_script", "arguments": {"code": "return await word.ask({})"}});
    let waiting = slow.begin("tools/call", slow_run).await;
    let asked = slow.asked().await;
    let mut stuck = server.host(WAYS[3], json!({})).await;
    let stuck_run = json!({"name": "run_script", "arguments": {"code": "await clock.wait({})"}});
    stuck.begin("tools/call", stuck_run).await;
    let mut quick = server.host(WAYS[0], json!({})).await;
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
async fn session_id_without_seal_is_refused() {
    let server = TestServer::open(settings()).await;
    let mut host = server.host(WAYS[3], json!({})).await;
    host.call("get_tool_details", json!({"tools": ["word.echo"]}))
        .await;
    let handle = host.handle.take().unwrap();
    let (id, _) = handle.as_str().unwrap().split_once('.').unwrap();
    let params = json!({
        "name": "get_tool_details",
        "arguments": {"tools": ["word.to-upper"]},
        "requestState": format!("{id}~x"),
    });
    let refused = host.request("tools/call", params).await.unwrap_err();
    assert_eq!(refused["code"], rpc::INVALID_PARAMS, "{refused}");
    check(
        &server,
        &legacy("ping"),
        &[("Mcp-Session-Id", id)],
        (404, rpc::INVALID_REQUEST),
    )
    .await;
}
