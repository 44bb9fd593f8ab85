//! Servers that nobody here wrote, over both transports and in both eras: what
//! they answer has to arrive as what it is.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::command::{Ended, Home, start};
use tests::real_servers::{RealServers, installed};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// Runs code with these servers, everything allowed; `servers` is the table of `airlock.toml`.
fn run(home: &Home, servers: &Value, code: &str) -> Ended {
    let config =
        toml::to_string(&json!({"servers": servers, "rules": {"allow": ["*.*"]}})).unwrap();
    let config = home.write("airlock.toml", config);
    let script = home.write("script.js", code);
    let args = [
        "run",
        script.to_str().unwrap(),
        "--json",
        "--config",
        config.to_str().unwrap(),
        "--timeout",
        "60s",
    ];
    let mut command = home.airlock(args);
    // Python writes its caches beside its packages, which are shared; the home is not.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    start(&mut command, "").wait()
}

fn value(home: &Home, servers: &Value, code: &str) -> Value {
    run(home, servers, code).expect_code(0).json()["value"].clone()
}

fn stdio(command: &[String], more: &[&str]) -> Value {
    let args: Vec<&str> = command[1..]
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect();
    json!({"command": command[0], "args": args})
}

fn with(mut server: Value, key: &str, what: impl Into<Value>) -> Value {
    server[key] = what.into();
    server
}

/// A server over HTTP, stopped at the end of the test.
struct Listening {
    child: Child,
    url: String,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(make: impl Fn(u16) -> Command) -> Listening {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let child = make(port)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let since = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "the server does not listen"
        );
        std::thread::park_timeout(Duration::from_millis(20));
    }
    Listening {
        child,
        url: format!("http://127.0.0.1:{port}/mcp"),
    }
}

const EVERYTHING: &str = r#"
const text = await ev.echo({ message: "hällo\n\u{1f600}" });
const sum = await ev.get_sum({ a: 2, b: 40 });
const weather = await ev.get_structured_content({ location: "Chicago" });
const image = await ev.get_tiny_image({});
const noted = await ev.get_annotated_message({ messageType: "error", includeImage: false });
const links = await ev.get_resource_links({ count: 2 });
const resource = await ev.get_resource_reference({ resourceType: "Text", resourceId: 7 });
const long = await ev.trigger_long_running_operation({ duration: 0.2, steps: 2 });
let refused;
try {
  await ev.echo(structuredClone({ massage: "x" }));
} catch (e) {
  refused = [e.code, e.message.includes("message")];
}
return { text, sum, weather, image, noted, links, resource, long, refused };
"#;

