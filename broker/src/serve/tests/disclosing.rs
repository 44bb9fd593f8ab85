//! The progressive disclosure document, section by section, in both eras.

use super::host::{TestServer, tool};
use super::*;
use crate::broker::{Broker, InProcessTool};

const MINIMAL: &str = r#"{"type":"object","additionalProperties":true}"#;

async fn progressive(way: HostKind) -> Host {
    Host::connect(way, in_mode(ListMode::Progressive)).await
}

#[tokio::test]
async fn s3_1_list_has_minimal_descriptions_without_parameters() {
    for way in WAYS {
        let mut host = progressive(way).await;
        let list = host.request("tools/list", json!({})).await.unwrap();
        let tools = list["tools"].as_array().unwrap();
        let echo = tools
            .iter()
            .find(|tool| tool["name"] == "word_echo")
            .unwrap();
        assert_eq!(echo["description"], "Gives its arguments back.");
        assert_eq!(echo["inputSchema"].to_string(), MINIMAL);
        let members: Vec<_> = echo.as_object().unwrap().keys().collect();
        assert_eq!(members, ["name", "description", "inputSchema", "groups"]);
    }
}

#[tokio::test]
async fn full_disclosure_lists_whole_schemas_callable_at_once() {
    for way in WAYS {
        let whole = ServeSettings {
            disclosure: Disclosure::Full,
            ..in_mode(ListMode::Progressive)
        };
        let mut host = Host::connect(way, whole).await;
        let list = host.request("tools/list", json!({})).await.unwrap();
        let tools = list["tools"].as_array().unwrap();
        let named = |name: &str| tools.iter().find(|it| it["name"] == name).unwrap();
        let echo = named("word_echo");
        assert_eq!(
            echo["description"],
            "Gives its arguments back. It is polite."
        );
        let text = &echo["inputSchema"]["properties"]["text"];
        assert_eq!(text["description"], "Any text", "{way}: {echo}");
        assert!(echo.get("outputSchema").is_none(), "{echo}");
        let answered = host.call("word_echo", json!({"text": "a"})).await;
        assert_eq!(answered["structuredContent"]["text"], "a", "{answered}");
    }
}

/// Codex shows the beginning of a long result only. What it does not show counts as not read.
#[tokio::test]
async fn description_beyond_what_host_shows_must_be_read_first() {
    let described = |name: &str, sentences: usize| {
        let text = "It is a long sentence. ".repeat(sentences);
        tool("shop", name, &text, async |args| Ok(args))
    };
    let server = async || {
        let mut builder = Broker::builder();
        for (name, sentences) in [
            ("apples", 150),
            ("bread", 150),
            ("cakes", 150),
            ("dates", 800),
        ] {
            builder = builder.tool(described(name, sentences));
        }
        TestServer::built(builder, in_mode(ListMode::Progressive)).await
    };
    let names = ["shop.apples", "shop.bread", "shop.cakes", "shop.dates"];
    let is_callable = async |host: &mut Host, name: &str| {
        let called = host.call(&name.replace('.', "_"), json!({})).await;
        !is_error(&called)
    };
    for way in WAYS {
        for format in ["typescript", "json"] {
            let server = server().await;
            let mut host = server.host_named("codex-mcp-client", way, json!({})).await;
            let details = json!({"tools": names, "format": format});
            let shown = host.call("get_tool_details", details).await;
            let shown = text(&shown).to_owned();
            assert!(shown.len() <= 6_000, "{way}: {}", shown.len());
            let rest = "not shown, because this host cuts long results: shop.bread, shop.cakes, \
                        shop.dates; read them with get_tool_details";
            assert!(shown.contains(rest), "{way}: {shown}");
            assert!(is_callable(&mut host, names[0]).await, "{way}");
            for name in &names[1..] {
                assert!(!is_callable(&mut host, name).await, "{way}: {name}");
            }

            // The last description alone is too long, and is read in parts.
            let details = json!({"tools": ["shop.dates"], "format": format});
            let mut part = host.call("get_tool_details", details).await;
            assert!(
                text(&part).contains("`shop.dates` can be called after"),
                "{part}"
            );
            for _ in 0..10 {
                assert!(!is_callable(&mut host, "shop.dates").await, "{way}");
                let Some((_, call)) = text(&part).rsplit_once("read_result(") else {
                    break;
                };
                let args = call.trim_end_matches(')');
                part = host
                    .call("read_result", serde_json::from_str(args).unwrap())
                    .await;
                if !text(&part).contains("read_result(") {
                    break;
                }
            }
            assert!(is_callable(&mut host, "shop.dates").await, "{way}: {part}");
        }
        let server = server().await;
        let mut host = server.host_named("codex-mcp-client", way, json!({})).await;
        let search = json!({"query": "", "detail": "full"});
        let found = host.call("search_tools", search.clone()).await;
        assert!(
            found["structuredContent"].to_string().len() <= 6_500,
            "{found}"
        );
        assert!(text(&found).contains("not shown"), "{found}");
        assert!(is_callable(&mut host, names[0]).await, "{way}");
        assert!(!is_callable(&mut host, names[2]).await, "{way}");
        // A host that shows everything gets everything.
        let mut host = server.host(way, json!({})).await;
        let found = host.call("search_tools", search).await;
        assert!(!text(&found).contains("not shown"), "{found}");
        assert!(is_callable(&mut host, names[3]).await, "{way}");
    }
}

