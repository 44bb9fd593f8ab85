//! The client that the protocol's conformance suite tests: a person who calls a tool of the server
//! at the given address with airlock, and logs in when airlock says so. The browser of this person
//! follows redirects, and the authorization servers of the suite need no more.
//!
//! The suite names the scenario and the protocol revision in the environment. `AIRLOCK_BIN` is the
//! tested program.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{ExitCode, Stdio};

use serde_json::Value;
use tests::command::Home;

/// How often the person logs in before giving up.
const LOGINS_MAX: usize = 3;
const CALL: [&str; 7] = [
    "run",
    "-e",
    "return await w.test_tool({})",
    "--config",
    "airlock.toml",
    "--allow",
    "w.*",
];

fn main() -> ExitCode {
    let url = std::env::args()
        .next_back()
        .expect("the address of the server");
    let home = Home::new();
    home.write("airlock.toml", config(&url));
    for _ in 0..LOGINS_MAX {
        let called = home.run(CALL);
        print!("{called}");
        match scopes_of_advice(&called.stderr) {
            _ if called.code == Some(0) => return ExitCode::SUCCESS,
            Some(scopes) if log_in(&home, scopes) => {}
            _ => return ExitCode::FAILURE,
        }
    }
    let called = home.run(CALL);
    print!("{called}");
    ExitCode::from(u8::from(called.code != Some(0)))
}

/// Returns the value of a variable that the suite sets.
fn given(name: &str) -> String {
    std::env::var(format!("MCP_CONFORMANCE_{name}")).unwrap_or_default()
}

fn config(url: &str) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut config = format!(
        "[oauth]\nkeys = \"file\"\n{}\n[servers.w]\nurl = {}\nera = {}\n",
        match given("SCENARIO").as_str() {
            "auth/basic-cimd" =>
                "client_metadata = \"https://conformance-test.local/client-metadata.json\"",
            _ => "",
        },
        quoted(url),
        quoted(&given("PROTOCOL_VERSION")),
    );
    let context: Value = serde_json::from_str(&given("CONTEXT")).unwrap_or_default();
    let Some(id) = context["client_id"].as_str() else {
        return config;
    };
    config.push_str(&format!("[servers.w.oauth]\nclient_id = {}\n", quoted(id)));
    for (key, member) in [
        ("client_secret", "client_secret"),
        ("private_key", "private_key_pem"),
    ] {
        if let Some(value) = context[member].as_str() {
            config.push_str(&format!("{key} = {}\n", quoted(value)));
        }
    }
    // An operator knows the issuer of the client.
    let issuer = context["issuer"].as_str().map(str::to_owned);
    let issuer = issuer.unwrap_or_else(|| issuer_of(url));
    config.push_str(&format!("issuer = {}\n", quoted(&issuer)));
    if given("SCENARIO").starts_with("auth/client-credentials") {
        config.push_str("grant = \"client_credentials\"\n");
    }
    config
}

fn issuer_of(url: &str) -> String {
    let origin = url.strip_suffix("/mcp").expect("the address of the server");
    let (_, metadata) = get(&format!(
        "{origin}/.well-known/oauth-protected-resource/mcp"
    ));
    let metadata: Value = serde_json::from_str(&metadata).expect("metadata");
    let issuer = metadata["authorization_servers"][0].as_str();
    issuer.expect("an issuer").to_owned()
}

/// Returns the scopes of the login that airlock advises, which are empty if it names none. `None`:
/// airlock advises no login.
fn scopes_of_advice(text: &str) -> Option<&str> {
    let (_, command) = text.split_once("`airlock login w")?;
    let scopes = command.strip_prefix(" --scope '");
    Some(
        scopes
            .and_then(|it| it.split('\'').next())
            .unwrap_or_default(),
    )
}

/// Logs in as airlock advises. Returns whether that succeeded.
fn log_in(home: &Home, scopes: &str) -> bool {
    let args = ["login", "w", "--config", "airlock.toml", "--no-browser"];
    let mut command = home.airlock(args);
    if !scopes.is_empty() {
        command.args(["--scope", scopes]);
    }
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("airlock starts");
    let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    for line in stderr.lines().map_while(Result::ok) {
        eprintln!("{line}");
        if line.contains("/authorize?") {
            let (redirect, _) = get(line.trim());
            get(&redirect.expect("a redirect"));
        }
    }
    child.wait().expect("a child process").success()
}

/// Sends a GET request. Returns where the answer redirects to, and its body.
fn get(address: &str) -> (Option<String>, String) {
    let rest = address.strip_prefix("http://").expect("an http address");
    let (host, target) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("somebody listens");
    let request = format!("GET /{target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let headers = head.lines().filter_map(|it| it.split_once(": "));
    let mut redirects = headers.filter(|(name, _)| name.eq_ignore_ascii_case("location"));
    let redirect = redirects.next().map(|(_, value)| value.to_owned());
    (redirect, body.to_owned())
}
