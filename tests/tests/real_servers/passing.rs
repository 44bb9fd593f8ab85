//! Tests `server-everything` through `airlock serve`: its requests to the host for a form, an
//! address or a text from the model, and its prompts and resources.

use serde_json::{Value, json};
use tests::command::Home;
use tests::real_servers::installed;
use tests::stdio_host::StdioHost;

use crate::stdio;

fn host(home: &Home, capabilities: &Value) -> Option<StdioHost> {
    let servers = installed()?;
    let everything = stdio(&servers.npm("server-everything"), &["stdio"]);
    let config = json!({"mcpServers": {"ev": everything}}).to_string();
    let config = home.write("mcp.json", config).display().to_string();
    let mut command = home.serve(["--mcp-config", &config, "--allow", "ev.*"]);
    command.args(["--disclosure", "full", "--offer", "ev"]);
    Some(StdioHost::start(&mut command, capabilities))
}

/// Runs one line and gives this answer to the server's request. Returns the request and the result.
fn asked(host: &mut StdioHost, code: &str, said: &Value) -> (Value, String) {
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let id = host.ask("tools/call", &params);
    let asked = host.wait_for(|it| it["id"].is_number() && it["method"].is_string());
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": said}));
    let answer = host.wait_for(|it| it["id"] == id && it["method"].is_null());
    (
        asked,
        answer["result"]["structuredContent"]["value"].to_string(),
    )
}

#[test]
fn server_request_passes_through_to_host() {
    let home = Home::new();
    let can = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}});
    let Some(mut host) = host(&home, &can) else {
        return;
    };
    let accept = json!({"action": "accept", "content": {"name": "Ada"}});
    let code = "return await ev.trigger_elicitation_request({})";
    let (form, value) = asked(&mut host, code, &accept);
    let message = form["params"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("The server `ev` behind airlock asks:"),
        "{form}"
    );
    assert!(
        form["params"]["requestedSchema"]["properties"]["name"].is_object(),
        "{form}"
    );
    assert!(value.contains("Name: Ada"), "{value}");
    let (_, value) = asked(&mut host, code, &json!({"action": "decline"}));
    assert!(value.contains("declined"), "{value}");

    let url = "https://example.com/authorize";
    let code = format!("return await ev.trigger_url_elicitation({{url: '{url}'}})");
    let (address, value) = asked(&mut host, &code, &json!({"action": "accept"}));
    assert_eq!(
        (&address["params"]["mode"], &address["params"]["url"]),
        (&json!("url"), &json!(url))
    );
    assert!(value.to_lowercase().contains("accept"), "{value}");

    let content = json!({"type": "text", "text": "forty-two"});
    let said =
        json!({"role": "assistant", "content": content, "model": "m", "stopReason": "endTurn"});
    let code =
        "return await ev.trigger_sampling_request({prompt: 'six times seven', maxTokens: 9})";
    let (sampling, value) = asked(&mut host, code, &said);
    assert_eq!(sampling["method"], "sampling/createMessage");
    let prompt = sampling["params"]["systemPrompt"].as_str().unwrap();
    assert!(
        prompt.contains("`ev`") && prompt.contains("helpful test server"),
        "{sampling}"
    );
    assert!(value.contains("forty-two"), "{value}");
    home.verify_all();
}

#[test]
fn server_sees_exact_host_capabilities() {
    for (can, expected) in [(json!({}), false), (json!({"sampling": {}}), true)] {
        let home = Home::new();
        let Some(mut host) = host(&home, &can) else {
            return;
        };
        // The server lists these tools only if the host supports its requests.
        let found = host.call(
            "search_tools",
            &json!({"query": "trigger elicitation sampling request"}),
        );
        let found = found["structuredContent"].to_string();
        assert_eq!(
            found.contains("ev.trigger-sampling-request"),
            expected,
            "{found}"
        );
        assert!(!found.contains("ev.trigger-elicitation-request"), "{found}");
    }
}

#[test]
fn offered_prompts_and_resources_pass_through() {
    let home = Home::new();
    let Some(mut host) = host(&home, &json!({})) else {
        return;
    };
    let prompts = host.request("prompts/list", &json!({})).to_string();
    assert!(prompts.contains("\"ev_simple-prompt\""), "{prompts}");
    let args = json!({"city": "Oslo"});
    let got = host.request(
        "prompts/get",
        &json!({"name": "ev_args-prompt", "arguments": args}),
    );
    assert!(got["messages"][0].to_string().contains("Oslo"), "{got}");
    let templates = host
        .request("resources/templates/list", &json!({}))
        .to_string();
    let uri = "airlock://ev/demo://resource/dynamic/text/";
    assert!(
        templates.contains(&format!("{uri}{{resourceId}}")),
        "{templates}"
    );
    let read = host.request("resources/read", &json!({"uri": format!("{uri}7")}));
    let contents = &read["contents"][0];
    assert_eq!(contents["uri"], format!("{uri}7"), "{read}");
    assert!(
        contents["text"].as_str().unwrap().contains("Resource 7"),
        "{read}"
    );
    let listed = host.request("resources/list", &json!({}));
    let listed = listed["resources"].as_array().unwrap();
    let theirs = listed.iter().filter_map(|it| it["uri"].as_str());
    let theirs: Vec<_> = theirs
        .filter(|it| it.starts_with("airlock://ev/"))
        .collect();
    for uri in &theirs {
        let read = host.request("resources/read", &json!({"uri": uri}));
        assert_eq!(read["contents"][0]["uri"], *uri, "{read}");
    }
    assert!(!theirs.is_empty(), "{listed:?}");
    let reference = json!({"type": "ref/prompt", "name": "ev_completable-prompt"});
    let argument = json!({"name": "department", "value": "E"});
    let params = json!({"ref": reference, "argument": argument});
    let completed = host.request("completion/complete", &params);
    assert_eq!(
        completed["completion"]["values"][0], "Engineering",
        "{completed}"
    );
}
