//! Prompts, resources and completions of servers that send invalid or hostile data.

use std::sync::atomic::{AtomicUsize, Ordering};

use airlock_core::flow::{LabelConfig, LabelRule};
use airlock_core::labels::{Label, Labels};

use super::fake_upstream::{CannedReply, FakeUpstream};
use super::host::{HostTransport, TestServer};
use super::*;
use crate::broker::{Broker, Builder};
use crate::config::{FlowConfig, Offer, Offers};
use crate::secrets::Secrets;

const SECRET: &str = "tok-of-another-123456";

fn offering(offers: &[&str]) -> ServeSettings {
    let offers = offers.iter().map(|it| Offer::parse(it).unwrap());
    ServeSettings {
        offers: Offers(offers.collect()),
        ..settings()
    }
}

fn before(servers: &[(&str, &FakeUpstream)]) -> Builder {
    let specs = servers.iter().map(|(name, it)| it.spec(name));
    let mut builder = Broker::builder().secrets(Secrets::new([SECRET]));
    for spec in specs {
        builder = builder.server(spec);
    }
    builder
}

async fn server(servers: &[(&str, &FakeUpstream)]) -> TestServer {
    let offers: Vec<&str> = servers.iter().map(|(name, _)| *name).collect();
    TestServer::built(before(servers), offering(&offers)).await
}

async fn saying(says: CannedReply) -> FakeUpstream {
    FakeUpstream::saying(json!([]), says).await
}

#[tokio::test]
async fn errors_and_names_are_redacted() {
    let upstream = saying(|method, _| match method {
        "resources/read" => Some(Err((
            -32_603,
            "it was told tok-of-another-123456 by somebody",
        ))),
        "prompts/get" => {
            let content = json!({"type": "text", "text": "x", SECRET: 1});
            let described = json!({"role": "user", "content": content});
            Some(Ok(json!({"messages": [described], "description": SECRET})))
        }
        "completion/complete" => {
            let values = json!({"values": ["a", "tok-of-another-123456", "b\u{1b}[2J"]});
            Some(Ok(json!({"completion": values})))
        }
        _ => None,
    })
    .await;
    let server = server(&[("s", &upstream)]).await;
    for way in WAYS {
        let mut host = server.host(way, json!({})).await;
        let uri = json!({"uri": "airlock://s/a:1"});
        let refused = host.request("resources/read", uri).await.unwrap_err();
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("told *** by"), "{way}: {refused}");
        let name = json!({"name": "s_x"});
        let prompt = host.request("prompts/get", name).await.unwrap();
        assert!(!prompt.to_string().contains(SECRET), "{way}: {prompt}");
        let completed = json!({
            "ref": {"type": "ref/prompt", "name": "s_x"},
            "argument": {"name": "a", "value": ""},
        });
        let completed = host
            .request("completion/complete", completed)
            .await
            .unwrap();
        let values = &completed["completion"]["values"];
        assert_eq!(*values, json!(["a", "***"]), "{way}");
    }
}

/// Returns the labels of a run in this session.
async fn carried(host: &mut Host) -> String {
    let run = host.run("return 1").await;
    run["structuredContent"]["flow"]["labels"].to_string()
}

#[tokio::test]
async fn passed_through_content_counts_as_read() {
    let upstream = saying(|method, _| match method {
        "resources/list" => Some(Ok(
            json!({"resources": [{"uri": "a:1", "name": "What Ada owes"}]}),
        )),
        "completion/complete" => Some(Ok(json!({"completion": {"values": ["Ada"]}}))),
        "resources/read" => Some(Err((-32_603, "Ada owes nothing"))),
        _ => None,
    })
    .await;
    let complete = json!({
        "ref": {"type": "ref/prompt", "name": "s_x"},
        "argument": {"name": "a", "value": ""},
    });
    for (method, params) in [
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "a:1"})),
        ("completion/complete", complete),
    ] {
        for way in WAYS {
            let reads = Label::parse("private:notes").unwrap();
            let saying = LabelRule {
                server: "s".into(),
                reads: Some(Labels::from_iter([reads])),
                tools: None,
                writes: None,
                destinations: None,
                fixed_destination: None,
                paths: None,
                origin: String::new(),
            };
            let flow = FlowConfig {
                label_config: LabelConfig(vec![saying]),
                ..FlowConfig::default()
            };
            let builder = before(&[("s", &upstream)]).flow(flow);
            let server = TestServer::built(builder, offering(&["s"])).await;
            let mut host = server.host(way, json!({})).await;
            let before = carried(&mut host).await;
            assert!(!before.contains("private:notes"), "{way}: {before}");
            // Data counts as read even if the host drops its handle.
            host.handle = None;
            let _ = host.request(method, params.clone()).await;
            host.handle = None;
            let after = carried(&mut host).await;
            assert!(after.contains("private:notes"), "{way} {method}: {after}");
            // If another session reads the same data, it gets a handle too, so that the host can
            // use the session again.
            if way.over == HostTransport::Http && way.era == Era::Modern {
                let mut other = server.host(way, json!({})).await;
                if other.request(method, params.clone()).await.is_ok() {
                    assert!(other.handle.is_some(), "{way} {method}");
                }
            }
        }
    }
}

