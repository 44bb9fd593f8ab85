//! Tests of advice to clients about many tools and about scripts. airlock follows this advice on
//! behalf of its clients.

use super::super::*;
use super::shown;

shown! {
    few_tools_are_there_at_once_and_many_as_needed: ["bp-threshold", "bp-defer"];
    words_and_patterns_find_tools: ["bp-search", "bp-keywords"];
    search_then_details_then_the_call: ["bp-layers", "bp-by-server"];
    there_are_levels_of_detail: ["bp-levels", "bp-typed", "bp-any"];
    one_tool_calls_all_and_the_list_stays: ["bp-stable", "bp-append"];
    a_model_reads_a_value_and_what_fits_is_used: ["bp-extract", "bp-extract-checked"];
    only_the_result_and_the_console_return: ["bp-final"];
    running_a_script_approves_none_of_its_calls: ["bp-each-call"];
    a_yes_to_calls_like_it_is_checked_for_each: ["bp-grant"];
    a_script_has_no_network: ["bp-no-network"];
    a_script_ends_in_time: ["bp-limits"];
    a_script_has_bounded_memory: ["bp-memory"];
    long_output_is_cut: ["bp-output"];
    the_console_hides_nothing: ["bp-clean-output"];
    a_failed_call_is_an_exception: ["bp-throws"];
    what_nobody_caught_is_the_result: ["bp-uncaught"];
}

async fn knowing(way: HostKind) -> Host {
    knowing_as(way, json!({})).await
}

async fn knowing_as(way: HostKind, capabilities: Value) -> Host {
    let settings = ServeSettings {
        disclosure: Disclosure::Full,
        ..ServeSettings::default()
    };
    Host::connect_as(way, settings, capabilities).await
}

async fn few_tools_are_there_at_once_and_many_as_needed(way: HostKind) {
    for (percent, at_once) in [(3, true), (0, false)] {
        let settings = ServeSettings {
            disclosure: Disclosure::Auto,
            disclosure_percent: percent,
            ..ServeSettings::default()
        };
        let mut host = Host::connect(way, settings).await;
        let list = host.request("tools/list", json!({})).await.unwrap();
        assert_eq!(list.to_string().contains("It is polite."), at_once);
        assert_eq!(list.to_string().contains("echo"), at_once, "{list}");
        let result = host.run("return await word.echo({})").await;
        assert_eq!(is_error(&result), !at_once, "{result}");
    }
}

async fn words_and_patterns_find_tools(way: HostKind) {
    let mut host = Host::connect(way, settings()).await;
    for (args, expected) in [
        (json!({"query": "make a text upper case"}), "word.to-upper"),
        (
            json!({"query": "^clock\\.w", "mode": "regex"}),
            "clock.wait",
        ),
    ] {
        let found = host.call("search_tools", args).await;
        let first = &found["structuredContent"]["tools"][0];
        assert_eq!(first["name"], expected, "{found}");
        assert!(text(&found).contains(expected), "{found}");
    }
}

async fn search_then_details_then_the_call(way: HostKind) {
    let mut host = Host::connect(way, settings()).await;
    let found = host
        .call("search_tools", json!({"query": "upper case"}))
        .await;
    let said = text(&found);
    let (server, tool) = (said.find("word"), said.find("to-upper"));
    assert!(server.is_some() && server < tool, "{said}");
    assert!(!said.contains("Any text"), "only a line for each: {said}");
    let details = json!({"tools": ["word.to-upper"]});
    let details = host.call("get_tool_details", details).await;
    assert!(text(&details).contains("Any text"), "{details}");
    let result = host
        .run("return (await word.to_upper({text: 'a'})).text")
        .await;
    assert_eq!(result["structuredContent"]["value"], "A", "{result}");
}

async fn there_are_levels_of_detail(way: HostKind) {
    let mut host = Host::connect(way, settings()).await;
    let mut lengths = Vec::new();
    for detail in ["names", "lines", "signatures"] {
        let args = json!({"query": "echo", "detail": detail, "limit": 1});
        lengths.push(text(&host.call("search_tools", args).await).len());
    }
    let details = json!({"tools": ["word.echo"]});
    let full = host.call("get_tool_details", details).await;
    let said = text(&full);
    lengths.push(said.len());
    assert!(lengths.is_sorted_by(|a, b| a < b), "{lengths:?}");
    assert!(
        said.contains("text?: string") && said.contains("Promise<any>"),
        "{said}"
    );
}