/// A list cannot show a schema that some hosts do not accept, so the tool must be read first.
#[tokio::test]
async fn tool_without_listed_schema_is_not_disclosed_by_full_list() {
    let whole = ServeSettings {
        disclosure: Disclosure::Full,
        ..in_mode(ListMode::Progressive)
    };
    let odd = json!({"name": "odd", "inputSchema": {"type": ["object", "null"]}});
    let odd = InProcessTool::new("word", odd, async |args| Ok(args));
    let builder = Broker::builder().tool(odd);
    let builder = builder.tool(tool("word", "plain", "Plain.", async |args| Ok(args)));
    let server = TestServer::built(builder.allow("*").unwrap(), whole).await;
    for way in WAYS {
        let mut host = server.host(way, json!({})).await;
        let list = host.request("tools/list", json!({})).await.unwrap();
        assert!(list.to_string().contains("word_odd"), "{way}: {list}");
        let plain = host.call("word_plain", json!({})).await;
        assert!(!is_error(&plain), "{way}: {plain}");
        let refused = host.call("word_odd", json!({})).await;
        let code = &refused["structuredContent"]["error"]["code"];
        assert_eq!(code, "TOOL_DESCRIPTION_REQUIRED", "{way}: {refused}");
        host.descriptions("?tools=word_odd").await;
        let called = host.call("word_odd", json!({})).await;
        assert!(!is_error(&called), "{way}: {called}");
    }
}

#[tokio::test]
async fn s3_1_and_s10_2_denied_tool_is_not_listed() {
    for way in WAYS {
        let mut host = progressive(way).await;
        let list = host.request("tools/list", json!({})).await.unwrap();
        assert!(!list.to_string().contains("secret"));
        let found = host.descriptions("?tools=word.secret").await;
        assert_eq!(found["word.secret"]["code"], "denied", "{found}");
        let search = host.call("search_tools", json!({"query": "secret"})).await;
        assert!(!text(&search).contains("secret"), "{search}");
    }
}

#[tokio::test]
async fn s4_1_and_s4_2_resource_is_listed_with_workflow() {
    for way in WAYS {
        let mut host = progressive(way).await;
        let list = host.request("resources/list", json!({})).await.unwrap();
        let resource = &list["resources"][0];
        assert_eq!(resource["uri"], "resource:///tool_descriptions");
        assert_eq!(resource["mimeType"], "application/json");
        assert!(
            resource["name"]
                .as_str()
                .unwrap()
                .contains("tool_descriptions")
        );
        let about = resource["description"].as_str().unwrap();
        for part in [
            "tools/list",
            "resource:///tool_descriptions?tools=TOOL_NAME",
            "TOOL_1,TOOL_2",
            "CANNOT",
            "authorizes",
            "session",
        ] {
            assert!(about.contains(part), "{part}");
        }
    }
}