/// What `server-everything` answers, whatever carries it.
fn is_everything(value: &Value) {
    assert_eq!(value["text"], "Echo: hällo\n\u{1f600}");
    assert_eq!(value["sum"], "The sum of 2 and 40 is 42.");
    assert_eq!(
        value["weather"],
        json!({"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82})
    );
    let image = value["image"].as_array().unwrap();
    assert_eq!(
        (&image[0]["type"], &image[1]["type"], &image[1]["mimeType"]),
        (&json!("text"), &json!("image"), &json!("image/png"))
    );
    assert!(
        image[1]["data"]
            .as_str()
            .unwrap()
            .starts_with("iVBORw0KGgo"),
        "base64 of a PNG, as it came"
    );
    assert!(
        value["noted"] == "Error: Operation failed"
            || value["noted"][0]["text"] == "Error: Operation failed",
        "{}",
        value["noted"]
    );
    let links = value["links"].as_array().unwrap();
    assert_eq!(links.len(), 3);
    assert_eq!(
        (&links[1]["type"], &links[1]["uri"]),
        (
            &json!("resource_link"),
            &json!("demo://resource/dynamic/blob/1")
        )
    );
    let resource = &value["resource"][1];
    assert_eq!(
        (&resource["type"], &resource["resource"]["uri"]),
        (&json!("resource"), &json!("demo://resource/dynamic/text/7"))
    );
    assert!(
        resource["resource"]["text"]
            .as_str()
            .unwrap()
            .starts_with("Resource 7: ")
    );
    assert!(
        value["long"]
            .as_str()
            .unwrap()
            .starts_with("Long running operation completed.")
    );
    assert_eq!(value["refused"], json!(["invalid-arguments", true]));
}

#[test]
fn everything_over_stdio() {
    let Some(servers) = installed() else { return };
    let everything = stdio(&servers.npm("server-everything"), &["stdio"]);
    for era in ["auto", LEGACY] {
        let home = Home::new();
        is_everything(&value(
            &home,
            &json!({"ev": with(everything.clone(), "era", era)}),
            EVERYTHING,
        ));
    }
}

#[test]
fn everything_over_streamable_http() {
    let Some(servers) = installed() else { return };
    let command = servers.npm("server-everything");
    let server = listen(|port| {
        let mut node = Command::new(&command[0]);
        node.args(&command[1..])
            .arg("streamableHttp")
            .env("PORT", port.to_string());
        node
    });
    for era in ["auto", LEGACY] {
        let home = Home::new();
        is_everything(&value(
            &home,
            &json!({"ev": {"url": server.url, "era": era}}),
            EVERYTHING,
        ));
    }
}

#[test]
fn a_pin_to_an_era_that_the_server_does_not_speak_is_a_problem() {
    let Some(servers) = installed() else { return };
    let everything = with(
        stdio(&servers.npm("server-everything"), &["stdio"]),
        "era",
        MODERN,
    );
    let ended = run(&Home::new(), &json!({"ev": everything}), "return 1").expect_code(30);
    assert!(
        ended.stderr.contains("ev") && ended.stderr.contains("error:"),
        "{ended}"
    );
}

#[test]
fn filesystem() {
    let Some(servers) = installed() else { return };
    let home = Home::new();
    home.write("files/a.txt", "hello\nworld\n");
    let files = home.path().join("files").canonicalize().unwrap();
    let server = stdio(
        &servers.npm("server-filesystem"),
        &[files.to_str().unwrap()],
    );
    let code = format!(
        r#"
const dir = {};
const read = await fs.read_text_file({{ path: dir + "/a.txt" }});
const head = await fs.read_text_file({{ path: dir + "/a.txt", head: 1 }});
const wrote = await fs.write_file({{ path: dir + "/b.txt", content: "ünï\u0000\n" }});
const listed = await fs.list_directory({{ path: dir }});
const tree = await fs.directory_tree({{ path: dir }});
const info = await fs.get_file_info({{ path: dir + "/b.txt" }});
const outside = await fs.read_text_file({{ path: "/etc/passwd" }}).catch((e) => [e.code, e.content[0].text]);
return {{ read, head, wrote, listed, tree, info, outside }};
"#,
        json!(files)
    );
    let value = value(&home, &json!({"fs": server}), &code);
    assert_eq!(value["read"], json!({"content": "hello\nworld\n"}));
    assert_eq!(value["head"], json!({"content": "hello"}));
    assert_eq!(
        std::fs::read_to_string(files.join("b.txt")).unwrap(),
        "ünï\0\n",
        "{}",
        value["wrote"]
    );
    assert_eq!(
        value["listed"],
        json!({"content": "[FILE] a.txt\n[FILE] b.txt"})
    );
    let tree: Value = serde_json::from_str(value["tree"]["content"].as_str().unwrap()).unwrap();
    assert_eq!(tree[1]["name"], "b.txt");
    assert!(
        value["info"]["content"]
            .as_str()
            .unwrap()
            .starts_with("size: 7\n"),
        "{}",
        value["info"]
    );
    assert_eq!(value["outside"][0], "tool-failed");
    assert!(
        value["outside"][1]
            .as_str()
            .unwrap()
            .starts_with("Access denied"),
        "{}",
        value["outside"]
    );
}

#[test]
fn memory() {
    let Some(servers) = installed() else { return };
    let home = Home::new();
    let file = home.path().join("memory.jsonl");
    let server = with(
        stdio(&servers.npm("server-memory"), &[]),
        "env",
        json!({"MEMORY_FILE_PATH": file}),
    );
    let code = r#"
const made = await memory.create_entities({
  entities: [
    { name: "Ada", entityType: "person", observations: ["wrote notes"] },
    { name: "Engine", entityType: "machine", observations: [] },
  ],
});
await memory.create_relations({ relations: [{ from: "Ada", to: "Engine", relationType: "described" }] });
const graph = await memory.read_graph({});
const found = await memory.search_nodes({ query: "notes" });
const wrong = await memory.create_entities(structuredClone({ entities: [{ name: "x" }] })).catch((e) => e.code);
return { made, graph, found, wrong };
"#;
    let value = value(&home, &json!({"memory": server}), code);
    assert_eq!(
        value["made"]["entities"][0],
        json!({"name": "Ada", "entityType": "person", "observations": ["wrote notes"]})
    );
    assert_eq!(
        value["graph"]["relations"],
        json!([{"from": "Ada", "to": "Engine", "relationType": "described"}])
    );
    assert_eq!(value["graph"]["entities"].as_array().unwrap().len(), 2);
    assert_eq!(value["found"]["entities"][0]["name"], "Ada");
    assert_eq!(value["wrong"], "invalid-arguments");
    assert!(
        std::fs::read_to_string(file).unwrap().contains("Ada"),
        "it really happened outside"
    );
}

fn repository(home: &Home) -> String {
    let path = home.path().join("repo");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        home.dress(&mut git);
        git.args([
            "-C",
            path.to_str().unwrap(),
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.net",
        ])
        .args(args);
        assert!(git.output().unwrap().status.success(), "git {args:?}");
    };
    home.write("repo/notes.txt", "one\n");
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "first notes"]);
    home.write("repo/notes.txt", "one\ntwo\n");
    path.display().to_string()
}

