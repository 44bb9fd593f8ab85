//! The Inspector's command line. Each use is a host of its own: what it was shown
//! lasts where the newer era hands out a handle. It carries no question to anybody.

use serde_json::{Value, json};
use tests::binary::airlock;
use tests::command::{Home, start};
use tests::real_hosts::{RealHosts, installed};
use tests::serving::Serving;

use super::args;

const LIST: &str = "return (await demo.tickets_list({})).tickets.length > 0";
const ASK: &str = "return await demo.tickets_create({title: 'nobody can be asked'})";

/// One use of the Inspector on a server; what it prints as JSON.
fn inspect(hosts: &RealHosts, home: &Home, era: &str, server: &[String], more: &[&str]) -> Value {
    let mut command = hosts.npm_program("mcp-inspector");
    home.dress(&mut command);
    command.args(["--cli", "--format", "json", "--quiet"]);
    command.args(["--protocol-era", era]).args(more);
    command.arg("--").args(server);
    start(&mut command, "").wait().json()
}

fn call(
    hosts: &RealHosts,
    home: &Home,
    era: &str,
    server: &[String],
    call: (&str, Value),
) -> Value {
    let (tool, args) = (call.0, call.1.to_string());
    let more = ["--method", "tools/call", "--tool-name", tool];
    let more: Vec<_> = more
        .into_iter()
        .chain(["--tool-args-json", &args])
        .collect();
    inspect(hosts, home, era, server, &more)["result"].clone()
}

/// What holds over either transport: search, describe, run, and a question for nobody.
fn check(hosts: &RealHosts, home: &Home, server: &[String], lasts: bool) {
    for era in ["legacy", "modern"] {
        let listed = inspect(hosts, home, era, server, &["--method", "tools/list"]);
        assert!(listed.to_string().contains("run_script"), "{era}: {listed}");
        let call = |it| call(hosts, home, era, server, it);
        let found = call(("search_tools", json!({"query": "list tickets"})));
        assert!(found.to_string().contains("demo.tickets_list"), "{found}");
        let tools = json!({"tools": ["demo.tickets_list", "demo.tickets_create"]});
        let read = call(("get_tool_details", tools));
        assert!(read.to_string().contains("tickets_list(a?"), "{read}");
        let early = call(("run_script", json!({"code": LIST})));
        assert!(
            early.to_string().contains("TOOL_DESCRIPTION_REQUIRED"),
            "{early}"
        );
        let handle = read["_meta"].get("dev.airlock/session");
        assert_eq!(handle.is_some(), lasts && era == "modern", "{read}");
        let Some(handle) = handle else { continue };
        let ran = call(("run_script", json!({"code": LIST, "session": handle})));
        assert_eq!(ran["structuredContent"]["value"], true, "{ran}");
        let asked = call(("run_script", json!({"code": ASK, "session": handle})));
        assert_eq!(asked["structuredContent"]["code"], "unanswered", "{asked}");
    }
}

#[test]
fn the_inspector_searches_reads_and_runs_over_http() {
    let Some(hosts) = installed() else { return };
    let serving = Serving::start(args());
    check(hosts, &serving.home, &[serving.url()], true);
}

#[test]
fn the_inspector_searches_and_reads_over_stdio() {
    let Some(hosts) = installed() else { return };
    let home = Home::new();
    let mut server = vec![airlock().display().to_string()];
    server.extend(["serve".to_owned(), "--quiet".to_owned()]);
    server.extend(args());
    check(hosts, &home, &server, false);
    // What is disclosed at once needs no second process.
    let whole: Vec<_> = server
        .into_iter()
        .map(|it| {
            if it == "progressive" {
                "full".to_owned()
            } else {
                it
            }
        })
        .collect();
    let ran = call(
        hosts,
        &home,
        "modern",
        &whole,
        ("run_script", json!({"code": LIST})),
    );
    assert_eq!(ran["structuredContent"]["value"], true, "{ran}");
}
