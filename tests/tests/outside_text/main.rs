//! Tests every parser of the broker with text that is expensive to parse. The parser must accept or
//! refuse the text quickly, and a signal must end the program meanwhile.
//!
//! `cargo xtask bench outside-text` runs this test on a release build, in all sizes, limits every
//! text to a second and shows the times. `cargo test` tries only the smallest size.

mod texts;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::command::{CommandOutput, Home, start};
use tests::patience::is_measured;
use tests::stdio_host::StdioHost;
use texts::Text;

/// Sizes in bytes. Rule files and tool files are limited to 1 MiB; a longer file is refused without
/// being parsed.
const SIZES: [usize; 4] = [20_000, 200_000, 1_000_000, 2_000_000];

/// Returns the time limit for one text, including the start of the program. A quadratic parser
/// takes longer than this in any build.
fn bound() -> Duration {
    Duration::from_secs(if is_measured() { 1 } else { 60 })
}

fn sizes() -> &'static [usize] {
    if is_measured() { &SIZES } else { &SIZES[..1] }
}

/// The measurements of one kind of text.
struct Kind {
    name: &'static str,
    /// The slowest text of each size.
    slowest: Mutex<[(Duration, &'static str); SIZES.len()]>,
}

impl Kind {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            slowest: Mutex::default(),
        }
    }

    /// Runs all texts in all sizes through `run`, and checks the limits.
    fn hold(&self, texts: &[Text], run: impl Fn(&Text, usize) -> Duration) {
        let mut late = Vec::new();
        for text in texts {
            for (at, &size) in sizes().iter().enumerate() {
                let wall = run(text, size);
                if wall > bound() {
                    late.push(format!("{} {} {size}: {wall:?}", self.name, text.name));
                }
                let mut slowest = self.slowest.lock().unwrap();
                if wall > slowest[at].0 {
                    slowest[at] = (wall, text.name);
                }
            }
        }
        if is_measured() {
            let slowest = self.slowest.lock().unwrap();
            let cells = slowest
                .iter()
                .map(|(wall, name)| format!("{wall:.0?} ({name})"));
            println!(
                "| {} | {} |",
                self.name,
                cells.collect::<Vec<_>>().join(" | ")
            );
        }
        assert!(late.is_empty(), "{}", late.join("\n"));
    }
}

/// Checks that the command ended with one of these exit codes, and returns its duration.
#[track_caller]
fn ended_with(ended: &CommandOutput, codes: &[i32]) -> Duration {
    let fits = ended.code.is_some_and(|code| codes.contains(&code));
    let brief = |text: &str| text.chars().take(2_000).collect::<String>();
    let (out, err) = (brief(&ended.stdout), brief(&ended.stderr));
    assert!(
        fits,
        "code {:?} after {:?}\n{out}\n{err}",
        ended.code, ended.wall
    );
    ended.wall
}

/// Checks that an error is short enough for a person to read.
#[track_caller]
fn is_short(ended: &CommandOutput) {
    let bytes = ended.stdout.len() + ended.stderr.len();
    assert!(bytes < 2_000_000, "{bytes} bytes");
}

#[test]
fn rules_of_a_folder_that_may_only_tighten() {
    let home = Home::new();
    Kind::new("Cedar, `run --tighten`").hold(texts::CEDAR, |text, size| {
        home.write("rules/a.cedar", text.of(size));
        let ended = home.run(["run", "--demo", "--tighten", "rules", "-e", "return 1"]);
        is_short(&ended);
        ended_with(&ended, &[0, 30, 32])
    });
}

#[test]
fn rules_that_a_reviewer_looks_at() {
    let home = Home::new();
    Kind::new("Cedar, `policy check`").hold(texts::CEDAR, |text, size| {
        home.write("rules/a.cedar", text.of(size));
        let ended = home.run(["policy", "check", "rules", "--demo"]);
        is_short(&ended);
        ended_with(&ended, &[0, 30, 32])
    });
}

