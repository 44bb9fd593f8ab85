//! Whole logins against servers that are made of texts. Most of these servers are hostile.

use serde_json::{Value, json};

use super::*;

const SERVER: &str = "https://mcp.example/v1/mcp";
const HERE: &str = "http://127.0.0.1:4000/callback";

/// A server and its authorization server.
struct Servers {
    header: String,
    resource: (u16, String),
    metadata: (u16, String),
    registration: (u16, String),
    /// The query with which the browser returns.
    redirect: String,
    token: (u16, String),
    /// The answers before the one with the token, the next one last.
    pending: Vec<(u16, &'static str)>,
}

fn resource() -> Value {
    json!({
        "resource": SERVER,
        "authorization_servers": ["https://as.example"],
        "scopes_supported": ["read", "write"],
    })
}

fn metadata() -> Value {
    json!({
        "issuer": "https://as.example",
        "authorization_endpoint": "https://as.example/authorize",
        "token_endpoint": "https://as.example/token",
        "registration_endpoint": "https://as.example/register",
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn token() -> Value {
    json!({
        "access_token": "access-token-no-1",
        "token_type": "Bearer",
        "expires_in": 3600,
        "refresh_token": "refresh-token-no-1",
    })
}

impl Servers {
    fn good() -> Self {
        Self {
            header: "Bearer".to_owned(),
            resource: (200, resource().to_string()),
            metadata: (200, metadata().to_string()),
            registration: (201, json!({ "client_id": "client-1" }).to_string()),
            redirect: "code=code-1&state=STATE&iss=https%3A%2F%2Fas.example".to_owned(),
            token: (200, token().to_string()),
            pending: Vec::new(),
        }
    }

    fn answer(&self, request: &Request) -> (u16, &str) {
        let path = request.url.path();
        let (status, body) = match () {
            () if path.contains("oauth-protected-resource") => &self.resource,
            () if path.contains(".well-known") => &self.metadata,
            () if path == "/register" => &self.registration,
            () if path == "/device" => return (200, DEVICE),
            () => &self.token,
        };
        (*status, body.as_str())
    }

    /// Logs in. Returns the outcome, the requests, and the address for the person.
    fn log_in(
        &self,
        change: impl FnOnce(&mut LoginInput),
    ) -> (Result<Credential, LoginError>, Vec<Request>, String) {
        let mut input = LoginInput {
            server: url::Url::parse(SERVER).unwrap(),
            network: Network::Public,
            challenge: Challenge::parse([self.header.as_str()]),
            earlier_scopes: ScopeSet::default(),
            scopes: None,
            issuer: None,
            client: None,
            client_metadata: None,
            grant: Grant::AuthorizationCode,
            is_device: false,
            redirect_uri: HERE.to_owned(),
            randomness: Randomness {
                state: "STATE".to_owned(),
                verifier: "verifier-1".to_owned(),
                challenge: "challenge-1".to_owned(),
            },
        };
        change(&mut input);
        let (mut sent, mut address) = (Vec::new(), String::new());
        let (mut now_ms, mut pending) = (1_000, self.pending.clone());
        let outcome = Login::new(input).and_then(|mut login| {
            let mut step = login.step(Event::Started)?;
            loop {
                step = match step {
                    Step::Send(request) => {
                        sent.push(request.clone());
                        let (status, body) = match request.url.path() {
                            "/token" => pending.pop().unwrap_or_else(|| self.answer(&request)),
                            _ => self.answer(&request),
                        };
                        let body = body.as_bytes();
                        let answer = Answer { status, body };
                        login.step(Event::Answered { answer, now_ms })?
                    }
                    Step::Wait { prompt, pause_ms } => {
                        address = format!("{} {} {pause_ms}", prompt.address, prompt.user_code);
                        now_ms += pause_ms;
                        login.step(Event::Waited { now_ms })?
                    }
                    Step::Authorize(to) => {
                        address = to.to_string();
                        login.step(Event::Returned(&format!("{HERE}?{}", self.redirect)))?
                    }
                    Step::Done(credential) => return Ok(*credential),
                }
            }
        });
        (outcome, sent, address)
    }
}

fn form(request: &Request) -> &str {
    match &request.body {
        Body::Form(form) => form,
        other => panic!("{other:?}"),
    }
}

#[test]
fn login_registers_and_sends_resource_and_verifier() {
    let (outcome, sent, address) = Servers::good().log_in(|_| {});
    let credential = outcome.unwrap();
    assert_eq!(credential.scopes.to_string(), "read write");
    assert_eq!(credential.expires_at_ms, Some(3_601_000));
    assert_eq!(
        address,
        "https://as.example/authorize?response_type=code&client_id=client-1\
         &redirect_uri=http%3A%2F%2F127.0.0.1%3A4000%2Fcallback&state=STATE\
         &code_challenge=challenge-1&code_challenge_method=S256\
         &resource=https%3A%2F%2Fmcp.example%2Fv1%2Fmcp&scope=read+write"
    );
    assert_eq!(
        form(sent.last().unwrap()),
        "grant_type=authorization_code&code=code-1\
         &redirect_uri=http%3A%2F%2F127.0.0.1%3A4000%2Fcallback&code_verifier=verifier-1\
         &resource=https%3A%2F%2Fmcp.example%2Fv1%2Fmcp&client_id=client-1"
    );
    let Body::Json(registration) = &sent[2].body else {
        panic!()
    };
    assert!(registration.contains(r#""application_type":"native""#));
    let copy = Credential::parse(credential.to_text().unwrap().as_bytes()).unwrap();
    assert_eq!(copy, credential);
    for secret in [
        "access-token-no-1",
        "refresh-token-no-1",
        "code-1",
        "verifier-1",
    ] {
        assert!(!format!("{credential:?} {sent:?}").contains(secret));
    }
}

#[test]
fn client_is_configured_or_a_document_or_registered() {
    let with_documents = |mut servers: Servers| {
        let mut metadata = metadata();
        metadata["client_id_metadata_document_supported"] = true.into();
        metadata["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
        servers.metadata.1 = metadata.to_string();
        servers
    };
    let document = "https://company.example/airlock.json";
    let configured = ConfiguredClient {
        id: "own".to_owned(),
        secret: Some("secret-1".to_owned()),
        signs_with: None,
    };
    let servers = with_documents(Servers::good());
    let (outcome, sent, _) = servers.log_in(|input| {
        input.client = Some(configured.clone());
        input.client_metadata = Some(document.to_owned());
    });
    assert_eq!(outcome.unwrap().client.origin, ClientOrigin::Configured);
    assert!(form(sent.last().unwrap()).ends_with("&client_id=own&client_secret=secret-1"));
    let (outcome, sent, _) =
        servers.log_in(|input| input.client_metadata = Some(document.to_owned()));
    assert_eq!(outcome.unwrap().client.id, document);
    assert_eq!(sent.len(), 3);
    let (outcome, sent, _) = Servers::good().log_in(|input| input.client = Some(configured));
    assert_eq!(
        outcome.unwrap().client.method,
        AuthMethod::ClientSecretBasic
    );
    let proof = sent.last().unwrap().proof.clone();
    assert!(proof == ClientProof::Basic("own".to_owned(), "secret-1".to_owned()));
}

#[test]
fn scopes_come_from_the_challenge_or_the_metadata() {
    fn check(header: &str, listed: Value, offered: Value, expected: &str) {
        let mut servers = Servers::good();
        servers.header = header.to_owned();
        let (mut resource, mut metadata) = (resource(), metadata());
        resource["scopes_supported"] = listed;
        metadata["scopes_supported"] = offered;
        servers.resource.1 = resource.to_string();
        servers.metadata.1 = metadata.to_string();
        let (outcome, ..) = servers.log_in(|input| input.earlier_scopes = ScopeSet::parse("had"));
        assert_eq!(outcome.unwrap().scopes.to_string(), expected, "{header}");
    }
    check("Bearer scope=\"a b\"", json!(["c"]), Value::Null, "a b");
    check("Bearer", json!(["c", "d"]), Value::Null, "c d");
    check("Bearer", Value::Null, json!(["x"]), "");
    check(
        "Bearer",
        json!(["c"]),
        json!(["offline_access"]),
        "c offline_access",
    );
    check(
        "Bearer scope=\"a offline_access\"",
        Value::Null,
        Value::Null,
        "a",
    );
    check(
        "Bearer error=\"insufficient_scope\", scope=\"more\"",
        json!(["c"]),
        Value::Null,
        "had more",
    );
}

#[test]
fn client_credentials_need_no_person() {
    let (outcome, sent, address) = Servers::good().log_in(|input| {
        input.grant = Grant::ClientCredentials;
        input.client = Some(ConfiguredClient {
            id: "own".to_owned(),
            secret: Some("secret-1".to_owned()),
            signs_with: None,
        });
    });
    assert!(outcome.is_ok() && address.is_empty());
    assert_eq!(
        form(sent.last().unwrap()),
        "grant_type=client_credentials&resource=https%3A%2F%2Fmcp.example%2Fv1%2Fmcp&scope=read+write"
    );
}

#[test]
fn client_with_a_private_key_sends_an_assertion_for_the_issuer() {
    let signs_with = |input: &mut LoginInput| {
        input.grant = Grant::ClientCredentials;
        input.client = Some(ConfiguredClient {
            id: "own".to_owned(),
            secret: None,
            signs_with: Some("ES256"),
        });
    };
    let accepting = |methods: Value, algorithms: Value| {
        let mut servers = Servers::good();
        let mut metadata = metadata();
        metadata["token_endpoint_auth_methods_supported"] = methods;
        metadata["token_endpoint_auth_signing_alg_values_supported"] = algorithms;
        servers.metadata.1 = metadata.to_string();
        servers.log_in(signs_with)
    };
    let expected = ClientProof::Assertion {
        client_id: "own".to_owned(),
        audience: "https://as.example".to_owned(),
    };
    for algorithms in [Value::Null, json!(["RS256", "ES256"])] {
        let (outcome, sent, _) = accepting(json!(["private_key_jwt"]), algorithms);
        let request = sent.last().unwrap();
        assert!(request.proof == expected && !form(request).contains("client_id"));
        let renewal = refresh_request(&outcome.unwrap()).unwrap();
        assert!(renewal.proof == expected);
    }
    for (methods, algorithms) in [
        (json!(["client_secret_basic"]), Value::Null),
        (json!(["private_key_jwt"]), json!(["RS256"])),
    ] {
        let (outcome, sent, _) = accepting(methods, algorithms);
        let refused = outcome.unwrap_err();
        assert_eq!(refused, LoginError::NoPrivateKeyJwt { algorithm: "ES256" });
        assert!(sent.iter().all(|it| it.body == Body::None));
    }
}

const DEVICE: &str = r#"{"device_code":"device-code-no-1","user_code":"ABCD-EFGH",
    "verification_uri":"https://as.example/device","expires_in":20,"interval":4}"#;

#[test]
fn device_login_asks_until_the_person_has_entered_the_code() {
    const PENDING: (u16, &str) = (400, r#"{"error":"authorization_pending"}"#);
    const SLOWER: (u16, &str) = (400, r#"{"error":"slow_down"}"#);
    const DENIED: (u16, &str) = (400, r#"{"error":"access_denied"}"#);
    let log_in = |pending: &[(u16, &'static str)]| {
        let mut servers = Servers::good();
        let mut metadata = metadata();
        metadata["device_authorization_endpoint"] = "https://as.example/device".into();
        // The grant needs no redirect and no PKCE.
        metadata["authorization_endpoint"] = Value::Null;
        metadata["code_challenge_methods_supported"] = Value::Null;
        servers.metadata.1 = metadata.to_string();
        servers.pending = pending.iter().rev().copied().collect();
        servers.log_in(|input| input.is_device = true)
    };
    let (outcome, sent, shown) = log_in(&[PENDING, SLOWER]);
    let credential = outcome.unwrap();
    assert!(credential.refresh_token.is_some() && credential.grant == Grant::AuthorizationCode);
    assert_eq!(shown, "https://as.example/device ABCD-EFGH 9000");
    let Body::Json(registration) = &sent[2].body else {
        panic!()
    };
    assert!(
        registration.contains("grant-type:device_code"),
        "{registration}"
    );
    assert_eq!(
        form(&sent[3]),
        "resource=https%3A%2F%2Fmcp.example%2Fv1%2Fmcp&scope=read+write&client_id=client-1"
    );
    assert_eq!(
        form(sent.last().unwrap()),
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code\
         &device_code=device-code-no-1\
         &resource=https%3A%2F%2Fmcp.example%2Fv1%2Fmcp&client_id=client-1"
    );
    assert!(!format!("{sent:?}").contains("device-code-no-1"));
    let (denied, ..) = log_in(&[PENDING, DENIED]);
    assert!(matches!(denied, Err(LoginError::TokenRefused { .. })));
    let (late, sent, _) = log_in(&[PENDING; 9]);
    assert_eq!(
        late.unwrap_err(),
        LoginError::Refused("the code has expired".to_owned())
    );
    assert_eq!(
        sent.iter().filter(|it| it.url.path() == "/token").count(),
        4
    );
    let (none, ..) = Servers::good().log_in(|input| input.is_device = true);
    assert!(matches!(none, Err(LoginError::NoGrant(_))));
}

#[test]
fn secret_that_is_added_or_removed_later_changes_how_the_client_is_known() {
    let configured = |secret: Option<&str>| ConfiguredClient {
        id: "own".to_owned(),
        secret: secret.map(str::to_owned),
        signs_with: None,
    };
    let logged_in = |methods: Value, secret| {
        let mut servers = Servers::good();
        let mut metadata = metadata();
        metadata["token_endpoint_auth_methods_supported"] = methods;
        servers.metadata.1 = metadata.to_string();
        let (outcome, ..) = servers.log_in(|input| input.client = Some(configured(secret)));
        outcome.unwrap()
    };
    let basic = ClientProof::Basic("own".to_owned(), "secret-1".to_owned());
    let renewed_with = |mut credential: Credential, secret: Option<&str>| {
        credential.client.configure(&configured(secret));
        let request = refresh_request(&credential).unwrap();
        let form = form(&request);
        (
            request.proof == basic,
            form.contains("client_id=own"),
            form.contains("client_secret=secret-1"),
        )
    };
    for (methods, before, after, expected) in [
        (Value::Null, None, Some("secret-1"), (true, false, false)),
        (
            json!(["none", "client_secret_post"]),
            None,
            Some("secret-1"),
            (false, true, true),
        ),
        (Value::Null, Some("secret-1"), None, (false, true, false)),
    ] {
        let credential = logged_in(methods.clone(), before);
        assert_eq!(renewed_with(credential, after), expected, "{methods}");
    }
}

#[test]
fn renewal_keeps_what_the_answer_omits() {
    let (outcome, ..) = Servers::good().log_in(|_| {});
    let credential = outcome.unwrap();
    assert!(!credential.needs_renewal(3_540_999));
    assert!(credential.needs_renewal(3_541_000) && !credential.is_expired(3_600_999));
    let request = refresh_request(&credential).unwrap();
    assert_eq!(
        form(&request),
        "grant_type=refresh_token&refresh_token=refresh-token-no-1\
         &resource=https%3A%2F%2Fmcp.example%2Fv1%2Fmcp&client_id=client-1"
    );
    let answer = |status, body| Answer { status, body };
    let body = br#"{"access_token":"access-token-no-2","token_type":"bearer","expires_in":"20"}"#;
    let renewed = refreshed(&credential, &answer(200, body), 5_000).unwrap();
    assert_eq!(renewed.access_token, "access-token-no-2");
    assert_eq!(renewed.refresh_token, credential.refresh_token);
    assert!(!renewed.needs_renewal(20_999) && renewed.needs_renewal(21_000));
    for (status, body, is_transient) in [
        (503, &b""[..], true),
        (429, b"{}", true),
        (400, br#"{"error":"temporarily_unavailable"}"#, true),
        (400, br#"{"error":"invalid_client"}"#, false),
    ] {
        let error = refreshed(&credential, &answer(status, body), 0).unwrap_err();
        assert_eq!(error.is_transient(), is_transient, "{error}");
    }
    let gone = refreshed(
        &credential,
        &answer(400, br#"{"error":"invalid_grant"}"#),
        0,
    );
    assert!(matches!(gone, Err(LoginError::GrantInvalid(_))));
}

/// One server that lies. Returns its message; no request may have gone to a third party.
fn refusal(change: impl FnOnce(&mut Servers)) -> String {
    let mut servers = Servers::good();
    change(&mut servers);
    let (outcome, sent, _) = servers.log_in(|_| {});
    for request in &sent {
        let host = request.url.host_str();
        assert!(
            matches!(host, Some("mcp.example" | "as.example")),
            "{request:?}"
        );
        assert_eq!(request.url.scheme(), "https");
    }
    outcome.expect_err("the login must be refused").to_string()
}

#[test]
fn every_bad_authorization_server_is_refused_with_its_own_message() {
    type Change = Box<dyn FnOnce(&mut Servers)>;
    fn resource_with(name: &'static str, value: Value) -> Change {
        Box::new(move |it| {
            let mut document = resource();
            document[name] = value;
            it.resource.1 = document.to_string();
        })
    }
    fn metadata_with(name: &'static str, value: Value) -> Change {
        Box::new(move |it| {
            let mut document = metadata();
            document[name] = value;
            it.metadata.1 = document.to_string();
        })
    }
    fn token_with(name: &'static str, value: Value) -> Change {
        Box::new(move |it| {
            let mut document = token();
            document[name] = value;
            it.token.1 = document.to_string();
        })
    }
    fn header(text: &'static str) -> Change {
        Box::new(move |it| text.clone_into(&mut it.header))
    }
    fn redirect(text: &'static str) -> Change {
        Box::new(move |it| text.clone_into(&mut it.redirect))
    }
    fn answers(change: impl FnOnce(&mut Servers) + 'static) -> Change {
        Box::new(change)
    }
    const ISS: &str = "https%3A%2F%2Fas.example";
    let deep = "[".repeat(100);
    let flood = format!("{{\"a\":[{}0]}}", "0,".repeat(20_000));
    let flood_again = flood.clone();
    let cases: Vec<(&str, Change, &str)> = vec![
        // The challenge.
        (
            "javascript challenge",
            header("Bearer resource_metadata=\"javascript:alert(1)\""),
            "its scheme is `javascript`",
        ),
        (
            "file challenge",
            header("Bearer resource_metadata=\"file:///etc/passwd\""),
            "its scheme is `file`",
        ),
        (
            "private challenge",
            header("Bearer resource_metadata=\"https://10.0.0.1/m\""),
            "protected resource metadata cannot be used: it leads into a private network",
        ),
        (
            "cloud metadata challenge",
            header("Bearer resource_metadata=\"http://169.254.169.254/latest\""),
            "private network",
        ),
        (
            "loopback challenge",
            header("Bearer resource_metadata=\"http://localhost:1/m\""),
            "leads to this machine",
        ),
        (
            "http challenge",
            header("Bearer resource_metadata=\"http://mcp.example/m\""),
            "plain http",
        ),
        // Protected resource metadata.
        (
            "resource of another server",
            resource_with("resource", json!("https://evil.example/mcp")),
            "is for `https://evil.example/mcp`",
        ),
        (
            "resource beside the path",
            resource_with("resource", json!("https://mcp.example/v2")),
            "is for `https://mcp.example/v2`",
        ),
        (
            "resource missing",
            resource_with("resource", Value::Null),
            "has no `resource`",
        ),
        (
            "no authorization server",
            resource_with("authorization_servers", json!([])),
            "has no `authorization_servers`",
        ),
        (
            "issuer in a private network",
            resource_with("authorization_servers", json!(["https://192.168.0.1"])),
            "authorization server cannot be used: it leads into a private network",
        ),
        (
            "issuer in IPv6 disguise",
            resource_with(
                "authorization_servers",
                json!(["https://[::ffff:10.0.0.1]"]),
            ),
            "private network",
        ),
        (
            "issuer by http",
            resource_with("authorization_servers", json!(["http://as.example"])),
            "authorization server cannot be used: it is plain http",
        ),
        (
            "issuer with password",
            resource_with("authorization_servers", json!(["https://u:p@as.example"])),
            "user name or password",
        ),
        (
            "issuer with fragment",
            resource_with("authorization_servers", json!(["https://as.example#x"])),
            "has a fragment",
        ),
        (
            "issuer with query",
            resource_with("authorization_servers", json!(["https://as.example?x"])),
            "has a query",
        ),
        (
            "resource document redirects",
            answers(|it| it.resource.0 = 302),
            "protected resource metadata answered with a redirect",
        ),
        (
            "resource document twice ambiguous",
            answers(|it| it.resource.1 = r#"{"resource":"a","resource":"b"}"#.to_owned()),
            "duplicate key `resource`",
        ),
        (
            "resource document too deep",
            answers(move |it| it.resource.1 = format!("{{\"a\":{deep}")),
            "nested deeper than 16",
        ),
        (
            "resource document floods",
            answers(move |it| it.resource.1 = flood),
            "more than 10000 values",
        ),
        // Authorization server metadata.
        (
            "no metadata",
            answers(|it| it.metadata.0 = 404),
            "`https://as.example` publishes no metadata",
        ),
        (
            "another issuer",
            metadata_with("issuer", json!("https://honest.example")),
            "names the issuer `https://honest.example`",
        ),
        (
            "issuer with slash",
            metadata_with("issuer", json!("https://as.example/")),
            "names the issuer `https://as.example/`",
        ),
        (
            "issuer in capitals",
            metadata_with("issuer", json!("https://AS.example")),
            "names the issuer `https://AS.example`",
        ),
        (
            "issuer missing",
            metadata_with("issuer", Value::Null),
            "has no `issuer`",
        ),
        (
            "no PKCE",
            metadata_with("code_challenge_methods_supported", Value::Null),
            "does not support PKCE",
        ),
        (
            "only plain PKCE",
            metadata_with("code_challenge_methods_supported", json!(["plain"])),
            "does not support PKCE",
        ),
        (
            "javascript authorization",
            metadata_with("authorization_endpoint", json!("javascript:alert(1)")),
            "authorization_endpoint cannot be used: its scheme",
        ),
        (
            "http authorization",
            metadata_with("authorization_endpoint", json!("http://as.example/a")),
            "authorization_endpoint cannot be used: it is plain http",
        ),
        (
            "private token endpoint",
            metadata_with("token_endpoint", json!("https://172.16.0.1/t")),
            "token_endpoint cannot be used",
        ),
        (
            "loopback registration",
            metadata_with("registration_endpoint", json!("https://127.0.0.1/r")),
            "registration_endpoint cannot be used",
        ),
        (
            "endpoint is a list",
            metadata_with("token_endpoint", json!([])),
            "`token_endpoint` is not a string",
        ),
        (
            "no token endpoint",
            metadata_with("token_endpoint", Value::Null),
            "has no `token_endpoint`",
        ),
        (
            "no registration",
            metadata_with("registration_endpoint", Value::Null),
            "offers no way to register",
        ),
        (
            "no code grant",
            metadata_with("grant_types_supported", json!(["password"])),
            "does not offer the authorization code grant",
        ),
        (
            "metadata floods",
            answers(move |it| it.metadata.1 = flood_again),
            "metadata of the authorization server is invalid: more than",
        ),
        (
            "metadata fails",
            answers(|it| it.metadata.0 = 503),
            "could not answer (HTTP status 503)",
        ),
        // Registration.
        (
            "registration refused",
            answers(|it| {
                it.registration = (400, json!({"error": "invalid_redirect_uri"}).to_string())
            }),
            "could not be registered: HTTP status 400: invalid_redirect_uri",
        ),
        (
            "registration without id",
            answers(|it| it.registration.1 = "{}".to_owned()),
            "the answer has no `client_id`",
        ),
        (
            "registered secret is a word of other texts",
            answers(|it| {
                let client = json!({"client_id": "c", "client_secret": "description"});
                it.registration.1 = client.to_string();
            }),
            "its `client_secret` is shorter than 16 bytes",
        ),
        // The answer of the browser.
        (
            "mix-up",
            redirect("code=c&state=STATE&iss=https%3A%2F%2Fhonest.example"),
            "comes from another authorization server",
        ),
        (
            "issuer withheld",
            redirect("code=c&state=STATE"),
            "does not name its issuer",
        ),
        (
            "another state",
            redirect("code=c&state=OTHER&iss=x"),
            "belongs to another login",
        ),
        (
            "error of a stranger",
            redirect("error=e&error_description=call+me&state=STATE&iss=x"),
            "comes from another authorization server",
        ),
        // The token.
        (
            "token redirects",
            answers(|it| it.token.0 = 307),
            "token endpoint answered with a redirect",
        ),
        (
            "token of another kind",
            token_with("token_type", json!("DPoP")),
            "`token_type` is `DPoP`",
        ),
        (
            "token adds a header",
            token_with("access_token", json!("a\r\nX: y")),
            "`access_token` has characters",
        ),
        (
            "token is a word of other texts",
            token_with("access_token", json!("name")),
            "is shorter than 16 bytes",
        ),
        (
            "token floods",
            token_with("access_token", json!("a".repeat(20_000))),
            "or is too long",
        ),
        (
            "no token",
            token_with("access_token", Value::Null),
            "has no `access_token`",
        ),
        (
            "token is not JSON",
            answers(|it| it.token.1 = "<html>".to_owned()),
            "answer with the token is invalid: not JSON",
        ),
        (
            "token refused with 200",
            answers(|it| it.token.1 = json!({"error": "invalid_target"}).to_string()),
            "refused the login: invalid_target",
        ),
    ];
    assert!(cases.len() >= 40);
    assert!(
        refusal(|it| it.redirect = format!("error=access_denied&state=STATE&iss={ISS}"))
            .ends_with("access_denied")
    );
    for (name, change, expected) in cases {
        let message = refusal(change);
        assert!(message.contains(expected), "{name}: {message}");
        assert!(
            message.len() < 400 && !message.contains("call me"),
            "{name}: {message}"
        );
    }
}
