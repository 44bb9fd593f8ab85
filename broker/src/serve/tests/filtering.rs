//! Groups and tags, as SEP-1300 has them, in both eras.

use super::*;

async fn listed(host: &mut Host, params: Value) -> Vec<String> {
    let list = host.request("tools/list", params).await.unwrap();
    let names = list["tools"].as_array().unwrap().iter();
    names
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn filtering_is_declared_in_both_shapes() {
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
async fn groups_and_tags_are_listed_with_what_they_are() {
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
async fn a_filter_takes_any_of_its_groups_and_all_of_its_tags() {
    for way in WAYS {
        let mut host = Host::connect(way, in_mode(Mode::Progressive)).await;
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
            "nothing was changed by asking"
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
async fn search_takes_the_same_groups_and_tags() {
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
