//! Tests that credentials never appear in output, messages, reports or journals.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home, program, start};
use tests::stdio_host::{self, StdioHost};

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

/// A server in shell. `NAME-tools.json` holds the tools that it lists, `NAME-result.json` its answer
/// to every call.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shop %s","version":"1.0"}}}\n' "$id" "$TOKEN";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":%s}}\n' "$id" "$(cat "$1-tools.json")";;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$(cat "$1-result.json")";;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
  esac
done
"#;

fn add_server(home: &Home, name: &str, tools: &Value, result: &Value) {
    home.write("server.sh", SERVER);
    home.write(&format!("{name}-tools.json"), tools.to_string());
    home.write(&format!("{name}-result.json"), result.to_string());
}

/// Returns the table of a server in `airlock.toml`.
fn table(name: &str, more: &str) -> String {
    format!(
        "[servers.{name}]\ncommand = \"sh\"\nargs = [\"server.sh\", \"{name}\"]\n\
         env = {{ TOKEN = \"{TOKEN}\" }}\n{more}\n"
    )
}

fn ping() -> Value {
    json!({"name": "ping", "inputSchema": {"type": "object"}})
}

/// Returns a result that contains these texts twice: as text content and as structured content.
fn result(texts: &Value) -> Value {
    json!({"content": [{"type": "text", "text": texts.to_string()}], "structuredContent": texts})
}

fn run(home: &Home, code: &str) -> CommandOutput {
    let args = [
        "run",
        "--json",
        "--config",
        "airlock.toml",
        "--allow",
        "*.*",
        "-e",
        code,
    ];
    home.run(args).expect_code(0)
}

/// Returns the texts of all files below a folder.
fn texts_below(folder: &std::path::Path, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts_below(&path, into);
        } else {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            into.push((path.display().to_string(), text));
        }
    }
}

#[test]
fn tool_with_token_in_its_structure_is_refused_everywhere() {
    let home = Home::new();
    let with = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let tools = json!([
        {"name": "good", "description": format!("uses {TOKEN}"), "inputSchema": {
            "type": "object", "properties": {"key": {"type": "string", "default": TOKEN}}}},
        with(TOKEN, json!({"type": "object"})),
        with("named", json!({"type": "object", "properties": {TOKEN: {}}})),
        with("chosen", json!({"type": "object", "properties": {"a": {"enum": [TOKEN]}}})),
        with("required", json!({"type": "object", "required": [TOKEN]})),
    ]);
    add_server(&home, "shop", &tools, &json!({"content": []}));
    home.write("airlock.toml", table("shop", ""));
    let config = ["--config", "airlock.toml"];
    let shown = |args: &[&str]| {
        let ended = home.run([args, &config].concat()).expect_code(0);
        nothing_shows_it(&home, &ended);
        ended
    };
    let types = shown(&["types", "--detail", "full"]);
    assert!(
        types.stdout.contains("good") && types.stdout.contains("***"),
        "{types}"
    );
    for tool in ["named", "chosen", "required"] {
        assert!(!types.stdout.contains(tool), "{types}");
        let why = format!("tool `{tool}` contains a configured credential");
        assert!(types.stderr.contains(&why), "{types}");
    }
    assert!(types.stderr.contains("tool `***` contains"), "{types}");
    shown(&["lock", "--lock", "airlock.lock"]);
    let value = run(
        &home,
        "return [await airlock.search('named'), await airlock.describe({ tools: ['shop.good'] })]",
    );
    nothing_shows_it(&home, &value);

    let mut host = StdioHost::start(
        &mut home.serve([&config[..], &["--allow", "*.*"]].concat()),
        &json!({}),
    );
    let mut said = vec![host.request("tools/list", &json!({})).to_string()];
    for (tool, args) in [
        (
            "search_tools",
            json!({"query": "uses required chosen named"}),
        ),
        (
            "get_tool_details",
            json!({"tools": ["shop.good", "shop.named"], "format": "json"}),
        ),
        (
            "run_script",
            json!({"code": "return await airlock.search('good')"}),
        ),
    ] {
        said.push(host.call(tool, &args).to_string());
    }
    for said in said {
        assert!(!said.contains(TOKEN), "{said}");
    }
    let mut files = Vec::new();
    texts_below(home.path(), &mut files);
    let holding = files.iter().filter(|(_, text)| text.contains(TOKEN));
    let names: Vec<_> = holding
        .map(|(path, _)| path.rsplit('/').next().unwrap())
        .collect();
    // The test itself wrote these texts.
    assert!(
        names
            .iter()
            .all(|it| ["airlock.toml", "shop-tools.json"].contains(it)),
        "{names:?}"
    );
}

