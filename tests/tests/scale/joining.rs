//! Servers that are slow, never there, or change.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tests::patience::PATIENCE;
use tests::stdio_host::{StdioHost, text};

use crate::fixtures::{Site, tool};

/// The file for which the server `slow` waits.
const MAY_START: &str = "may-start";

/// Adds the server `slow`, which lists one tool when it may start.
fn drawing(site: &mut Site) {
    site.slow(
        "slow",
        &[tool("draw", "Draws a page.")],
        Some(MAY_START),
        "",
    );
}

#[test]
fn servers_that_are_slow_or_never_there_hold_up_nobody_and_join_when_they_are_there() {
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
        host.wait_for_list_change();
        found = host.call("search_tools", &json!({"query": "draws a picture"}));
    }
    let absent = found["structuredContent"]["absent_servers"].to_string();
    assert!(!absent.contains("slow"), "{absent}");
}

/// Longer than anybody waits here.
const LONG: [&str; 2] = ["--start-wait", "600s"];

#[test]
fn a_server_that_was_waited_for_in_vain_holds_up_no_later_start() {
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
    assert!(list.contains("quick (1)"), "{list}");
    let ran = host.call("run_script", &json!({"code": "return 1 + 1"}));
    assert!(text(&ran).starts_with('2'), "{ran}");
}

/// Also where a host starts the program twice, and the first one saw only some of the servers.
#[test]
fn a_server_that_nobody_has_waited_for_yet_is_waited_for_beside_those_that_are_remembered() {
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

/// A policy folder: everything is permitted, and one tool is forbidden.
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

/// Searches until the answer has this text.
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
fn a_policy_about_a_server_that_nobody_has_seen_yet_takes_no_tool_from_the_others() {
    let mut site = Site::new();
    // A name that is nearly the other one is no misspelling of it.
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
fn a_server_that_lists_no_tool_that_a_policy_names_is_left_out_and_the_others_stay() {
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
fn the_stable_list_is_the_same_before_and_after_a_server_has_joined() {
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
fn whoever_names_a_server_that_is_starting_waits_for_that_one_alone() {
    let mut site = Site::new();
    drawing(&mut site);
    site.slow("never", &[tool("x", "Is not there.")], Some("never"), "");
    let mut host = site.host(&["--start-wait", "0s", "--disclosure", "full"]);
    let code = "return await slow.draw({text: 'a line'})";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let id = host.ask("tools/call", &params);
    // It waits; others do not.
    host.call("search_tools", &json!({"query": "anything"}));
    site.home.write(MAY_START, "");
    let ran = host.wait_for(|it| it["id"] == id);
    assert!(ran.to_string().contains("a line"), "{ran}");
}

#[test]
fn tools_that_were_listed_before_are_there_before_their_server_is() {
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
fn a_call_does_not_leave_when_its_server_turns_out_to_say_something_else_of_the_tool() {
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
    // The call was decided with what was listed before.
    host.wait_for(|it| it["method"] == "notifications/progress");
    site.home.write(MAY_START, "");
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
    let flags = ["--disclosure", "progressive"];
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
