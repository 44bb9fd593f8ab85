//! Tests servers that start slowly, that are never available, or that change.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tests::patience::PATIENCE;
use tests::stdio_host::{StdioHost, text};

use crate::fixtures::{Site, tool};

/// The file for which the server `slow` waits.
const MAY_START: &str = "may-start";

/// Adds the server `slow`, which lists one tool once the file [`MAY_START`] exists.
fn drawing(site: &mut Site) {
    site.slow(
        "slow",
        &[tool("draw", "Draws a page.")],
        Some(MAY_START),
        "",
    );
}

#[test]
fn slow_servers_delay_nobody_and_join_later() {
    let mut site = Site::new();
    site.server("quick", &[tool("read", "Reads a page.")], "");
    let late = [tool("draw", "Draws a picture.")];
    site.slow("slow", &late, Some(MAY_START), "");
    site.slow("never", &late, Some("this-file-never-comes"), "");
    let mut host = site.host(&["--start-wait", "0s", "--disclosure", "progressive"]);
    let read = host.call("get_tool_details", &json!({"tools": ["quick.read"]}));
    assert!(text(&read).contains("Reads a page."), "{read}");

    let found = host.call("search_tools", &json!({"query": "draws a picture"}));
    assert!(
        text(&found).contains("still starting") && text(&found).contains("slow"),
        "{found}"
    );
    let absent = found["structuredContent"]["absent_servers"].to_string();
    assert!(
        absent.contains("slow") && absent.contains("never"),
        "{absent}"
    );
    assert!(!absent.contains("quick"), "{absent}");

    site.home.write(MAY_START, "");
    let mut found = json!(null);
    while !text(&found).contains("slow.draw") {
        found = host.call("search_tools", &json!({"query": "draws a picture"}));
    }
    let absent = found["structuredContent"]["absent_servers"].to_string();
    assert!(!absent.contains("slow"), "{absent}");
}

/// A `--start-wait` that is longer than every wait in these tests.
const LONG: [&str; 2] = ["--start-wait", "600s"];

#[test]
fn missed_server_delays_no_later_start() {
    let mut site = Site::new();
    site.server("quick", &[tool("read", "Reads a page.")], "");
    drawing(&mut site);
    search_until(
        &mut site.host(&["--start-wait", "50ms"]),
        "page",
        "quick.read",
    );

    let mut host = site.host(&LONG);
    let found = host.call("search_tools", &json!({"query": "page"}));
    assert!(text(&found).contains("quick.read"), "{found}");
    let absent = found["structuredContent"]["absent_servers"].to_string();
    assert!(absent.contains("slow"), "{absent}");
    let list = host.request("tools/list", &json!({})).to_string();
    assert!(list.contains("Servers: quick, slow."), "{list}");
    let ran = host.call("run_script", &json!({"code": "return 1 + 1"}));
    assert!(text(&ran).starts_with('2'), "{ran}");
}

/// A similar case: a host starts airlock twice, and the first process connected only to some of the
/// servers. The new server is still awaited.
#[test]
fn new_server_is_awaited_beside_stored_ones() {
    let mut site = Site::new();
    site.server("quick", &[tool("read", "Reads a page.")], "");
    let found = site
        .host(&LONG)
        .call("search_tools", &json!({"query": "page"}));
    assert!(text(&found).contains("quick.read"), "{found}");

    drawing(&mut site);
    let may_start = site.home.path().join(MAY_START);
    let mut host = site.host(&LONG);
    let starter = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        std::fs::write(may_start, "").unwrap();
    });
    let found = host.call("search_tools", &json!({"query": "page"}));
    assert!(text(&found).contains("slow.draw"), "{found}");
    starter.join().unwrap();
}

/// Returns a policy folder that permits everything except one tool.
fn forbidding(site: &Site, tool: &str) -> String {
    let rule =
        |id: &str, rule: String| format!("@id(\"{id}\") @owner(\"o\") @reason(\"r\")\n{rule}\n");
    let permit = rule("all", "permit(principal, action, resource);".into());
    let forbid = rule(
        "never",
        format!("forbid(principal, action == Action::\"{tool}\", resource);"),
    );
    let file = site.home.write("rules/rules.cedar", permit + &forbid);
    file.parent().unwrap().display().to_string()
}

/// Searches until the answer contains this text.
fn search_until(host: &mut StdioHost, query: &str, expected: &str) {
    let since = Instant::now();
    loop {
        let found = host.call("search_tools", &json!({"query": query}));
        if text(&found).contains(expected) {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "{found}");
    }
}

#[test]
fn policy_for_unseen_server_affects_no_other() {
    let mut site = Site::new();
    // A similar server name is not taken for a misspelling.
    site.server("slop", &[tool("read", "Reads a page.")], "");
    let late = [
        tool("draw", "Draws a page."),
        tool("erase", "Erases a page."),
    ];
    site.slow("slow", &late, Some(MAY_START), "");
    let folder = forbidding(&site, "slow.erase");
    let flags = [
        "--start-wait",
        "0s",
        "--disclosure",
        "full",
        "--policy",
        &folder,
    ];
    let mut host = site.host(&flags);
    search_until(&mut host, "page", "slop.read");
    let run = json!({"code": "return await slop.read({text: 'a line'})"});
    let ran = host.call("run_script", &run);
    assert!(text(&ran).contains("a line"), "{ran}");
    site.home.write(MAY_START, "");
    search_until(&mut host, "page", "slow.draw");
    let found = host.call("search_tools", &json!({"query": "page"}));
    assert!(!text(&found).contains("slow.erase"), "{found}");
}