#[tokio::test]
async fn s4_3_and_s4_4_exactly_named_tools_are_described() {
    for way in WAYS {
        let mut host = progressive(way).await;
        let found = host.descriptions("?tools=word_echo,word_to-upper").await;
        let found = found.as_object().unwrap();
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            ["word_echo", "word_to-upper"]
        );
        for (name, full) in found {
            assert_eq!(full["name"], json!(name));
            assert!(full["inputSchema"]["properties"]["text"].is_object());
            assert!(full["usage_guidance"]["in_scripts"].is_string());
            assert!(full["error_guidance"].is_string());
            assert!(full["digest"].as_str().unwrap().starts_with("sha256:"));
        }
        let upper = host.descriptions("?tools=word%2Eto-upper").await;
        assert_eq!(
            upper["word.to-upper"]["usage_guidance"]["in_scripts"],
            "await word.to_upper({…})"
        );
    }
}

#[tokio::test]
async fn s6_1_missing_selection_error_has_documented_shape() {
    for way in WAYS {
        let mut host = progressive(way).await;
        for query in ["", "?", "?tools=", "?tools=,,", "?tool=word.echo"] {
            let error = &host.descriptions(query).await["error"];
            assert_eq!(error["code"], "MISSING_TOOL_SELECTION", "{query}");
            assert_eq!(
                error["message"],
                "You must specify one or more tool names in the 'tools' parameter."
            );
            assert_eq!(
                error["examples"],
                json!([
                    "resource:///tool_descriptions?tools=tool_name",
                    "resource:///tool_descriptions?tools=tool1,tool2"
                ])
            );
        }
    }
}

#[tokio::test]
async fn s6_2_undescribed_tool_is_refused_with_pointer() {
    for way in WAYS {
        let mut host = progressive(way).await;
        let result = host.call("word_echo", json!({"text": "a"})).await;
        assert!(is_error(&result));
        let error: Value = serde_json::from_str(text(&result)).unwrap();
        assert_eq!(
            error,
            json!({"error": {
                "code": "TOOL_DESCRIPTION_REQUIRED",
                "message": "Tool 'word_echo' requires fetching its description before use.",
                "resource_uri": "resource:///tool_descriptions?tools=word_echo",
                "next": "call get_tool_details with {\"tools\":[\"word_echo\"]}, then call again",
            }})
        );
        host.descriptions("?tools=word_echo").await;
        let result = host.call("word_echo", json!({"text": "a"})).await;
        assert_eq!(
            result["structuredContent"],
            json!({"text": "a"}),
            "{result}"
        );
        assert!(!is_error(&result));
    }
}

#[tokio::test]
async fn s6_3_unknown_tool_is_a_separate_entry() {
    for way in WAYS {
        let mut host = progressive(way).await;
        let found = host.descriptions("?tools=word.echo,unknown_tool").await;
        assert_eq!(found["word.echo"]["name"], "word.echo");
        assert_eq!(
            found["unknown_tool"]["error"],
            "Tool 'unknown_tool' not found"
        );
        let available = found["unknown_tool"]["available_tools"].as_array().unwrap();
        assert!(available.contains(&json!("word_echo")));
    }
}

#[tokio::test]
async fn many_unknown_names_share_suggestions() {
    let mut builder = Broker::builder();
    for number in 0..150 {
        let about = format!("Does the thing with the number {number}.");
        let name = format!("thing_number_{number}");
        builder = builder.tool(tool("shop", &name, &about, async |args| Ok(args)));
    }
    let server = TestServer::built(builder, in_mode(ListMode::Progressive)).await;
    for way in WAYS {
        let mut host = server.host(way, json!({})).await;
        let one = host.descriptions("?tools=shop.thing_numbr_77").await;
        let available = one["shop.thing_numbr_77"]["available_tools"].clone();
        assert_eq!(available[0], "shop_thing_number_77", "{one}");
        let unknown: Vec<_> = (0..200)
            .map(|it| format!("shop.thing_numbr_{it}"))
            .collect();
        let many = host
            .descriptions(&format!("?tools={}", unknown.join(",")))
            .await;
        assert_eq!(many.as_object().unwrap().len(), 200);
        for (name, entry) in many.as_object().unwrap() {
            let available = entry["available_tools"].as_array().unwrap();
            assert!((1..=2).contains(&available.len()), "{name}: {entry}");
        }
        assert_eq!(
            many["shop.thing_numbr_77"]["available_tools"][0],
            "shop_thing_number_77"
        );
        let few = host
            .call("get_tool_details", json!({"tools": ["a.b", "c.d", "e.f"]}))
            .await;
        assert!(text(&few).len() < 5_000, "{}", text(&few).len());
        assert!(
            many.to_string().len() < 40_000,
            "{}",
            many.to_string().len()
        );
    }
}

