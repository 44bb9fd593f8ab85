//! Tests log messages of servers during calls. With `--pass logging` they are sent to the host that
//! made the call, from the host's minimum level on.

use serde_json::{Value, json};
use tests::command::{Home, program};
use tests::serving::{HttpResponse, ServeProcess, Session};

const CODE: &str = "return await one.tool_with_logging({})";

fn serving(era: &str, pass: &str) -> ServeProcess {
    let fixture = format!("one={}{era}", program("fixture-server").display());
    let args = [
        "--server",
        &fixture,
        "--allow",
        "one.*",
        "--disclosure",
        "full",
    ];
    ServeProcess::start_in(Home::new(), args.into_iter().chain(["--pass", pass]))
}

/// Returns the levels of the messages before the answer.
fn levels(mut page: HttpResponse) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(message) = page.next_message() {
        if message["method"] == "notifications/message" {
            let params = &message["params"];
            assert_eq!(params["logger"], "one: fixture", "{params}");
            assert_eq!(params["_meta"]["dev.airlock/server"], "one");
            let level = params["level"].as_str().unwrap();
            let text = format!("a line of {level}\\u{{200b}}");
            assert_eq!(params["data"], json!({ "text": text }));
            told.push(level.to_owned());
        }
        if message.get("id").is_some() {
            assert!(
                message.to_string().contains("this is tool_with_logging"),
                "{message}"
            );
        }
    }
    told
}

fn older(host: &Session) -> Vec<String> {
    let params = json!({"name": "run_script", "arguments": {"code": CODE}});
    levels(host.begin(1, "tools/call", &params))
}

fn newer(serving: &ServeProcess, level: Option<&str>) -> Vec<String> {
    let version = "2026-07-28";
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    if let Some(level) = level {
        meta["io.modelcontextprotocol/logLevel"] = level.into();
    }
    let params = json!({"name": "run_script", "arguments": {"code": CODE}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = [
        ("MCP-Protocol-Version", version),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "run_script"),
    ];
    levels(serving.request("POST", &headers, &message.to_string()))
}

fn set_level(host: &Session, level: &Value) -> Value {
    let params = json!({ "level": level });
    let mut page = host.begin(2, "logging/setLevel", &params);
    page.next_message().unwrap()
}

#[test]
fn host_gets_requested_log_level_in_both_eras() {
    for era in ["", " --newer"] {
        let serving = serving(era, "logging");
        let host = serving.session(&json!({}));
        assert_eq!(older(&host), ["info", "warning", "error"], "{era}");
        for (level, expected) in [
            ("warning", &["warning", "error"] as &[&str]),
            ("emergency", &[]),
            ("debug", &["debug", "info", "warning", "error"]),
        ] {
            assert_eq!(set_level(&host, &json!(level))["result"], json!({}));
            assert_eq!(older(&host), expected, "{era} {level}");
        }
        // Each session has its own level.
        let other = serving.session(&json!({}));
        assert_eq!(older(&other), ["info", "warning", "error"], "{era}");
        assert_eq!(newer(&serving, Some("error")), ["error"], "{era}");
        assert_eq!(newer(&serving, None), [""; 0], "{era}");
        assert_eq!(newer(&serving, Some("loud")), [""; 0], "{era}");
        for wrong in [json!("loud"), json!(3), json!(null)] {
            let refused = set_level(&host, &wrong);
            assert_eq!(refused["error"]["code"], -32_602, "{refused}");
        }
    }
}

#[test]
fn logs_are_not_forwarded_by_default() {
    for era in ["", " --newer"] {
        let serving = serving(era, "elicitation");
        let host = serving.session(&json!({}));
        assert_eq!(older(&host), [""; 0]);
        assert_eq!(newer(&serving, Some("debug")), [""; 0]);
        let refused = set_level(&host, &json!("debug"));
        assert_eq!(refused["error"]["code"], -32_601, "{refused}");
    }
}
