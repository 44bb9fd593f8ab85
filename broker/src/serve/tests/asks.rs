//! Approval questions of a run, answered by the person at the host.

use std::sync::Arc;

use airlock_core::limits::Limits;
use tokio::sync::Notify;

use super::host::{TestServer, tool};
use super::*;
use crate::approver::NeverApprover;
use crate::broker::Broker;

const CODE: &str = "try { return await word.ask({text: 'x'}) } catch (e) { return e.code }";

fn all() -> ServeSettings {
    ServeSettings {
        disclosure: Disclosure::Full,
        ..ServeSettings::default()
    }
}

/// Without a host that declines: at once, it counts as one that cannot ask.
fn answers() -> [(Value, Value); 3] {
    let accept = |decision: &str| json!({"action": "accept", "content": {"decision": decision}});
    [
        (accept("allow"), json!({"text": "x"})),
        (accept("refuse"), json!("refused")),
        (json!({"action": "cancel"}), json!("unanswered")),
    ]
}

fn each(era: Era) -> Vec<(HostKind, (Value, Value))> {
    let ways = WAYS.into_iter().filter(|way| way.era == era);
    ways.flat_map(|way| answers().map(|it| (way, it))).collect()
}

#[tokio::test]
async fn older_era_host_is_asked_by_request() {
    for (way, (answer, expected)) in each(Era::Legacy) {
        let capabilities = json!({"elicitation": {}});
        let mut host = Host::connect_as(way, all(), capabilities).await;
        let params = json!({"name": "run_script", "arguments": {"code": CODE}});
        let id = host.begin("tools/call", params).await;
        let asked = host.asked().await;
        assert_eq!(asked["method"], "elicitation/create");
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(
            message.contains("word.ask") && message.contains("\"text\": \"x\""),
            "{message}"
        );
        let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer});
        host.say(&reply.to_string()).await;
        let result = host.answer_to(id).await.unwrap();
        assert_eq!(result["structuredContent"]["value"], expected, "{answer}");
    }
}

#[tokio::test]
async fn newer_era_host_gets_question_in_result_and_resumes() {
    for (way, (answer, expected)) in each(Era::Modern) {
        let capabilities = json!({"elicitation": {"form": {}}});
        let mut host = Host::connect_as(way, all(), capabilities).await;
        let mut params = json!({"name": "run_script", "arguments": {"code": CODE}});
        let first = host.request("tools/call", params.clone()).await.unwrap();
        assert_eq!(first["resultType"], "input_required", "{first}");
        let request = &first["inputRequests"]["call-1"];
        assert_eq!(request["method"], "elicitation/create");
        params["requestState"] = first["requestState"].clone();
        params["inputResponses"] = json!({"call-1": answer});
        let second = host.request("tools/call", params.clone()).await.unwrap();
        assert_eq!(second["structuredContent"]["value"], expected, "{second}");
        let third = host.request("tools/call", params).await.unwrap_err();
        assert!(third.to_string().contains("used already"), "{third}");
    }
}

#[tokio::test]
async fn questions_are_batched_and_state_is_single_use() {
    let capabilities = json!({"elicitation": {}});
    let mut host = Host::connect_as(MODERN, all(), capabilities).await;
    let code = "const all = await Promise.all([1, 2].map((n) => word.ask({text: `${n}`})));
        return all.map((it) => it.text)";
    let mut params = json!({"name": "run_script", "arguments": {"code": code}});
    let mut result = host.request("tools/call", params.clone()).await.unwrap();
    let state = result["requestState"].clone();
    for foreign in [
        json!({"name": "run_script", "arguments": {"code": "return 1"}, "requestState": state}),
        json!({"name": "run_script", "arguments": {"code": code}, "requestState": "forged"}),
        json!({"name": "run_script", "arguments": {"code": code}, "requestState": 7}),
    ] {
        let refused = host.request("tools/call", foreign).await.unwrap_err();
        assert_eq!(refused["code"], -32_602, "{refused}");
    }
    while result["resultType"] == "input_required" {
        let yes = json!({"action": "accept", "content": {"decision": "allow"}});
        let keys = result["inputRequests"].as_object().unwrap().keys();
        let responses: serde_json::Map<_, _> = keys.map(|key| (key.clone(), yes.clone())).collect();
        params["inputResponses"] = responses.into();
        params["requestState"] = result["requestState"].clone();
        result = host.request("tools/call", params.clone()).await.unwrap();
    }
    assert_eq!(
        result["structuredContent"]["value"],
        json!(["1", "2"]),
        "{result}"
    );
    let again = host.request("tools/call", params).await.unwrap_err();
    assert_eq!(again["code"], -32_602, "{again}");
}

