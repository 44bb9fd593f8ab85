//! Tests what the model of a host gets: long values, images, names of tools, and a list of tools
//! that does not change. In both eras over both transports.

use serde_json::{Value, json};
use tests::any_host::{AnyHost, CELLS, Cell, text};
use tests::changing::ChangingServer;
use tests::command::Home;

use super::fixture;

fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

fn notes() -> ChangingServer {
    ChangingServer::new("notes", &[tool("write-note"), tool("read"), tool("change")])
}

fn host(cell: Cell, server: &ChangingServer, args: &[&str]) -> AnyHost {
    named("a test", cell, server, args)
}

fn named(name: &str, cell: Cell, server: &ChangingServer, args: &[&str]) -> AnyHost {
    let flag = server.flag();
    let mut all = vec!["--server", &flag, "--allow", "*"];
    all.extend(args);
    AnyHost::start(cell, Home::new(), &all, name, json!({}))
}

fn run_description(host: &mut AnyHost) -> String {
    let list = host.request("tools/list", json!({}));
    let tools = list["tools"].as_array().unwrap();
    let run = tools.iter().find(|it| it["name"] == "run_script").unwrap();
    run["description"].as_str().unwrap().to_owned()
}

/// Reads the rest of a cut value as a model would, which has tools only. Returns the whole text.
fn read_rest(host: &mut AnyHost, at: &Value) -> String {
    let mut whole = at["preview"].as_str().unwrap().to_owned();
    let mut rest = at["rest"].as_str().map(str::to_owned);
    while let Some(call) = rest {
        let args = call.strip_prefix("read_result(").unwrap();
        let args: Value = serde_json::from_str(args.strip_suffix(')').unwrap()).unwrap();
        let page = host.told("read_result", args);
        match page.rsplit_once("\n… bytes ") {
            Some((part, note)) => {
                whole.push_str(part);
                rest = note
                    .split_once("continue with ")
                    .map(|(_, it)| it.to_owned());
            }
            None => {
                whole.push_str(&page);
                rest = None;
            }
        }
    }
    whole
}

#[test]
fn long_value_is_complete_in_text_and_in_structured_content() {
    const CODE: &str = "const row = 'ä'.repeat(99); console.log('x'.repeat(9000));
        return Array.from({length: 1600}, (_, n) => n + row).join('\\n')";
    let expected: String = (0..1_600)
        .map(|n| format!("{n}{}", "ä".repeat(99)))
        .collect::<Vec<_>>()
        .join("\n");
    for cell in CELLS {
        // The second client is known to show less of a result.
        for (client, shown_max) in [("a test", 24 * 1024), ("codex-mcp-client", 6_000)] {
            let server = notes();
            let mut host = named(client, cell, &server, &[]);
            let result = host.run(CODE);
            let report = &result["structuredContent"];
            assert!(report.get("value").is_none(), "{cell}: {report}");
            let at = &report["value_at"];
            let preview = at["preview"].as_str().unwrap();
            assert!(preview.len() <= shown_max, "{cell} {client}");
            assert_eq!(at["bytes"], expected.len(), "{cell}");
            assert_eq!(at["format"], "text", "{cell}");
            // Both forms of the result have the same preview and the same advice.
            let shown = text(&result);
            assert!(shown.starts_with(preview), "{cell}");
            assert!(shown.contains(at["rest"].as_str().unwrap()), "{cell}");
            assert_eq!(read_rest(&mut host, at), expected, "{cell} {client}");
            let console = &report["console_at"];
            assert_eq!(read_rest(&mut host, console), "x".repeat(9_000), "{cell}");
        }
    }
}

/// A string can spell JSON, and the text of a list is JSON too.
#[test]
fn long_value_says_whether_its_text_is_json() {
    for cell in CELLS {
        let server = notes();
        let mut host = host(cell, &server, &[]);
        for (value, format) in [("JSON.stringify(list, null, 2)", "text"), ("list", "json")] {
            let list = "const list = Array.from({length: 9000}, (_, n) => n);";
            let result = host.run(&format!("{list} return {value}"));
            let at = &result["structuredContent"]["value_at"];
            assert_eq!(at["format"], format, "{cell}: {value}");
        }
    }
}