#[test]
fn configurations() {
    let home = Home::new();
    Kind::new("TOML, `--config`").hold(texts::TOML, |text, size| {
        home.write("a.toml", text.of(size));
        ended_with(
            &home.run(["run", "--config", "a.toml", "-e", "return 1"]),
            &[0, 2, 30],
        )
    });
}

#[test]
fn files_of_labels() {
    let home = Home::new();
    Kind::new("TOML, `--labels`").hold(texts::TOML, |text, size| {
        home.write("a.toml", text.of(size));
        let run = ["run", "--demo", "--labels", "a.toml", "-e", "return 1"];
        ended_with(&home.run(run), &[0, 2, 30])
    });
}

#[test]
fn configurations_of_other_hosts() {
    let home = Home::new();
    Kind::new("JSON, `--mcp-config`").hold(texts::JSON, |text, size| {
        home.write("a.json", text.of(size));
        ended_with(
            &home.run(["run", "--mcp-config", "a.json", "-e", "return 1"]),
            &[2, 30],
        )
    });
}

#[test]
fn lock_files() {
    let home = Home::new();
    Kind::new("JSON, `--lock`").hold(texts::JSON, |text, size| {
        home.write("a.lock", text.of(size));
        let run = ["run", "--demo", "--lock", "a.lock", "-e", "return 1"];
        ended_with(&home.run(run), &[30, 33])
    });
}

#[test]
fn inputs_of_scripts() {
    let home = Home::new();
    Kind::new("JSON, `--input`").hold(texts::JSON, |text, size| {
        home.write("a.json", text.of(size));
        ended_with(
            &home.run(["run", "--input", "@a.json", "-e", "return 1"]),
            &[0, 2, 21, 30],
        )
    });
}

#[test]
fn tool_files() {
    let home = Home::new();
    let all = [texts::TOOL_FILES, texts::JSON].concat();
    Kind::new("tool files").hold(&all, |text, size| {
        home.write("said/demo/logs_search.json", text.of(size));
        let run = ["run", "--demo", "--descriptions", "said", "-e", "return 1"];
        let ended = home.run(run);
        is_short(&ended);
        ended_with(&ended, &[0, 30])
    });
}

#[test]
fn journals() {
    let home = Home::new();
    home.run(["run", "-e", "return 1"]).expect_code(0);
    let name = home.journals()[0].file_stem().unwrap().to_owned();
    let first = std::fs::read_to_string(&home.journals()[0]).unwrap();
    let first = first.split_inclusive('\n').next().unwrap().to_owned();
    Kind::new("journals").hold(texts::JSON, |text, size| {
        let mut walls = Vec::new();
        for head in ["", &*first] {
            std::fs::write(&home.journals()[0], head.to_owned() + &text.of(size)).unwrap();
            let name = name.to_str().unwrap();
            for words in [
                &["list"][..],
                &["show", name],
                &["show", "--json", name],
                &["verify"],
            ] {
                let ended = home.run([&["runs"], words].concat());
                walls.push(ended_with(&ended, &[0, 31]));
            }
        }
        walls.into_iter().max().unwrap()
    });
}

/// The journal is valid, but long.
#[test]
fn a_journal_of_many_calls_is_shown_in_the_time_that_reading_it_takes() {
    let home = Home::new();
    let code = "for (let n = 0; n < 4000; n += 16) { const all = []; for (let m = 0; m < 16; m++) \
                all.push(demo.logs_services({})); await Promise.all(all) }";
    let run = [
        "run",
        "--demo",
        "--allow",
        "demo.*",
        "--max-calls",
        "4000",
        "--timeout",
        "1500s",
        "--limit",
        "cpu=1000s",
        "--fsync",
        "never",
        "-e",
        code,
    ];
    home.run(run).expect_code(0);
    let name = home.journals()[0]
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let shown = home.run(["runs", "show", "--json", &name]).expect_code(0);
    assert_eq!(shown.json()["calls"].as_array().unwrap().len(), 4_000);
    assert!(shown.wall < bound(), "{:?}", shown.wall);
}

