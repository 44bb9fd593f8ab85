//! Tests of progressive disclosure, §3 to §10.

use super::super::host::TestServer;
use super::super::*;
use super::shown;
use airlock_sandbox::clock::Clock;

shown! {
    the_list_is_short_and_says_enough_to_choose_by:
        ["pd-3.1-1", "pd-3.1-2", "pd-3.1-3", "pd-3.1-4", "pd-3.1-5", "pd-9-1"];
    the_resource_is_listed_under_its_name:
        ["pd-3.2-1", "pd-4.1-1", "pd-4.1-2", "pd-4.1-4", "pd-9-2"];
    the_resource_explains_how_it_is_used: [
        "pd-4.1-3", "pd-4.2-1", "pd-4.2-2", "pd-4.2-3", "pd-4.2-4", "pd-4.2-5", "pd-4.2-6",
        "pd-4.2-7", "pd-4.2-8",
    ];
    full_descriptions_are_whole: ["pd-3.2-2", "pd-3.2-3", "pd-3.2-4", "pd-9-4"];
    the_query_chooses_what_is_described: [
        "pd-3.2-5", "pd-4.3-1", "pd-4.3-2", "pd-4.3-3", "pd-4.4-1", "pd-4.4-2", "pd-4.4-3",
        "pd-9-3",
    ];
    without_names_nothing_is_described: ["pd-4.3-4", "pd-6.1-1", "pd-9-5"];
    what_was_not_read_is_not_called: ["pd-5.1-2", "pd-6.2-1", "pd-9-6", "pd-9-7"];
    reading_opens_a_tool_for_the_session: ["pd-5.1-1", "pd-5.1-3", "pd-5.2-1"];
    sessions_open_nothing_for_each_other: ["pd-5.1-4", "pd-5.2-2", "pd-9-8"];
    a_session_that_is_over_opens_nothing: ["pd-5.2-3", "pd-5.2-4", "pd-10.3-2"];
    rules_and_approvals_stay_where_they_were:
        ["pd-5.3-1", "pd-5.3-2", "pd-10.1-1", "pd-10.1-2", "pd-10.1-3"];
    a_call_is_looked_at_when_it_is_made: ["pd-5.3-4"];
    a_host_may_keep_what_it_has_read: ["pd-7.2-4"];
    an_unknown_tool_is_named_beside_the_others: ["pd-6.3-1"];
    a_file_for_each_tool_is_read_anew_when_it_changes:
        ["pd-4.4-4", "pd-7.1-1", "pd-7.1-2", "pd-7.2-2", "pd-7.2-3"];
    the_recommended_prompt_has_the_whole_workflow:
        ["pd-8.2-1", "pd-8.2-2", "pd-8.2-3", "pd-8.2-4", "pd-8.2-5"];
    what_may_never_be_called_is_not_shown: ["pd-5.3-3", "pd-10.2-1", "pd-10.2-2"];
    texts_hide_nothing: ["pd-10.2-3"];
    fetches_have_a_rate: ["pd-10.3-1"];
}

const URI: &str = "resource:///tool_descriptions";

async fn progressive(way: HostKind) -> Host {
    Host::connect(way, in_mode(ListMode::Progressive)).await
}

async fn listed(host: &mut Host) -> Vec<Value> {
    let list = host.request("tools/list", json!({})).await.unwrap();
    list["tools"].as_array().unwrap().clone()
}

async fn the_list_is_short_and_says_enough_to_choose_by(way: HostKind) {
    let mut host = progressive(way).await;
    let tools = listed(&mut host).await;
    let of_servers: Vec<_> = tools
        .iter()
        .filter(|it| it.get("groups").is_some())
        .collect();
    assert_eq!(of_servers.len(), 5, "{tools:?}");
    for tool in of_servers {
        assert!(!tool["description"].as_str().unwrap().is_empty(), "{tool}");
        let open = json!({"type": "object", "additionalProperties": true});
        assert_eq!(tool["inputSchema"], open);
        let text = tool.to_string();
        for detail in [
            "Any text",
            "It is polite",
            "examples",
            "usage",
            "outputSchema",
        ] {
            assert!(!text.contains(detail), "{detail} in {text}");
        }
    }
}

