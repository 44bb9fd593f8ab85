//! Handshakes, errors and invalid messages.

use super::*;
use crate::upstream::era::MODERN_VERSION;

#[tokio::test]
async fn older_era_handshake_negotiates_revision() {
    let mut host = Host::connect(LEGACY, settings()).await;
    for (wanted, agreed) in [
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2024-11-05"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": wanted, "capabilities": {}});
        let result = host.request("initialize", params).await.unwrap();
        assert_eq!(result["protocolVersion"], agreed);
        assert_eq!(result["serverInfo"]["name"], "airlock");
        assert!(result["instructions"].as_str().unwrap().contains("?tools="));
    }
    assert_eq!(host.request("ping", json!({})).await, Ok(json!({})));
}

#[tokio::test]
async fn newer_era_is_discovered_and_results_carry_type() {
    let mut host = Host::connect(MODERN, settings()).await;
    let found = host.request("server/discover", json!({})).await.unwrap();
    assert_eq!(found["supportedVersions"], json!([MODERN_VERSION]));
    for method in [
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    ] {
        let result = host.request(method, json!({})).await.unwrap();
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result["cacheScope"], "private", "{method}");
        assert!(result["ttlMs"].is_u64(), "{method}");
    }
    let error = host.request("ping", json!({})).await.unwrap_err();
    assert_eq!(error["code"], -32_601);
}

#[tokio::test]
async fn unsupported_revision_is_refused_with_supported_ones() {
    let mut host = Host::connect(LEGACY, settings()).await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2099-01-01"});
    let error = host
        .request("tools/list", json!({"_meta": meta}))
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32_022);
    // The error lists only the versions that `server/discover` reports. Older versions are
    // negotiated by the handshake.
    assert_eq!(error["data"]["supported"], json!([MODERN_VERSION]));
}

#[tokio::test]
async fn invalid_requests_get_correct_error_codes() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let not_found = if way.era == Era::Legacy {
            -32_002
        } else {
            -32_602
        };
        for (method, params, code) in [
            ("tools/fly", json!({}), -32_601),
            ("completion/complete", json!({}), -32_601),
            ("prompts/get", json!({}), -32_602),
            ("prompts/get", json!({"name": "nothing"}), -32_602),
            ("tools/call", json!({}), -32_602),
            ("tools/call", json!({"name": 7}), -32_602),
            ("tools/call", json!({"name": "nothing"}), -32_602),
            (
                "tools/call",
                json!({"name": "run_script", "arguments": []}),
                -32_602,
            ),
            ("tools/list", json!({"cursor": "x"}), -32_602),
            ("resources/read", json!({}), -32_602),
            (
                "resources/read",
                json!({"uri": "file:///etc/passwd"}),
                not_found,
            ),
            (
                "resources/read",
                json!({"uri": "airlock:///runs/x/value"}),
                not_found,
            ),
        ] {
            let error = host.request(method, params.clone()).await.unwrap_err();
            assert_eq!(error["code"], code, "{way} {method} {params}: {error}");
        }
    }
}

#[tokio::test]
async fn garbage_is_answered_once_and_connection_continues() {
    let mut host = Host::connect(LEGACY, settings()).await;
    for (line, code) in [
        ("not json", Some(-32_700)),
        ("{\"jsonrpc\":\"2.0\",", Some(-32_700)),
        ("[]", Some(-32_600)),
        (
            "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
            Some(-32_600),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}",
            Some(-32_600),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/list\"}",
            Some(-32_600),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"notifications/initialized\"}",
            None,
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}", None),
        ("{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}", None),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{}}", None),
        ("", None),
    ] {
        host.say(line).await;
        if let Some(code) = code {
            let message = host.hear().await;
            assert_eq!(message["error"]["code"], code, "{line}");
            assert_eq!(message["id"], Value::Null, "{line}");
        }
        assert_eq!(
            host.request("ping", json!({})).await,
            Ok(json!({})),
            "{line}"
        );
    }
}

#[tokio::test]
async fn s8_2_system_prompt_is_a_prompt_with_full_workflow() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let list = host.request("prompts/list", json!({})).await.unwrap();
        let name = &list["prompts"][0]["name"];
        let prompt = host
            .request("prompts/get", json!({ "name": name }))
            .await
            .unwrap();
        let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
        assert_eq!(text, super::super::system_prompt(ListMode::Code));
        for part in [
            "FIND",
            "READ",
            "CALL",
            "enough to choose",
            "without ?tools= fails",
            "?tools=server.tool",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}

#[tokio::test]
async fn tool_list_is_short_and_constant() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let before = host.request("tools/list", json!({})).await.unwrap();
        assert!(
            before.to_string().len() < 4_096,
            "{}",
            before.to_string().len()
        );
        let names: Vec<_> = before["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "search_tools",
                "get_tool_details",
                "run_script",
                "read_result",
                "resume_run"
            ]
        );
        host.descriptions("?tools=word.echo").await;
        let after = host.request("tools/list", json!({})).await.unwrap();
        assert_eq!(before, after);
    }
}