#[test]
fn schemas_of_tools_in_types() {
    let home = Home::new();
    Kind::new("JSON Schema").hold(texts::SCHEMAS, |text, size| {
        let tool = |schema: &str| {
            format!(
                "{{\"name\":\"bad\",\"inputSchema\":{schema},\
            \"outputSchema\":{schema}}}"
            )
        };
        let fine = "{\"name\":\"fine\",\"inputSchema\":{\"type\":\"object\"}}";
        let schema = text.of(size);
        home.write(
            "tools.json",
            format!("{{\"tools\":[{},{fine}]}}", tool(&schema)),
        );
        let types = home.run(["types", "--from", "shop=tools.json"]);
        ended_with(&types, &[0, 2, 30])
    });
}

/// Runs a script with one server, `shop`, that this command starts with a credential.
fn run_with_server(home: &Home, script: &str, command: &[&str]) -> CommandOutput {
    let (program, arguments) = command.split_first().unwrap();
    let config = format!(
        "[rules]\nallow = [\"*.*\"]\n[servers.shop]\ncommand = {}\nargs = {}\n\
         env = {{ TOKEN = \"{CREDENTIAL}\" }}\n",
        json!(program),
        json!(arguments)
    );
    home.write("airlock.toml", config);
    home.run(["run", "--config", "airlock.toml", "-e", script])
}

const CREDENTIAL: &str = "t0ken-1t0ken-1";

/// A server that lists the tools of the file `$1`, and answers calls with the file `$2`. It is a
/// shell script, because a server of this crate is not optimised, and would take most of the
/// measured time.
const SHELL_SERVER: &str = r#"while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *\"initialize\"*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shop","version":"1"}}';;
    *\"tools/list\"*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":' "$id"; cat "$1"; echo '}}'; continue;;
    *\"tools/call\"*) printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"; cat "$2"; echo '}'; continue;;
    *\"id\":*) result='{}';;
    *) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done"#;

#[test]
fn schemas_of_tools_in_a_run() {
    let home = Home::new();
    Kind::new("JSON Schema, in a run").hold(texts::SCHEMAS, |text, size| {
        let Ok(schema) = serde_json::from_str::<Value>(&text.of(size)) else {
            return Duration::ZERO;
        };
        let bad = json!({"name": "bad", "inputSchema": schema, "outputSchema": schema});
        let fine = json!({"name": "fine", "inputSchema": {"type": "object"}});
        let tools = home.write("tools.json", json!([bad, fine]).to_string());
        let script = home.write("server.sh", SHELL_SERVER);
        let server = ["sh", script.to_str().unwrap(), tools.to_str().unwrap()];
        let ended = run_with_server(&home, "return Object.keys(shop)", &server);
        assert!(ended.stdout.contains("fine"), "{ended}");
        ended_with(&ended, &[0])
    });
}

/// The server sends the hostile text instead of a response to the first request.
#[test]
fn messages_of_servers() {
    let home = Home::new();
    Kind::new("JSON, from a server").hold(texts::JSON, |text, size| {
        let answer = home.write("answer.json", text.of(size) + "\n");
        let script = "read line; cat \"$0\"";
        let ended = run_with_server(
            &home,
            "return 1",
            &["sh", "-c", script, answer.to_str().unwrap()],
        );
        ended_with(&ended, &[30])
    });
}

#[test]
fn event_streams_of_servers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("shop=http://{}/mcp", listener.local_addr().unwrap());
    let stream = Arc::new(Mutex::new(String::new()));
    let sent = Arc::clone(&stream);
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let body = sent.lock().unwrap().clone();
            std::thread::spawn(move || send_events(connection, &body));
        }
    });
    let home = Home::new();
    Kind::new("event streams").hold(texts::EVENTS, |text, size| {
        *stream.lock().unwrap() = text.of(size);
        let ended = home.run(["run", "--server", &server, "-e", "return 1"]);
        ended_with(&ended, &[30])
    });
}