async fn the_resource_is_listed_under_its_name(way: HostKind) {
    let mut host = progressive(way).await;
    let list = host.request("resources/list", json!({})).await.unwrap();
    let resource = &list["resources"][0];
    assert_eq!(resource["uri"], URI);
    assert_eq!(resource["name"], "tool_descriptions");
    assert_eq!(resource["mimeType"], "application/json");
}

async fn the_resource_explains_how_it_is_used(way: HostKind) {
    let mut host = progressive(way).await;
    let list = host.request("resources/list", json!({})).await.unwrap();
    let about = list["resources"][0]["description"].as_str().unwrap();
    let mut from = 0;
    for step in [
        "1. CHOOSE",
        "tools/list",
        "2. READ",
        "?tools=TOOL_1,TOOL_2",
        "3. CALL",
    ] {
        from += about[from..]
            .find(step)
            .unwrap_or_else(|| panic!("{step} in {about}"));
    }
    for part in [
        "resource:///tool_descriptions?tools=TOOL_NAME",
        "CANNOT be called before",
        "TOOL_DESCRIPTION_REQUIRED",
        "authorizes the tool for the session",
        "enough to choose by",
    ] {
        assert!(about.contains(part), "{part} in {about}");
    }
}

async fn full_descriptions_are_whole(way: HostKind) {
    let server = TestServer::described(in_mode(ListMode::Progressive)).await;
    let mut host = server.host(way, json!({})).await;
    let echo = &host.descriptions("?tools=word.echo").await["word.echo"];
    let text = &echo["inputSchema"]["properties"]["text"];
    assert_eq!(text, &json!({"type": "string", "description": "Any text"}));
    assert_eq!(echo["examples"][0]["input"], json!({"text": "hello"}));
    assert!(
        echo["error_guidance"].to_string().contains("never fails"),
        "{echo}"
    );
    assert!(
        echo["usage_guidance"].to_string().contains("only to try"),
        "{echo}"
    );
}

async fn the_query_chooses_what_is_described(way: HostKind) {
    let mut host = progressive(way).await;
    let names: Vec<String> = listed(&mut host)
        .await
        .iter()
        .filter(|it| it.get("groups").is_some())
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect();
    for chosen in [&names[..1], &names[1..3], &names[..]] {
        let query = format!("?tools={}", chosen.join(","));
        let found = host.descriptions(&query).await;
        let found = found.as_object().unwrap();
        assert!(found.keys().eq(chosen), "{query}");
        for (name, full) in found {
            assert_eq!(&full["name"], name);
            assert!(full["inputSchema"].is_object() && full["description"].is_string());
        }
    }
}

async fn without_names_nothing_is_described(way: HostKind) {
    let mut host = progressive(way).await;
    for query in ["", "?", "?tools=", "?tools=,", "?tool=word.echo"] {
        let message = "You must specify one or more tool names in the 'tools' parameter.";
        let examples = [
            "resource:///tool_descriptions?tools=tool_name",
            "resource:///tool_descriptions?tools=tool1,tool2",
        ];
        let error = json!({
            "code": "MISSING_TOOL_SELECTION",
            "message": message,
            "examples": examples,
        });
        assert_eq!(host.descriptions(query).await, json!({"error": error}));
    }
}

/// Checks that a call of this tool only reports where to read its description first.
async fn expect_required(host: &mut Host, tool: &str) {
    let result = host.call(tool, json!({"text": "a"})).await;
    let error = json!({
        "code": "TOOL_DESCRIPTION_REQUIRED",
        "message": format!("Tool '{tool}' requires fetching its description before use."),
        "resource_uri": format!("{URI}?tools={tool}"),
        "next": format!("call get_tool_details with {}, then call again", json!({"tools": [tool]})),
    });
    let said: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(said, json!({"error": error}));
    assert!(is_error(&result));
}

async fn what_was_not_read_is_not_called(way: HostKind) {
    let mut host = progressive(way).await;
    expect_required(&mut host, "word_echo").await;
    host.descriptions("?tools=word_to-upper").await;
    expect_required(&mut host, "word_echo").await;
    let scripted = host.run("return await word.echo({})").await;
    assert!(text(&scripted).contains("TOOL_DESCRIPTION_REQUIRED"));
}

async fn reading_opens_a_tool_for_the_session(way: HostKind) {
    let mut host = progressive(way).await;
    host.descriptions("?tools=word_echo").await;
    for _ in 0..3 {
        let result = host.call("word_echo", json!({"text": "a"})).await;
        assert_eq!(
            result["structuredContent"],
            json!({"text": "a"}),
            "{result}"
        );
    }
    let scripted = host.run("return (await word.echo({text: 'a'})).text").await;
    assert_eq!(scripted["structuredContent"]["value"], "a", "{scripted}");
}

