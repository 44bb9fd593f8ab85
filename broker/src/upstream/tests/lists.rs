//! Lists of tools that are long, invalid or endless.

use std::time::Duration;

use airlock_core::id::ServerName;
use serde_json::{Value, json};

use super::fake::{FakeReply, FakeServer, error, legacy, result, tool};
use crate::upstream::pool::ServerListing;

/// Creates a server whose pages are computed by `page` from the cursor.
fn paging(page: impl Fn(Option<&str>) -> Value + Send + Sync + 'static) -> FakeServer {
    FakeServer::new(move |_, message| match message["method"].as_str() {
        Some("tools/list") => match page(message["params"]["cursor"].as_str()) {
            Value::Null => vec![FakeReply::Json(error(message, -32_603))],
            page => vec![FakeReply::Json(result(message, page))],
        },
        _ => legacy(message).unwrap_or_default(),
    })
}

fn names(listed: &ServerListing) -> Vec<&str> {
    listed
        .tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn bad_tool_is_reported_and_others_kept() {
    let tools = json!([
        tool("good"), 7, {"title": "nameless"}, tool("good"), tool(""), tool("a\u{7}b"), tool(&"x".repeat(300)),
        {"name": "odd", "inputSchema": true, "outputSchema": true, "icons": [{"sizes": "48x48"}], "_meta": {"k": 1}, "groups": ["g"]}
    ]);
    let (_, listed) = paging(move |_| json!({"tools": tools})).connect().await;
    assert_eq!(names(&listed), ["good", "odd"]);
    assert_eq!(listed.tools[1]["groups"], json!(["g"]));
    let problems: Vec<String> = listed.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 6, "{problems:#?}");
    assert!(
        problems[0].starts_with("tool number 2 of the list was skipped"),
        "{problems:#?}"
    );
    assert!(
        problems[2].contains("`good`") && problems[2].contains("same name"),
        "{problems:#?}"
    );
}

#[tokio::test]
async fn endlessly_nested_tool_is_left_out_alone() {
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"name":"deep","x":{open}1{close}}}"#)
    };
    let line = format!(
        r#"{{"tools":[{},{},{},{}]}}"#,
        deep(200),
        deep(300),
        deep(30_000),
        tool("fine")
    );
    let (_, listed) = FakeServer::new(move |_, message| match message["method"].as_str() {
        Some("tools/list") => {
            vec![FakeReply::Raw(
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{line}}}\n",
                    message["id"]
                )
                .into_bytes(),
            )]
        }
        _ => legacy(message).unwrap_or_default(),
    })
    .connect()
    .await;
    assert_eq!(names(&listed), ["fine"]);
    assert_eq!(listed.problems.len(), 3);
    for problem in &listed.problems {
        assert!(problem.to_string().contains("nested deeper"), "{problem}");
    }
}

