//! Tests hosts that need a token: one shared token, or tokens of an authorization server. The
//! authorization server is part of this test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::command::Home;
use tests::serving::{HttpResponse, ServeProcess, message};

const RESOURCE: &str = "https://airlock.example/mcp";
const SHARED: &str = "0123456789abcdef-shared";
/// The credentials `airlock:s3cret%2F`. RFC 6749 requires that the slash in the secret is encoded.
const CREDENTIALS: &str = "authorization: basic ywlybg9jazpzm2nyzxqlmky=";

/// An authorization server that introspects tokens. `asked` receives the text of each request, with
/// the head in lower case.
pub(super) struct Issuer {
    address: String,
    asked: Receiver<String>,
}

impl Issuer {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (tell, asked) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &tell);
            }
        });
        Self { address, asked }
    }
}

fn answer(stream: TcpStream, tell: &Sender<String>) {
    let mut stream = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        let read = stream.read_line(&mut line).unwrap();
        line.make_ascii_lowercase();
        if read == 0 || line == "\r\n" {
            break;
        }
        if let Some(said) = line.strip_prefix("content-length:") {
            length = said.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let said = worth(body.split('&').next().unwrap_or_default()).to_string();
    let _ = tell.send(format!("{head}{body}"));
    let length = said.len();
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{said}"
    );
    stream.get_mut().write_all(response.as_bytes()).unwrap();
}

fn worth(token: &str) -> Value {
    let good = |who: &str| json!({"active": true, "aud": RESOURCE, "scope": "tools", "sub": who});
    match token {
        "token=alice" | "token=alice-again" => good("alice"),
        "token=bob" => good("bob"),
        "token=narrow" => json!({"active": true, "aud": RESOURCE, "scope": "mail"}),
        "token=elsewhere" => {
            json!({"active": true, "aud": "https://other.example/mcp", "scope": "tools"})
        }
        _ => json!({"active": false}),
    }
}

fn serving(issuer: &str) -> ServeProcess {
    let home = Home::new();
    let args = args(&home, issuer);
    ServeProcess::start_in(home, args.iter().map(String::as_str).chain(["--demo"]))
}

/// Returns the arguments of a server that asks this authorization server about tokens.
fn args(home: &Home, issuer: &str) -> Vec<String> {
    let secret = home.write("secret", "s3cret/\n");
    let (url, secret) = (format!("http://{issuer}"), secret.display().to_string());
    let oauth = [
        "--oauth-resource",
        RESOURCE,
        "--oauth-issuer",
        &url,
        "--oauth-introspection",
        &url,
        "--oauth-client",
        "airlock",
        "--oauth-secret-file",
        &secret,
        "--oauth-scope",
        "tools",
    ];
    oauth.map(str::to_owned).into()
}

impl Issuer {
    /// Returns the arguments of a server that asks this authorization server about tokens.
    pub(super) fn args(&self, home: &Home) -> Vec<String> {
        args(home, &self.address)
    }
}

fn initialize() -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    message(Some(0), "initialize", &params)
}

fn post(serving: &ServeProcess, token: &str, session: &str, body: &str) -> HttpResponse {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Mcp-Session-Id", session),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let given = if session.is_empty() { 1 } else { 3 };
    serving.request("POST", &headers[..given], body)
}

#[test]
fn missing_token_gets_www_authenticate() {
    let issuer = Issuer::start();
    let serving = serving(&issuer.address);
    let page = serving.request("POST", &[], &initialize());
    assert_eq!(page.status, 401);
    let challenge = page.header("www-authenticate").unwrap();
    let place = "https://airlock.example/.well-known/oauth-protected-resource/mcp";
    let expected = format!("bearer resource_metadata=\"{place}\", scope=\"tools\"");
    assert_eq!(challenge, expected);
    for path in ["", "/mcp"] {
        let page = serving.fetch(&format!("/.well-known/oauth-protected-resource{path}"), &[]);
        assert_eq!(page.status, 200);
        let metadata: Value = serde_json::from_str(&page.text()).unwrap();
        assert_eq!(metadata["resource"], RESOURCE);
        let servers = json!([format!("http://{}", issuer.address)]);
        assert_eq!(metadata["authorization_servers"], servers);
        assert_eq!(metadata["scopes_supported"], json!(["tools"]));
    }
    assert!(issuer.asked.try_recv().is_err(), "a token was introspected");
}

