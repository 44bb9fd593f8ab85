//! Scripts of a host: results, progress, and cancellation.

use super::fake_upstream::FakeUpstream;
use super::host::TestServer;
use super::*;
use crate::config::ServerConfig;

async fn knowing(way: HostKind) -> Host {
    let settings = ServeSettings {
        disclosure: Disclosure::Full,
        ..ServeSettings::default()
    };
    Host::connect(way, settings).await
}

#[tokio::test]
async fn result_has_text_for_model_and_report_for_program() {
    for way in WAYS {
        let mut host = knowing(way).await;
        let code = "console.log('hello'); console.warn('careful');
            const { text } = await word.to_upper({ text: 'a' });
            return { text, input }";
        let args = json!({"code": code, "input": [1]});
        let result = host.call("run_script", args).await;
        let said = text(&result);
        for part in [
            "\"text\": \"A\"",
            "console:\nhello\n[warn] careful",
            "word.to-upper",
            "returned",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        let report = &result["structuredContent"];
        assert_eq!(report["status"], "done");
        assert_eq!(report["value"], json!({"text": "A", "input": [1]}));
        assert_eq!(report["calls"][0]["outcome"], "returned");
        assert_eq!(report["console"][1]["level"], "warn");
        assert!(report["run"].is_string());
    }
}

#[tokio::test]
async fn error_text_has_place_and_prior_events() {
    for way in WAYS {
        let mut host = knowing(way).await;
        let result = host.run("await word.echo({});\nawait word.fail({});").await;
        let said = text(&result);
        for part in [
            "script.js:2",
            "no luck",
            "tool-failed",
            "2 | await word.fail",
            "word.echo",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert!(is_error(&result));
        assert_eq!(result["structuredContent"]["error"]["line"], 2);
    }
}

#[tokio::test]
async fn check_findings_are_in_result_text() {
    for way in WAYS {
        let mut host = knowing(way).await;
        // The script runs to its end, but a call that may write was not sent.
        let result = host.run("word.echo({});\nreturn 1").await;
        let said = text(&result);
        assert!(is_error(&result), "{said}");
        let found = &result["structuredContent"]["findings"][0];
        assert_eq!(found["severity"], "warning", "{result}");
        for part in [
            &format!("warning: script.js:1:{}: ", found["column"]),
            found["message"].as_str().unwrap(),
            "1 | word.echo({});",
            &format!("code: {}", found["code"].as_str().unwrap()),
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        // The finding that stopped the script is reported once.
        let stopped = host.run("return await word.ehco({})").await;
        let said = text(&stopped);
        let message = stopped["structuredContent"]["findings"][0]["message"].as_str();
        assert_eq!(said.matches(message.unwrap()).count(), 1, "{said}");
        // The line of an error is quoted once, even if the check has findings there.
        let ended = host.run("word.echo({}); throw new Error('no')").await;
        let said = text(&ended);
        assert!(said.contains("warning: script.js:1:"), "{said}");
        assert!(said.contains("error: the script failed"), "{said}");
        assert_eq!(said.matches("1 | word.echo").count(), 1, "{said}");
        let many = "word.echo({});\n".repeat(12);
        let said = host.run(&many).await;
        let said = text(&said);
        assert_eq!(said.matches("warning: script.js").count(), 8, "{said}");
        assert!(said.contains("… and 4 more"), "{said}");
    }
}

#[tokio::test]
async fn failed_direct_call_mentions_no_script() {
    for way in WAYS {
        for mode in [ListMode::Progressive, ListMode::Stable] {
            let mut host = Host::connect(way, in_mode(mode)).await;
            host.descriptions("?tools=word.echo,word.fail").await;
            for (tool, args, became, code) in [
                ("fail", json!({}), "failed", "tool-failed"),
                (
                    "echo",
                    json!({"text": 7}),
                    "was not made",
                    "invalid-arguments",
                ),
                (
                    "echo",
                    json!({"txt": "a"}),
                    "was not made",
                    "invalid-arguments",
                ),
            ] {
                let result = match mode {
                    ListMode::Stable => {
                        let name = format!("word.{tool}");
                        host.call("call_tool", json!({"name": name, "args": args}))
                            .await
                    }
                    _ => host.call(&format!("word_{tool}"), args.clone()).await,
                };
                let said = text(&result);
                assert!(is_error(&result), "{said}");
                let first = format!("error: the call of `word.{tool}` {became}\nwhy: ");
                assert!(said.starts_with(&first), "{way}: {said}");
                assert!(said.contains(&format!("code: {code}")), "{said}");
                for word in ["script", "1:", "input", "airlock types"] {
                    assert!(!said.contains(word), "{word} in {said}");
                }
            }
        }
    }
}

#[tokio::test]
async fn invalid_arguments_are_named() {
    for way in WAYS {
        let mut host = knowing(way).await;
        for (args, expected) in [
            (json!({}), "`code` is empty"),
            (json!({"code": " "}), "`code` is empty"),
            (json!({"code": 1}), "`code` is not a string"),
            (
                json!({"code": "return 1", "timeout_ms": -5}),
                "`timeout_ms`",
            ),
            (
                json!({"code": "return 1", "timeout": 5}),
                "did you mean `timeout_ms`",
            ),
            (
                json!({"code": "return 1", "tools": [1]}),
                "`tools` is not a list",
            ),
            (json!({"code": "return 1", "tools": ["x.y"]}), "x.y"),
        ] {
            let result = host.call("run_script", args.clone()).await;
            assert!(
                is_error(&result) && text(&result).contains(expected),
                "{args}: {result}"
            );
        }
        for (args, expected) in [
            (json!({"limit": 0}), "`limit`"),
            (json!({"limit": 51}), "`limit`"),
            (json!({"detail": "all"}), "`detail`"),
            (json!({"mode": "fuzzy"}), "`mode`"),
            (json!({"mode": "regex", "query": "("}), "regular expression"),
            (json!({"servers": ["wrod"]}), "there is no server `wrod`"),
            (json!({"q": "x"}), "there is no argument `q`"),
        ] {
            let result = host.call("search_tools", args.clone()).await;
            assert!(
                is_error(&result) && text(&result).contains(expected),
                "{args}: {result}"
            );
        }
        for args in [
            json!({}),
            json!({"tools": []}),
            json!({"tools": ["word.echo"], "format": "x"}),
        ] {
            assert!(is_error(&host.call("get_tool_details", args).await));
        }
    }
}

#[tokio::test]
async fn progress_is_sent_per_call_if_requested() {
    for way in WAYS {
        let mut host = knowing(way).await;
        let params = json!({
            "name": "run_script",
            "arguments": {"code": "await word.echo({}); await word.echo({}); return 1"},
            "_meta": {"progressToken": "p"},
        });
        host.request("tools/call", params).await.unwrap();
        let told: Vec<_> = host
            .told
            .iter()
            .filter(|it| it["method"] == "notifications/progress")
            .map(|it| &it["params"])
            .collect();
        assert!(told.iter().all(|it| it["progressToken"] == "p"));
        let numbers: Vec<_> = told
            .iter()
            .map(|it| it["progress"].as_u64().unwrap())
            .collect();
        assert!(
            numbers.len() >= 4 && numbers.is_sorted_by(|a, b| a < b),
            "{numbers:?}"
        );
        let lines: Vec<_> = told
            .iter()
            .map(|it| it["message"].as_str().unwrap())
            .collect();
        let returned = |line: &&&str| line.starts_with("call 2 of word.echo: returned");
        assert_eq!(lines.iter().filter(returned).count(), 1, "{lines:?}");
    }
}

#[tokio::test]
async fn cancelled_request_ends_run_without_answer() {
    for way in WAYS {
        let mut host = knowing(way).await;
        let params = json!({
            "name": "run_script",
            "arguments": {"code": "await clock.wait({})"},
            "_meta": {"progressToken": 1},
        });
        let id = host.begin("tools/call", params).await;
        while !host.hear().await.to_string().contains("clock.wait: allow") {}
        host.cancel(id).await;
        let after = host.begin("tools/list", json!({})).await;
        host.answer_to(after).await.unwrap();
        let answered = |it: &Value| it["id"] == id && it.get("result").is_some();
        assert!(!host.told.iter().any(answered));
    }
}

#[tokio::test]
async fn long_value_is_cut_and_readable_in_full() {
    for way in WAYS {
        let mut host = knowing(way).await;
        let result = host.run("return 'ä'.repeat(40000)").await;
        let said = text(&result);
        assert!(said.len() < 26_000 && said.contains("of 80000 bytes"));
        let at = &result["structuredContent"]["value_at"];
        assert_eq!(
            (&at["bytes"], &result["structuredContent"]["value"]),
            (&json!(80_000), &Value::Null)
        );
        let uri = at["uri"].as_str().unwrap();
        let read = read_by(&mut host, uri, 30_001).await;
        assert_eq!(read, "ä".repeat(40_000));
    }
}

async fn contents(host: &mut Host, uri: &str) -> Value {
    let read = host.request("resources/read", json!({"uri": uri})).await;
    read.unwrap()["contents"].clone()
}

/// Reads a complete kept text with a reader that computes the positions itself.
async fn read_by(host: &mut Host, uri: &str, length: usize) -> String {
    let (mut read, mut at) = (String::new(), 0);
    loop {
        let page = contents(host, &format!("{uri}?from={at}&length={length}")).await;
        read.push_str(page[0]["text"].as_str().unwrap());
        at += length;
        if page.as_array().unwrap().len() == 1 {
            return read;
        }
    }
}

/// Reads a complete kept text with a reader that follows the address on each page.
async fn read_on(host: &mut Host, uri: &str) -> String {
    let (mut read, mut next) = (String::new(), format!("{uri}?from=0&length=20001"));
    loop {
        let page = contents(host, &next).await;
        read.push_str(page[0]["text"].as_str().unwrap());
        let told = &page[0]["_meta"]["dev.airlock/page"];
        let Some(following) = page[1]["uri"].as_str() else {
            assert_eq!(told.get("next"), None, "{told}");
            assert_eq!(told["bytes"], read.len());
            return read;
        };
        assert_eq!(told["next"], read.len(), "{told}");
        let words = page[1]["text"].as_str().unwrap();
        assert!(words.contains(following) && words.contains(&format!("of {}", told["bytes"])));
        next = following.to_owned();
    }
}

#[tokio::test]
async fn pages_of_value_and_console_lose_no_character() {
    for (way, (letter, times)) in
        WAYS.into_iter()
            .zip([("a", 90_001), ("ä", 45_001), ("漢", 30_001), ("🦀", 22_501)])
    {
        let mut host = knowing(way).await;
        let code = format!(
            "const text = 'x' + '{letter}'.repeat({times}); console.log(text); return text"
        );
        let result = host.run(&code).await;
        let expected = format!("x{}", letter.repeat(times));
        for part in ["value_at", "console_at"] {
            let at = &result["structuredContent"][part];
            assert_eq!(at["bytes"], expected.len(), "{result}");
            let uri = at["uri"].as_str().unwrap();
            assert!(read_by(&mut host, uri, 20_000).await == expected, "{way}");
            assert!(read_on(&mut host, uri).await == expected, "{way} {part}");
        }
        // The call in the text for the model reads on where the text was cut.
        let said = text(&result);
        let (head, rest) = said.split_once("\n… cut after ").unwrap();
        let call = rest
            .split_once("read the rest with read_result(")
            .unwrap()
            .1;
        let args = call.split_once(')').unwrap().0;
        let args: Value = serde_json::from_str(args).unwrap();
        let read = host.call("read_result", args).await;
        let page = text(&read);
        let page = page.split_once("\n… bytes ").map_or(page, |(page, _)| page);
        assert!(expected.starts_with(&format!("{head}{page}")), "{way}");
        assert!(page.len() >= 20_000, "{way}");
    }
}

#[tokio::test]
async fn impossible_page_is_refused_with_range() {
    for way in WAYS {
        let mut host = knowing(way).await;
        let result = host.run("return 'ä'.repeat(40000)").await;
        let uri = result["structuredContent"]["value_at"]["uri"]
            .as_str()
            .unwrap()
            .to_owned();
        for (query, part) in [
            ("from=80001", "only 80000 bytes"),
            ("from=x", "`from`"),
            ("length=0", "1 to 1000000 bytes"),
        ] {
            let params = json!({"uri": format!("{uri}?{query}")});
            let error = host.request("resources/read", params).await.unwrap_err();
            assert_eq!(error["code"], -32_602, "{error}");
            assert!(error["message"].to_string().contains(part), "{error}");
        }
        let end = contents(&mut host, &format!("{uri}?from=80000")).await;
        assert_eq!(end.as_array().unwrap().len(), 1, "{end}");
        assert_eq!(end[0]["text"], "");
    }
}

#[tokio::test]
async fn search_finds_by_words_pattern_and_server() {
    for way in WAYS {
        let mut host = knowing(way).await;
        for (args, expected) in [
            (json!({"query": "make text upper case"}), "word.to-upper"),
            (json!({"query": "waiting"}), "clock.wait"),
            (json!({"query": "^word\\.e", "mode": "regex"}), "word.echo"),
            (json!({"servers": ["clock"]}), "clock.wait"),
        ] {
            let found = host.call("search_tools", args.clone()).await;
            assert_eq!(
                found["structuredContent"]["tools"][0]["name"], expected,
                "{args}: {found}"
            );
        }
        let found = host
            .call(
                "search_tools",
                json!({"query": "upper", "detail": "signatures"}),
            )
            .await;
        assert!(text(&found).contains("to_upper("), "{found}");
        let found = host.call("search_tools", json!({"query": "xyzzy"})).await;
        assert!(!is_error(&found) && text(&found).contains("no tool matches"));
    }
}

#[tokio::test]
async fn script_naming_unreachable_server_gets_reason() {
    for way in WAYS {
        let closed = FakeUpstream::saying(json!([]), |method, _| {
            (method == "initialize").then_some(Err((-32_000, "closed for today")))
        });
        let server = ServerConfig::new(closed.await.spec("maps"));
        let server = TestServer::before(server, settings()).await;
        let mut host = server.host(way, json!({})).await;
        let ran = host.run("return await maps.route({from: 'home'})").await;
        let said = text(&ran);
        for part in [
            "the server `maps` cannot be used now",
            "closed for today",
            "airlock tries again",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert!(is_error(&ran) && !said.contains("there is no server"));
    }
}