#[test]
fn git_in_both_eras() {
    let Some(servers) = installed() else { return };
    for era in ["auto", LEGACY, MODERN] {
        let home = Home::new();
        let repo = repository(&home);
        let server = stdio(&servers.python("mcp-server-git"), &["--repository", &repo]);
        let code = format!(
            r#"
const repo_path = {};
const [status, log, diff] = await Promise.all([
  git.git_status({{ repo_path }}),
  git.git_log({{ repo_path, max_count: 1 }}),
  git.git_diff_unstaged({{ repo_path }}),
]);
const outside = await git.git_status({{ repo_path: "/" }}).catch((e) => [e.code, e.message]);
return {{ status, log, diff, outside }};
"#,
            json!(repo)
        );
        let value = value(&home, &json!({"git": with(server, "era", era)}), &code);
        let text = |key: &str| {
            value[key]
                .as_str()
                .unwrap_or_else(|| panic!("{era}: `{key}` is no text: {value:#}"))
                .to_owned()
        };
        assert!(
            text("status").contains("On branch main") && text("status").contains("notes.txt"),
            "{era}"
        );
        assert!(
            text("log").contains("first notes") && text("log").contains("Author: Ada"),
            "{era}"
        );
        assert!(text("diff").contains("+two"), "{era}");
        assert_eq!(value["outside"][0], "tool-failed", "{era}");
        assert!(
            value["outside"][1]
                .as_str()
                .unwrap()
                .contains("outside the allowed repository"),
            "{era}"
        );
    }
}

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
fn time_over_stdio_in_both_eras() {
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
fn time_over_http_in_both_eras() {
    let Some(servers) = installed() else { return };
    // The package's own server, handed to its own transport: its program only offers stdio.
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

fn sqlite(servers: &RealServers, home: &Home) -> Value {
    stdio(
        &servers.sqlite(),
        &["--db-path", home.path().join("notes.db").to_str().unwrap()],
    )
}

#[test]
fn sqlite_without_any_output_schema() {
    let Some(servers) = installed() else { return };
    let home = Home::new();
    let code = r#"
const made = await db.create_table({ query: "create table notes (id integer, text text)" });
const wrote = await db.write_query({ query: "insert into notes values (1, 'it''s'), (2, null)" });
const rows = await db.read_query({ query: "select * from notes order by id" });
const tables = await db.list_tables();
const refused = await db.read_query({ query: "delete from notes" });
return { made, wrote, rows, tables, refused };
"#;
    let value = value(&home, &json!({"db": sqlite(servers, &home)}), code);
    assert_eq!(value["made"], "Table created successfully");
    // Python's own notation, which is no JSON: it stays the text that it is.
    assert_eq!(value["wrote"], "[{'affected_rows': 2}]");
    assert_eq!(
        value["rows"],
        "[{'id': 1, 'text': \"it's\"}, {'id': 2, 'text': None}]"
    );
    assert_eq!(value["tables"], "[{'name': 'notes'}]");
    assert!(
        value["refused"].as_str().unwrap().starts_with("Error: "),
        "the server calls this a success, and so do we"
    );
}

#[test]
fn one_script_uses_four_servers_at_once() {
    let Some(servers) = installed() else { return };
    let home = Home::new();
    let repo = repository(&home);
    home.write("files/todo.txt", "call Tokyo\n");
    let files = home.path().join("files").canonicalize().unwrap();
    let table = json!({
        "fs": stdio(&servers.npm("server-filesystem"), &[files.to_str().unwrap()]),
        "git": stdio(&servers.python("mcp-server-git"), &["--repository", &repo]),
        "time": stdio(&servers.python("mcp-server-time"), &["--local-timezone", "UTC"]),
        "db": sqlite(servers, &home),
    });
    let code = format!(
        r#"
const [todo, log, tokyo] = await Promise.all([
  fs.read_text_file({{ path: {} }}),
  git.git_log({{ repo_path: {}, max_count: 1 }}),
  time.convert_time({{ source_timezone: "UTC", time: "00:00", target_timezone: "Asia/Tokyo" }}),
  db.create_table({{ query: "create table done (what text)" }}),
]);
const what = `${{todo.content.trim()}} at ${{tokyo.target.datetime.slice(11, 16)}}`;
await db.write_query({{ query: `insert into done values ('${{what}}')` }});
return {{ rows: await db.read_query({{ query: "select * from done" }}), first: log.includes("first notes") }};
"#,
        json!(files.join("todo.txt")),
        json!(repo)
    );
    let report = run(&home, &table, &code).expect_code(0).json();
    assert_eq!(
        report["value"],
        json!({"rows": "[{'what': 'call Tokyo at 09:00'}]", "first": true})
    );
    let calls = report["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 6);
    assert!(
        calls.iter().all(|call| call["outcome"] == "returned"),
        "{report:#}"
    );
    home.verify_all();
}
