//! An MCP server that requires a login, and its authorization server, over HTTP on one port. Refresh
//! tokens rotate: using one twice ends the login, as RFC 9700 recommends.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long a connection may send nothing.
const READ_WALL: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct LoginServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Every secret that was ever given out or received, by its kind.
    secrets: Vec<String>,
    number: usize,
    challenge: String,
    code: Option<String>,
    access: Option<String>,
    refresh: Option<String>,
    renewals: usize,
    revoked: usize,
    calls: Vec<String>,
    /// Whether the token endpoint answers with 503.
    is_down: bool,
    requests: Vec<String>,
    /// How long answers of the token endpoint take, after the tokens were replaced.
    token_delay: Duration,
    required_scope: Option<String>,
    scope: String,
    /// The life of new access tokens in seconds, if it is not an hour. They then have no refresh
    /// token.
    short_life_s: Option<u64>,
    /// Whether renewed access tokens are refused.
    are_renewals_useless: bool,
    /// Whether the token endpoint has moved. The old one refuses every request.
    has_moved: bool,
    /// The secret of the client that logs in without a person.
    client_secret: Option<String>,
    /// The access tokens of all logins in order, if each login is another account.
    accounts: Option<Vec<String>>,
    /// Whether the handshake needs no login.
    has_open_handshake: bool,
    /// The code of a device, and whether the person has entered it.
    device: Option<(String, bool)>,
}

struct Request {
    method: String,
    target: String,
    authorization: Option<String>,
    body: Vec<u8>,
}

impl LoginServer {
    /// Starts the server. It runs until the test ends.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::<Mutex<State>>::default();
        let server = Self {
            address,
            state: Arc::clone(&state),
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                // A client that was killed leaves a broken connection.
                thread::spawn(move || drop(answer(stream, address, &state)));
            }
        });
        server
    }

    /// Returns a configuration with the server `w`.
    #[must_use]
    pub fn config(&self) -> String {
        self.config_of("w", "127.0.0.1")
    }

    /// Returns a configuration with a server of this name, reached at this host.
    #[must_use]
    pub fn config_of(&self, name: &str, host: &str) -> String {
        let port = self.address.port();
        format!("[servers.{name}]\nurl = \"http://{host}:{port}/mcp\"\n")
    }

    /// Returns the address of the issuer.
    #[must_use]
    pub fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Gives out access tokens of this life, without refresh tokens.
    pub fn give_short_tokens(&self, life_s: u64) {
        self.state().short_life_s = Some(life_s);
    }

    /// Moves the token endpoint to another address, which the metadata names.
    pub fn move_token_endpoint(&self) {
        self.state().has_moved = true;
    }

    /// Accepts the client `c` with this secret, without a person.
    pub fn accept_client(&self, secret: &str) {
        let mut state = self.state();
        state.client_secret = Some(secret.to_owned());
        state.secrets.push(secret.to_owned());
    }

    /// Makes each login another account, whose token stays valid. Account `N` has a tool
    /// `of_account_N`, and its number is added to the titles of its calls.
    pub fn keep_accounts(&self) {
        self.state().accounts = Some(Vec::new());
    }

    /// Answers the handshake without a login. Everything else still requires one.
    pub fn open_handshake(&self) {
        self.state().has_open_handshake = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the access token invalid. The refresh token stays valid.
    pub fn expire_access(&self) {
        self.state().access = None;
    }

    /// Makes the access token invalid, and all that are renewed from now on.
    pub fn refuse_renewed(&self) {
        let mut state = self.state();
        (state.access, state.are_renewals_useless) = (None, true);
    }

    /// Ends the login at the server.
    pub fn expire_login(&self) {
        let mut state = self.state();
        (state.access, state.refresh) = (None, None);
    }

    /// Sets whether the token endpoint answers with 503.
    pub fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
    }

    /// Returns whether a request for this path came.
    #[must_use]
    pub fn was_asked_for(&self, path: &str) -> bool {
        self.state().requests.iter().any(|it| it == path)
    }

    /// Returns the number of requests for this path.
    #[must_use]
    pub fn requests_for(&self, path: &str) -> usize {
        let state = self.state();
        state.requests.iter().filter(|it| *it == path).count()
    }

    /// Sets how long answers of the token endpoint take.
    pub fn set_token_delay(&self, delay: Duration) {
        self.state().token_delay = delay;
    }

    /// Requires a scope for calls.
    pub fn require_scope(&self, scope: &str) {
        self.state().required_scope = Some(scope.to_owned());
    }

    #[must_use]
    pub fn renewals(&self) -> usize {
        self.state().renewals
    }

    #[must_use]
    pub fn revoked(&self) -> usize {
        self.state().revoked
    }

    /// Returns the titles of the calls that were made.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    /// Returns every code, token and verifier so far.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        self.state().secrets.clone()
    }

    /// Acts as a browser and a person: opens the address, and returns the address at which the
    /// browser ends.
    #[must_use]
    pub fn approve(&self, address: &str) -> String {
        let target = address.split_once("/authorize").expect("an address").1;
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        write!(stream, "GET /authorize{target} HTTP/1.1\r\n\r\n").expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let location = text.lines().find_map(|it| it.strip_prefix("Location: "));
        location.expect("a redirect").to_owned()
    }

    /// Acts as a browser that follows the redirect. Returns the answer of airlock.
    #[must_use]
    pub fn browse(&self, address: &str) -> String {
        get(&self.approve(address))
    }
}