async fn one_tool_calls_all_and_the_list_stays(way: HostKind) {
    for mode in [ListMode::Code, ListMode::Progressive] {
        let mut host = Host::connect(way, in_mode(mode)).await;
        let before = host.request("tools/list", json!({})).await.unwrap();
        host.descriptions("?tools=word.echo").await;
        let after = host.request("tools/list", json!({})).await.unwrap();
        assert_eq!(before["tools"], after["tools"], "{mode:?}");
    }
    let mut host = Host::connect(way, in_mode(ListMode::Stable)).await;
    let before = host.request("tools/list", json!({})).await.unwrap();
    host.call("get_tool_details", json!({"tools": ["word.echo"]}))
        .await;
    let call = json!({"name": "word.echo", "args": {"text": "a"}});
    let result = host.call("call_tool", call).await;
    assert_eq!(result["structuredContent"], json!({"text": "a"}));
    let after = host.request("tools/list", json!({})).await.unwrap();
    assert_eq!(before["tools"], after["tools"]);
}

const EXTRACTS: &str = "const schema = {type: 'object', properties: {age: {type: 'integer'}}};
    return await extract('Ada, 36', schema).catch((e) => e.code)";

/// Returns the script's value if the host's model answers with these words.
async fn read_as(way: HostKind, words: &str) -> Value {
    let mut host = knowing_as(way, json!({"sampling": {}})).await;
    let content = json!({"type": "text", "text": words});
    let answer = json!({"role": "assistant", "model": "m", "content": content});
    let mut params = json!({"name": "run_script", "arguments": {"code": EXTRACTS}});
    let result = if way.era == Era::Legacy {
        let id = host.begin("tools/call", params).await;
        let asked = host.asked().await;
        let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer});
        host.say(&reply.to_string()).await;
        host.answer_to(id).await.unwrap()
    } else {
        let first = host.request("tools/call", params.clone()).await.unwrap();
        let client_requests = first["inputRequests"].as_object().unwrap();
        let answers = client_requests
            .keys()
            .map(|key| (key.clone(), answer.clone()));
        params["inputResponses"] = answers.collect::<serde_json::Map<_, _>>().into();
        params["requestState"] = first["requestState"].clone();
        host.request("tools/call", params).await.unwrap()
    };
    result["structuredContent"]["value"].clone()
}

