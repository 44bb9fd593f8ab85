//! Tests `mcp-server-time` over stdio and over HTTP, in both eras.

use std::process::Command;

use serde_json::{Value, json};
use tests::command::Home;
use tests::real_servers::installed;

use crate::{LEGACY, MODERN, listen, stdio, value, with};

const TIME: &str = r#"
const there = await time.convert_time({ source_timezone: "UTC", time: "12:30", target_timezone: "Asia/Tokyo" });
const now = await time.get_current_time({ timezone: "UTC" });
const nowhere = await time.get_current_time({ timezone: "Nowhere/X" }).catch((e) => [e.code, e.message]);
return { there, now, nowhere };
"#;

fn is_time(value: &Value, how: &str) {
    assert_eq!(value["there"]["time_difference"], "+9.0h", "{how}");
    assert_eq!(value["there"]["target"]["timezone"], "Asia/Tokyo", "{how}");
    assert!(
        value["there"]["target"]["datetime"]
            .as_str()
            .unwrap()
            .contains("T21:30:00+09:00"),
        "{how}"
    );
    assert_eq!(value["now"]["is_dst"], false, "{how}");
    assert_eq!(value["nowhere"][0], "tool-failed", "{how}");
    assert!(
        value["nowhere"][1].as_str().unwrap().contains("Nowhere/X"),
        "{how}"
    );
}

#[test]
fn time_server_over_stdio_in_both_eras() {
    let Some(servers) = installed() else { return };
    let server = stdio(
        &servers.python("mcp-server-time"),
        &["--local-timezone", "UTC"],
    );
    for era in ["auto", LEGACY, MODERN] {
        is_time(
            &value(
                &Home::new(),
                &json!({"time": with(server.clone(), "era", era)}),
                TIME,
            ),
            era,
        );
    }
}

#[test]
fn time_server_over_http_in_both_eras() {
    let Some(servers) = installed() else { return };
    // Runs the package's server with the SDK's HTTP transport, because its program supports only
    // stdio.
    let code = "import sys\nfrom mcp_server_time.server import create_server\n\
        create_server('UTC').run('streamable-http', host='127.0.0.1', port=int(sys.argv[1]))";
    let server = listen(|port| {
        let mut python = Command::new(&servers.python("python")[0]);
        python.args(["-c", code, &port.to_string()]);
        python
    });
    for era in ["auto", LEGACY, MODERN] {
        is_time(
            &value(
                &Home::new(),
                &json!({"time": {"url": server.url, "era": era}}),
                TIME,
            ),
            era,
        );
    }
}
