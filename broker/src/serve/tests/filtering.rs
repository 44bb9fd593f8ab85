//! Groups and tags of SEP-1300, in both eras.

use super::host::TestServer;
use super::*;

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
    let house = TestServer::described(settings()).await;
    let upper = json!({"name": "to-upper", "category": "letters", "version": "2.0.0"});
    let echo = json!({
        "name": "echo",
        "category": "words",
        "version": "1.2.0",
        "deprecation": {"message": "It only repeats.", "replacement": "word.to-upper"},
        "rate_limit": {"calls": 10, "per": "minute"},
        "related_tools": ["word.to-upper"],
    });
    house.describe("to-upper", &upper);
    house.describe("echo", &echo);
    for way in WAYS {
        let mut host = house.host(way, json!({})).await;
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
