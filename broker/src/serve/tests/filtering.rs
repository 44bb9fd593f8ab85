//! Groups and tags of SEP-1300, in both eras.

use std::time::Duration;

use super::fake_upstream::FakeUpstream;
use super::host::TestServer;
use super::*;
use crate::broker::Broker;
use crate::config::ServerConfig;
use crate::secrets::Secrets;
use crate::tempdir::TempDir;

async fn listed(host: &mut Host, params: Value) -> Vec<String> {
    let list = host.request("tools/list", params).await.unwrap();
    let names = list["tools"].as_array().unwrap().iter();
    names
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn filtering_capability_is_declared_in_both_forms() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let (method, params) = match way.era {
            Era::Legacy => ("initialize", json!({"protocolVersion": "2025-11-25"})),
            Era::Modern => ("server/discover", json!({})),
        };
        let capabilities = &host.request(method, params).await.unwrap()["capabilities"];
        for filtering in [
            &capabilities["filtering"],
            &capabilities["extensions"]["dev.airlock/filtering"],
        ] {
            assert!(filtering["groups"].is_object() && filtering["tags"].is_object());
        }
    }
}

#[tokio::test]
async fn groups_and_tags_are_listed_with_descriptions() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let groups = host.request("groups/list", json!({})).await.unwrap();
        let names: Vec<_> = groups["groups"]
            .as_array()
            .unwrap()
            .iter()
            .map(|group| (&group["name"], group["description"].is_string()))
            .collect();
        assert_eq!(names, [(&json!("clock"), true), (&json!("word"), true)]);
        let tags = host.request("tags/list", json!({})).await.unwrap();
        assert!(tags["tags"].is_array(), "{tags}");
    }
}

/// The replies of a server that describes its groups and tags.
fn filtering(method: &str, _: &Value) -> Option<Result<Value, (i64, &'static str)>> {
    let result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "filtering": {"groups": {}, "tags": {}}},
            "serverInfo": {"name": "behind", "version": "1"},
        }),
        "groups/list" => json!({"groups": [
            {"name": "user", "title": "User Management", "description": "Not hunter2-hunter2."},
            {"name": "empty", "title": "A group without tools"},
            {"title": "A group without a name"},
        ]}),
        "tags/list" => json!({"tags": [{"name": "beta", "description": "In testing."}]}),
        _ => return None,
    };
    Some(Ok(result))
}

fn grouped() -> Value {
    let schema = json!({"type": "object"});
    json!([
        {"name": "invite", "inputSchema": schema, "groups": ["user"], "tags": ["beta"]},
        {"name": "ban", "inputSchema": schema, "groups": ["user", "safety"]},
    ])
}

#[tokio::test]
async fn groups_and_tags_have_the_texts_of_their_server() {
    let upstream = FakeUpstream::saying(grouped(), filtering).await;
    let builder = Broker::builder().secrets(Secrets::new(["hunter2-hunter2"]));
    let builder = builder.server(upstream.spec("s"));
    let mut server = TestServer::built(builder, settings()).await;
    for is_remembered in [false, true] {
        for way in WAYS {
            let mut host = server.host(way, json!({})).await;
            let groups = host.request("groups/list", json!({})).await.unwrap();
            let expected = json!([
                {"name": "s", "title": "s", "description": "2 tools of the server `s`"},
                {"name": "safety", "title": "safety", "description": "1 tool in this group"},
                {"name": "user", "title": "User Management", "description": "Not ***."},
            ]);
            assert_eq!(groups["groups"], expected, "{way} {is_remembered}");
            let tags = host.request("tags/list", json!({})).await.unwrap();
            let expected = json!([{"name": "beta", "description": "In testing."}]);
            assert_eq!(tags["tags"], expected, "{way} {is_remembered}");
        }
        // The second broker knows the lists only from the first one's listing file.
        let stopped = ServerConfig {
            idle: Some(Duration::from_secs(3_600)),
            ..ServerConfig::new(upstream.spec("s"))
        };
        let builder = Broker::builder().servers([stopped]);
        server.restart(builder.servers_join_later(true)).await;
    }
    assert_eq!(upstream.heard("groups/list"), 1);
}

#[tokio::test]
async fn unreadable_tags_are_a_problem_and_the_tools_stay() {
    let upstream = FakeUpstream::saying(grouped(), |method, params| match method {
        "tags/list" => Some(Err((-32_603, "no tags today"))),
        _ => filtering(method, params),
    })
    .await;
    let state = TempDir::new();
    let builder = Broker::builder().server(upstream.spec("s"));
    let broker = builder.state_dir(state.path()).build().await.unwrap();
    let problems = broker.problems();
    let [problem] = &problems[..] else {
        panic!("{problems:?}");
    };
    assert_eq!(problem.code, "groups-unreadable");
    assert!(problem.why.contains("`tags/list`") && problem.why.contains("no tags today"));
    let known = broker.known();
    assert_eq!(
        known
            .descriptions
            .iter()
            .filter(|it| it.server == "s")
            .count(),
        2
    );
    assert!(known.groups_and_tags.groups.contains_key("user"));
}

