//! Lists of tools that are long, bad, or without end.

use std::time::Duration;

use airlock_core::id::ServerName;
use serde_json::{Value, json};

use super::fake::{Fake, Say, error, legacy, result, tool};
use crate::upstream::pool::Listed;

/// A server whose pages are what `page` says about the cursor.
fn paging(page: impl Fn(Option<&str>) -> Value + Send + Sync + 'static) -> Fake {
    Fake::new(move |_, message| match message["method"].as_str() {
        Some("tools/list") => match page(message["params"]["cursor"].as_str()) {
            Value::Null => vec![Say::Json(error(message, -32_603))],
            page => vec![Say::Json(result(message, page))],
        },
        _ => legacy(message).unwrap_or_default(),
    })
}

fn names(listed: &Listed) -> Vec<&str> {
    listed
        .tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_bad_tool_is_reported_and_the_others_stay() {
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
        problems[0].starts_with("tool number 2 of the list is left out"),
        "{problems:#?}"
    );
    assert!(
        problems[2].contains("`good`") && problems[2].contains("same name"),
        "{problems:#?}"
    );
}

#[tokio::test]
async fn a_tool_that_is_nested_without_end_is_left_out_alone() {
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
    let (_, listed) = Fake::new(move |_, message| match message["method"].as_str() {
        Some("tools/list") => {
            vec![Say::Raw(
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
async fn a_list_may_be_larger_than_a_result() {
    let many = |_: Option<&str>| {
        let tools: Vec<Value> = (0..500).map(|n| tool(&format!("t{n}"))).collect();
        json!({ "tools": tools })
    };
    let mut fake = paging(many);
    fake.caps.result_bytes_max = 1_000;
    let (_, listed) = fake.connect().await;
    assert_eq!((listed.tools.len(), listed.failure), (500, None));

    let mut fake = paging(many);
    fake.caps.list_page_bytes_max = 1_000;
    let (_, listed) = fake.connect().await;
    let failure = listed.failure.unwrap().to_string();
    assert!(failure.contains("larger than 1000 bytes"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_drips_its_list_is_cut_off_with_what_has_come() {
    let fake = Fake::new(|_, message| match message["method"].as_str() {
        Some("tools/list") => {
            let at = message["params"]["cursor"]
                .as_str()
                .map_or(0, |at| at.parse::<usize>().unwrap());
            let page =
                json!({"tools": [tool(&format!("t{at}"))], "nextCursor": (at + 1).to_string()});
            vec![Say::After(Duration::from_secs(12), result(message, page))]
        }
        _ => legacy(message).unwrap_or_default(),
    });
    let (_, listed) = fake.connect().await;
    assert_eq!(names(&listed), ["t0", "t1"]);
    let last = listed.problems.last().unwrap().to_string();
    assert!(last.contains("no answer within"), "{last}");
}

#[tokio::test]
async fn pages_are_followed_to_their_end() {
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
async fn a_list_without_end_is_cut_off_with_a_reason() {
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
        fake.caps.list_pages_max = 5;
        fake.caps.tools_max = 20;
        let (_, listed) = fake.connect().await;
        assert_eq!(listed.tools.len(), tools, "{reason}");
        let last = listed.problems.last().unwrap().to_string();
        assert!(last.contains(reason), "{last}");
    }
}

#[tokio::test]
async fn a_server_without_tools_is_no_failure_and_one_without_a_list_is() {
    let refuses = |code: i64| {
        Fake::new(move |_, message| match message["method"].as_str() {
            Some("tools/list") => vec![Say::Json(error(message, code))],
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

/// serde_json reads an object that starts with this key as the text in it.
const RESERVED: &str = "$serde_json::private::RawValue";

#[tokio::test]
async fn no_key_of_a_description_means_anything_but_itself() {
    let described = format!(r#"{{"name":"t","inputSchema":{{"{RESERVED}":"true"}}}}"#);
    let page = format!(r#"{{"tools":[{described}]}}"#);
    let (_, listed) = Fake::new(move |_, message| match message["method"].as_str() {
        Some("tools/list") => {
            let line = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{page}}}\n",
                message["id"]
            );
            vec![Say::Raw(line.into_bytes())]
        }
        _ => legacy(message).unwrap_or_default(),
    })
    .connect()
    .await;
    assert_eq!(listed.tools[0].to_string(), described);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_outdated_when_it_has_held_for_as_long_as_its_server_said() {
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
    // What was read again holds anew.
    connected.upstream.list(&server).await.unwrap();
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(outdated(), []);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(outdated(), [server]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_says_no_time_or_nonsense_holds_until_the_server_says_otherwise() {
    for ttl in [Value::Null, json!("soon"), json!(-1), json!(1.5), json!([])] {
        let page = move |_: Option<&str>| json!({"tools": [tool("a")], "ttlMs": ttl});
        let (connected, listed) = paging(page).connect().await;
        assert_eq!(names(&listed), ["a"]);
        tokio::time::sleep(Duration::from_secs(100_000)).await;
        assert_eq!(connected.upstream.outdated(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_holds_for_no_time_is_not_read_all_the_time() {
    let page = |_: Option<&str>| json!({"tools": [tool("a")], "ttlMs": 0});
    let (connected, _) = paging(page).connect().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(connected.upstream.outdated(), []);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(connected.upstream.outdated().len(), 1);
}