#[test]
fn errors_have_the_same_advice_in_both_forms() {
    for cell in CELLS {
        let server = notes();
        let mut host = host(cell, &server, &[]);
        let result = host.run("return await notes.read({}).nothing.at.all");
        let next = result["structuredContent"]["next"].as_str().unwrap();
        assert!(
            text(&result).contains(&format!("next: {next}")),
            "{cell}: {result}"
        );
    }
}

#[test]
fn bad_range_says_what_is_wrong() {
    for cell in CELLS {
        let server = notes();
        let mut host = host(cell, &server, &[]);
        let result = host.run("return 'x'.repeat(30000)");
        let uri = result["structuredContent"]["value_at"]["uri"].clone();
        for (args, part) in [
            (json!({}), "`uri` is missing"),
            (
                json!({"uri": "airlock:///runs/x/value"}),
                "no stored result",
            ),
            (json!({"uri": uri, "from": 30_001}), "only 30000 bytes"),
            (json!({"uri": uri, "from": -1}), "not a whole number"),
            (json!({"uri": uri, "length": 0}), "`length` is 0"),
            (json!({"uri": uri, "form": 1}), "did you mean `from`?"),
        ] {
            let result = host.call("read_result", args);
            assert_eq!(result["isError"], true, "{cell}: {result}");
            assert!(text(&result).contains(part), "{cell}: {part} in {result}");
        }
    }
}

#[test]
fn image_in_a_value_arrives_as_image() {
    for cell in CELLS {
        let home = Home::new();
        let server = fixture(&home);
        let args = ["--server", &server, "--allow", "*"];
        let mut host = AnyHost::start(cell, home, &args, "a test", json!({}));
        let result = host.run("return {picture: await test.image_content({}), n: 1}");
        let blocks = result["content"].as_array().unwrap();
        let image = blocks.iter().find(|it| it["type"] == "image").unwrap();
        assert_eq!(image["mimeType"], "image/png", "{cell}: {result}");
        // Some hosts show only structured content if there is any.
        assert!(
            result.get("structuredContent").is_none(),
            "{cell}: {result}"
        );
        let report = &result["_meta"]["dev.airlock/report"];
        assert_eq!(report["status"], "done", "{cell}: {result}");
        let value = report["value"].to_string();
        let (_, uri) = value.split_once("\"uri\":\"").unwrap();
        let uri = uri.split('"').next().unwrap();
        assert!(text(&result).contains(uri), "{cell}: {result}");
        let read = host.call("read_result", json!({"uri": uri}));
        assert_eq!(read["content"][0]["data"], image["data"], "{cell}: {read}");
    }
}

#[test]
fn description_fits_the_host_and_only_what_it_shows_is_disclosed() {
    let many: Vec<Value> = (0..30)
        .map(|n| tool(&format!("tool_{n}_with_a_long_name")))
        .collect();
    let server = ChangingServer::new("many", &many);
    const CALL: &str = "return await many.tool_3_with_a_long_name({})";
    for cell in CELLS {
        for (limit, is_declared) in [("2000", false), ("20000", true)] {
            let mut host = host(cell, &server, &["--description-chars", limit]);
            let described = run_description(&mut host);
            assert!(
                described.chars().count() <= limit.parse().unwrap(),
                "{cell}"
            );
            assert_eq!(described.contains("tool_29_with"), is_declared, "{cell}");
            let called = host.run(CALL);
            let is_required = text(&called).contains("TOOL_DESCRIPTION_REQUIRED");
            assert_eq!(is_required, !is_declared, "{cell}: {called}");
            let found = host.told(
                "search_tools",
                json!({"query": "^tool_3_", "mode": "regex", "detail": "full"}),
            );
            assert!(
                found.contains("tool_3_with_a_long_name(a"),
                "{cell}: {found}"
            );
            let called = host.run(CALL);
            assert_eq!(called["isError"], false, "{cell}: {called}");
        }
    }
}