#[tokio::test]
async fn filter_matches_any_group_and_all_tags() {
    for way in WAYS {
        let mut host = Host::connect(way, in_mode(ListMode::Progressive)).await;
        let all = listed(&mut host, json!({})).await;
        assert_eq!(listed(&mut host, json!({"filter": null})).await, all);
        for (filter, expected) in [
            (json!({"groups": ["clock"]}), 1),
            (json!({"groups": ["word"]}), 4),
            (json!({"groups": ["clock", "word"]}), 5),
            (json!({"groups": ["nothing"]}), 0),
            (json!({"tags": ["nothing"]}), 0),
            (json!({"groups": ["clock"], "tags": ["nothing"]}), 0),
        ] {
            let found = listed(&mut host, json!({"filter": filter})).await;
            assert_eq!(found.len(), expected, "{filter}: {found:?}");
        }
        assert_eq!(
            listed(&mut host, json!({})).await,
            all,
            "a filter has no lasting effect"
        );
        for filter in [
            json!([]),
            json!("x"),
            json!({"groups": "word"}),
            json!({"tags": [1]}),
        ] {
            let params = json!({"filter": filter});
            let error = host.request("tools/list", params).await.unwrap_err();
            assert_eq!(error["code"], -32_602, "{filter}");
        }
        let list = host.request("tools/list", json!({})).await.unwrap();
        let tools = list["tools"].as_array().unwrap();
        let echo = tools.iter().find(|it| it["name"] == "word_echo").unwrap();
        assert_eq!(echo["groups"], json!(["word"]));
    }
}

#[tokio::test]
async fn search_accepts_groups_and_tags() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let found = host
            .call("search_tools", json!({"groups": ["clock"]}))
            .await;
        assert_eq!(found["structuredContent"]["total"], 1, "{found}");
        let found = host
            .call("search_tools", json!({"tags": ["nothing"]}))
            .await;
        assert_eq!(found["structuredContent"]["total"], 0, "{found}");
        let wrong = host.call("search_tools", json!({"groups": 7})).await;
        assert!(is_error(&wrong), "{wrong}");
    }
}

#[tokio::test]
async fn category_filters_hosts_and_scripts_and_unknown_one_lists_known() {
    let server = TestServer::described(settings()).await;
    let upper = json!({"name": "to-upper", "category": "letters", "version": "2.0.0"});
    let echo = json!({
        "name": "echo",
        "category": "words",
        "version": "1.2.0",
        "deprecation": {"message": "It only repeats.", "replacement": "word.to-upper"},
        "rate_limit": {"calls": 10, "per": "minute"},
        "related_tools": ["word.to-upper"],
    });
    server.describe("to-upper", &upper);
    server.describe("echo", &echo);
    for way in WAYS {
        let mut host = server.host(way, json!({})).await;
        let args = json!({"category": "words"});
        let found = host.call("search_tools", args).await;
        let found = &found["structuredContent"];
        assert_eq!(found["total"], 1, "{way}: {found}");
        assert_eq!(found["tools"][0]["category"], "words");
        assert_eq!(found["tools"][0]["version"], "1.2.0");
        assert_eq!(found["tools"][0]["replacement"], "word.to-upper");
        let script = "return (await airlock.search({category: 'letters'})).tools[0].name";
        let result = host.run(script).await;
        assert_eq!(
            result["structuredContent"]["value"], "word.to-upper",
            "{result}"
        );
        let args = json!({"category": "letter"});
        let wrong = host.call("search_tools", args).await;
        assert!(
            is_error(&wrong) && text(&wrong).contains("letters, words"),
            "{wrong}"
        );
        let full = &host.descriptions("?tools=word.echo").await["word.echo"];
        for (key, word) in [
            ("category", "words"),
            ("version", "1.2.0"),
            ("deprecation", "only repeats"),
            ("rate_limit", "minute"),
            ("related_tools", "word.to-upper"),
        ] {
            assert!(full[key].to_string().contains(word), "{key}: {full}");
        }
    }
}

#[tokio::test]
async fn declared_filter_capabilities_hold() {
    for (mode, word) in [
        (ListMode::Code, "code"),
        (ListMode::Progressive, "progressive"),
        (ListMode::Stable, "stable"),
    ] {
        let mut host = Host::connect(MODERN, in_mode(mode)).await;
        let found = host.request("server/discover", json!({})).await.unwrap();
        let tools = &found["capabilities"]["extensions"]["dev.airlock/tools"];
        assert_eq!(tools["mode"], word, "{found}");
        let list = host.request("tools/list", json!({})).await.unwrap();
        let list = list["tools"].as_array().unwrap();
        let properties = |name: &str| {
            let tool = list.iter().find(|it| it["name"] == name).unwrap();
            tool["inputSchema"]["properties"].clone()
        };
        let search = properties("search_tools");
        for filter in tools["search"]["filters"].as_array().unwrap() {
            assert!(search.get(filter.as_str().unwrap()).is_some(), "{filter}");
        }
        assert_eq!(tools["search"]["modes"], search["mode"]["enum"]);
        assert_eq!(tools["search"]["details"], search["detail"]["enum"]);
        assert_eq!(
            tools["details"],
            properties("get_tool_details")["format"]["enum"]
        );
    }
}
