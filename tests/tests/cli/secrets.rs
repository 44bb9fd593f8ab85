//! Tests that credentials never appear in output, messages, reports or journals.

use std::fs;
use std::net::TcpListener;

use serde_json::json;
use tests::command::{CommandOutput, Home, program, start};

const TOKEN: &str = "airlock-canary-5f0e9d2b71";

/// Returns the configuration of a server that gets the token and tries to leak it.
fn rogue_with(token: &str) -> serde_json::Value {
    json!({"mcpServers": {"rogue": {"command": program("rogue-server"), "env": {"T": token}}}})
}

fn run_with_token(home: &Home, config: &serde_json::Value, code: &str) -> CommandOutput {
    let config = home.write("servers.json", config.to_string());
    let args = [
        "run",
        "--json",
        "--mcp-config",
        config.to_str().unwrap(),
        "--allow",
        "*.*",
        "-e",
        code,
    ];
    let mut command = home.airlock(args);
    command.env("TOKEN", TOKEN);
    start(&mut command, "").wait()
}

fn nothing_shows_it(home: &Home, ended: &CommandOutput) {
    assert!(
        !ended.stdout.contains(TOKEN) && !ended.stderr.contains(TOKEN),
        "{ended}"
    );
    for journal in home.journals() {
        assert!(
            !fs::read_to_string(&journal).unwrap().contains(TOKEN),
            "{}",
            journal.display()
        );
    }
}

#[test]
fn token_in_unreachable_url_or_header_is_never_printed() {
    let home = Home::new();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for server in [
        json!({"url": format!("http://{closed}/mcp"), "headers": {"Authorization": "Bearer ${env:TOKEN}"}}),
        json!({"url": format!("http://{closed}/${{env:TOKEN}}/mcp?token=${{env:TOKEN}}")}),
        json!({"command": "sh", "args": ["-c", "echo my token is $T >&2; exit 1"], "env": {"T": "${env:TOKEN}"}}),
    ] {
        let ended = run_with_token(&home, &json!({"mcpServers": {"far": server}}), "return 1")
            .expect_code(30);
        nothing_shows_it(&home, &ended);
    }
}

#[test]
fn token_is_not_visible_to_script() {
    let home = Home::new();
    let config = rogue_with("${env:TOKEN}");
    let code = "const seen = []; for (const k of Reflect.ownKeys(globalThis)) { try { seen.push(String(k), JSON.stringify(globalThis[k])) } catch {} } \
        return seen.join(' ') + typeof process";
    let ended = run_with_token(&home, &config, code).expect_code(0);
    nothing_shows_it(&home, &ended);
}

#[test]
fn server_gets_configured_environment_only() {
    let home = Home::new();
    let seen = home.path().join("env.txt");
    let script = format!("env > {}; exit 1", seen.display());
    let config = json!({"mcpServers": {"spy": {"command": "sh", "args": ["-c", script], "env": {"GIVEN": "yes"}}}});
    run_with_token(&home, &config, "return 1").expect_code(30);
    let seen = fs::read_to_string(seen).unwrap();
    let shell_own = ["PWD", "OLDPWD", "SHLVL", "_"];
    let mut names: Vec<_> = seen
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    names.retain(|name| !shell_own.contains(name));
    names.sort_unstable();
    assert_eq!(names, ["GIVEN", "HOME", "PATH"]);
}

#[test]
fn token_known_to_script_is_masked_everywhere() {
    let home = Home::new();
    for (code, exit) in [
        (
            "return { text: `is ${T}`, [T]: [T, JSON.stringify({ T })] }",
            0,
        ),
        ("console.log(T, 'logged'); console.error({ a: T })", 0),
        ("throw new Error(`no ${T}`)", 20),
        ("const e = new Error('x'); e.name = T; throw e", 20),
        ("rogue[T]()", 20),
        ("await rogue.fine({ [T]: T }); return T", 0),
    ] {
        let code = format!("const T = '{TOKEN}'; {code}");
        let ended = run_with_token(&home, &rogue_with("${env:TOKEN}"), &code).expect_code(exit);
        nothing_shows_it(&home, &ended);
        assert!(ended.stdout.contains("***"), "{ended}");
        assert!(ended.json().is_object(), "{ended}");
    }
    home.verify_all();
}

#[test]
fn secret_from_command_is_masked() {
    let home = Home::new();
    let config = rogue_with(&format!("${{command:printf %s {TOKEN}}}"));
    let code = format!("return 'it is {TOKEN}'");
    let ended = run_with_token(&home, &config, &code).expect_code(0);
    nothing_shows_it(&home, &ended);
    assert_eq!(ended.json()["value"], "it is ***");
}
