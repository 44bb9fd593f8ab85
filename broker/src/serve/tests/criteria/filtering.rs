//! Tests of groups and tags, SEP-1300.

use super::super::host::{HostTransport, TestServer};
use super::super::listening::SessionStream;
use super::super::*;
use super::shown;

shown! {
    filtering_is_declared: ["gt-declared"];
    groups_are_listed_with_what_they_are: ["gt-groups"];
    hosts_are_told_when_groups_change: ["gt-list-changed"];
    tags_are_listed_with_what_they_are: ["gt-tags"];
    tools_carry_their_groups_and_tags: ["gt-carried", "gt-many", "gt-across"];
    a_filter_takes_any_group_and_every_tag: ["gt-any", "gt-all", "gt-both", "gt-once"];
    without_a_filter_everything_is_as_it_was: ["gt-absent"];
    a_filter_that_chooses_nothing_is_none: ["gt-empty"];
    a_filter_stands_beside_a_cursor: ["gt-cursor"];
}

async fn described(way: HostKind) -> Host {
    let server = TestServer::described(in_mode(ListMode::Progressive)).await;
    server.host(way, json!({})).await
}

async fn names(host: &mut Host, params: Value) -> Vec<String> {
    let list = host.request("tools/list", params).await.unwrap();
    let tools = list["tools"].as_array().unwrap().iter();
    tools
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn filtering_is_declared(way: HostKind) {
    let mut host = described(way).await;
    let (method, params) = match way.era {
        Era::Legacy => ("initialize", json!({"protocolVersion": "2025-11-25"})),
        Era::Modern => ("server/discover", json!({})),
    };
    let capabilities = &host.request(method, params).await.unwrap()["capabilities"];
    for list in ["groups", "tags"] {
        let changes = &capabilities["filtering"][list]["listChanged"];
        assert!(changes.is_boolean(), "{capabilities}");
        let extension = &capabilities["extensions"]["dev.airlock/filtering"][list];
        assert_eq!(&extension["listChanged"], changes);
    }
}

/// Checks that every entry of a list has these members as non-empty texts.
fn expect_texts(list: &Value, members: &[&str]) {
    for entry in list.as_array().unwrap() {
        for member in members {
            assert!(
                entry[member].as_str().is_some_and(|it| !it.is_empty()),
                "{entry}"
            );
        }
    }
}

async fn hosts_are_told_when_groups_change(way: HostKind) {
    const CHANGED: &str = "notifications/groups/list_changed";
    let server = TestServer::open(in_mode(ListMode::Code)).await;
    let mut host = server.host(way, json!({})).await;
    // Only hosts that know the list are told of its changes.
    host.request("groups/list", json!({})).await.unwrap();
    if (way.era, way.over) == (Era::Legacy, HostTransport::Http) {
        let session = host.session();
        let headers = [
            ("Accept", "text/event-stream"),
            ("Mcp-Session-Id", session.as_str()),
        ];
        let mut stream = SessionStream::open(&server, &headers).await;
        server.change().await;
        assert!(stream.next_of(CHANGED).await.is_some());
    } else {
        if way.era == Era::Modern {
            let wanted = json!({"notifications": {"groupsListChanged": true}});
            host.begin("subscriptions/listen", wanted).await;
            let first = host.hear().await;
            let honoured = &first["params"]["notifications"];
            assert_eq!(*honoured, json!({"groupsListChanged": true}));
        }
        server.change().await;
        while host.hear().await["method"] != CHANGED {}
    }
    let groups = host.request("groups/list", json!({})).await.unwrap();
    assert!(groups.to_string().contains("\"changed\""), "{groups}");
}

async fn groups_are_listed_with_what_they_are(way: HostKind) {
    let mut host = described(way).await;
    let groups = &host.request("groups/list", json!({})).await.unwrap()["groups"];
    expect_texts(groups, &["name", "title", "description"]);
    let names: Vec<_> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["clock", "trying", "word"]);
}

