//! `airlock.extract`: the host's model reads a value, in both eras.

use airlock_core::limits::Limits;

use super::host::{TestServer, tool};
use super::*;
use crate::approver::NeverApprover;
use crate::broker::Broker;

const CODE: &str =
    "const schema = {type: 'object', properties: {age: {type: 'integer'}}, required: ['age']};
    try { return await airlock.extract({value: 'Ada, 36', schema}) }
    catch (e) { return [e.code, e.message, e.retryable] }";

fn settings() -> ServeSettings {
    ServeSettings {
        disclosure: Disclosure::Full,
        ..ServeSettings::default()
    }
}

fn words(text: &str) -> Value {
    json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": text}})
}

/// Returns pairs of the model's answer and the script's result: a value or part of an error.
fn answers() -> [(Value, Result<Value, &'static str>); 4] {
    [
        (words(r#"{"age": 36}"#), Ok(json!({"age": 36}))),
        (words("```json\n{\"age\": 36}\n```"), Ok(json!({"age": 36}))),
        (words(r#"{"age": "36"}"#), Err("does not fit the schema")),
        (words("He is 36."), Err("invalid answer")),
    ]
}

fn check(result: &Value, expected: &Result<Value, &str>) {
    let told = &result["structuredContent"]["value"];
    match expected {
        Ok(value) => assert_eq!(told, value, "{result}"),
        Err(word) => {
            assert_eq!(told[0], "extract-failed", "{result}");
            assert!(told[1].as_str().unwrap().contains(word), "{result}");
        }
    }
}

fn is_wanted(request: &Value) {
    assert_eq!(request["method"], "sampling/createMessage");
    let text = request["params"]["messages"][0]["content"]["text"].as_str();
    let text = text.unwrap();
    assert!(
        text.contains("Ada, 36") && text.contains("\"age\""),
        "{text}"
    );
}

#[tokio::test]
async fn older_era_host_model_is_asked_by_request() {
    for way in WAYS.into_iter().filter(|it| it.era == Era::Legacy) {
        for (answer, expected) in answers() {
            let mut host = Host::connect_as(way, settings(), json!({"sampling": {}})).await;
            let params = json!({"name": "run_script", "arguments": {"code": CODE}});
            let id = host.begin("tools/call", params).await;
            let asked = host.asked().await;
            is_wanted(&asked);
            let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer});
            host.say(&reply.to_string()).await;
            check(&host.answer_to(id).await.unwrap(), &expected);
        }
        let mut host = Host::connect_as(way, settings(), json!({"sampling": {}})).await;
        let params = json!({"name": "run_script", "arguments": {"code": CODE}});
        let id = host.begin("tools/call", params).await;
        let asked = host.asked().await;
        let error = json!({"code": -1, "message": "User rejected sampling request"});
        let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "error": error});
        host.say(&reply.to_string()).await;
        check(
            &host.answer_to(id).await.unwrap(),
            &Err("refused: User rejected sampling request"),
        );
    }
}

#[tokio::test]
async fn newer_era_host_gets_sampling_request_and_resumes() {
    for way in WAYS.into_iter().filter(|it| it.era == Era::Modern) {
        for (answer, expected) in answers() {
            let mut host = Host::connect_as(way, settings(), json!({"sampling": {}})).await;
            let mut params = json!({"name": "run_script", "arguments": {"code": CODE}});
            let first = host.request("tools/call", params.clone()).await.unwrap();
            assert_eq!(first["resultType"], "input_required", "{first}");
            is_wanted(&first["inputRequests"]["extract-1"]);
            params["requestState"] = first["requestState"].clone();
            params["inputResponses"] = json!({"extract-1": answer});
            let second = host.request("tools/call", params).await.unwrap();
            check(&second, &expected);
        }
    }
}

#[tokio::test]
async fn values_are_extracted_concurrently_while_question_waits() {
    let code = "const one = (n) => airlock.extract({value: n, schema: {type: 'integer'}});
        const all = [one(1), one(2), word.ask({text: 'a'}), word.ask({text: 'b'})];
        const [a, b, c, d] = await Promise.all(all); return [a, b, c.text, d.text]";
    let capabilities = json!({"sampling": {}, "elicitation": {}});
    let mut host = Host::connect_as(LEGACY, settings(), capabilities).await;
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let id = host.begin("tools/call", params).await;
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(host.asked().await);
    }
    let methods =
        |open: &[Value], method: &str| open.iter().filter(|it| it["method"] == method).count();
    assert_eq!(methods(&open, "sampling/createMessage"), 2, "{open:?}");
    assert_eq!(methods(&open, "elicitation/create"), 1, "{open:?}");
    let mut answered = 0;
    while let Some(asked) = open.pop() {
        let result = if asked["method"] == "elicitation/create" {
            answered += 1;
            json!({"action": "accept", "content": {"decision": "allow"}})
        } else {
            let text = asked["params"]["messages"][0]["content"]["text"].as_str();
            words(text.unwrap().lines().last().unwrap())
        };
        let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        host.say(&reply.to_string()).await;
        if asked["method"] == "elicitation/create" && answered == 1 {
            open.push(host.asked().await);
        }
    }
    let result = host.answer_to(id).await.unwrap();
    assert_eq!(
        result["structuredContent"]["value"],
        json!([1, 2, "a", "b"]),
        "{result}"
    );
}

