//! Tests the bytes that are sent to a server, and the error that the script gets when the
//! connection is lost.

use std::fs;

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home, program};
use tests::patience::wait_until;

/// Runs code with the server `box`, which runs this line in a shell.
fn run_beside(home: &Home, shell: &str, code: &str) -> CommandOutput {
    let server = json!({"command": "sh", "args": ["-c", shell]});
    let config = json!({"mcpServers": {"box": server}}).to_string();
    let config = home.write("servers.json", config);
    let config = config.to_str().unwrap();
    home.run([
        "run",
        "--json",
        "--mcp-config",
        config,
        "--allow",
        "*.*",
        "-e",
        code,
    ])
}

#[test]
fn server_gets_decided_and_journaled_bytes() {
    let home = Home::new();
    let heard = home.path().join("heard.jsonl");
    let rogue = program("rogue-server");
    let shell = format!("tee {} | {}", heard.display(), rogue.display());
    let code = "await box.fine({ z: 1e21, a: [0.1 + 0.2, -0, 5e-324], 'é\\u{1F600}': '\\u2028\\u0007', A: { b: null, a: true } }); return 1";
    run_beside(&home, &shell, code).expect_code(0);
    let args =
        r#"{"A":{"a":true,"b":null},"a":[0.30000000000000004,0,5e-324],"z":1e+21,"é😀":"X\u0007"}"#
            .replace('X', "\u{2028}");
    let journal = fs::read_to_string(&home.journals()[0]).unwrap();
    assert!(journal.contains(&format!(r#""args":{args}"#)), "{journal}");
    // `tee` forwards the data before it writes them to the file.
    let heard = || fs::read_to_string(&heard).unwrap_or_default();
    let call_of = |line: &str| line.contains("tools/call") && line.ends_with('\n');
    wait_until(|| heard().split_inclusive('\n').any(call_of));
    let heard = heard();
    let call = heard.split_inclusive('\n').find(|line| call_of(line));
    let call = call.expect("the call was sent");
    assert!(call.contains(&format!(r#""arguments":{args}"#)), "{call}");
}

/// Case ERR-03 of the catalogue.
#[test]
fn lost_server_error_reveals_nothing_else() {
    let home = Home::new();
    let marker = home.path().join("begun");
    let shell = format!(
        "if [ -e {marker} ]; then echo 'no /srv/private at http://10.0.0.7/?token=t0ken' >&2; exit 1; fi; \
         touch {marker}; exec {rogue}",
        marker = marker.display(),
        rogue = program("rogue-server").display()
    );
    let code = "const told = (e) => [e.code, e.retryable, [e.message, e.stack, String(e), JSON.stringify([e.content, e.structuredContent])].join(' ')]; \
        await box.exits({}).catch(() => 0); \
        return await box.fine({}).then(() => 'returned', told)";
    let report = run_beside(&home, &shell, code).expect_code(0).json();
    let told = &report["value"];
    assert_eq!(
        (&told[0], &told[1]),
        (&json!("server-unavailable"), &json!(true)),
        "{report:#}"
    );
    let text = told[2].as_str().unwrap();
    assert!(text.contains("the call was not sent"), "{text}");
    for hidden in ["/srv", "http", "10.0.0.7", "t0ken", "exit"] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
    let calls: Vec<&Value> = report["calls"].as_array().unwrap().iter().collect();
    let outcomes: Vec<_> = calls.iter().map(|call| &call["outcome"]).collect();
    assert_eq!(outcomes, ["unknown", "not-sent"]);
}

#[test]
fn newer_era_input_request_without_host_is_a_failure() {
    let home = Home::new();
    // The server answers each call with a request for input.
    let shell = r#"
        id() { printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p'; }
        say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$(id)" "$1"; }
        while read -r line; do case $line in
          *'"server/discover"'*) say '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"},"ttlMs":0,"cacheScope":"private"}' ;;
          *'"tools/list"'*) say '{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}' ;;
          *'"tools/call"'*) say '{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"sure?"}}},"requestState":"s"}' ;;
        esac; done"#;
    let code = "return await box.t({}).catch((e) => [e.code, e.message])";
    let report = run_beside(&home, shell, code).expect_code(0).json();
    let (code, message) = (&report["value"][0], &report["value"][1]);
    assert_eq!(code, "outcome-unknown", "{report:#}");
    let message = message.as_str().unwrap();
    assert!(message.contains("asked for input"), "{message}");
}