/// Sends a GET request, and returns the whole answer.
#[must_use]
pub fn get(address: &str) -> String {
    let rest = address.strip_prefix("http://").expect("an http address");
    let (host, target) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("somebody listens");
    write!(stream, "GET /{target} HTTP/1.1\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

impl State {
    /// Makes a new secret.
    fn secret(&mut self, kind: &str) -> String {
        self.number += 1;
        let secret = format!("{kind}-Zq7{:06}wXyV", self.number * 7919);
        self.secrets.push(secret.clone());
        secret
    }
}

fn answer(mut stream: TcpStream, at: SocketAddr, state: &Mutex<State>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(READ_WALL))?;
    let request = read(&stream)?;
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let (path, query) = request
        .target
        .split_once('?')
        .unwrap_or((&request.target, ""));
    let origin = format!("http://{at}");
    state.requests.push(path.to_owned());
    let (status, headers, body) = match path {
        "/mcp" => mcp(&request, &origin, &mut state),
        "/.well-known/oauth-protected-resource/mcp" => ok(json!({
            "resource": format!("{origin}/mcp"),
            "authorization_servers": [origin],
        })),
        "/.well-known/oauth-authorization-server" => ok(json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": match state.has_moved {
                true => format!("{origin}/moved/token"),
                false => format!("{origin}/token"),
            },
            "registration_endpoint": format!("{origin}/register"),
            "device_authorization_endpoint": format!("{origin}/device"),
            "revocation_endpoint": format!("{origin}/revoke"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
            "authorization_response_iss_parameter_supported": true,
        })),
        "/register" => ok(json!({ "client_id": "client" })),
        "/device" => {
            let code = state.secret("device");
            state.device = Some((code.clone(), false));
            ok(json!({
                "device_code": code,
                "user_code": "ABCD-EFGH",
                "verification_uri": format!("{origin}/enter"),
                "interval": 1,
            }))
        }
        "/enter" => {
            if let Some((_, is_entered)) = &mut state.device {
                *is_entered = true;
            }
            ok(json!({}))
        }
        "/authorize" => authorize(&fields(query), &origin, &mut state),
        "/token" if state.has_moved => {
            let body = json!({ "error": "invalid_client" }).to_string();
            ("401 Unauthorized", String::new(), body)
        }
        "/token" | "/moved/token" => {
            let fields = fields(&String::from_utf8_lossy(&request.body));
            token(&fields, &mut state)
        }
        "/revoke" => {
            state.revoked += 1;
            ok(json!({}))
        }
        _ => ("404 Not Found", String::new(), String::new()),
    };
    let delay = state.token_delay;
    drop(state);
    if path.ends_with("/token") {
        thread::sleep(delay);
    }
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