#[test]
fn encoded_token_is_masked_everywhere() {
    let home = Home::new();
    let texts = json!({
        "header": "YWlybG9jay1jYW5hcnktNWYwZTlkMmI3MQ==",
        "within": "eGFpcmxvY2stY2FuYXJ5LTVmMGU5ZDJiNzF4",
        "hex": "6169726C6F636B2D63616E6172792D35663065396432623731",
        "%61irlock": "%61%69%72%6c%6f%63%6b%2d%63%61%6e%61%72%79%2d%35%66%30%65%39%64%32%62%37%31",
    });
    add_server(&home, "shop", &json!([ping()]), &result(&texts));
    home.write("airlock.toml", table("shop", ""));
    let ended = run(
        &home,
        "const got = await shop.ping(); console.log(got); return got",
    );
    let value = &ended.json()["value"];
    assert_eq!(value["header"], "***", "{ended}");
    assert_eq!(value["hex"], "***");
    assert_eq!(value["%61irlock"], "***");
    for journal in home.journals() {
        let journal = fs::read_to_string(journal).unwrap();
        for form in ["1jYW5hcn", "stY2FuYX", "63616E61", "%63%61%6e"] {
            assert!(
                !journal.contains(form) && !ended.stdout.contains(form),
                "{form}: {ended}"
            );
        }
    }
    home.verify_all();
}