async fn a_model_reads_a_value_and_what_fits_is_used(way: HostKind) {
    for (words, expected) in [
        (r#"{"age": 36}"#, json!({"age": 36})),
        (r#"{"age": "36"}"#, json!("extract-failed")),
    ] {
        assert_eq!(read_as(way, words).await, expected, "{words}");
    }
}

async fn only_the_result_and_the_console_return(way: HostKind) {
    let mut host = knowing(way).await;
    let code = "const all = [];
        for (const text of ['between', 'calls']) all.push((await word.echo({text})).text);
        console.log('a line'); return all.length";
    let result = host.run(code).await;
    assert_eq!(result["structuredContent"]["value"], 2, "{result}");
    assert!(text(&result).contains("a line"), "{result}");
    assert!(!result.to_string().contains("between"), "{result}");
}

const ASKS_TWICE: &str = "const told = [];
    for (const text of ['same', 'same', 'other'])
        told.push(await word.ask({text}).then(() => 'made', (e) => e.code));
    return told";

/// Runs a script to its end. The person gives these answers, and refuses all further questions.
async fn answered(way: HostKind, answers: &[Value]) -> (Value, usize) {
    let mut host = knowing_as(way, json!({"elicitation": {}})).await;
    let mut answers = answers.iter();
    let mut next = || {
        let refuse = json!({"decision": "refuse"});
        let content = answers.next().unwrap_or(&refuse);
        json!({"action": "accept", "content": content})
    };
    let mut asked = 0;
    let mut params = json!({"name": "run_script", "arguments": {"code": ASKS_TWICE}});
    if way.era == Era::Legacy {
        let id = host.begin("tools/call", params).await;
        loop {
            let message = host.hear().await;
            if message["id"] == id && message.get("method").is_none() {
                return (message["result"].clone(), asked);
            }
            if message["method"] == "elicitation/create" {
                asked += 1;
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": next()});
                host.say(&reply.to_string()).await;
            }
        }
    }
    loop {
        let result = host.request("tools/call", params.clone()).await.unwrap();
        let Some(questions) = result["inputRequests"].as_object() else {
            return (result, asked);
        };
        asked += questions.len();
        let responses = questions.keys().map(|key| (key.clone(), next()));
        params["inputResponses"] = responses.collect::<serde_json::Map<_, _>>().into();
        params["requestState"] = result["requestState"].clone();
    }
}

async fn running_a_script_approves_none_of_its_calls(way: HostKind) {
    let once = [json!({"decision": "allow"})];
    let (result, asked) = answered(way, &once).await;
    let value = &result["structuredContent"]["value"];
    assert_eq!(value[0], "made", "{result}");
    assert_ne!(value[1], "made", "{result}");
    assert_eq!(asked, 3, "{result}");
}

async fn a_yes_to_calls_like_it_is_checked_for_each(way: HostKind) {
    let like_it = [json!({"decision": "allow-tool", "uses": 2})];
    let (result, asked) = answered(way, &like_it).await;
    let value = &result["structuredContent"]["value"];
    assert_eq!(
        (&value[0], &value[1]),
        (&json!("made"), &json!("made")),
        "{result}"
    );
    assert_ne!(value[2], "made", "{result}");
    assert_eq!(asked, 2, "the other text is another question: {result}");
}

async fn a_script_has_no_network(way: HostKind) {
    let mut host = knowing(way).await;
    let code =
        "const ways = ['fetch', 'XMLHttpRequest', 'WebSocket', 'require', 'process', 'Deno'];
        return ways.filter((name) => name in globalThis)";
    let result = host.run(code).await;
    assert_eq!(result["structuredContent"]["value"], json!([]), "{result}");
}

async fn a_script_ends_in_time(way: HostKind) {
    let mut host = knowing(way).await;
    for code in ["while (true) {}", "await clock.wait({})"] {
        let args = json!({"code": code, "timeout_ms": 200});
        let result = host.call("run_script", args).await;
        let code = &result["structuredContent"]["code"];
        assert!(is_error(&result) && code == "limit-time", "{result}");
    }
}

async fn a_script_has_bounded_memory(way: HostKind) {
    let mut host = knowing(way).await;
    // The script takes few large steps, so that the test is fast enough on any machine.
    let code = "const all = []; for (;;) all.push(new Uint8Array(1 << 22))";
    let result = host.run(code).await;
    let code = &result["structuredContent"]["code"];
    assert!(is_error(&result) && code == "limit-memory", "{result}");
}

async fn the_console_hides_nothing(way: HostKind) {
    let mut host = knowing(way).await;
    let hidden = "\u{1b}[31m\u{202e}a line\u{200b}";
    let code = format!("console.log('{hidden}'); console.error('{hidden}')");
    let result = host.run(&code).await;
    let said = text(&result);
    assert!(said.contains("a line"), "{said:?}");
    let is_hidden = |it: char| matches!(it, '\u{202e}' | '\u{200b}' | '\u{1b}');
    assert!(!said.contains(is_hidden), "{said:?}");
}

async fn long_output_is_cut(way: HostKind) {
    let mut host = knowing(way).await;
    let result = host
        .run("console.log('x'.repeat(100000)); return 'y'.repeat(100000)")
        .await;
    assert!(
        result.to_string().len() < 100_000,
        "{}",
        text(&result).len()
    );
    assert!(
        text(&result).contains("of 100000 bytes"),
        "{}",
        text(&result)
    );
}

async fn a_failed_call_is_an_exception(way: HostKind) {
    let mut host = knowing(way).await;
    let code = "try { await word.fail({}) } catch (e) { return [e instanceof ToolError, e.code] }";
    let result = host.run(code).await;
    let value = &result["structuredContent"]["value"];
    assert_eq!(value, &json!([true, "tool-failed"]), "{result}");
}

async fn what_nobody_caught_is_the_result(way: HostKind) {
    let mut host = knowing(way).await;
    let result = host.run("await word.echo({});\nawait word.fail({})").await;
    assert!(is_error(&result));
    for part in ["no luck", "script.js:2", "word.echo"] {
        assert!(text(&result).contains(part), "{part} in {result}");
    }
}