async fn sessions_open_nothing_for_each_other(way: HostKind) {
    let server = TestServer::open(in_mode(ListMode::Progressive)).await;
    let mut first = server.host(way, json!({})).await;
    let mut second = server.host(way, json!({})).await;
    first.descriptions("?tools=word_echo").await;
    second.descriptions("?tools=word_to-upper").await;
    expect_required(&mut first, "word_to-upper").await;
    expect_required(&mut second, "word_echo").await;
    assert!(!is_error(&first.call("word_echo", json!({})).await));
    assert!(!is_error(&second.call("word_to-upper", json!({})).await));
}

async fn a_session_that_is_over_opens_nothing(way: HostKind) {
    let brief = ServeSettings {
        session_idle: std::time::Duration::ZERO,
        ..in_mode(ListMode::Progressive)
    };
    let server = TestServer::open(brief).await;
    let mut host = server.host(way, json!({})).await;
    match way.over {
        // The process is the session, so the next process has disclosed nothing.
        HostTransport::Streams => {
            host.descriptions("?tools=word_echo").await;
            drop(host);
            let mut next = server.host(way, json!({})).await;
            expect_required(&mut next, "word_echo").await;
        }
        HostTransport::Http => {
            let read = json!({"uri": format!("{URI}?tools=word_echo")});
            let read = host.request("resources/read", read).await;
            the_clock_moves_on().await;
            if way.era == Era::Modern {
                // The description was read, but the session no longer exists.
                assert!(read.is_ok() && host.handle.is_some(), "{read:?}");
                expect_required(&mut host, "word_echo").await;
            } else {
                let call = json!({"name": "word_echo", "arguments": {"text": "a"}});
                let refused = host.request("tools/call", call).await.unwrap_err();
                let expected = (json!(-32_600), json!("the session is over"));
                assert_eq!(
                    (refused["code"].clone(), refused["message"].clone()),
                    expected
                );
            }
        }
    }
}

/// Waits 2 ms. A session with an idle limit of zero has then expired.
async fn the_clock_moves_on() {
    let clock = Clock::start();
    let since_ms = clock.now_ms();
    while clock.now_ms() < since_ms + 2 {
        tokio::task::yield_now().await;
    }
}

async fn rules_and_approvals_stay_where_they_were(way: HostKind) {
    let mut host = progressive(way).await;
    host.descriptions("?tools=word.ask,word.secret").await;
    let asked = host.call("word.ask", json!({})).await;
    assert!(
        is_error(&asked) && text(&asked).contains("unanswered"),
        "{asked}"
    );
    for name in ["word.secret", "word_secret"] {
        let denied = host.call(name, json!({})).await;
        let code = &denied["structuredContent"]["error"]["code"];
        assert!(is_error(&denied) && code == "denied", "{denied}");
    }
    let hidden = "const name = 'secret'; return await word[name]({}).catch((e) => e.code)";
    let denied = host.run(hidden).await;
    let value = &denied["structuredContent"]["value"];
    assert_eq!(value, "denied", "{denied}");
}

async fn a_call_is_looked_at_when_it_is_made(way: HostKind) {
    let mut host = progressive(way).await;
    host.descriptions("?tools=word_echo").await;
    let wrong = host.call("word_echo", json!({"text": 7})).await;
    assert!(is_error(&wrong), "{wrong}");
    assert!(text(&wrong).contains("invalid-arguments"), "{wrong}");
    let right = host.call("word_echo", json!({"text": "7"})).await;
    assert_eq!(right["structuredContent"], json!({"text": "7"}), "{right}");
}

async fn a_host_may_keep_what_it_has_read(way: HostKind) {
    let mut host = progressive(way).await;
    let first = host.descriptions("?tools=word_echo").await;
    host.descriptions("?tools=word_to-upper").await;
    assert_eq!(host.descriptions("?tools=word_echo").await, first);
    // The digest shows whether a cached description is still current.
    assert!(first["word_echo"]["digest"].is_string(), "{first}");
    assert!(!is_error(&host.call("word_echo", json!({})).await));
}