#[tokio::test]
async fn s5_1_authorization_lasts_for_session() {
    for way in WAYS {
        let mut host = progressive(way).await;
        host.descriptions("?tools=word.echo").await;
        for _ in 0..3 {
            assert!(!is_error(&host.call("word_echo", json!({})).await));
            assert!(!is_error(&host.call("word.echo", json!({})).await));
        }
        assert!(is_error(&host.call("word_to-upper", json!({})).await));
    }
}

#[tokio::test]
async fn s5_3_description_grants_nothing_else() {
    for way in WAYS {
        let mut host = progressive(way).await;
        host.descriptions("?tools=word.ask").await;
        let result = host.call("word_ask", json!({})).await;
        assert!(
            is_error(&result) && text(&result).contains("unanswered"),
            "{result}"
        );
    }
}

#[tokio::test]
async fn details_tool_discloses_like_resource() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let code = "return await word.echo({text: 'a'})";
        assert!(text(&host.run(code).await).contains("TOOL_DESCRIPTION_REQUIRED"));
        let details = host
            .call("get_tool_details", json!({"tools": ["word.echo"]}))
            .await;
        assert!(text(&details).contains("text?: string"), "{details}");
        let result = host.run(code).await;
        assert_eq!(
            result["structuredContent"]["value"],
            json!({"text": "a"}),
            "{result}"
        );
    }
}

#[tokio::test]
async fn missing_descriptions_are_reported_before_first_effect() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        host.descriptions("?tools=word.echo").await;
        let code = "await word.echo({}); await word_to_upper({}); return clock['wait']({})";
        let result = host.run(code).await;
        let error = &result["structuredContent"]["error"];
        assert_eq!(
            error["tools"],
            json!(["clock.wait", "word.to-upper"]),
            "{result}"
        );
        assert_eq!(
            error["resource_uri"],
            "resource:///tool_descriptions?tools=clock.wait,word.to-upper"
        );
        assert!(is_error(&result) && result["structuredContent"].get("calls").is_none());
        let declared = json!({"code": "return 1", "tools": ["word.fail"]});
        let result = host.call("run_script", declared).await;
        assert!(
            text(&result).contains("TOOL_DESCRIPTION_REQUIRED"),
            "{result}"
        );
    }
}

#[tokio::test]
async fn hidden_call_is_stopped_when_made() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let code = "const w = word; const name = 'ec' + 'ho';
            try { await w[name]({}) } catch (e) { return [e.code, e.message] }";
        let result = host.run(code).await;
        let value = &result["structuredContent"]["value"];
        assert_eq!(value[0], "not-disclosed", "{result}");
        let message = value[1].as_str().unwrap();
        assert!(message.contains("TOOL_DESCRIPTION_REQUIRED"));
        assert!(message.contains("resource:///tool_descriptions?tools=word.echo"));
    }
}

#[tokio::test]
async fn few_tools_are_disclosed_at_once() {
    let at_once = |share| ServeSettings {
        disclosure: Disclosure::Auto,
        disclosure_percent: share,
        ..ServeSettings::default()
    };
    for way in WAYS {
        let mut host = Host::connect(way, at_once(3)).await;
        let list = host.request("tools/list", json!({})).await.unwrap();
        assert!(
            list.to_string()
                .contains("Gives its arguments back. It is polite.")
        );
        let result = host.run("return (await word.echo({text: 'x'})).text").await;
        assert_eq!(text(&result).lines().next(), Some("x"), "{result}");

        let mut host = Host::connect(way, at_once(0)).await;
        let list = host.request("tools/list", json!({})).await.unwrap();
        assert!(!list.to_string().contains("It is polite."));
        assert!(is_error(&host.run("return await word.echo({})").await));
    }
}

fn at_once() -> ServeSettings {
    ServeSettings {
        disclosure: Disclosure::Full,
        ..ServeSettings::default()
    }
}