#[test]
fn list_stays_the_same_while_a_server_changes() {
    for cell in CELLS {
        let server = notes();
        let mut host = host(cell, &server, &[]);
        let before = host.request("tools/list", json!({}));
        server.lists(&[tool("write-note"), tool("paint"), tool("change")]);
        assert_eq!(
            host.run("return await notes.change({})")["isError"],
            false,
            "{cell}"
        );
        // What is new is found by search.
        loop {
            let found = host.told("search_tools", json!({"query": "paint"}));
            if found.contains("notes.paint") {
                break;
            }
        }
        let after = host.request("tools/list", json!({}));
        assert_eq!(before["tools"], after["tools"], "{cell}");
        let told = |it: &Value| it["method"] == "notifications/tools/list_changed";
        assert!(!host.heard.iter().any(told), "{cell}: {:?}", host.heard);
        let used = host.run("await airlock.describe('notes.paint'); return await notes.paint({})");
        assert_eq!(used["isError"], false, "{cell}: {used}");
    }
}

#[test]
fn both_names_of_a_tool_work_in_scripts() {
    for cell in CELLS {
        let server = notes();
        let mut host = host(cell, &server, &["--disclosure", "progressive"]);
        let result = host.run("return await notes['write-note']({})");
        let error = &result["structuredContent"]["error"];
        assert_eq!(
            error["code"], "TOOL_DESCRIPTION_REQUIRED",
            "{cell}: {result}"
        );
        let code = "await airlock.describe('notes.write-note');
            const name = ['write', 'note'].join('-');
            return [await notes['write-note']({}), await notes.write_note({}), await notes[name]({})]";
        let result = host.run(code);
        let value = &result["structuredContent"]["value"];
        assert_eq!(
            *value,
            json!(["write-note", "write-note", "write-note"]),
            "{cell}: {result}"
        );
        // A name that no tool has is still a mistake.
        let result = host.run("return await notes['write-nota']({})");
        assert!(
            text(&result).contains("no tool `write-nota`"),
            "{cell}: {result}"
        );
    }
}