async fn an_unknown_tool_is_named_beside_the_others(way: HostKind) {
    let mut host = progressive(way).await;
    let found = host.descriptions("?tools=word_echo,unknown_tool").await;
    assert!(found["word_echo"]["inputSchema"].is_object());
    let unknown = &found["unknown_tool"];
    assert_eq!(unknown["error"], "Tool 'unknown_tool' not found");
    assert!(unknown["available_tools"].to_string().contains("word_echo"));
}

async fn a_file_for_each_tool_is_read_anew_when_it_changes(way: HostKind) {
    let server = TestServer::described(in_mode(ListMode::Progressive)).await;
    let mut host = server.host(way, json!({})).await;
    let first = host.descriptions("?tools=word.echo").await;
    assert_eq!(host.descriptions("?tools=word.echo").await, first);
    let (first, digest) = (&first["word.echo"], &first["word.echo"]["digest"]);
    assert_eq!(first["version"], "1.0.0", "{first}");
    server.describe("echo", &json!({"name": "echo", "version": "2.0.0-changed"}));
    let second = host.descriptions("?tools=word.echo").await;
    assert_eq!(second["word.echo"]["version"], "2.0.0-changed", "{second}");
    assert_ne!(&second["word.echo"]["digest"], digest);
}

async fn the_recommended_prompt_has_the_whole_workflow(way: HostKind) {
    let mut host = progressive(way).await;
    let prompts = host.request("prompts/list", json!({})).await.unwrap();
    assert_eq!(prompts["prompts"][0]["name"], "use_tools", "{prompts}");
    let params = json!({"name": "use_tools"});
    let prompt = host.request("prompts/get", params).await.unwrap();
    let said = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert_eq!(said, crate::serve::system_prompt(ListMode::Progressive));
    for part in [
        "1. FIND",
        "2. READ",
        "3. CALL",
        "enough to choose by",
        "without ?tools= fails",
        "resource:///tool_descriptions?tools=server.tool",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

async fn what_may_never_be_called_is_not_shown(way: HostKind) {
    let mut host = progressive(way).await;
    assert!(
        !json!(listed(&mut host).await)
            .to_string()
            .contains("secret")
    );
    let found = host.descriptions("?tools=word.secret").await;
    let entry = &found["word.secret"];
    assert_eq!(entry["code"], "denied", "{entry}");
    assert!(entry.get("inputSchema").is_none(), "{entry}");
    let unknown = host.descriptions("?tools=word.secrets").await;
    let available = unknown["word.secrets"]["available_tools"].to_string();
    assert!(!available.contains("secret"), "{available}");
    // The check of a script suggests no such tool, by any of its names.
    for misspelt in ["word.secre", "word_secre", "word.qqqq", "clock.secre"] {
        let run = host.run(&format!("return await {misspelt}({{}})")).await;
        assert!(!run.to_string().contains("secret"), "{run}");
    }
}

async fn texts_hide_nothing(way: HostKind) {
    let server = TestServer::described(in_mode(ListMode::Progressive)).await;
    let mut host = server.host(way, json!({})).await;
    let list = json!(listed(&mut host).await).to_string();
    let details = host
        .call(
            "get_tool_details",
            json!({"tools": ["word.echo", "clock.wait"]}),
        )
        .await;
    assert!(list.contains("for ever") && text(&details).contains("Really"));
    let place = server.place();
    for said in [&list, text(&details)] {
        assert!(!said.contains(&place), "a path of this machine in {said}");
        let is_hidden = |it: char| matches!(it, '\u{202e}' | '\u{200b}' | '\u{e0041}' | '\u{1b}');
        assert!(!said.contains(is_hidden), "{said:?}");
    }
}

async fn fetches_have_a_rate(way: HostKind) {
    let rate = airlock_core::session::FetchRate {
        burst: 1,
        per_minute: 1,
    };
    let settings = ServeSettings {
        fetch_rate: rate,
        ..in_mode(ListMode::Progressive)
    };
    let mut host = Host::connect(way, settings).await;
    host.descriptions("?tools=word.echo").await;
    let read = json!({"uri": format!("{URI}?tools=word.echo")});
    let error = host.request("resources/read", read).await.unwrap_err();
    assert_eq!(error["data"]["error"]["code"], "RATE_LIMITED");
    assert!(
        !is_error(&host.call("word_echo", json!({})).await),
        "a disclosed tool stays callable"
    );
}