#[tokio::test]
async fn changed_tool_must_be_read_again_before_call() {
    const ECHO: &str = "return (await word.echo({text: 'x'})).text";
    const UPPER: &str = "return (await word.to_upper({text: 'x'})).text";
    for way in WAYS {
        for reads in [true, false] {
            let server = TestServer::described(at_once()).await;
            let mut host = server.host(way, json!({})).await;
            host.request("tools/list", json!({})).await.unwrap();
            assert_eq!(text(&host.run(ECHO).await).lines().next(), Some("x"));
            // From here on, only the description of `echo` is different.
            server.describe("echo", &json!({"name": "echo", "groups": ["changed"]}));
            server.renew().await;
            let refused = host.run(ECHO).await;
            assert!(
                text(&refused).contains("TOOL_DESCRIPTION_REQUIRED"),
                "{refused}"
            );
            assert_eq!(text(&host.run(UPPER).await).lines().next(), Some("X"));
            if reads {
                host.descriptions("?tools=word.echo").await;
            } else {
                host.request("tools/list", json!({})).await.unwrap();
            }
            let result = host.run(ECHO).await;
            if reads {
                assert_eq!(text(&result).lines().next(), Some("x"), "{result}");
            } else {
                // The list stays the same, so it does not show the new description.
                assert!(
                    text(&result).contains("TOOL_DESCRIPTION_REQUIRED"),
                    "{result}"
                );
            }
        }
    }
}

#[tokio::test]
async fn changed_tool_file_updates_list_and_disclosure() {
    const ECHO: &str = "return (await word.echo({text: 'x'})).text";
    for way in WAYS {
        let server = TestServer::described(at_once()).await;
        let mut host = server.host(way, json!({})).await;
        host.request("tools/list", json!({})).await.unwrap();
        let says = "Says it back, politely and at length.";
        let file = json!({"name": "echo", "version": "2.0.0", "usage_guidance": {"common_patterns": [says]}});
        server.describe("echo", &file);
        let refused = host.run(ECHO).await;
        let said = text(&refused);
        assert!(
            said.contains("description-changed") || said.contains("TOOL_DESCRIPTION_REQUIRED"),
            "{refused}"
        );
        host.descriptions("?tools=word.echo").await;
        let result = host.run(ECHO).await;
        assert_eq!(text(&result).lines().next(), Some("x"), "{result}");
    }
}

#[tokio::test]
async fn host_without_list_is_held_to_first_seen_list() {
    const ECHO: &str = "return (await word.echo({text: 'x'})).text";
    // Only in the older era does a host have a single session. In the newer era, each request
    // without a handle is independent.
    for way in [WAYS[0], WAYS[2]] {
        let server = TestServer::described(at_once()).await;
        let mut host = server.host(way, json!({})).await;
        assert_eq!(text(&host.run(ECHO).await).lines().next(), Some("x"));
        server.change().await;
        let refused = host.run(ECHO).await;
        assert!(
            text(&refused).contains("TOOL_DESCRIPTION_REQUIRED"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn s10_3_fetch_rate_is_limited() {
    for way in WAYS {
        let rate = airlock_core::session::FetchRate {
            burst: 2,
            per_minute: 1,
        };
        let settings = ServeSettings {
            fetch_rate: rate,
            ..settings()
        };
        let mut host = Host::connect(way, settings).await;
        host.descriptions("?tools=word.echo").await;
        host.descriptions("?tools=word.echo").await;
        let params = json!({"uri": "resource:///tool_descriptions?tools=word.echo"});
        let error = host.request("resources/read", params).await.unwrap_err();
        assert_eq!(error["data"]["error"]["code"], "RATE_LIMITED");
        let details = host
            .call("get_tool_details", json!({"tools": ["word.echo"]}))
            .await;
        assert!(is_error(&details) && text(&details).contains("too many description fetches"));
    }
}

#[tokio::test]
async fn stable_mode_calls_tools_through_call_tool() {
    for way in WAYS {
        let mut host = Host::connect(way, in_mode(ListMode::Stable)).await;
        let args = json!({"name": "word.echo", "args": {"text": "a"}});
        let refused = host.call("call_tool", args.clone()).await;
        assert!(text(&refused).contains("TOOL_DESCRIPTION_REQUIRED"));
        host.call("get_tool_details", json!({"tools": "word.echo"}))
            .await;
        let result = host.call("call_tool", args).await;
        assert_eq!(result["structuredContent"], json!({"text": "a"}));
        for wrong in [
            json!({}),
            json!({"name": "x.y"}),
            json!({"name": "word.echo", "args": 1}),
            json!({"name": "word.echo", "arguments": {}}),
        ] {
            let result = host.call("call_tool", wrong.clone()).await;
            assert!(is_error(&result), "{wrong}");
        }
    }
}
