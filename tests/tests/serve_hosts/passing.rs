//! Tests that a server's request during a call is sent to the calling host, and to no other host,
//! with both eras of hosts and servers.

use serde_json::{Value, json};
use tests::command::{Home, program};
use tests::patience::in_one_of_three;
use tests::serving::{HttpResponse, ServeProcess};
use tests::stdio_host::StdioHost;

use super::{noted, running, text};

const ANSWER: &str = "Ada Lovelace";
const ARGS: [&str; 6] = [
    "--disclosure",
    "full",
    "--allow",
    "*.*",
    "--pass",
    "elicitation,sampling,roots",
];

fn server(home: &Home, era: &str) -> String {
    let (program, log) = (program("fixture-server"), home.path().join("fixture.log"));
    format!("test={}{era} {}", program.display(), log.display())
}

pub(super) fn serving(era: &str) -> ServeProcess {
    let home = Home::new();
    let server = server(&home, era);
    let more = ["--server", &server];
    ServeProcess::start_in(home, ARGS.into_iter().chain(more))
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"username": ANSWER, "name": ANSWER}})
}

/// Checks that the person answered, that the server got the answer, and that it appears nowhere
/// else.
fn check(home: &Home, result: &Value, said: &Value) {
    let action = said["action"].as_str().unwrap();
    let value = &result["structuredContent"]["value"];
    assert_eq!(*value, format!("state-ok: answer {action}"), "{result}");
    let was_accepted = action == "accept";
    assert_eq!(
        noted(home).contains(ANSWER),
        was_accepted,
        "{}",
        noted(home)
    );
    home.verify_all();
    let journals = home.journals();
    let journal = std::fs::read_to_string(&journals[0]).unwrap();
    assert!(journal.contains(r#""kind":"inquired""#), "{journal}");
    let end = match action {
        "accept" => "answered",
        "decline" => "declined",
        _ => "dismissed",
    };
    let ended = format!(r#""end":"{end}""#);
    assert!(journal.contains(&ended), "{journal}");
    assert!(!journal.contains(ANSWER) && !result.to_string().contains(ANSWER));
}

fn is_about_the_server(params: &Value) {
    let message = params["message"].as_str().unwrap();
    assert!(
        message.starts_with("The server `test` behind airlock asks:"),
        "{message}"
    );
    assert!(message.contains("> Who are you?"), "{message}");
    let fields = &params["requestedSchema"]["properties"];
    assert!(fields.get("username").is_some(), "{params}");
}

const CODE: &str = "return await test.elicitation({message: 'Who are you?'})";

#[test]
fn older_era_host_gets_request_from_either_era_server() {
    for era in ["", " --newer"] {
        for said in [
            yes(),
            json!({"action": "decline"}),
            json!({"action": "cancel"}),
        ] {
            let serving = serving(era);
            let host = serving.session(&json!({"elicitation": {}}));
            let mut run = host.begin(1, "tools/call", &running(CODE));
            let asked = run.told("elicitation/create");
            is_about_the_server(&asked["params"]);
            host.reply(&asked["id"], &said);
            check(&serving.home, &run.answer(1), &said);
        }
    }
}

/// Sends a request of the newer era.
pub(super) fn modern(
    serving: &ServeProcess,
    mut params: Value,
    capabilities: &Value,
) -> HttpResponse {
    let version = "2026-07-28";
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = version.into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    let method = "tools/call";
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let headers = [
        ("MCP-Protocol-Version", version),
        ("Mcp-Method", method),
        ("Mcp-Name", "run_script"),
    ];
    serving.request("POST", &headers, &message.to_string())
}

#[test]
fn newer_era_host_gets_input_required() {
    for era in ["", " --newer"] {
        for said in [
            yes(),
            json!({"action": "decline"}),
            json!({"action": "cancel"}),
        ] {
            let serving = serving(era);
            let can = json!({"elicitation": {"form": {}}});
            let mut params = json!({"name": "run_script", "arguments": {"code": CODE}});
            let first = modern(&serving, params.clone(), &can).answer(1);
            assert_eq!(first["resultType"], "input_required", "{first}");
            let requests = first["inputRequests"].as_object().unwrap();
            let (key, request) = requests.iter().next().unwrap();
            assert_eq!(request["method"], "elicitation/create");
            is_about_the_server(&request["params"]);
            params["requestState"] = first["requestState"].clone();
            params["inputResponses"] = json!({ key: said });
            let last = modern(&serving, params, &can).answer(1);
            check(&serving.home, &last, &said);
        }
    }
}

#[test]
fn url_elicitation_has_id_where_era_supports_it() {
    let code = "return await test.elicitation_address({})";
    let can = json!({"elicitation": {"url": {}}});
    let accept = json!({"action": "accept"});
    for era in ["", " --newer"] {
        let serving = serving(era);
        let host = serving.session(&can);
        let mut run = host.begin(1, "tools/call", &running(code));
        let asked = run.told("elicitation/create");
        assert_eq!(asked["params"]["url"], "https://example.com/a", "{asked}");
        let id = asked["params"]["elicitationId"].as_str().unwrap();
        assert_eq!(id == "theirs", era.is_empty(), "{asked}");
        host.reply(&asked["id"], &accept);
        let older = run.answer(1);

        let mut params = json!({"name": "run_script", "arguments": {"code": code}});
        let first = modern(&serving, params.clone(), &can).answer(1);
        let requests = first["inputRequests"].as_object().unwrap();
        let (key, request) = requests.iter().next().unwrap();
        assert!(
            request["params"].get("elicitationId").is_none(),
            "{request}"
        );
        params["requestState"] = first["requestState"].clone();
        params["inputResponses"] = json!({ key: accept });
        let newer = modern(&serving, params, &can).answer(1);
        for result in [older, newer] {
            let value = &result["structuredContent"]["value"];
            assert_eq!(*value, "state-ok: answer accept", "{era}: {result}");
        }
    }
}

#[test]
fn simultaneous_server_requests_are_batched() {
    // A question that arrives a moment after the first is sent in a separate round.
    in_one_of_three(all_at_once);
}

fn all_at_once() {
    let serving = serving(" --newer");
    let can = json!({"elicitation": {}, "sampling": {}, "roots": {}});
    let code = "return await test.input_required_result_multiple_inputs({})";
    let mut params = json!({"name": "run_script", "arguments": {"code": code}});
    let first = modern(&serving, params.clone(), &can).answer(1);
    let requests = first["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 3, "{first}");
    let answer = |request: &Value| match request["method"].as_str().unwrap() {
        "elicitation/create" => yes(),
        "roots/list" => json!({"roots": [{"uri": "file:///work"}]}),
        _ => {
            let prompt = request["params"]["systemPrompt"].as_str().unwrap();
            assert!(
                prompt.contains("The server `test` behind airlock"),
                "{prompt}"
            );
            let content = json!({"type": "text", "text": "hello"});
            json!({"role": "assistant", "content": content, "model": "m"})
        }
    };
    let responses = requests.iter().map(|(key, it)| (key.clone(), answer(it)));
    let responses: serde_json::Map<_, _> = responses.collect();
    params["requestState"] = first["requestState"].clone();
    params["inputResponses"] = responses.into();
    let last = modern(&serving, params, &can).answer(1);
    let value = last["structuredContent"]["value"].as_str().unwrap();
    assert!(
        value.contains("user_name accept") && value.contains("greeting answered"),
        "{last}"
    );
    assert!(
        noted(&serving.home).contains("file:///work"),
        "{}",
        noted(&serving.home)
    );
}

#[test]
fn server_key_is_kept_and_keys_are_unique() {
    let serving = serving(" --newer");
    let can = json!({"elicitation": {}});
    let code = "const ask = (message) => test.elicitation({message});
        return await Promise.all([ask('Who are you?'), ask('Who else?')])";
    let mut params = json!({"name": "run_script", "arguments": {"code": code}});
    let mut asked = Vec::new();
    let mut said = modern(&serving, params.clone(), &can).answer(1);
    // The questions arrive in one round, or in two on a slow machine.
    while let Some(requests) = said["inputRequests"].as_object() {
        let keys = requests.keys().cloned();
        let answers = keys.clone().map(|key| (key, yes()));
        params["inputResponses"] = answers.collect::<serde_json::Map<_, _>>().into();
        params["requestState"] = said["requestState"].clone();
        asked.push(keys.collect::<Vec<_>>());
        said = modern(&serving, params.clone(), &can).answer(1);
    }
    let value = &said["structuredContent"]["value"];
    let expected = "state-ok: answer accept";
    assert_eq!(*value, json!([expected, expected]), "{said}");
    let apart = vec![vec!["answer".to_owned()]; 2];
    let together = vec![vec!["answer".to_owned(), "inquiry-1".to_owned()]];
    assert!([apart, together].contains(&asked), "{asked:?}");
}

#[test]
fn host_without_capability_is_not_asked() {
    let code = "try { return await test.elicitation({message: 'Who are you?'}) }
        catch (e) { return [e.code, e.message] }";
    for (era, expected) in [
        (
            "",
            "cannot be asked for an answer from the person at the host",
        ),
        (
            " --newer",
            "the server asked for input, which is not available here",
        ),
    ] {
        let serving = serving(era);
        let older = serving
            .session(&json!({"elicitation": {"url": {}}}))
            .run(1, code);
        let params = json!({"name": "run_script", "arguments": {"code": code}});
        let newer = modern(&serving, params, &json!({"sampling": {}})).answer(1);
        for result in [older, newer] {
            let value = &result["structuredContent"]["value"];
            assert!(value.to_string().contains(expected), "{result}");
        }
    }
}

#[test]
fn disabled_pass_through_is_not_asked() {
    let home = Home::new();
    let server = server(&home, "");
    let args = [
        "--disclosure",
        "full",
        "--allow",
        "*.*",
        "--pass",
        "none",
        "--server",
        &server,
    ];
    let serving = ServeProcess::start_in(home, args);
    let host = serving.session(&json!({"elicitation": {}}));
    let result = host.run(1, "return await test.elicitation({message: 'x'})");
    assert!(text(&result).contains("cannot be asked"), "{result}");
    for wrong in [["--pass", "none,sampling"], ["--pass", "tea"]] {
        let home = Home::new();
        let args = ["serve", "--demo"].into_iter().chain(wrong);
        let ended = home.run(args);
        assert!(ended.stderr.contains("--pass"), "{ended}");
    }
}

#[test]
fn request_reaches_only_the_calling_host() {
    // Over HTTP, with a server of the newer era: the request for input belongs to one call.
    let serving = serving(" --newer");
    let hosts = [
        serving.session(&json!({"elicitation": {}})),
        serving.session(&json!({"elicitation": {}})),
    ];
    let code = |word: &str| {
        running(&format!(
            "return await test.elicitation({{message: '{word}'}})"
        ))
    };
    let mut first = hosts[0].begin(1, "tools/call", &code("for the first"));
    let asked = first.told("elicitation/create");
    let mut second = hosts[1].begin(1, "tools/call", &code("for the second"));
    let other = second.told("elicitation/create");
    assert!(asked.to_string().contains("for the first"), "{asked}");
    assert!(other.to_string().contains("for the second"), "{other}");
    hosts[1].reply(&other["id"], &json!({"action": "decline"}));
    let declined = second.answer(1);
    assert!(text(&declined).contains("answer decline"), "{declined}");
    hosts[0].reply(&asked["id"], &yes());
    let answered = first.answer(1);
    assert!(text(&answered).contains("answer accept"), "{answered}");
}

#[test]
fn servers_learn_single_host_capabilities_at_start() {
    for (can, expected) in [
        (json!({"elicitation": {}}), "state-ok: answer accept"),
        (json!({}), "cannot be asked"),
    ] {
        let home = Home::new();
        let server = server(&home, "");
        let mut command = home.serve(ARGS);
        command.args(["--server", &server]);
        let mut host = StdioHost::start(&mut command, &can);
        let id = host.ask(
            "tools/call",
            &json!({"name": "run_script", "arguments": {"code": CODE}}),
        );
        if can != json!({}) {
            let asked = host.wait_for(|it| it["method"] == "elicitation/create");
            host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": yes()}));
        }
        let answer = host.wait_for(|it| it["id"] == id && it["method"].is_null());
        assert!(answer.to_string().contains(expected), "{answer}");
        let told = noted(&home);
        let told = told
            .lines()
            .find(|it| it.starts_with("host "))
            .unwrap_or_default();
        assert_eq!(told.contains("elicitation"), can != json!({}), "{told}");
    }
}

#[test]
fn command_line_run_without_terminal_has_no_capabilities() {
    let home = Home::new();
    let server = server(&home, "");
    let script = home.write("a.js", CODE);
    let script = script.display().to_string();
    let ended = home.run(["run", &script, "--server", &server, "--allow", "*.*"]);
    assert!(ended.stdout.contains("answer decline"), "{ended}");
    assert!(
        ended.stderr.contains("airlock declined, because"),
        "{ended}"
    );
    self::ended(&home, "declined");
}

/// Checks that the last journal records that an inquiry ended in this way.
fn ended(home: &Home, end: &str) {
    home.verify_all();
    let journals = home.journals();
    let journal = std::fs::read_to_string(&journals[0]).unwrap();
    assert!(journal.contains(&format!(r#""end":"{end}""#)), "{journal}");
}

#[test]
fn host_error_differs_from_declined_form() {
    let serving = serving("");
    let host = serving.session(&json!({"elicitation": {}}));
    let mut run = host.begin(1, "tools/call", &running(CODE));
    let asked = run.told("elicitation/create");
    host.refuse(&asked["id"], -32_601, "no forms\u{202e} here");
    let result = run.answer(1).to_string();
    assert!(!result.contains("cancel"), "{result}");
    assert!(
        result.contains("no forms") && !result.contains('\u{202e}'),
        "{result}"
    );
    ended(&serving.home, "declined");
}

/// Starts airlock with a server that has this credential in its configuration, these arguments, and
/// a log.
fn with_credential(credential: &str, args: &[&str]) -> ServeProcess {
    let home = Home::new();
    let (program, log) = (program("fixture-server"), home.path().join("fixture.log"));
    let mut args = args.to_vec();
    args.push(log.to_str().unwrap());
    let config = format!(
        "[servers.test]\ncommand = \"{}\"\nargs = {args:?}\nenv = {{ TOKEN = \"{credential}\" }}\n",
        program.display(),
    );
    let config = home.write("airlock.toml", config).display().to_string();
    let more = ["--config", &config];
    ServeProcess::start_in(home, ARGS.into_iter().chain(more))
}

#[test]
fn server_key_containing_credential_is_replaced() {
    let code = "return await test.input_required_result_elicitation({})";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    for (credential, expected) in [("another-one", "user_name"), ("user_name", "inquiry-1")] {
        let serving = with_credential(credential, &["--newer"]);
        let said = modern(&serving, params.clone(), &json!({"elicitation": {}})).answer(1);
        let requests = said["inputRequests"].as_object().unwrap();
        assert_eq!(requests.keys().collect::<Vec<_>>(), [expected], "{said}");
    }
}

#[test]
fn form_with_credential_as_name_is_refused() {
    let serving = with_credential("username", &[]);
    let host = serving.session(&json!({"elicitation": {}}));
    let mut run = host.begin(1, "tools/call", &running(CODE));
    let mut heard = String::new();
    while let Some(message) = run.next_message() {
        assert_ne!(message["method"], "elicitation/create", "{message}");
        heard.push_str(&message.to_string());
    }
    assert!(heard.contains("contains a credential"), "{heard}");
    ended(&serving.home, "declined");
}

/// Starts airlock with two servers: `one`, whose notes are private, and `test`, which has no
/// labels.
fn labelled(more: &[&str]) -> ServeProcess {
    let home = Home::new();
    let labels = "[labels.one]\nreads = [\"private:notes\"]\n[labels.test]\nreads = []\n";
    let labels = home.write("labels.toml", labels).display().to_string();
    let (test, one) = (server(&home, ""), program("fixture-server"));
    let one = format!("one={}", one.display());
    let servers = ["--server", &test, "--server", &one, "--labels", &labels];
    let args = ARGS.into_iter().chain(servers).chain(more.iter().copied());
    ServeProcess::start_in(home, args)
}

fn labels(result: &Value) -> String {
    result["structuredContent"]["flow"]["labels"].to_string()
}

#[test]
fn answers_during_run_count_as_read() {
    let notes = "const t = await one.simple_text({});";
    let asks = format!("{notes} return await test.elicitation({{message: String(t)}})");
    let serving = labelled(&[]);
    // A host of the older era, in one session.
    let host = serving.session(&json!({"elicitation": {}}));
    let mut run = host.begin(1, "tools/call", &running(&asks));
    let asked = run.told("elicitation/create");
    let beside = host.run(2, "return 1");
    assert!(labels(&beside).contains("private:notes"), "{beside}");
    host.reply(&asked["id"], &yes());
    assert!(text(&run.answer(1)).contains("answer accept"));
    // A host of the newer era, which disconnects while the question is open and stores no handle.
    let serving = labelled(&[]);
    let params = json!({"name": "run_script", "arguments": {"code": asks}});
    let first = modern(&serving, params, &json!({"elicitation": {}})).answer(1);
    assert_eq!(first["resultType"], "input_required", "{first}");
    let params = json!({"name": "run_script", "arguments": {"code": "return 1"}});
    let beside = modern(&serving, params, &json!({})).answer(1);
    assert!(labels(&beside).contains("private:notes"), "{beside}");
}

#[test]
fn forwarded_logs_and_console_count_as_read() {
    let logs = "await one.tool_with_logging({}); await test.elicitation({message: 'x'})";
    let prints = "const t = await one.simple_text({}); console.log(t);
        await test.elicitation({message: 'x'})";
    for code in [logs, prints] {
        let serving = labelled(&["--pass", "elicitation,logging"]);
        let host = serving.session(&json!({"elicitation": {}}));
        let mut run = host.begin(1, "tools/call", &running(code));
        let _asked = run.told("elicitation/create");
        let beside = host.run(2, "return 1");
        assert!(labels(&beside).contains("private:notes"), "{beside}");
    }
}