#[tokio::test]
async fn host_without_sampling_is_not_asked() {
    for way in WAYS {
        let mut host = Host::connect_as(way, settings(), json!({"elicitation": {}})).await;
        let result = host.run(CODE).await;
        check(&result, &Err("extraction is not available"));
        let calls = &result["structuredContent"]["calls"];
        assert_eq!(calls[0]["outcome"], "denied", "{result}");
    }
}

#[tokio::test]
async fn value_and_answer_together_use_human_time_limit() {
    // The run's own work must fit into its time limit even on a busy machine.
    let code = "const read = airlock.extract({value: 'x', schema: {type: 'integer'}});
        const [a, b] = await Promise.all([read, word.ask({text: 'y'})]); return [a, b.text]";
    let responses = json!({
        "extract-1": words("7"),
        "call-2": {"action": "accept", "content": {"decision": "allow"}},
    });
    check_late(code, &responses, &json!([7, "y"])).await;
}

#[tokio::test]
async fn absent_host_with_pending_value_uses_human_time_limit() {
    let code = "return await airlock.extract({value: 'x', schema: {type: 'integer'}})";
    check_late(code, &json!({"extract-1": words("7")}), &json!(7)).await;
}

async fn check_late(code: &str, responses: &Value, expected: &Value) {
    let mut told = Value::Null;
    for slower in [1, 6, 40] {
        told = come_back_late(slower, code, responses).await;
        if told == *expected {
            break;
        }
    }
    assert_eq!(told, *expected);
}

/// Returns the value of a run whose host takes longer to answer than the limits of a call and a
/// run.
async fn come_back_late(slower: u64, code: &str, responses: &Value) -> Value {
    let echo = async |args: Value| Ok(args);
    let limits = Limits {
        call_wall_ms_max: 1_000 * slower,
        run_wall_ms_max: 1_500 * slower,
        ..Limits::default()
    };
    let builder = Broker::builder()
        .limits(limits)
        .extraction_by_context()
        .approver(NeverApprover)
        .ask("word.ask")
        .unwrap()
        .tool(tool("word", "ask", "Is asked about.", echo));
    let server = TestServer::built(builder, settings()).await;
    let capabilities = json!({"sampling": {}, "elicitation": {}});
    let mut host = server.host(MODERN, capabilities).await;
    let mut params = json!({"name": "run_script", "arguments": {"code": code}});
    let first = host.request("tools/call", params.clone()).await.unwrap();
    let asked = first["inputRequests"].as_object();
    if asked.is_none_or(|it| it.len() != responses.as_object().unwrap().len()) {
        return first;
    }
    tokio::time::sleep(std::time::Duration::from_millis(2_500 * slower)).await;
    params["requestState"] = first["requestState"].clone();
    params["inputResponses"] = responses.clone();
    let second = host.request("tools/call", params).await.unwrap();
    match second["structuredContent"].get("value") {
        Some(value) => value.clone(),
        None => second,
    }
}