/// The credentials are assembled here, so that no tool that looks for credentials finds one in this
/// file.
fn credentials() -> [(&'static str, String); 4] {
    let key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ".repeat(2);
    [
        ("token", format!("{}_{}", "ghp", "a1B2c3D4".repeat(5))),
        (
            "database",
            ["postgres://app:", "hunter22", "@db:5432/x"].concat(),
        ),
        (
            "key",
            format!(
                "-----BEGIN {0}-----\n{key}\n-----END {0}-----\n",
                ["PRIVATE", "KEY"].join(" ")
            ),
        ),
        (
            "SecretAccessKey",
            "wJalrXUtnFEMIK7MDENGbPxRfiCY0123456789ab".to_owned(),
        ),
    ]
}

fn secret_parts() -> [&'static str; 4] {
    ["a1B2c3D4", "hunter22", "MIIEvQ", "wJalrX"]
}

#[test]
fn credentials_of_known_shapes_are_masked_everywhere() {
    let home = Home::new();
    let texts: Value = credentials()
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.into()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let mut named = texts.clone();
    named[&credentials()[0].1] = json!([1]);
    add_server(&home, "shop", &json!([ping()]), &result(&named));
    home.write("airlock.toml", table("shop", ""));
    let script = "const got = await shop.ping(); console.log(got); console.error(JSON.stringify(got)); \
        await shop.ping({ say: 'to ' + input.token, [input.token]: input.database }); \
        const own = input; return { got, own }";
    home.write("input.json", texts.to_string());
    let args = [
        "run",
        "--json",
        "--config",
        "airlock.toml",
        "--allow",
        "*.*",
        "--input",
        "@input.json",
        "-e",
        script,
    ];
    let ended = home.run(args).expect_code(0);
    let value = &ended.json()["value"];
    for from in ["got", "own"] {
        assert_eq!(value[from]["token"], "***", "{ended}");
        assert_eq!(value[from]["database"], "postgres://app:***@db:5432/x");
        assert_eq!(value[from]["key"], "***\n");
        assert_eq!(value[from]["SecretAccessKey"], "***");
    }
    assert_eq!(value["got"]["***"], json!([1]));
    for part in secret_parts() {
        assert!(
            !ended.stdout.contains(part) && !ended.stderr.contains(part),
            "{part}: {ended}"
        );
        for journal in home.journals() {
            let journal = fs::read_to_string(journal).unwrap();
            assert!(!journal.contains(part), "{part}: {journal}");
        }
    }
    home.verify_all();
    let failed = home
        .run([
            "run",
            "--config",
            "airlock.toml",
            "--allow",
            "*.*",
            "--input",
            "@input.json",
            "-e",
            "throw new Error(input.token)",
        ])
        .expect_code(20);
    assert!(!failed.stderr.contains("a1B2c3D4"), "{failed}");
}

#[test]
fn masking_of_shapes_can_be_switched_off_per_server() {
    let home = Home::new();
    let token = &credentials()[0].1;
    let texts = json!({"token": token, "own": TOKEN});
    for name in ["shop", "bank"] {
        add_server(&home, name, &json!([ping()]), &result(&texts));
    }
    home.write(
        "airlock.toml",
        table("shop", "mask_credentials = false") + &table("bank", ""),
    );
    let ended = run(
        &home,
        "const got = await shop.ping(); console.log(got.token); return got",
    );
    assert_eq!(
        ended.json()["value"],
        json!({"token": token, "own": "***"}),
        "{ended}"
    );
    assert_eq!(ended.json()["console"][0]["text"], json!(token), "{ended}");
    let journal = fs::read_to_string(&home.journals()[0]).unwrap();
    assert!(!journal.contains(token.as_str()), "{journal}");
    // A script that reads both servers could return the data of either.
    let ended = run(
        &home,
        "const a = await shop.ping(); const b = await bank.ping(); \
         return [a.token.length, b.token.length, a.token]",
    );
    assert_eq!(
        ended.json()["value"],
        json!([token.len(), 3, "***"]),
        "{ended}"
    );
    home.verify_all();
}

#[test]
fn host_gets_escaped_text_and_exact_data() {
    let home = Home::new();
    let hidden = "a\u{1b}[2Jb\u{202e}c";
    add_server(
        &home,
        "shop",
        &json!([ping()]),
        &json!({"content": [{"type": "text", "text": hidden}]}),
    );
    home.write("airlock.toml", table("shop", ""));
    let serve = [
        "--config",
        "airlock.toml",
        "--allow",
        "*.*",
        "--tools",
        "progressive",
    ];
    let mut host = StdioHost::start(&mut home.serve(serve), &json!({}));
    let escaped = "a\\u{1b}[2Jb\\u{202e}c";
    let run = |host: &mut StdioHost, code: &str| host.call("run_script", &json!({"code": code}));
    host.call("get_tool_details", &json!({"tools": ["shop.ping"]}));
    let said = run(&mut host, "return await shop.ping()");
    assert!(stdio_host::text(&said).contains(escaped), "{said}");
    assert_eq!(said["structuredContent"]["value"], hidden, "{said}");
    let said = run(&mut host, "return { a: await shop.ping() }");
    assert!(
        stdio_host::text(&said).contains("\"a\\u001b[2Jb\\u202ec\""),
        "{said}"
    );
    assert_eq!(said["structuredContent"]["value"]["a"], hidden, "{said}");
    let said = host.call("shop.ping", &json!({}));
    assert!(said["content"].to_string().contains("202e}c"), "{said}");
    assert!(!said["content"].to_string().contains('\u{202e}'), "{said}");
}