#[tokio::test]
async fn list_may_exceed_result_limit() {
    let many = |_: Option<&str>| {
        let tools: Vec<Value> = (0..500).map(|n| tool(&format!("t{n}"))).collect();
        json!({ "tools": tools })
    };
    let mut fake = paging(many);
    fake.message_limits.result_bytes_max = 1_000;
    let (_, listed) = fake.connect().await;
    assert_eq!((listed.tools.len(), listed.failure), (500, None));

    let mut fake = paging(many);
    fake.message_limits.list_page_bytes_max = 1_000;
    let (_, listed) = fake.connect().await;
    let failure = listed.failure.unwrap().to_string();
    assert!(failure.contains("larger than 1000 bytes"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn slow_list_is_cut_with_what_arrived() {
    let fake = FakeServer::new(|_, message| match message["method"].as_str() {
        Some("tools/list") => {
            let at = message["params"]["cursor"]
                .as_str()
                .map_or(0, |at| at.parse::<usize>().unwrap());
            let page =
                json!({"tools": [tool(&format!("t{at}"))], "nextCursor": (at + 1).to_string()});
            vec![FakeReply::After(
                Duration::from_secs(12),
                result(message, page),
            )]
        }
        _ => legacy(message).unwrap_or_default(),
    });
    let (_, listed) = fake.connect().await;
    assert_eq!(names(&listed), ["t0", "t1"]);
    let last = listed.problems.last().unwrap().to_string();
    assert!(last.contains("no answer within"), "{last}");
}

#[tokio::test]
async fn pages_are_followed_to_the_end() {
    let page = |cursor: Option<&str>| match cursor {
        None => json!({"tools": [tool("a")], "nextCursor": "2"}),
        Some("2") => json!({"tools": [tool("b")], "nextCursor": ""}),
        Some(_) => Value::Null,
    };
    let (connected, listed) = paging(page).connect().await;
    assert_eq!((names(&listed), listed.problems.len()), (vec!["a", "b"], 0));
    assert_eq!(connected.heard("tools/list").len(), 2);
}

#[tokio::test]
async fn endless_list_is_cut_with_reason() {
    let number = |cursor: Option<&str>| cursor.map_or(0, |cursor| cursor.parse::<usize>().unwrap());
    let endless = move |cursor: Option<&str>| {
        let n = number(cursor);
        json!({"tools": [tool(&format!("t{n}"))], "nextCursor": (n + 1).to_string()})
    };
    type Page = Box<dyn Fn(Option<&str>) -> Value + Send + Sync>;
    let cases: [(Page, usize, &str); 4] = [
        (
            Box::new(|_| json!({"tools": [tool("same")], "nextCursor": "again"})),
            1,
            "repeats a cursor",
        ),
        (Box::new(endless), 5, "more than 5 pages"),
        (
            Box::new(
                move |_| json!({"tools": (0..50).map(|n| tool(&n.to_string())).collect::<Vec<_>>()}),
            ),
            20,
            "more than 20 tools",
        ),
        (
            Box::new(move |cursor| {
                if cursor.is_some() {
                    Value::Null
                } else {
                    endless(None)
                }
            }),
            1,
            "the next page failed",
        ),
    ];
    for (page, tools, reason) in cases {
        let mut fake = paging(page);
        fake.message_limits.list_pages_max = 5;
        fake.message_limits.tools_max = 20;
        let (_, listed) = fake.connect().await;
        assert_eq!(listed.tools.len(), tools, "{reason}");
        let last = listed.problems.last().unwrap().to_string();
        assert!(last.contains(reason), "{last}");
    }
}

#[tokio::test]
async fn server_without_tools_is_valid_and_without_list_fails() {
    let refuses = |code: i64| {
        FakeServer::new(move |_, message| match message["method"].as_str() {
            Some("tools/list") => vec![FakeReply::Json(error(message, code))],
            _ => legacy(message).unwrap_or_default(),
        })
    };
    let (_, listed) = refuses(-32_601).connect().await;
    assert_eq!((listed.tools.len(), listed.failure), (0, None));
    let (_, listed) = refuses(-32_603).connect().await;
    assert!(listed.failure.unwrap().to_string().contains("-32603"));
    let (_, listed) = paging(|_| json!({"tools": "none"})).connect().await;
    assert!(listed.failure.is_some());
}

/// serde_json reads an object that starts with this key as the raw text in its value.
const RESERVED: &str = "$serde_json::private::RawValue";

#[tokio::test]
async fn special_keys_in_descriptions_are_plain_data() {
    let described = format!(r#"{{"name":"t","inputSchema":{{"{RESERVED}":"true"}}}}"#);
    let page = format!(r#"{{"tools":[{described}]}}"#);
    let (_, listed) = FakeServer::new(move |_, message| match message["method"].as_str() {
        Some("tools/list") => {
            let line = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{page}}}\n",
                message["id"]
            );
            vec![FakeReply::Raw(line.into_bytes())]
        }
        _ => legacy(message).unwrap_or_default(),
    })
    .connect()
    .await;
    assert_eq!(listed.tools[0].to_string(), described);
}

#[tokio::test(start_paused = true)]
async fn list_expires_after_its_ttl() {
    let page = |cursor: Option<&str>| match cursor {
        None => json!({"tools": [tool("a")], "nextCursor": "2", "ttlMs": 3_600_000}),
        Some(_) => json!({"tools": [tool("b")], "ttlMs": 60_000}),
    };
    let (connected, listed) = paging(page).connect().await;
    assert_eq!(names(&listed), ["a", "b"]);
    let server = ServerName("fake".into());
    let outdated = || connected.upstream.outdated();
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(outdated(), []);
    // Reading the list again restarts its lifetime.
    connected.upstream.list(&server).await.unwrap();
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(outdated(), []);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(outdated(), [server]);
}

#[tokio::test(start_paused = true)]
async fn missing_or_invalid_ttl_never_expires() {
    for ttl in [Value::Null, json!("soon"), json!(-1), json!(1.5), json!([])] {
        let page = move |_: Option<&str>| json!({"tools": [tool("a")], "ttlMs": ttl});
        let (connected, listed) = paging(page).connect().await;
        assert_eq!(names(&listed), ["a"]);
        tokio::time::sleep(Duration::from_secs(100_000)).await;
        assert_eq!(connected.upstream.outdated(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn zero_ttl_does_not_cause_constant_relisting() {
    let page = |_: Option<&str>| json!({"tools": [tool("a")], "ttlMs": 0});
    let (connected, _) = paging(page).connect().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(connected.upstream.outdated(), []);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(connected.upstream.outdated().len(), 1);
}