#[test]
fn server_without_tool_named_by_policy_is_left_out() {
    let mut site = Site::new();
    site.server("quick", &[tool("read", "Reads a page.")], "");
    drawing(&mut site);
    let folder = forbidding(&site, "slow.erase");
    let flags = [
        "--start-wait",
        "0s",
        "--disclosure",
        "full",
        "--policy",
        &folder,
    ];
    let mut host = site.host(&flags);
    search_until(&mut host, "page", "quick.read");
    site.home.write(MAY_START, "");
    search_until(&mut host, "page", "cannot be reached now: slow");
    let args = json!({"query": "slow"});
    let servers = host.call("search_available_servers", &args);
    let why = &servers["structuredContent"]["servers"][0]["why"];
    assert!(why.as_str().unwrap().contains("slow.erase"), "{servers}");
    let found = host.call("search_tools", &json!({"query": "page"}));
    assert!(text(&found).contains("quick.read"), "{found}");
    assert!(!text(&found).contains("slow.draw"), "{found}");
}

#[test]
fn stable_list_is_unchanged_when_server_joins() {
    let mut site = Site::new();
    drawing(&mut site);
    let mut host = site.host(&["--start-wait", "0s", "--tools", "stable"]);
    let before = host.request("tools/list", &json!({}));
    site.home.write(MAY_START, "");
    let read = host.call("get_tool_details", &json!({"tools": ["slow.draw"]}));
    assert!(text(&read).contains("Draws a page."), "{read}");
    assert_eq!(host.request("tools/list", &json!({})), before);
    let args = json!({"name": "slow.draw", "args": {"text": "a line"}});
    let called = host.call("call_tool", &args);
    assert!(text(&called).contains("a line"), "{called}");
}

#[test]
fn naming_a_starting_server_waits_for_it_only() {
    let mut site = Site::new();
    drawing(&mut site);
    site.slow("never", &[tool("x", "Is not there.")], Some("never"), "");
    let mut host = site.host(&["--start-wait", "0s", "--disclosure", "full"]);
    let code = "return await slow.draw({text: 'a line'})";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let id = host.ask("tools/call", &params);
    // Only this server waits.
    host.call("search_tools", &json!({"query": "anything"}));
    site.home.write(MAY_START, "");
    let ran = host.wait_for(|it| it["id"] == id);
    assert!(ran.to_string().contains("a line"), "{ran}");
}

#[test]
fn stored_tools_are_listed_before_their_server_connects() {
    let mut site = Site::new();
    drawing(&mut site);
    let may_start = site.home.write(MAY_START, "");
    let mut host = site.host(&[]);
    let found = host.call("search_tools", &json!({"query": "draw"}));
    assert!(text(&found).contains("slow.draw"), "{found}");
    drop(host);

    std::fs::remove_file(may_start).unwrap();
    let mut host = site.host(&["--disclosure", "progressive"]);
    let found = host.call("search_tools", &json!({"query": "draw"}));
    assert!(text(&found).contains("slow.draw"), "{found}");
    host.call("get_tool_details", &json!({"tools": ["slow.draw"]}));
    let code = "return await slow.draw({text: 'a line'})";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let id = host.ask("tools/call", &params);
    site.home.write(MAY_START, "");
    let ran = host.wait_for(|it| it["id"] == id);
    assert!(ran.to_string().contains("a line"), "{ran}");
}

#[test]
fn call_is_refused_if_tool_changed_on_connect() {
    let mut site = Site::new();
    drawing(&mut site);
    let may_start = site.home.write(MAY_START, "");
    site.host(&[])
        .call("search_tools", &json!({"query": "draw"}));

    std::fs::remove_file(may_start).unwrap();
    site.list("slow", &[tool("draw", "Draws, and erases what was there.")]);
    let before = site.heard("slow").len();
    let mut host = site.host(&["--disclosure", "progressive"]);
    host.call("get_tool_details", &json!({"tools": ["slow.draw"]}));
    let code =
        "try { return await slow.draw({text: 'a line'}) } catch (e) { return [e.code, e.message] }";
    let meta = json!({"progressToken": "run"});
    let params = json!({"name": "run_script", "arguments": {"code": code}, "_meta": meta});
    let id = host.ask("tools/call", &params);
    // The call was decided with the old description.
    host.wait_for(|it| it["method"] == "notifications/progress");
    site.home.write(MAY_START, "");
    let ran = host.wait_for(|it| it["id"] == id);
    assert!(
        ran.to_string().contains("changed the tool's description"),
        "{ran}"
    );
    let called = |line: &String| line.contains("tools/call");
    assert!(!site.heard("slow").iter().skip(before).any(called));
}

#[test]
fn changed_server_is_relisted_and_hosts_notified() {
    let mut site = Site::new();
    site.server("shop", &[tool("buy", "Buys.")], "");
    let flags = ["--disclosure", "progressive", "--tools", "progressive"];
    let mut host = site.host(&flags);
    host.call("get_tool_details", &json!({"tools": ["shop.buy"]}));
    let changed = [
        tool("buy", "Buys, and tells everybody."),
        tool("sell", "Sells what was bought."),
    ];
    site.list("shop", &changed);
    let run = json!({"code": "return await shop.buy({text: 'bread'})"});
    let ran = host.call("run_script", &run);
    assert!(text(&ran).contains("bread"), "{ran}");

    // The first notification may still report the tools of the start.
    let mut found = json!(null);
    while !text(&found).contains("shop.sell") {
        host.wait_for_list_change();
        found = host.call("search_tools", &json!({"query": "sells"}));
    }
    // The session was shown an old description of the tool.
    let ran = host.call("run_script", &run);
    assert!(text(&ran).contains("TOOL_DESCRIPTION_REQUIRED"), "{ran}");
    host.call("get_tool_details", &json!({"tools": ["shop.buy"]}));
    let ran = host.call("run_script", &run);
    assert!(text(&ran).contains("bread"), "{ran}");
}