#[tokio::test]
async fn endless_list_is_cut_by_bytes_and_read_once() {
    static PAGES: AtomicUsize = AtomicUsize::new(0);
    let upstream = saying(|method, _| {
        if method != "resources/list" {
            return None;
        }
        let page = PAGES.fetch_add(1, Ordering::Relaxed);
        let junk = "x".repeat(5 * 1024 * 1024);
        let item = json!({"uri": format!("a:{page}"), "junk": junk});
        Some(Ok(json!({"resources": [item], "nextCursor": "n"})))
    })
    .await;
    let server = server(&[("s", &upstream)]).await;
    let mut host = server.host(WAYS[2], json!({})).await;
    for _ in 0..8 {
        host.begin("resources/list", json!({})).await;
    }
    let list = host.request("resources/list", json!({})).await.unwrap();
    let listed = list["resources"].as_array().unwrap();
    assert!(listed.len() <= 5, "{list}");
    assert!(!list.to_string().contains("xxxx"));
    // At most two reads take place: the one in progress when the other requests arrive, and one for
    // those requests. Each read gets one page more than airlock keeps.
    let pages = PAGES.load(Ordering::Relaxed);
    assert!((1..=4 * 3).contains(&pages), "{pages} pages");
}

#[tokio::test]
async fn prompt_name_is_unambiguous_across_servers() {
    let first = saying(|method, params| match method {
        "prompts/list" => Some(Ok(
            json!({"prompts": [{"name": "b.c"}, {"name": "x\u{202e}"}, {"name": "b_c"}]}),
        )),
        "prompts/get" => {
            let content = json!({"type": "text", "text": format!("a: {}", params["name"])});
            Some(Ok(
                json!({"messages": [{"role": "user", "content": content}]}),
            ))
        }
        _ => None,
    })
    .await;
    let second = saying(|method, params| match method {
        "prompts/list" => Some(Ok(json!({"prompts": [{"name": "c"}]}))),
        "prompts/get" if params["name"] == "s" => {
            let content = json!({"type": "text", "text": "I set you up"});
            Some(Ok(
                json!({"messages": [{"role": "system", "content": content}]}),
            ))
        }
        "prompts/get" => {
            let content = json!({"type": "text", "text": format!("a_b: {}", params["name"])});
            Some(Ok(
                json!({"messages": [{"role": "user", "content": content}]}),
            ))
        }
        _ => None,
    })
    .await;
    let server = server(&[("a", &first), ("a_b", &second)]).await;
    for way in WAYS {
        let mut host = server.host(way, json!({})).await;
        let list = host.request("prompts/list", json!({})).await.unwrap();
        let names = list["prompts"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["use_tools", "a.b.c", "a.b_c", "a_b.c"], "{way}");
        for (name, expected) in [
            ("a.b.c", "a: \"b.c\""),
            ("a.b_c", "a: \"b_c\""),
            ("a_b.c", "a_b: \"c\""),
        ] {
            let got = host.request("prompts/get", json!({"name": name})).await;
            let said = got.unwrap()["messages"][0]["content"]["text"].clone();
            assert_eq!(said, expected, "{way}");
        }
        let unclear = host.request("prompts/get", json!({"name": "a_b_c"})).await;
        let unclear = unclear.unwrap_err();
        assert!(
            unclear["message"]
                .as_str()
                .unwrap()
                .contains("a.b_c, a_b.c"),
            "{way}: {unclear}"
        );
        let system = host.request("prompts/get", json!({"name": "a_b.s"})).await;
        let system = system.unwrap_err().to_string();
        assert!(system.contains("unknown role"), "{way}: {system}");
    }
}

#[tokio::test]
async fn server_failure_is_not_resource_not_found() {
    let upstream = saying(|method, params| match (method, params["uri"].as_str()) {
        ("resources/read", Some("a:none")) => Some(Err((-32_002, "none"))),
        ("resources/read", Some("a:new")) => Some(Err((-32_602, "none"))),
        ("resources/read", _) => Some(Err((-32_603, "broken"))),
        _ => None,
    })
    .await;
    let server = server(&[("s", &upstream)]).await;
    for way in WAYS {
        let mut host = server.host(way, json!({})).await;
        let none = match way.era {
            Era::Legacy => -32_002,
            Era::Modern => -32_602,
        };
        for (uri, code) in [("a:none", none), ("a:new", none), ("a:1", -32_603)] {
            let refused = host.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(refused.unwrap_err()["code"], code, "{way} {uri}");
        }
    }
}

#[tokio::test]
async fn unknown_address_is_not_guessed_while_a_server_is_silent() {
    let lists = saying(|method, _| match method {
        "resources/list" => Some(Ok(json!({"resources": [{"uri": "a:1"}]}))),
        "resources/read" => Some(Ok(
            json!({"contents": [{"uri": 1, "text": "here", "x": 2}]}),
        )),
        _ => None,
    })
    .await;
    let has_none = saying(|method, _| match method {
        "resources/list" => Some(Err((-32_601, "no such method"))),
        _ => None,
    })
    .await;
    let fails = saying(|method, _| match method {
        "resources/list" => Some(Err((-32_603, "later"))),
        _ => None,
    })
    .await;
    let address = json!({"uri": "a:1"});
    let clear = server(&[("s", &lists), ("none", &has_none)]).await;
    let mut host = clear.host(LEGACY, json!({})).await;
    let read = host.request("resources/read", address.clone()).await;
    assert_eq!(
        read.unwrap()["contents"],
        json!([{"text": "here", "uri": "a:1"}])
    );
    let unclear = server(&[("s", &lists), ("fails", &fails)]).await;
    let mut host = unclear.host(LEGACY, json!({})).await;
    let refused = host.request("resources/read", address).await.unwrap_err();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("airlock://fails/a:1"), "{refused}");
    let named = json!({"uri": "airlock://s/a:1"});
    assert!(host.request("resources/read", named).await.is_ok());
}
