//! Tests the page's server with requests of a browser and of an attacker.

use std::num::NonZeroU32;
use std::sync::Mutex;

use airlock_core::grant::Terms;
use airlock_core::report::ReportedOutcome;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::super::wire::tests::asked;
use super::*;

const ARGS: &str = r#"{"project":"OPS","title":"a"}"#;

/// Starts a server that records its links.
fn start() -> (Arc<Web>, Arc<Mutex<Vec<String>>>) {
    let links = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&links);
    let web = Web::start(Box::new(move |link| {
        told.lock().unwrap().push(link.to_owned())
    }));
    (Arc::new(web.unwrap()), links)
}

/// Splits `http://127.0.0.1:PORT/enter?…` into host and path.
fn split(link: &str) -> (String, String) {
    let rest = link.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    (host.to_owned(), format!("/{path}"))
}

async fn send(host: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(host).await.unwrap();
    let length = body.len();
    let text = format!("{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
    // A refused client may be disconnected after the answer, perhaps while it still sends.
    let _ = stream.write_all(text.as_bytes()).await;
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8(said).unwrap()
}

async fn get_with(host: &str, path: &str, headers: &str) -> String {
    send(
        host,
        &format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{headers}"),
        "",
    )
    .await
}

fn status(said: &str) -> u16 {
    said.split(' ').nth(1).unwrap().parse().unwrap()
}

fn body(said: &str) -> Value {
    serde_json::from_str(said.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// Opens a link and returns the cookie as a header.
async fn enter(link: &str) -> (String, String) {
    let (host, path) = split(link);
    let said = get_with(&host, &path, "").await;
    assert_eq!(status(&said), 303, "{said}");
    let cookie = said
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
    let cookie = cookie.split(';').next().unwrap();
    let mut lines = said.lines();
    let key = lines
        .find_map(|line| line.strip_prefix("location: /#"))
        .unwrap();
    (
        host,
        format!("cookie: {cookie}\r\nx-airlock-key: {key}\r\n"),
    )
}

async fn post_answer(host: &str, headers: &str, said: &Value) -> String {
    let head =
        format!("POST /answer HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n{headers}");
    send(host, &head, &said.to_string()).await
}

/// Returns the one open question on the page.
async fn open_question(host: &str, cookie: &str) -> Value {
    let said = get_with(host, "/questions", cookie).await;
    let questions = body(&said)["questions"].as_array().unwrap().clone();
    let mut open = questions.into_iter().filter(|it| it["state"] == "open");
    open.next().unwrap()
}

fn ask(web: &Arc<Web>, args: &str) -> tokio::task::JoinHandle<Answer> {
    let (web, question) = (Arc::clone(web), asked(args));
    tokio::spawn(async move { web.converse(question).await.unwrap() })
}

/// Waits until the server has issued a link.
async fn link_of(links: &Arc<Mutex<Vec<String>>>) -> String {
    loop {
        if let Some(link) = links.lock().unwrap().last() {
            return link.clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn question_is_answered_once_by_holder_of_link() {
    let (web, links) = start();
    let answer = ask(&web, ARGS);
    let (host, cookie) = enter(&link_of(&links).await).await;
    let question = open_question(&host, &cookie).await;
    assert_eq!(question["tool"], "tickets.create");
    let yes = json!({"id": question["id"], "nonce": question["nonce"], "answer": "allow-once"});
    assert_eq!(status(&post_answer(&host, &cookie, &yes).await), 200);
    assert_eq!(answer.await.unwrap(), Answer::AllowOnce);
    let again = post_answer(&host, &cookie, &yes).await;
    assert_eq!(status(&again), 409, "{again}");
    let second = ask(&web, ARGS);
    let question = loop {
        let said = get_with(&host, "/questions", &cookie).await;
        let questions = body(&said)["questions"].as_array().unwrap().clone();
        if let Some(open) = questions.into_iter().find(|it| it["state"] == "open") {
            break open;
        }
    };
    let some = json!({
        "id": question["id"], "nonce": question["nonce"],
        "answer": "allow", "uses_max": 5, "scope": "run", "same": ["/project"],
    });
    assert_eq!(status(&post_answer(&host, &cookie, &some).await), 200);
    let Answer::Allow(Terms {
        uses_max,
        condition,
        ..
    }) = second.await.unwrap()
    else {
        panic!()
    };
    assert_eq!(uses_max, NonZeroU32::new(5).unwrap());
    let condition = condition.unwrap().to_string();
    assert_eq!(condition, "/project = \"OPS\"; /title may be anything");
    assert_eq!(
        links.lock().unwrap().len(),
        1,
        "an open page needs no second link"
    );
}

#[tokio::test]
async fn port_without_link_serves_nothing() {
    let (web, links) = start();
    let answer = ask(&web, ARGS);
    let link = link_of(&links).await;
    let (host, path) = split(&link);
    for path in [
        "/",
        "/questions",
        "/page.js",
        "/card.js",
        "/page.css",
        "/answer",
        "/enter",
        "/zzz",
    ] {
        let said = get_with(&host, path, "").await;
        assert_eq!(status(&said), 404, "{path}");
        assert!(said.ends_with("\r\n\r\n"), "{said}");
    }
    let said = post_answer(&host, "", &json!({"id": 1})).await;
    assert_eq!(status(&said), 404);
    let forged = path.replacen("until=", "until=9", 1);
    assert_eq!(status(&get_with(&host, &forged, "").await), 404);
    let cookie = "cookie: airlock=00000000000000000000000000000000\r\n";
    assert_eq!(status(&get_with(&host, "/questions", cookie).await), 404);
    // DNS rebinding: under a foreign host name, the link is not valid.
    let rebound = format!("GET {path} HTTP/1.1\r\nhost: evil.example\r\n");
    assert_eq!(status(&send(&host, &rebound, "").await), 404);

    let (host, cookie) = enter(&link).await;
    assert_eq!(
        status(&get_with(&host, &path, "").await),
        410,
        "the link was already used"
    );
    let question = open_question(&host, &cookie).await;
    let yes = json!({"id": question["id"], "nonce": question["nonce"], "answer": "allow-once"});
    for (head, why) in [
        (format!("host: {host}\r\n{cookie}"), "no origin"),
        (
            format!("host: {host}\r\norigin: http://evil.example\r\n{cookie}"),
            "another origin",
        ),
        (
            format!("host: {host}\r\norigin: null\r\n{cookie}"),
            "no origin at all",
        ),
        (
            format!("host: evil.example\r\norigin: http://{host}\r\n{cookie}"),
            "another host",
        ),
        (
            format!("host: {host}\r\norigin: http://{host}\r\n"),
            "no cookie",
        ),
    ] {
        let said = send(
            &host,
            &format!("POST /answer HTTP/1.1\r\n{head}"),
            &yes.to_string(),
        )
        .await;
        assert_eq!(status(&said), 404, "{why}");
    }
    assert!(!answer.is_finished());
    answer.abort();
}

#[tokio::test]
async fn wrong_nonce_unclear_answer_or_unknown_question_allows_nothing() {
    let (web, links) = start();
    let answer = ask(&web, ARGS);
    let (host, cookie) = enter(&link_of(&links).await).await;
    let question = open_question(&host, &cookie).await;
    let (id, nonce) = (&question["id"], &question["nonce"]);
    for (said, expected) in [
        (json!({"id": id, "nonce": "0", "answer": "allow-once"}), 403),
        (
            json!({"id": 99, "nonce": nonce, "answer": "allow-once"}),
            403,
        ),
        (json!({"id": id, "nonce": nonce, "answer": "yes"}), 400),
        (
            json!({"id": id, "nonce": nonce, "answer": "allow", "uses_max": 0}),
            400,
        ),
        (json!({"nonce": nonce, "answer": "allow-once"}), 400),
        (json!([1]), 400),
        (
            json!({"id": id, "nonce": nonce, "answer": "x".repeat(100_000)}),
            413,
        ),
    ] {
        assert_eq!(
            status(&post_answer(&host, &cookie, &said).await),
            expected,
            "{said}"
        );
    }
    assert!(!answer.is_finished());
    // The requester goes away, so no answer is possible.
    answer.abort();
    let _ = answer.await;
    let late = json!({"id": id, "nonce": nonce, "answer": "allow-once"});
    assert_eq!(status(&post_answer(&host, &cookie, &late).await), 409);
}

/// Returns the response to exactly these bytes, or an empty text if the connection is closed.
async fn say(host: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(host).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn malformed_http_request_gets_no_response() {
    let (web, links) = start();
    let answer = ask(&web, ARGS);
    let (host, cookie) = enter(&link_of(&links).await).await;
    let question = open_question(&host, &cookie).await;
    let yes = json!({"id": question["id"], "nonce": question["nonce"], "answer": "allow-once"});
    let (yes, length) = (yes.to_string(), yes.to_string().len());
    let ours = format!("host: {host}\r\norigin: http://{host}\r\n{cookie}");
    let close = "connection: close\r\n";
    let key = cookie.lines().nth(1).unwrap();
    let only_cookie = cookie.lines().next().unwrap();
    let refused = [
        String::new(),
        "\0\u{1}\u{2}\r\n\r\n".into(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
        format!("\u{16}\u{3}\u{1}{}", "x".repeat(2_000)),
        "GET / HTTP/9.9\r\n\r\n".into(),
        format!("GET /questions HTTP/1.0\r\n{cookie}\r\n"),
        format!("GET /{} HTTP/1.1\r\n{ours}{close}\r\n", "a".repeat(1 << 20)),
        format!(
            "GET / HTTP/1.1\r\n{ours}{}{close}\r\n",
            "x: y\r\n".repeat(5_000)
        ),
        // The foreign name first and the real name second, and the reverse.
        format!(
            "POST /answer HTTP/1.1\r\nhost: evil.example\r\n{ours}{close}content-length: {length}\r\n\r\n{yes}"
        ),
        format!("POST /answer HTTP/1.1\r\n{ours}{close}content-length: {length}\r\n\r\n{yes}")
            .replace("origin: http://", "origin: https://"),
        format!(
            "POST /answer HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}.evil.example\r\n{cookie}{close}content-length: {length}\r\n\r\n{yes}"
        ),
        format!(
            "POST /answer HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n{key}\r\n{close}content-length: {length}\r\n\r\n{yes}"
        ),
        format!(
            "POST /answer HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n{only_cookie}\r\n{close}content-length: {length}\r\n\r\n{yes}"
        ),
        format!(
            "POST /answer HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n{only_cookie}\r\nx-airlock-key: 00\r\n{close}content-length: {length}\r\n\r\n{yes}"
        ),
        // Other methods and spellings of the valid paths.
        format!("PUT /answer HTTP/1.1\r\n{ours}{close}content-length: {length}\r\n\r\n{yes}"),
        format!("GET /answer HTTP/1.1\r\n{ours}{close}content-length: {length}\r\n\r\n{yes}"),
        format!("OPTIONS /answer HTTP/1.1\r\n{ours}{close}\r\n"),
        format!("POST /questions HTTP/1.1\r\n{ours}{close}content-length: {length}\r\n\r\n{yes}"),
        format!("POST //answer HTTP/1.1\r\n{ours}{close}content-length: {length}\r\n\r\n{yes}"),
        format!("POST /answer/ HTTP/1.1\r\n{ours}{close}content-length: {length}\r\n\r\n{yes}"),
        format!("POST /x/../answer HTTP/1.1\r\n{ours}{close}content-length: {length}\r\n\r\n{yes}"),
        // Bodies that do not match their headers.
        format!("POST /answer HTTP/1.1\r\n{ours}{close}content-length: 5\r\n\r\n{yes}"),
        format!(
            "POST /answer HTTP/1.1\r\n{ours}{close}content-length: 99999999999999999999\r\n\r\n{yes}"
        ),
        format!(
            "POST /answer HTTP/1.1\r\n{ours}{close}content-length: {length}\r\ncontent-length: 3\r\n\r\n{yes}"
        ),
        format!(
            "POST /answer HTTP/1.1\r\n{ours}{close}transfer-encoding: chunked\r\n\r\nzz\r\n{yes}\r\n0\r\n\r\n"
        ),
        format!(
            "POST /answer HTTP/1.1\r\n{ours}{close}content-length: {}\r\n\r\n{}",
            1 << 20,
            "[".repeat(1 << 20)
        ),
        format!("POST /answer HTTP/1.1\r\n{ours}{close}content-length: 9\r\n\r\n[[[[[[[[["),
    ];
    for request in refused {
        let said = say(&host, request.as_bytes()).await;
        let shown: String = request.chars().take(120).collect();
        // An empty response or frames of another HTTP version count as a refusal.
        let is_refused = !said.starts_with("HTTP/1") || (400..500).contains(&status(&said));
        assert!(is_refused, "{shown:?} was answered: {said:.300}");
        assert!(!said.contains("tickets"), "{shown:?} got information");
        assert!(!answer.is_finished(), "{shown:?} decided something");
    }
    let said: Value = serde_json::from_str(&yes).unwrap();
    assert_eq!(status(&post_answer(&host, &cookie, &said).await), 200);
    assert_eq!(answer.await.unwrap(), Answer::AllowOnce);
}

#[tokio::test]
async fn question_shows_asker_and_remaining_time() {
    let (web, links) = start();
    let first = ask(&web, ARGS);
    let (host, cookie) = enter(&link_of(&links).await).await;
    let question = open_question(&host, &cookie).await;
    assert_eq!(question["asker"]["script"], "triage.js");
    assert_eq!(question["asker"]["run"], "r1");
    let remaining_ms = question["remaining_ms"].as_u64().unwrap();
    assert!((1..=60_000).contains(&remaining_ms), "{remaining_ms}");
    first.abort();
}

#[tokio::test]
async fn question_text_is_escaped_and_decision_data_comes_first() {
    let (web, links) = start();
    let lines = vec!["<script>x</script>"; 10_000].join("\n");
    let args = json!({"aaa": lines, "zz": "\u{202e}evil\u{1b}[2J", "to": "x@y"});
    let answer = ask(&web, &args.to_string());
    let (host, cookie) = enter(&link_of(&links).await).await;
    let question = open_question(&host, &cookie).await;
    let fields = question["fields"].as_array().unwrap();
    let names: Vec<_> = fields
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["zz", "to", "aaa"],
        "fields with warnings come first, then shorter fields"
    );
    assert_eq!(fields[0]["lines"][0], "\\u{202e}evil\\u{1b}[2J");
    assert_eq!(fields[2]["lines"].as_array().unwrap().len(), 10_000);
    let page = get_with(&host, "/", &cookie).await;
    assert!(
        page.contains("content-security-policy: default-src 'none'"),
        "{page}"
    );
    assert!(
        page.contains("x-frame-options: DENY") && page.contains("no-store"),
        "{page}"
    );
    assert!(
        !page.contains("style=") && !page.contains("onclick"),
        "{page}"
    );
    answer.abort();
}

#[tokio::test]
async fn second_link_invalidates_first() {
    let (web, _) = start();
    let (first, second) = (web.link().unwrap(), web.link().unwrap());
    let (host, path) = split(&first);
    assert_eq!(status(&get_with(&host, &path, "").await), 410);
    enter(&second).await;
}

#[tokio::test]
async fn link_from_another_site_is_led_on_by_the_page() {
    let (web, _) = start();
    let (host, path) = split(&web.link().unwrap());
    let said = get_with(&host, &path, "sec-fetch-site: cross-site\r\n").await;
    assert_eq!(status(&said), 200, "{said}");
    assert!(said.contains("refresh: 0; url=/#"), "{said}");
    assert!(said.contains("set-cookie: airlock-"), "{said}");
    // The link is used up as usual.
    assert_eq!(status(&get_with(&host, &path, "").await), 410);
}

#[tokio::test]
async fn page_says_what_happened_after_the_answer() {
    let (web, links) = start();
    let answer = ask(&web, ARGS);
    let (host, cookie) = enter(&link_of(&links).await).await;
    let question = open_question(&host, &cookie).await;
    let yes = json!({"id": question["id"], "nonce": question["nonce"], "answer": "allow-once"});
    assert_eq!(status(&post_answer(&host, &cookie, &yes).await), 200);
    assert_eq!(answer.await.unwrap(), Answer::AllowOnce);
    let asked = asked(ARGS);
    let run = &asked.asker.as_deref().unwrap().run;
    let settled = |outcome| {
        web.settled(&SettledCall {
            run,
            call: asked.call,
            outcome,
        });
    };
    let state = async || {
        let said = get_with(&host, "/questions", &cookie).await;
        body(&said)["questions"][0]["state"].clone()
    };
    assert_eq!(state().await, "approved");
    settled(ReportedOutcome::Returned);
    assert_eq!(state().await, "approved; the call was made");
    // The first outcome stays.
    settled(ReportedOutcome::Failed);
    assert_eq!(state().await, "approved; the call was made");
}

/// A broker whose runs are suspended when they need an answer.
async fn suspending(state: &std::path::Path) -> crate::broker::Broker {
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}}});
    let tool = json!({"name": "create", "inputSchema": schema});
    let tool = crate::broker::InProcessTool::new("tickets", tool, |args: Value| async move {
        Ok(args["title"].clone())
    });
    crate::broker::Broker::builder()
        .state_dir(state)
        .tool(tool)
        .ask("tickets.*")
        .unwrap()
        .approver(crate::approver::SuspendingApprover)
        .build()
        .await
        .unwrap()
}

#[tokio::test]
async fn question_of_suspended_run_is_answered_and_run_goes_on() {
    let scratch = crate::tempdir::TempDir::new();
    let state = scratch.path().join("state");
    let broker = suspending(&state).await;
    let script = "return await tickets.create({title: 'a'})";
    let script = crate::broker::Script::body(script).suspended_after(Duration::ZERO);
    let paused = broker.run(script).report().await;
    let (web, links) = start();
    assert!(
        !web.remind(),
        "without a state directory, the page shows no such question"
    );
    drop(web);
    let told = Arc::clone(&links);
    let web = Web::start(Box::new(move |link| {
        told.lock().unwrap().push(link.to_owned())
    }));
    let web = web.unwrap();
    let web = web.with_suspended_runs(StateDir::existing(state).unwrap(), Secrets::default());
    assert!(web.remind() && web.remind());
    assert_eq!(
        links.lock().unwrap().len(),
        1,
        "a link that works is not replaced"
    );
    let (host, cookie) = enter(&link_of(&links).await).await;
    let shown = async || body(&get_with(&host, "/questions", &cookie).await)["questions"].clone();
    let question = loop {
        if let Some(question) = shown().await.as_array().and_then(|it| it.first().cloned()) {
            break question;
        }
    };
    assert_eq!(question["state"], "open", "{question}");
    assert_eq!(question["suspended"], true, "{question}");
    assert_eq!(question["remaining_ms"], Value::Null, "{question}");
    assert_eq!(question["fields"][0]["lines"][0], "a", "{question}");
    assert_eq!(question["asker"]["run"], paused.run.as_str(), "{question}");
    let said = |answer: &str| json!({"id": question["id"], "nonce": question["nonce"], "answer": answer, "uses_max": 3});
    let more = post_answer(&host, &cookie, &said("allow")).await;
    assert_eq!(
        status(&more),
        400,
        "the answer is about this call alone: {more}"
    );
    let mut yes = said("allow-once");
    yes.as_object_mut().unwrap().remove("uses_max");
    let answered = post_answer(&host, &cookie, &yes).await;
    assert_eq!(status(&answered), 200, "{answered}");
    assert_eq!(status(&post_answer(&host, &cookie, &yes).await), 409);
    let over = shown().await;
    assert_eq!(
        over[0]["state"], "approved; the run goes on when it is resumed",
        "{over}"
    );
    let run = airlock_core::id::RunId(paused.run.as_str().into());
    let resumed = broker.resume(Default::default(), &run, Default::default());
    let report = resumed.unwrap().report().await;
    assert_eq!(report.value.unwrap().get(), "\"a\"");
}

#[tokio::test]
async fn result_is_stated_for_a_suspended_run() {
    let scratch = crate::tempdir::TempDir::new();
    let state = scratch.path().join("state");
    let lose = json!({"name": "lose", "inputSchema": {"type": "object"}});
    let lose = crate::broker::InProcessTool::new("w", lose, |_: Value| std::future::pending());
    let limits = airlock_core::limits::Limits {
        call_wall_ms_max: 50,
        ..Default::default()
    };
    let broker = crate::broker::Broker::builder()
        .state_dir(&state)
        .limits(limits)
        .tool(lose)
        .allow("w.*")
        .unwrap()
        .approver(crate::approver::SuspendingApprover)
        .build()
        .await
        .unwrap();
    let script = "try { return await w.lose({}) } catch { return await w.lose({}) }";
    let script = crate::broker::Script::body(script).suspended_after(Duration::ZERO);
    let paused = broker.run(script).report().await;
    let (web, links) = start();
    let web = Arc::into_inner(web).unwrap();
    let mask = "a-long-secret-value";
    let secrets = Secrets::new([mask.to_owned()]);
    let web = web.with_suspended_runs(StateDir::existing(state).unwrap(), secrets);
    assert!(web.remind());
    let (host, cookie) = enter(&link_of(&links).await).await;
    let shown = async || body(&get_with(&host, "/questions", &cookie).await)["questions"].clone();
    let question = loop {
        if let Some(question) = shown().await.as_array().and_then(|it| it.first().cloned()) {
            break question;
        }
    };
    assert!(question["outcome_of"].is_string(), "{question}");
    let said = |result: &str| json!({"id": question["id"], "nonce": question["nonce"], "answer": "happened", "result": result});
    for (result, why) in [
        ("seen", "not JSON"),
        (r#"["a-long-secret-value"]"#, "credential"),
    ] {
        let refused = post_answer(&host, &cookie, &said(result)).await;
        assert_eq!(status(&refused), 400, "{refused}");
        assert!(refused.contains(why), "{refused}");
        assert_eq!(shown().await[0]["state"], "open");
    }
    let taken = post_answer(&host, &cookie, &said("7")).await;
    assert_eq!(status(&taken), 200, "{taken}");
    let run = airlock_core::id::RunId(paused.run.as_str().into());
    let resumed = broker.resume(Default::default(), &run, Default::default());
    let report = resumed.unwrap().report().await;
    assert_eq!(report.value.unwrap().get(), "7");
}