/// Answers the first request of a connection with the text. Refuses a request for the rest of a
/// stream.
fn send_events(connection: TcpStream, body: &str) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    if line.starts_with("GET ") {
        let refused = "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n";
        return (&connection).write_all(refused.as_bytes()).ok();
    }
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    (&connection).write_all(head.as_bytes()).ok()?;
    (&connection).write_all(body.as_bytes()).ok()
}

#[test]
fn patterns_of_search() {
    let home = Home::new();
    let mut serve = home.serve(["--demo", "--quiet"]);
    let host = Mutex::new(StdioHost::start(&mut serve, &json!({})));
    Kind::new("patterns of `search_tools`").hold(texts::PATTERNS, |text, size| {
        let since = Instant::now();
        let words = json!({"query": text.of(size), "mode": "regex"});
        let mut host = host.lock().unwrap();
        let id = host.ask(
            "tools/call",
            &json!({"name": "search_tools", "arguments": words}),
        );
        host.wait_for(|it| it["id"] == id);
        since.elapsed()
    });
}

/// The server's text is masked before the script gets it, and once more when the script returns it.
#[test]
fn texts_with_credentials() {
    let home = Home::new();
    let tools = json!([{"name": "read", "inputSchema": {"type": "object"}}]);
    let tools = home.write("tools.json", tools.to_string());
    let script = home.write("server.sh", SHELL_SERVER);
    Kind::new("masking of credentials").hold(texts::CREDENTIALS, |text, size| {
        let text = text.of(size) + CREDENTIAL;
        let result = json!({"content": [{"type": "text", "text": text}]});
        let result = home.write("result.json", result.to_string());
        let files = [&script, &tools, &result].map(|it| it.to_str().unwrap());
        let server = [&["sh"], &files[..]].concat();
        let ended = run_with_server(&home, "return await shop.read({})", &server);
        assert!(!ended.stdout.contains(CREDENTIAL), "{ended:.2000}");
        ended_with(&ended, &[0])
    });
}

/// Loading the valid rules takes a debug build some seconds.
#[test]
fn a_signal_ends_the_program_while_it_reads_text_from_outside() {
    let find = |texts: &[Text], name: &str| {
        let text = texts.iter().find(|it| it.name == name);
        text.unwrap().of(1_000_000)
    };
    let home = Home::new();
    home.write("many/a.cedar", find(texts::CEDAR, "rules-with-conditions"));
    home.write("ifs/a.cedar", find(texts::CEDAR, "ifs-in-a-rule"));
    home.write("many.toml", find(texts::TOML, "unknown"));
    let schema = find(texts::SCHEMAS, "products");
    let tool = format!("{{\"name\":\"bad\",\"inputSchema\":{schema}}}");
    home.write("list.json", format!("{{\"tools\":[{tool}]}}"));
    home.write("deep.jsonl", find(texts::JSON, "braces"));
    let commands: [&[&str]; 7] = [
        &["run", "--demo", "--tighten", "many", "-e", "return 1"],
        &["run", "--demo", "--tighten", "ifs", "-e", "return 1"],
        &["serve", "--demo", "--tighten", "many"],
        &["policy", "check", "many", "--demo"],
        &["run", "--config", "many.toml", "-e", "return 1"],
        &["types", "--from", "shop=list.json"],
        &["runs", "verify", "deep.jsonl"],
    ];
    for command in commands {
        for wait_ms in [0, 10, 30, 100, 300] {
            let started = start(&mut home.airlock(command), "");
            let since = Instant::now();
            while since.elapsed() < Duration::from_millis(wait_ms) {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            started.signal(Signal::TERM);
            let signalled = Instant::now();
            let ended = started.wait();
            let wall = signalled.elapsed();
            assert!(wall < bound(), "{command:?} {wait_ms}: {wall:?}\n{ended}");
        }
    }
}