#[tokio::test]
async fn unanswered_question_is_asked_again() {
    for way in [WAYS[1], WAYS[3]] {
        let mut host = Host::connect_as(way, all(), json!({"elicitation": {}})).await;
        let code = "return (await word.ask({text: 'a'})).text";
        let mut params = json!({"name": "run_script", "arguments": {"code": code}});
        let first = host.request("tools/call", params.clone()).await.unwrap();
        let yes = json!({"action": "accept", "content": {"decision": "allow"}});
        params["requestState"] = first["requestState"].clone();
        params["inputResponses"] = json!({"another": yes});
        let second = host.request("tools/call", params.clone()).await.unwrap();
        assert_eq!(second["inputRequests"], first["inputRequests"], "{second}");
        assert_ne!(second["requestState"], first["requestState"]);
        params["requestState"] = second["requestState"].clone();
        params["inputResponses"] = json!({"call-1": yes});
        let last = host.request("tools/call", params).await.unwrap();
        assert_eq!(last["structuredContent"]["value"], "a", "{last}");
    }
}

#[tokio::test]
async fn host_without_elicitation_uses_configured_approver() {
    for way in WAYS {
        let mut host = Host::connect_as(way, all(), json!({"elicitation": {"url": {}}})).await;
        let result = host.run(CODE).await;
        assert_eq!(
            result["structuredContent"]["value"], "unanswered",
            "{result}"
        );
    }
}

#[tokio::test]
async fn run_that_does_not_wait_cannot_be_resumed() {
    for way in WAYS {
        let mut host = Host::connect(way, all()).await;
        for args in [
            json!({}),
            json!({"run": "x"}),
            json!({"run": 1}),
            json!({"id": "x"}),
        ] {
            let result = host.call("resume_run", args).await;
            assert!(is_error(&result));
        }
    }
}

/// A script whose question is no longer needed when the script returns.
const LEAVES: &str = "word.ask({text: 'x'}).catch(() => {}); await word.leave({}); return 2";

/// Returns a host, and the signal that makes `word.leave` return.
async fn leaving(way: HostKind) -> (Host, Arc<Notify>) {
    let leave = Arc::new(Notify::new());
    let told = Arc::clone(&leave);
    let until_told = move |args: Value| {
        let told = Arc::clone(&told);
        async move {
            told.notified().await;
            Ok(args)
        }
    };
    let echo = async |args: Value| Ok(args);
    let builder = Broker::builder()
        .approver(NeverApprover)
        .ask("word.ask")
        .unwrap()
        .tool(tool("word", "ask", "Is asked about.", echo))
        .tool(tool("word", "leave", "Waits for a word.", until_told));
    let server = TestServer::built(builder, all()).await;
    let host = server.host(way, json!({"elicitation": {"form": {}}})).await;
    (host, leave)
}

#[tokio::test]
async fn withdrawn_question_is_cancelled_at_host() {
    for way in WAYS.into_iter().filter(|it| it.era == Era::Legacy) {
        let (mut host, leave) = leaving(way).await;
        let params = json!({"name": "run_script", "arguments": {"code": LEAVES}});
        let id = host.begin("tools/call", params).await;
        let asked = host.asked().await;
        leave.notify_one();
        let result = host.answer_to(id).await.unwrap();
        assert_eq!(result["structuredContent"]["value"], 2, "{way}: {result}");
        let is_taken_back = |it: &Value| {
            it["method"] == "notifications/cancelled" && it["params"]["requestId"] == asked["id"]
        };
        assert!(
            host.told.iter().any(is_taken_back),
            "{way}: {:?}",
            host.told
        );
    }
}

#[tokio::test]
async fn resume_without_answer_returns_finished_run() {
    for way in WAYS.into_iter().filter(|it| it.era == Era::Modern) {
        let (mut host, leave) = leaving(way).await;
        let mut params = json!({"name": "run_script", "arguments": {"code": LEAVES}});
        let mut told = host.request("tools/call", params.clone()).await.unwrap();
        assert_eq!(told["resultType"], "input_required", "{way}: {told}");
        leave.notify_one();
        // The question stays open for as long as the run is in progress.
        while told["resultType"] == "input_required" {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            params["requestState"] = told["requestState"].clone();
            told = host.request("tools/call", params.clone()).await.unwrap();
        }
        assert_eq!(told["structuredContent"]["value"], 2, "{way}: {told}");
    }
}

/// The wait ends long before the run's time limit, so the script has time to handle the error.
#[tokio::test]
async fn expired_wait_reports_unanswered_to_script() {
    let limits = Limits {
        human_wall_ms_max: 200,
        ..Limits::default()
    };
    let echo = async |args: Value| Ok(args);
    let builder = Broker::builder()
        .approver(NeverApprover)
        .limits(limits)
        .ask("word.ask")
        .unwrap()
        .tool(tool("word", "ask", "Is asked about.", echo));
    let server = TestServer::built(builder, all()).await;
    for way in WAYS {
        let mut host = server.host(way, json!({"elicitation": {"form": {}}})).await;
        let mut params = json!({"name": "run_script", "arguments": {"code": CODE}});
        let mut told = host.request("tools/call", params.clone()).await.unwrap();
        // In the newer era, the question is returned again for as long as it is open.
        while told["resultType"] == "input_required" {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            params["requestState"] = told["requestState"].clone();
            told = host.request("tools/call", params.clone()).await.unwrap();
        }
        let report = &told["structuredContent"];
        assert_eq!(report["value"], "unanswered", "{way}: {told}");
    }
}