#[test]
fn only_valid_token_for_this_resource_is_accepted() {
    let issuer = Issuer::start();
    let mut serving = serving(&issuer.address);
    for (token, status, error) in [
        ("gone", 401, "error=\"invalid_token\""),
        ("elsewhere", 401, "error=\"invalid_token\""),
        ("narrow", 403, "error=\"insufficient_scope\""),
    ] {
        let page = post(&serving, token, "", &initialize());
        assert_eq!(page.status, status, "{token}");
        let challenge = page.header("www-authenticate").unwrap();
        assert!(challenge.contains(error), "{challenge}");
        assert!(challenge.contains("resource_metadata="), "{challenge}");
        let asked = issuer.asked.recv().unwrap();
        assert!(asked.contains(CREDENTIALS), "{asked}");
        let ending = format!("token={token}&token_type_hint=access_token");
        assert!(asked.ends_with(&ending), "{asked}");
    }
    assert_eq!(post(&serving, "alice", "", &initialize()).status, 200);
    assert_eq!(post(&serving, "alice", "", &initialize()).status, 200);
    assert!(issuer.asked.recv().unwrap().contains("token=alice"));
    assert!(issuer.asked.try_recv().is_err(), "introspected again");
    let (.., said) = serving.stop(Signal::TERM);
    assert!(
        !said.contains("alice") && !said.contains("s3cret"),
        "{said}"
    );
}

#[test]
fn session_is_bound_to_its_caller() {
    let issuer = Issuer::start();
    let serving = serving(&issuer.address);
    let page = post(&serving, "alice", "", &initialize());
    let session = page.header("mcp-session-id").unwrap();
    let ping = message(Some(1), "ping", &json!({}));
    assert_eq!(post(&serving, "bob", &session, &ping).status, 404);
    assert_eq!(post(&serving, "alice", &session, &ping).status, 200);
    // A new token of the same person gives access to the same session.
    assert_eq!(post(&serving, "alice-again", &session, &ping).status, 200);
    let bob = [
        ("Authorization", "Bearer bob"),
        ("Mcp-Session-Id", &session),
    ];
    assert_eq!(serving.request("DELETE", &bob, "").status, 404);
    assert_eq!(post(&serving, "alice", &session, &ping).status, 200);
}

#[test]
fn failed_introspection_denies() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap().to_string();
    drop(listener);
    let serving = serving(&nobody);
    assert_eq!(post(&serving, "alice", "", &initialize()).status, 503);
}

#[test]
fn shared_token_is_required_of_every_host() {
    let home = Home::new();
    let file = home.write("token", format!("{SHARED}\n"));
    let file = file.display().to_string();
    let serving = ServeProcess::start_in(home, ["--demo", "--http-token-file", &file]);
    let bare = serving.request("POST", &[], &initialize());
    assert_eq!(bare.status, 401);
    assert_eq!(bare.header("www-authenticate").as_deref(), Some("bearer"));
    let wrong = post(&serving, "0123456789abcdef-other", "", &initialize());
    assert_eq!(wrong.status, 401);
    let challenge = wrong.header("www-authenticate").unwrap();
    assert_eq!(challenge, "bearer error=\"invalid_token\"");
    assert_eq!(post(&serving, SHARED, "", &initialize()).status, 200);
    let metadata = serving.fetch("/.well-known/oauth-protected-resource", &[]);
    assert_eq!(metadata.status, 404, "there is no authorization server");
}

#[test]
fn non_loopback_serve_requires_token() {
    let home = Home::new();
    let ended = home.run(["serve", "--demo", "--http", "0.0.0.0:0"]);
    ended
        .expect_code(2)
        .expect_stderr("can be reached from other machines");
    let oauth = [
        "serve",
        "--demo",
        "--http",
        "0.0.0.0:0",
        "--oauth-resource",
        RESOURCE,
        "--oauth-issuer",
        "https://login.example",
        "--oauth-introspection",
        "http://login.example/introspect",
        "--oauth-client",
        "airlock",
    ];
    let ended = home.run(oauth);
    ended.expect_code(2).expect_stderr("AIRLOCK_OAUTH_SECRET");
    let secret = home.write("secret", "s3cret").display().to_string();
    let ended = home.run(oauth.iter().chain(&["--oauth-secret-file", &secret]));
    ended
        .expect_code(2)
        .expect_stderr("invalid introspection endpoint: expected an https URL");
}