#[test]
fn tools_are_found_by_their_own_name_and_group() {
    for cell in CELLS {
        let server = notes();
        let mut host = host(cell, &server, &[]);
        let found = host.told("search_tools", json!({"query": "^write", "mode": "regex"}));
        assert!(
            found.contains("notes.write-note") && !found.contains("notes.read"),
            "{found}"
        );
        let filter = json!({"filter": {"groups": ["notes"]}});
        let listed = host.request("tools/list", filter);
        let names: Vec<_> = listed["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["name"])
            .collect();
        assert_eq!(
            names,
            ["notes_change", "notes_read", "notes_write-note"],
            "{cell}"
        );
        let details = host.call(
            "get_tool_details",
            json!({"tools": ["notes.raed"], "format": "json"}),
        );
        let details: Value = serde_json::from_str(text(&details)).unwrap();
        let available = &details["notes.raed"]["available_tools"];
        assert_eq!(*available, json!(names), "{cell}: {details}");
        let meant = &details["notes.raed"]["did_you_mean"];
        assert_eq!(meant, "notes.read", "{cell}: {details}");
    }
}

#[test]
fn tool_whose_name_is_the_query_is_found_first() {
    let described = |name: &str, text: &str| json!({"name": name, "description": text, "inputSchema": {"type": "object"}});
    let long = "Opens a place and shows what is in it, page by page, as long as pages are left.";
    let tools = [
        described("read", long),
        described("read_read", "Read."),
        described("reads", "read read read"),
        described("of", ""),
    ];
    for cell in CELLS {
        let server = ChangingServer::new("notes", &tools);
        let mut host = host(cell, &server, &[]);
        for (query, first) in [
            ("read", "notes.read"),
            ("READ", "notes.read"),
            ("notes.read", "notes.read"),
            ("notes_read", "notes.read"),
            ("reads", "notes.reads"),
            ("of", "notes.of"),
        ] {
            let found = host.call("search_tools", json!({ "query": query }));
            let found = &found["structuredContent"]["tools"][0]["name"];
            assert_eq!(found, first, "{cell}: {query}");
        }
    }
}

#[test]
fn describe_lists_script_names_for_unknown_tool() {
    const CODE: &str = "return await airlock.describe(input).catch((e) => e.message)";
    for cell in CELLS {
        let server = notes();
        let mut host = host(cell, &server, &[]);
        for (name, expected) in [
            (
                "notes.raed",
                "there is no tool `notes.raed`; did you mean `notes.read`?",
            ),
            (
                "x",
                "there is no tool `x`; available tools: notes.change, notes.read, notes.write-note",
            ),
        ] {
            let told = host.call("run_script", json!({"code": CODE, "input": name}));
            assert_eq!(told["structuredContent"]["value"], expected, "{cell}");
            let both = json!({"tools": [name, "notes.read"]});
            let both = host.told("get_tool_details", both);
            assert!(both.contains(&format!("// {expected}\n")), "{cell}: {both}");
        }
    }
}

#[test]
fn server_with_many_spellings_of_a_name_gets_one_first_place() {
    let described = |name: &str, text: &str| json!({"name": name, "description": text, "inputSchema": {"type": "object"}});
    let tools = ["READ", "REAd", "REaD", "ReAD"].map(|name| described(name, "read"));
    let long = "Opens a place and shows what is in it, page by page, as long as pages are left.";
    for cell in CELLS {
        let server = ChangingServer::new("notes", &tools);
        let other = ChangingServer::new("other", &[described("read", long)]);
        let mut host = host(cell, &server, &["--server", &other.flag()]);
        let found = host.call("search_tools", json!({"query": "rEAD"}));
        let found = &found["structuredContent"]["tools"];
        assert_eq!(found[1]["name"], "other.read", "{cell}: {found}");
        let found = host.call("search_tools", json!({"query": "ReAD"}));
        let found = &found["structuredContent"]["tools"];
        assert_eq!(found[0]["name"], "notes.ReAD", "{cell}: {found}");
        assert_eq!(found[1]["name"], "other.read", "{cell}: {found}");
    }
}

#[test]
fn description_is_cut_by_its_length_in_json() {
    let description = "\"a\" ".repeat(1_200);
    let tool =
        json!({"name": "write", "description": description, "inputSchema": {"type": "object"}});
    for cell in CELLS {
        let server = ChangingServer::new("notes", std::slice::from_ref(&tool));
        let mut host = named("codex-mcp-client", cell, &server, &[]);
        let details = host.call("get_tool_details", json!({"tools": ["notes.write"]}));
        let shown = text(&details);
        let (head, _) = shown.split_once("\n… cut after").unwrap_or_default();
        let encoded = serde_json::to_string(head).unwrap().len() - 2;
        assert!(
            (5_990..=6_000).contains(&encoded),
            "{cell}: {encoded} {shown}"
        );
    }
}

#[test]
fn server_is_disabled_for_one_session() {
    for cell in CELLS {
        let server = notes();
        let other = ChangingServer::new("other", &[tool("read")]);
        let flag = other.flag();
        let mut host = host(cell, &server, &["--server", &flag]);
        let wrong = host.told("disable_server", json!({"server": "note"}));
        assert!(wrong.contains("did you mean `notes`?"), "{cell}: {wrong}");
        assert!(
            wrong.contains("the servers are notes, other"),
            "{cell}: {wrong}"
        );
        let done = host.call("disable_server", json!({"server": "notes"}));
        assert_eq!(
            done["structuredContent"]["state"], "disabled",
            "{cell}: {done}"
        );
        let found = host.told("search_tools", json!({"query": "read"}));
        assert!(
            found.contains("other.read") && !found.contains("notes.read"),
            "{found}"
        );
        for code in [
            "return await notes.read({})",
            "return await notes['re' + 'ad']({})",
        ] {
            let called = host.run(code);
            assert_eq!(called["isError"], true, "{cell}: {called}");
        }
        let called = host.told("run_script", json!({"code": "return await notes.read({})"}));
        assert!(
            called.contains("enable it with enable_server"),
            "{cell}: {called}"
        );
        assert_eq!(server.noted("call read"), 0, "{cell}");
        assert_eq!(
            host.call("enable_server", json!({"server": "notes"}))["isError"],
            false
        );
        let called = host.run("return await notes.read({})");
        assert_eq!(called["isError"], false, "{cell}: {called}");
    }
}

#[test]
fn get_without_session_is_not_allowed() {
    let cell = Cell {
        is_modern: false,
        is_http: true,
    };
    let server = notes();
    let host = host(cell, &server, &[]);
    let page = host.process().request("GET", &[], "");
    assert_eq!(page.status, 405, "{page:?}");
    assert_eq!(page.header("allow").as_deref(), Some("post, delete"));
}

#[test]
fn hosts_get_some_reports_of_progress_and_always_the_last() {
    const CODE: &str = "return await test.tool_with_progress({})";
    for cell in CELLS {
        for newer in ["", " --newer"] {
            let home = Home::new();
            let server = fixture(&home);
            let server = match newer {
                "" => server,
                newer => server.replace("fixture-server", &format!("fixture-server{newer}")),
            };
            let args = ["--server", &server, "--allow", "*"];
            let mut host = AnyHost::start(cell, home, &args, "a test", json!({}));
            host.request("tools/call", super::running(CODE));
            let lines: Vec<_> = host
                .heard
                .iter()
                .map(|it| it["params"]["message"].to_string())
                .collect();
            let reports = lines.iter().filter(|it| it.contains(" of 500, part "));
            let reports: Vec<_> = reports.collect();
            let last = reports.last().is_some_and(|it| it.contains(": 500 of 500"));
            assert!(last, "{cell}{newer}: {lines:?}");
            assert!(reports.len() < 250, "{cell}{newer}: {lines:?}");
            assert!(
                !lines.iter().any(|it| it.contains("7007")),
                "{cell}{newer}: {lines:?}"
            );
            host.heard.clear();
            host.run(CODE);
            assert!(host.heard.is_empty(), "{cell}{newer}: {:?}", host.heard);
        }
    }
}

fn described() -> ChangingServer {
    let tools = [
        json!({
            "name": "send", "description": "Sends.", "groups": ["mail"], "tags": ["slow"],
            "inputSchema": {
                "type": "object",
                "properties": {"to": {"type": "string", "format": "email"}},
                "required": ["to"],
            },
            "_meta": {"category": "messages", "fastmcp": {"tags": ["beta"]}, "version": "2.1"},
        }),
        json!({
            "name": "old", "description": "Sends slowly.", "inputSchema": {"type": "object"},
            "deprecated": true, "replacement": "send",
            "examples": [{"description": "One", "input": {"n": 1}}],
        }),
        json!({
            "name": "rare", "description": "Counts.", "inputSchema": {"type": "object"},
            "_meta": {"rate_limit": "2/hour"},
        }),
    ];
    ChangingServer::new("post", &tools)
}

#[test]
fn what_servers_say_of_their_tools_is_used() {
    for cell in CELLS {
        let server = described();
        let mut host = host(cell, &server, &[]);
        for (filter, expected) in [
            (json!({"groups": ["mail"]}), vec!["post_send"]),
            (json!({"tags": ["beta", "slow"]}), vec!["post_send"]),
            (
                json!({"groups": ["post"]}),
                vec!["post_old", "post_rare", "post_send"],
            ),
        ] {
            let listed = host.request("tools/list", json!({"filter": filter}));
            let names: Vec<_> = listed["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| &it["name"])
                .collect();
            assert_eq!(names, expected, "{cell}: {filter}");
        }
        let found = host.call("search_tools", json!({"query": "", "category": "messages"}));
        let found = &found["structuredContent"]["tools"][0];
        assert_eq!(
            (&found["name"], &found["version"]),
            (&json!("post.send"), &json!("2.1"))
        );
        let wanted = json!({"tools": ["post.send", "post.old"], "format": "json"});
        let details: Value = serde_json::from_str(&host.told("get_tool_details", wanted)).unwrap();
        // The first example is made from the schema, the second is the server's.
        let example = &details["post.send"]["examples"][0]["input"];
        assert_eq!(
            *example,
            json!({"to": "someone@example.com"}),
            "{cell}: {details}"
        );
        assert_eq!(
            details["post.old"]["examples"][0]["input"],
            json!({"n": 1}),
            "{cell}"
        );
        assert_eq!(
            details["post.old"]["deprecation"]["replacement"], "send",
            "{cell}"
        );
    }
}

#[test]
fn deprecated_tool_warns_and_names_its_replacement() {
    for cell in CELLS {
        let server = described();
        let mut host = host(cell, &server, &[]);
        let result = host.run("return await post.old({})");
        let report = &result["structuredContent"];
        assert_eq!(report["status"], "done", "{cell}: {result}");
        assert_eq!(
            report["findings"][0]["code"], "deprecated",
            "{cell}: {result}"
        );
        let warning = &report["calls"][0]["warnings"][0];
        assert!(
            warning.as_str().unwrap().contains("use `send` instead"),
            "{cell}: {result}"
        );
        assert!(
            text(&result).contains("use `send` instead"),
            "{cell}: {result}"
        );
    }
}

#[test]
fn declared_rate_limit_is_kept() {
    for cell in CELLS {
        let server = described();
        let mut host = host(cell, &server, &[]);
        let code = "const all = [];
            for (let n = 0; n < 3; n++) {
                all.push(await post.rare({}).then(() => 'called', (e) => e.message));
            }
            return all";
        let result = host.run(code);
        let value = &result["structuredContent"]["value"];
        assert_eq!(
            (&value[0], &value[1]),
            (&json!("called"), &json!("called")),
            "{cell}: {result}"
        );
        let refused = value[2].as_str().unwrap();
        assert!(
            refused.contains("2 per hour, is reached; call again in"),
            "{cell}: {refused}"
        );
        assert_eq!(server.noted("call rare"), 2, "{cell}");
    }
}

#[test]
fn changed_tool_folder_is_announced() {
    for is_http in [false, true] {
        let cell = Cell {
            is_modern: false,
            is_http,
        };
        let home = Home::new();
        home.write(
            "files/notes/read.json",
            r#"{"name": "read", "groups": ["first"]}"#,
        );
        let folder = home.path().join("files").display().to_string();
        let server = notes();
        let flag = server.flag();
        let args = ["--server", &flag, "--allow", "*", "--descriptions", &folder];
        let mut host = AnyHost::start(cell, home, &args, "a test", json!({}));
        host.listen();
        let groups = host.request("groups/list", json!({}));
        assert!(groups.to_string().contains("\"first\""), "{cell}: {groups}");
        // No request follows the change.
        let changed = r#"{"name": "read", "groups": ["second one"]}"#;
        host.home().write("files/notes/read.json", changed);
        assert_eq!(
            host.next_news()["method"],
            "notifications/groups/list_changed",
            "{cell}"
        );
        let groups = host.request("groups/list", json!({}));
        assert!(
            groups.to_string().contains("\"second one\""),
            "{cell}: {groups}"
        );
    }
}
