//! Servers that are slow, never there, or change.

use serde_json::json;
use tests::stdio_host::text;

use crate::fixtures::{Site, tool};

#[test]
fn servers_that_are_slow_or_never_there_hold_up_nobody_and_join_when_they_are_there() {
    let mut site = Site::new();
    site.server("quick", &[tool("read", "Reads a page.")], "");
    let late = [tool("draw", "Draws a picture.")];
    site.slow("slow", &late, Some("slow-may-start"), "");
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

    site.home.write("slow-may-start", "");
    let mut found = json!(null);
    while !text(&found).contains("slow.draw") {
        host.wait_for_list_change();
        found = host.call("search_tools", &json!({"query": "draws a picture"}));
    }
    let absent = found["structuredContent"]["absent_servers"].to_string();
    assert!(!absent.contains("slow"), "{absent}");
}

#[test]
fn the_stable_list_is_the_same_before_and_after_a_server_has_joined() {
    let mut site = Site::new();
    site.slow("slow", &[tool("draw", "Draws.")], Some("may-start"), "");
    let mut host = site.host(&["--start-wait", "0s", "--tools", "stable"]);
    let before = host.request("tools/list", &json!({}));
    site.home.write("may-start", "");
    let read = host.call("get_tool_details", &json!({"tools": ["slow.draw"]}));
    assert!(text(&read).contains("Draws."), "{read}");
    assert_eq!(host.request("tools/list", &json!({})), before);
    let args = json!({"name": "slow.draw", "args": {"text": "a line"}});
    let called = host.call("call_tool", &args);
    assert!(text(&called).contains("a line"), "{called}");
}

#[test]
fn whoever_names_a_server_that_is_starting_waits_for_that_one_alone() {
    let mut site = Site::new();
    site.slow(
        "slow",
        &[tool("draw", "Draws.")],
        Some("slow-may-start"),
        "",
    );
    site.slow("never", &[tool("x", "Is not there.")], Some("never"), "");
    let mut host = site.host(&["--start-wait", "0s", "--disclosure", "full"]);
    let code = "return await slow.draw({text: 'a line'})";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let id = host.ask("tools/call", &params);
    // It waits; others do not.
    host.call("search_tools", &json!({"query": "anything"}));
    site.home.write("slow-may-start", "");
    let ran = host.wait_for(|it| it["id"] == id);
    assert!(ran.to_string().contains("a line"), "{ran}");
}

#[test]
fn tools_that_were_listed_before_are_there_before_their_server_is() {
    let mut site = Site::new();
    site.slow(
        "slow",
        &[tool("draw", "Draws.")],
        Some("slow-may-start"),
        "",
    );
    let may_start = site.home.write("slow-may-start", "");
    let mut host = site.host(&["--start-wait", "60s"]);
    let found = host.call("search_tools", &json!({"query": "draw"}));
    assert!(text(&found).contains("slow.draw"), "{found}");
    drop(host);

    std::fs::remove_file(may_start).unwrap();
    let mut host = site.host(&["--start-wait", "60s", "--disclosure", "progressive"]);
    let found = host.call("search_tools", &json!({"query": "draw"}));
    assert!(text(&found).contains("slow.draw"), "{found}");
    host.call("get_tool_details", &json!({"tools": ["slow.draw"]}));
    let code = "return await slow.draw({text: 'a line'})";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let id = host.ask("tools/call", &params);
    site.home.write("slow-may-start", "");
    let ran = host.wait_for(|it| it["id"] == id);
    assert!(ran.to_string().contains("a line"), "{ran}");
}

#[test]
fn a_call_does_not_leave_when_its_server_turns_out_to_say_something_else_of_the_tool() {
    let mut site = Site::new();
    site.slow("slow", &[tool("draw", "Draws.")], Some("may-start"), "");
    let may_start = site.home.write("may-start", "");
    site.host(&["--start-wait", "60s"])
        .call("search_tools", &json!({"query": "draw"}));

    std::fs::remove_file(may_start).unwrap();
    site.list("slow", &[tool("draw", "Draws, and erases what was there.")]);
    let before = site.heard("slow").len();
    let mut host = site.host(&["--start-wait", "60s", "--disclosure", "progressive"]);
    host.call("get_tool_details", &json!({"tools": ["slow.draw"]}));
    let code =
        "try { return await slow.draw({text: 'a line'}) } catch (e) { return [e.code, e.message] }";
    let meta = json!({"progressToken": "run"});
    let params = json!({"name": "run_script", "arguments": {"code": code}, "_meta": meta});
    let id = host.ask("tools/call", &params);
    // The call was decided with what was listed before.
    host.wait_for(|it| it["method"] == "notifications/progress");
    site.home.write("may-start", "");
    let ran = host.wait_for(|it| it["id"] == id);
    assert!(
        ran.to_string().contains("describes the tool otherwise"),
        "{ran}"
    );
    let called = |line: &String| line.contains("tools/call");
    assert!(!site.heard("slow").iter().skip(before).any(called));
}

#[test]
fn a_server_that_says_that_it_has_changed_is_listed_anew_and_hosts_are_told() {
    let mut site = Site::new();
    site.server("shop", &[tool("buy", "Buys.")], "");
    let flags = ["--start-wait", "60s", "--disclosure", "progressive"];
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

    // The first change may still be the one from the start.
    let mut found = json!(null);
    while !text(&found).contains("shop.sell") {
        host.wait_for_list_change();
        found = host.call("search_tools", &json!({"query": "sells"}));
    }
    // What was shown is not what it says now.
    let ran = host.call("run_script", &run);
    assert!(text(&ran).contains("TOOL_DESCRIPTION_REQUIRED"), "{ran}");
    host.call("get_tool_details", &json!({"tools": ["shop.buy"]}));
    let ran = host.call("run_script", &run);
    assert!(text(&ran).contains("bread"), "{ran}");
}