async fn tags_are_listed_with_what_they_are(way: HostKind) {
    let mut host = described(way).await;
    let tags = &host.request("tags/list", json!({})).await.unwrap()["tags"];
    expect_texts(tags, &["name", "description"]);
    let names: Vec<_> = tags
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["slow", "stable"]);
}

async fn tools_carry_their_groups_and_tags(way: HostKind) {
    let mut host = described(way).await;
    let list = host.request("tools/list", json!({})).await.unwrap();
    let tools = list["tools"].as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(tool("word_echo")["groups"], json!(["word", "trying"]));
    assert_eq!(tool("word_echo")["tags"], json!(["stable"]));
    assert_eq!(tool("clock_wait")["groups"], json!(["clock", "trying"]));
    assert_eq!(tool("clock_wait")["tags"], json!(["slow", "stable"]));
}

async fn a_filter_takes_any_group_and_every_tag(way: HostKind) {
    let mut host = described(way).await;
    for (filter, expected) in [
        (
            json!({"groups": ["trying"]}),
            vec!["clock_wait", "word_echo"],
        ),
        (json!({"groups": ["clock", "nothing"]}), vec!["clock_wait"]),
        (
            json!({"groups": ["clock", "trying"]}),
            vec!["clock_wait", "word_echo"],
        ),
        (json!({"tags": ["stable"]}), vec!["clock_wait", "word_echo"]),
        (json!({"tags": ["stable", "slow"]}), vec!["clock_wait"]),
        (
            json!({"groups": ["word"], "tags": ["stable"]}),
            vec!["word_echo"],
        ),
        (json!({"groups": ["word"], "tags": ["slow"]}), vec![]),
        (json!({"groups": ["nothing"]}), vec![]),
    ] {
        let mut found = names(&mut host, json!({"filter": filter})).await;
        found.sort();
        assert_eq!(found, expected, "{filter}");
    }
}

async fn without_a_filter_everything_is_as_it_was(way: HostKind) {
    let mut host = described(way).await;
    let all = names(&mut host, json!({})).await;
    assert!(all.len() > 5, "{all:?}");
    names(&mut host, json!({"filter": {"groups": ["clock"]}})).await;
    assert_eq!(names(&mut host, json!({})).await, all);
}

/// Without a named group, the list contains all tools, including airlock's own.
async fn a_filter_that_chooses_nothing_is_none(way: HostKind) {
    let mut host = described(way).await;
    let all = host.request("tools/list", json!({})).await.unwrap();
    for filter in [
        json!({}),
        json!({"groups": []}),
        json!({"tags": []}),
        json!({"groups": [], "tags": []}),
        json!({"groups": null, "tags": null}),
    ] {
        let listed = host.request("tools/list", json!({"filter": filter})).await;
        assert_eq!(listed.unwrap(), all, "{filter}");
    }
    let of_all = names(
        &mut host,
        json!({"filter": {"groups": [], "tags": ["slow"]}}),
    )
    .await;
    assert_eq!(of_all, ["clock_wait"]);
    let wrong = json!({"filter": {"group": ["clock"]}});
    let refused = host.request("tools/list", wrong).await.unwrap_err();
    assert_eq!(refused["code"], -32_602);
    assert!(refused["message"].to_string().contains("groups or tags"));
}

/// The filtered list and the unfiltered list both have one page, without a cursor for another.
async fn a_filter_stands_beside_a_cursor(way: HostKind) {
    let mut host = described(way).await;
    let filter = json!({"groups": ["clock"]});
    for whole in [
        json!({"filter": filter}),
        json!({"filter": filter, "cursor": null}),
    ] {
        let list = host.request("tools/list", whole).await.unwrap();
        assert_eq!(list["tools"].as_array().map(Vec::len), Some(1), "{list}");
        assert_eq!(list.get("nextCursor"), None);
    }
    for cursor in [json!("x"), json!(""), json!(7)] {
        let both = json!({"filter": filter, "cursor": cursor});
        let refused = host.request("tools/list", both).await.unwrap_err();
        assert_eq!(refused["code"], -32_602, "{cursor}");
        assert!(
            refused["message"].to_string().contains("one page"),
            "{refused}"
        );
    }
}