type Reply = (&'static str, String, String);

fn ok(body: Value) -> Reply {
    ("200 OK", String::new(), body.to_string())
}

fn mcp(request: &Request, origin: &str, state: &mut State) -> Reply {
    let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    let sent = request.authorization.as_deref();
    let sent = sent.and_then(|it| it.strip_prefix("Bearer "));
    let accounts = state.accounts.as_ref();
    let account = accounts.and_then(|it| it.iter().position(|token| Some(&**token) == sent));
    let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let handshake = [Some("initialize"), Some("server/discover")];
    let is_handshake =
        message.get("id").is_none() || handshake.contains(&message["method"].as_str());
    let is_open = state.has_open_handshake && is_handshake;
    let is_logged_in = account.is_some() || (sent.is_some() && sent == state.access.as_deref());
    if !is_open && !is_logged_in {
        let header = format!("WWW-Authenticate: Bearer resource_metadata=\"{metadata}\"\r\n");
        return ("401 Unauthorized", header, String::new());
    }
    if request.method != "POST" {
        return ("405 Method Not Allowed", String::new(), String::new());
    }
    let id = &message["id"];
    if id.is_null() {
        return ("202 Accepted", String::new(), String::new());
    }
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"},
        }),
        Some("tools/list") => {
            let mut tools = vec![json!({
                "name": "create",
                "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}},
            })];
            tools.extend(account.map(|number| {
                let name = format!("of_account_{number}");
                json!({"name": name, "inputSchema": {"type": "object"}})
            }));
            json!({ "tools": tools })
        }
        Some("tools/call") => {
            if let Some(scope) = &state.required_scope
                && !state.scope.split(' ').any(|it| it == scope)
            {
                let header = format!(
                    "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"{scope}\"\r\n"
                );
                return ("403 Forbidden", header, String::new());
            }
            let title = message["params"]["arguments"]["title"].as_str();
            let title = title.unwrap_or_default();
            state.calls.push(match account {
                Some(number) => format!("{title} by account {number}"),
                None => title.to_owned(),
            });
            // A careless server repeats its credentials.
            json!({"content": [{"type": "text", "text": format!("made with {sent:?}")}]})
        }
        _ => {
            let error = json!({"code": -32601, "message": "no"});
            return ok(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    ok(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn authorize(fields: &BTreeMap<String, String>, origin: &str, state: &mut State) -> Reply {
    let code = state.secret("code");
    state.challenge.clone_from(&fields["code_challenge"]);
    state.scope = fields.get("scope").cloned().unwrap_or_default();
    state.code = Some(code.clone());
    assert_eq!(fields["resource"], format!("{origin}/mcp"));
    let header = format!(
        "Location: {}?code={code}&state={}&iss={}\r\n",
        fields["redirect_uri"],
        fields["state"],
        origin.replace(':', "%3A").replace('/', "%2F")
    );
    ("302 Found", header, String::new())
}

fn token(fields: &BTreeMap<String, String>, state: &mut State) -> Reply {
    let refused = |error: &str| {
        let body = json!({ "error": error }).to_string();
        ("400 Bad Request", String::new(), body)
    };
    if state.is_down {
        return ("503 Service Unavailable", String::new(), String::new());
    }
    if !fields.contains_key("resource") {
        return refused("invalid_target");
    }
    match fields.get("grant_type").map(String::as_str) {
        Some("authorization_code") if fields.get("code") == state.code.take().as_ref() => {
            let verifier = fields["code_verifier"].clone();
            assert_ne!(verifier, state.challenge);
            state.secrets.push(verifier);
        }
        Some("urn:ietf:params:oauth:grant-type:device_code") => match &state.device {
            Some((code, true)) if fields.get("device_code") == Some(code) => {}
            Some((_, false)) => return refused("authorization_pending"),
            _ => return refused("invalid_grant"),
        },
        Some("client_credentials") => {
            let secret = fields.get("client_secret");
            if secret.is_none() || secret != state.client_secret.as_ref() {
                return refused("invalid_client");
            }
        }
        Some("refresh_token") => {
            let is_current = fields.get("refresh_token") == state.refresh.as_ref();
            if !is_current || state.refresh.is_none() {
                // Reuse of a refresh token ends the whole login.
                (state.access, state.refresh) = (None, None);
                return refused("invalid_grant");
            }
            state.renewals += 1;
        }
        _ => return refused("invalid_grant"),
    }
    let access = state.secret("access");
    let is_renewal = fields["grant_type"] == "refresh_token";
    if let Some(accounts) = &mut state.accounts {
        accounts.push(access.clone());
    }
    state.access = (!is_renewal || !state.are_renewals_useless).then(|| access.clone());
    let mut answer = json!({
        "access_token": access,
        "token_type": "Bearer",
        "expires_in": state.short_life_s.unwrap_or(3600),
        "scope": state.scope,
    });
    let is_for_person = fields["grant_type"] != "client_credentials";
    if is_for_person && state.short_life_s.is_none() {
        let refresh = state.secret("refresh");
        answer["refresh_token"] = refresh.as_str().into();
        state.refresh = Some(refresh);
    }
    ok(answer)
}

fn read(stream: &TcpStream) -> std::io::Result<Request> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut words = first.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (method, target) = (word(), word());
    let (mut length, mut authorization) = (0, None);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "authorization" => authorization = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Request {
        method,
        target,
        authorization,
        body,
    })
}

/// Parses a form.
fn fields(form: &str) -> BTreeMap<String, String> {
    let pairs = form.split('&').filter_map(|it| it.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), decoded(value)))
        .collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let digits = String::from_utf8_lossy(&digits).into_owned();
                u8::from_str_radix(&digits, 16).unwrap_or(b'?')
            }
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
