//! Runs that wait for people longer than `suspend_after` end their thread. They are answered at a
//! terminal or at a host, and continue in another process, session and era.

use serde_json::{Value, json};
use tests::any_host::{AnyHost, CELLS, Cell, text};
use tests::approval_page;
use tests::command::Home;
use tests::counting::{config, made};
use tests::patience::wait_until;
use tests::serving::{ServeProcess, Session};
use tests::stdio_host::StdioHost;

const CODE: &str = "const r = await w.read({title: 'r'});
return [r, await w.create({title: 'a'})];";
const DONE: [&str; 2] = ["made r", "made a"];

/// The server, the configuration and the state directory that all processes of a test share.
struct Stage {
    home: Home,
    config: String,
    state: String,
}

impl Stage {
    fn new(keys: &str) -> Self {
        let home = Home::new();
        let config = format!("{keys}{}", config(&home, "server.sh", ""));
        let path = home.write("airlock.toml", config).display().to_string();
        let state = home.runs_dir().parent().unwrap().display().to_string();
        Self {
            home,
            config: path,
            state,
        }
    }

    fn args<'a>(&'a self, rule: [&'a str; 2]) -> Vec<&'a str> {
        let mut args = vec!["--config", &self.config, "--state-dir", &self.state];
        args.extend(["--disclosure", "full", "--start-wait", "600s"]);
        args.extend(["--allow", "w.read"]);
        args.extend(rule);
        args
    }

    fn host(&self, cell: Cell, name: &str, can: Value) -> AnyHost {
        self.host_under(["--ask", "w.create"], cell, name, can)
    }

    fn host_under(&self, rule: [&str; 2], cell: Cell, name: &str, can: Value) -> AnyHost {
        AnyHost::start(cell, self.other_home(), &self.args(rule), name, can)
    }

    /// Returns another home, at the same date.
    fn other_home(&self) -> Home {
        let mut home = Home::new();
        if self.home.is_tomorrow() {
            home.go_to_tomorrow();
        }
        home
    }

    /// Returns the date of the latest entry of the newest journal, in days.
    fn today(&self) -> u64 {
        let journal = std::fs::read_to_string(self.home.journals().pop().unwrap()).unwrap();
        let last: Value = serde_json::from_str(journal.lines().last().unwrap()).unwrap();
        last["at_ms"].as_u64().unwrap() / (24 * 60 * 60 * 1000)
    }

    fn newest(&self) -> String {
        let path = self.home.journals().pop().unwrap();
        path.file_stem().unwrap().to_str().unwrap().to_owned()
    }

    /// Whether the newest run has ended its process, and waits.
    fn is_suspended(&self) -> bool {
        let path = self.home.journals().pop();
        let journal = path.and_then(|path| std::fs::read_to_string(path).ok());
        let journal = journal.unwrap_or_default();
        let last: Value =
            serde_json::from_str(journal.lines().last().unwrap_or_default()).unwrap_or_default();
        last["kind"] == "suspended"
    }

    /// Returns the call of the only open question.
    fn question(&self) -> Option<String> {
        let waiting = self.home.run(["runs", "waiting", "--json"]);
        let waiting = waiting.expect_code(0).json();
        let call = waiting["waiting"][0]["questions"][0]["call"].as_str();
        call.map(str::to_owned)
    }

    /// Answers the only open question at a terminal.
    fn answer(&self, word: &str) {
        // A run counts as running until its process has released the journal.
        wait_until(|| self.question().is_some());
        let call = self.question().expect("a question");
        self.home
            .run(["runs", "answer", &call, word])
            .expect_code(0);
    }
}

fn resume(host: &mut AnyHost, run: &str) -> Value {
    host.call("resume_run", json!({ "run": run }))
}

#[test]
fn run_answered_at_a_terminal_continues_in_another_process_session_and_era() {
    for (at, cell) in CELLS.into_iter().enumerate() {
        let mut stage = Stage::new("approver = \"later\"\n");
        let mut host = stage.host(cell, "ada", json!({}));
        let paused = host.run(CODE);
        assert_eq!(
            paused["structuredContent"]["status"], "paused",
            "{cell}: {paused}"
        );
        assert!(
            text(&paused).contains("airlock runs answer"),
            "{cell}: {paused}"
        );
        let run = paused["structuredContent"]["run"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(stage.is_suspended(), "{cell}");
        // Without an answer, another run would only put the same question.
        let still = resume(&mut host, &run);
        assert_eq!(
            still["structuredContent"], paused["structuredContent"],
            "{cell}"
        );
        assert_eq!(stage.home.journals().len(), 1, "{cell}");
        drop(host);

        let yesterday = stage.today();
        stage.home.go_to_tomorrow();
        let other_cell = CELLS[(at + 1) % CELLS.len()];
        let refused = resume(&mut stage.host(other_cell, "eve", json!({})), &run);
        assert!(text(&refused).contains("no run"), "{cell}: {refused}");
        stage.answer("allow");
        let mut host = stage.host(other_cell, "ada", json!({}));
        let done = resume(&mut host, &run);
        assert_eq!(
            done["structuredContent"]["value"],
            json!(DONE),
            "{cell}: {done}"
        );
        let again = resume(&mut host, &run);
        assert_eq!(
            again["structuredContent"], done["structuredContent"],
            "{cell}"
        );
        // The result is recorded, so a further process returns it too.
        drop(host);
        let again = resume(&mut stage.host(cell, "ada", json!({})), &run);
        assert_eq!(
            again["structuredContent"]["value"],
            json!(DONE),
            "{cell}: {again}"
        );
        assert_eq!(again["isError"], done["isError"], "{cell}");
        assert_eq!(made(&stage.home), ["r", "a"], "{cell}");
        assert!(stage.today() > yesterday, "{cell}");
        stage.home.verify_all();
    }
}

#[test]
fn run_answered_on_the_page_continues_a_day_later_in_another_process_and_era() {
    let mut stage = Stage::new("approver = \"web\"\nsuspend_after = \"20ms\"\n");
    let paused = stage.host(CELLS[0], "ada", json!({})).run(CODE);
    assert_eq!(paused["structuredContent"]["status"], "paused", "{paused}");
    let run = paused["structuredContent"]["run"].as_str().unwrap();
    wait_until(|| stage.is_suspended());
    let yesterday = stage.today();
    stage.home.go_to_tomorrow();
    let home = stage.other_home();
    let browser = approval_page::browser(&home);
    let browser = browser.display().to_string();
    let env = [("BROWSER", browser.as_str())];
    let args = stage.args(["--ask", "w.create"]);
    let mut host = AnyHost::start_with(CELLS[1], home, &args, &env, "ada", json!({}));
    // The page opens, and no run is started while the question is open.
    let still = resume(&mut host, run);
    assert_eq!(still["structuredContent"]["status"], "paused", "{still}");
    assert_eq!(stage.home.journals().len(), 1);
    approval_page::allow_once(host.home().path());
    wait_until(|| stage.question().is_none());
    let done = resume(&mut host, run);
    assert_eq!(done["structuredContent"]["value"], json!(DONE), "{done}");
    assert_eq!(made(&stage.home), ["r", "a"]);
    assert!(stage.today() > yesterday);
    stage.home.verify_all();
}

const RETRY: &str = "try { return await w.create({title: 'late'}); } catch {}
return await w.create({title: 'late'});";
const TIMEOUT: [&str; 2] = ["--call-timeout", "500ms"];

#[test]
fn person_at_a_host_states_during_the_run_what_became_of_a_call() {
    let stage = Stage::new("");
    let args = [stage.args(["--allow", "w.create"]), TIMEOUT.to_vec()].concat();
    let serving = ServeProcess::start_in(Home::new(), args);
    let session = serving.session_of("ada", &json!({"elicitation": {}}));
    let params = json!({"name": "run_script", "arguments": {"code": RETRY}});
    let mut page = session.begin(1, "tools/call", &params);
    let asked = page.told("elicitation/create");
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("What became of call"), "{asked}");
    let states = |asked: &Value, result: &str| {
        let content = json!({"decision": "happened", "result": result});
        session.reply(
            &asked["id"],
            &json!({"action": "accept", "content": content}),
        );
    };
    // A result that cannot be used is asked for again, with the reason.
    states(&asked, "seen");
    let asked = page.told("elicitation/create");
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("the stated result cannot be read"),
        "{asked}"
    );
    states(&asked, "\"seen\"");
    let done = page.answer(1);
    assert_eq!(done["structuredContent"]["value"], "seen", "{done}");
    assert_eq!(made(&stage.home), ["late"]);
    let run = stage.newest();
    let shown = stage.home.run(["runs", "show", &run]).expect_code(0).stdout;
    for part in [
        format!("the user of the host stated that call {run}:1 happened"),
        format!("a person stated what became of call {run}:1"),
    ] {
        assert!(shown.contains(&part), "no {part:?} in {shown}");
    }
    stage.home.verify_all();
}

#[test]
fn person_on_the_page_states_what_became_of_a_call() {
    let said = json!({"answer": "happened", "result": "\"seen\""});
    for suspend_after in ["600s", "20ms"] {
        let stage = Stage::new(&format!(
            "approver = \"web\"\nsuspend_after = \"{suspend_after}\"\n"
        ));
        let home = Home::new();
        let browser = approval_page::browser(&home).display().to_string();
        let env = [("BROWSER", browser.as_str())];
        let args = stage.args(["--allow", "w.create"]);
        let args = [&args[..], &TIMEOUT, &["--pause-after", "5s"]].concat();
        let mut host = AnyHost::start_with(CELLS[1], home, &args, &env, "ada", json!({}));
        let paused = host.run(RETRY);
        assert_eq!(paused["structuredContent"]["status"], "paused", "{paused}");
        let run = paused["structuredContent"]["run"].as_str().unwrap();
        approval_page::answer(host.home().path(), &said);
        let listed = || stage.home.run(["runs", "waiting", "--json"]).json();
        wait_until(|| listed()["waiting"] == json!([]));
        let ended = resume(&mut host, run);
        assert_eq!(ended["structuredContent"]["value"], "seen", "{ended}");
        assert_eq!(made(&stage.home), ["late"], "{suspend_after}");
        stage.home.verify_all();
    }
}

#[test]
fn refusal_at_a_terminal_reaches_the_script() {
    let stage = Stage::new("approver = \"later\"\n");
    let mut host = stage.host(CELLS[1], "ada", json!({}));
    let code = "try { await w.create({title: 'a'}) } catch (e) { return e.code }";
    let run = host.run(code)["structuredContent"]["run"].clone();
    stage.answer("refuse");
    let done = resume(&mut host, run.as_str().unwrap());
    assert_eq!(done["structuredContent"]["value"], "refused", "{done}");
    assert!(made(&stage.home).is_empty());
}

#[test]
fn changed_rule_asks_again() {
    let stage = Stage::new("approver = \"later\"\n");
    let can = || json!({});
    let paused = stage.host(CELLS[1], "ada", can()).run(CODE);
    let run = paused["structuredContent"]["run"].as_str().unwrap();
    stage.answer("allow");
    let rule = ["--ask", "w.c*"];
    let mut host = stage.host_under(rule, CELLS[0], "ada", can());
    let again = resume(&mut host, run);
    assert_eq!(again["structuredContent"]["status"], "paused", "{again}");
    assert_ne!(again["structuredContent"]["run"], run, "{again}");
    assert_eq!(made(&stage.home), ["r"]);
    wait_until(|| stage.question().is_some());
    let call = stage.question().unwrap();
    let shown = stage.home.run(["runs", "answer", &call]).expect_code(0);
    let why = "an earlier answer to this question, `allow`, no longer counts, because the rules have \
               changed since then";
    assert!(shown.stdout.contains(why), "{shown:?}");
    stage.answer("allow");
    let run = stage.newest();
    let done = resume(&mut host, &run);
    assert_eq!(done["structuredContent"]["value"], json!(DONE), "{done}");
    assert_eq!(made(&stage.home), ["r", "a"]);
}

#[test]
fn rule_that_permits_the_call_needs_no_answer() {
    let stage = Stage::new("approver = \"later\"\n");
    let paused = stage.host(CELLS[0], "ada", json!({})).run(CODE);
    let run = paused["structuredContent"]["run"].as_str().unwrap();
    let mut host = stage.host_under(["--allow", "w.create"], CELLS[1], "ada", json!({}));
    let done = resume(&mut host, run);
    assert_eq!(done["structuredContent"]["value"], json!(DONE), "{done}");
}

#[test]
fn answer_of_newer_host_counts_after_its_run_was_suspended() {
    // The host has the question before this time is over.
    let stage = Stage::new("suspend_after = \"2s\"\n");
    for cell in CELLS.into_iter().filter(|cell| cell.is_modern) {
        let mut host = stage.host(cell, "ada", json!({"elicitation": {}}));
        let title = format!("a{}", u8::from(cell.is_http));
        let code = format!("return await w.create({{title: '{title}'}})");
        let mut params = json!({"name": "run_script", "arguments": {"code": code}});
        let asked = host.request("tools/call", params.clone());
        assert_eq!(asked["resultType"], "input_required", "{cell}: {asked}");
        wait_until(|| stage.is_suspended());
        let yes = json!({"action": "accept", "content": {"decision": "allow"}});
        params["requestState"] = asked["requestState"].clone();
        params["inputResponses"] = json!({"call-1": yes});
        let done = host.request("tools/call", params);
        assert_eq!(
            done["structuredContent"]["value"],
            format!("made {title}"),
            "{cell}: {done}"
        );
    }
    assert_eq!(made(&stage.home), ["a0", "a1"]);
    stage.home.verify_all();
}

#[test]
fn older_host_is_asked_again_when_it_resumes() {
    let mut stage = Stage::new("suspend_after = \"20ms\"\n");
    let serve = |stage: &Stage| {
        ServeProcess::start_in(stage.other_home(), stage.args(["--ask", "w.create"]))
    };
    let ask = |session: &Session, tool: &str, args: Value| {
        let params = json!({"name": tool, "arguments": args});
        let mut page = session.begin(1, "tools/call", &params);
        (page.told("elicitation/create"), page)
    };
    let can = json!({"elicitation": {}});
    let serving = serve(&stage);
    let (_, page) = ask(
        &serving.session_of("ada", &can),
        "run_script",
        json!({ "code": CODE }),
    );
    let paused = page.answer(1);
    assert_eq!(paused["structuredContent"]["status"], "paused", "{paused}");
    assert!(text(&paused).contains("which is still open"), "{paused}");
    let run = paused["structuredContent"]["run"].clone();
    drop(serving);
    // This process waits for longer, so that the answer comes in time.
    let config = std::fs::read_to_string(&stage.config).unwrap();
    std::fs::write(&stage.config, config.replace("20ms", "never")).unwrap();
    stage.home.go_to_tomorrow();
    let serving = serve(&stage);
    let session = serving.session_of("ada", &can);
    let (asked, page) = ask(&session, "resume_run", json!({ "run": run }));
    let yes = json!({"action": "accept", "content": {"decision": "allow"}});
    session.reply(&asked["id"], &yes);
    let done = page.answer(1);
    assert_eq!(done["structuredContent"]["value"], json!(DONE), "{done}");
    assert_eq!(made(&stage.home), ["r", "a"]);
    stage.home.verify_all();
}

#[test]
fn late_answer_of_older_host_counts() {
    let stage = Stage::new("suspend_after = \"20ms\"\n");
    let args = stage.args(["--ask", "w.create"]);
    let args = [&args[..], &["--pause-after", "20ms"]].concat();
    let serving = ServeProcess::start_in(Home::new(), args);
    let session = serving.session_of("ada", &json!({"elicitation": {}}));
    let params = json!({"name": "run_script", "arguments": {"code": CODE}});
    let mut page = session.begin(1, "tools/call", &params);
    let asked = page.told("elicitation/create");
    let message = page.next_message().expect("the result");
    assert_eq!(message["id"], 1, "the question was withdrawn: {message}");
    let paused = &message["result"];
    let run = paused["structuredContent"]["run"].clone();
    assert!(text(paused).contains("which is still open"), "{paused}");
    // While the form is open, no second question opens.
    let still = session.call(2, "resume_run", &json!({ "run": run }));
    assert_eq!(still["structuredContent"], paused["structuredContent"]);
    let repeated = session.run(3, CODE);
    assert_eq!(repeated["structuredContent"]["run"], run, "{repeated}");
    assert_eq!(stage.home.journals().len(), 1);
    let yes = json!({"action": "accept", "content": {"decision": "allow"}});
    session.reply(&asked["id"], &yes);
    let done = session.call(4, "resume_run", &json!({ "run": run }));
    assert_eq!(done["structuredContent"]["value"], json!(DONE), "{done}");
    assert_eq!(made(&stage.home), ["r", "a"]);
    stage.home.verify_all();
}

#[test]
fn answer_at_a_terminal_closes_the_form_of_a_suspended_run() {
    let stage = Stage::new("suspend_after = \"20ms\"\n");
    let home = Home::new();
    let mut command = home.serve(stage.args(["--ask", "w.create"]));
    let mut host = StdioHost::start(&mut command, &json!({"elicitation": {}}));
    let params = json!({"name": "run_script", "arguments": {"code": CODE}});
    let paused = host.request("tools/call", &params);
    let asked = host.wait_for(|it| it["method"] == "elicitation/create");
    let run = &paused["structuredContent"]["run"];
    stage.answer("allow");
    let done = host.call("resume_run", &json!({ "run": run }));
    assert_eq!(done["structuredContent"]["value"], json!(DONE), "{done}");
    host.wait_for(|it| {
        it["method"] == "notifications/cancelled" && it["params"]["requestId"] == asked["id"]
    });
}

#[test]
fn form_that_is_closed_without_an_answer_is_shown_again() {
    let stage = Stage::new("suspend_after = \"20ms\"\n");
    let home = Home::new();
    let mut command = home.serve(stage.args(["--ask", "w.create"]));
    let mut host = StdioHost::start(&mut command, &json!({"elicitation": {}}));
    let params = json!({"name": "run_script", "arguments": {"code": CODE}});
    let paused = host.request("tools/call", &params);
    let run = &paused["structuredContent"]["run"];
    let reply = |host: &mut StdioHost, result: Value| {
        let asked = host.wait_for(|it| it["method"] == "elicitation/create");
        host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    };
    reply(&mut host, json!({"action": "cancel"}));
    let again = host.call("resume_run", &json!({ "run": run }));
    assert_ne!(again["structuredContent"]["run"], *run, "{again}");
    reply(
        &mut host,
        json!({"action": "accept", "content": {"decision": "allow"}}),
    );
    let run = &again["structuredContent"]["run"];
    let done = host.call("resume_run", &json!({ "run": run }));
    assert_eq!(done["structuredContent"]["value"], json!(DONE), "{done}");
    assert_eq!(made(&stage.home), ["r", "a"]);
}

#[test]
fn same_script_is_not_started_again_while_its_run_is_paused() {
    for keys in [
        // Suspended at once.
        "approver = \"later\"\n",
        // Waiting in the session.
        "approver = \"web\"\n",
    ] {
        for cell in CELLS {
            let stage = Stage::new(keys);
            let home = Home::new();
            let browser = approval_page::browser(&home).display().to_string();
            let env = [("BROWSER", browser.as_str())];
            let args = stage.args(["--ask", "w.create"]);
            let args = [&args[..], &["--pause-after", "20ms"]].concat();
            let mut host = AnyHost::start_with(cell, home, &args, &env, "ada", json!({}));
            let paused = host.run(CODE);
            let run = &paused["structuredContent"]["run"];
            let again = host.run(CODE);
            assert_eq!(again["structuredContent"]["status"], "paused", "{again}");
            assert_eq!(again["structuredContent"]["run"], *run, "{again}");
            assert!(
                text(&again).contains("no second run was started"),
                "{again}"
            );
            assert!(text(&again).contains("resume_run"), "{again}");
            assert_eq!(stage.home.journals().len(), 1, "{cell}: {keys}");
            // Another input makes it another run.
            let other = json!({"code": CODE, "input": 1});
            let other = host.call("run_script", other);
            assert_ne!(other["structuredContent"]["run"], *run, "{other}");
            assert_eq!(stage.home.journals().len(), 2, "{cell}: {keys}");
        }
    }
}

#[test]
fn same_script_starts_again_after_its_paused_run_was_resumed() {
    let stage = Stage::new("approver = \"later\"\n");
    let mut host = stage.host(CELLS[0], "ada", json!({}));
    let paused = host.run(CODE);
    let run = paused["structuredContent"]["run"].as_str().unwrap();
    stage.answer("allow");
    let again = host.run(CODE);
    assert_eq!(again["structuredContent"]["run"], run, "{again}");
    let done = resume(&mut host, run);
    assert_eq!(done["structuredContent"]["value"], json!(DONE), "{done}");
    let next = host.run(CODE);
    assert_eq!(next["structuredContent"]["status"], "paused", "{next}");
    assert_ne!(next["structuredContent"]["run"], run, "{next}");
    assert!(!text(&next).contains("no second run"), "{next}");
}

#[test]
fn paused_result_names_the_commands_that_answer() {
    let stage = Stage::new("approver = \"later\"\n");
    let mut host = stage.host(CELLS[0], "ada", json!({}));
    let paused =
        host.run("return await Promise.all(['a', 'b'].map((title) => w.create({title})));");
    let shown = text(&paused);
    let (_, rest) = shown.split_once("at a terminal, ").expect("the commands");
    let commands: Vec<_> = rest.split('`').skip(1).step_by(2).take(2).collect();
    for command in commands {
        let mut words = command.split(' ');
        assert_eq!(words.next(), Some("airlock"), "{shown}");
        stage.home.run(words).expect_code(0);
    }
    let run = paused["structuredContent"]["run"].as_str().unwrap();
    wait_until(|| stage.question().is_none());
    let done = resume(&mut host, run);
    assert_eq!(done["structuredContent"]["status"], "done", "{done}");
}

#[test]
fn serve_prunes_old_journals_but_keeps_suspended_runs() {
    let stage = Stage::new("approver = \"later\"\njournals_keep = \"0s\"\n");
    let mut host = stage.host(CELLS[0], "ada", json!({}));
    host.run("return 1");
    host.run(CODE);
    drop(host);
    assert_eq!(stage.home.journals().len(), 2);
    let _host = stage.host(CELLS[0], "ada", json!({}));
    wait_until(|| stage.home.journals().len() == 1);
    assert!(stage.is_suspended());
}

#[test]
fn paused_run_is_suspended_when_its_host_leaves() {
    let stage = Stage::new("approver = \"web\"\n");
    for cell in CELLS.into_iter().filter(|cell| !cell.is_http) {
        let args = stage.args(["--ask", "w.create"]);
        let args = [&args[..], &["--pause-after", "20ms"]].concat();
        let mut host = AnyHost::start(cell, Home::new(), &args, "ada", json!({}));
        let paused = host.run("return await w.create({title: 'a'})");
        assert_eq!(
            paused["structuredContent"]["status"], "paused",
            "{cell}: {paused}"
        );
        assert!(!stage.is_suspended(), "{cell}");
        drop(host);
        assert!(stage.is_suspended(), "{cell}");
        stage.answer("allow");
        let run = stage.newest();
        let done = resume(&mut stage.host(CELLS[0], "ada", json!({})), &run);
        assert_eq!(
            done["structuredContent"]["value"], "made a",
            "{cell}: {done}"
        );
    }
    assert_eq!(made(&stage.home), ["a", "a"]);
    stage.home.verify_all();
}

#[test]
fn run_is_suspended_when_its_host_leaves_with_an_open_request() {
    for (after, is_suspended) in [("600s", true), ("never", false)] {
        let stage = Stage::new(&format!("suspend_after = \"{after}\"\n"));
        let home = Home::new();
        let mut command = home.serve(stage.args(["--ask", "w.create"]));
        let mut host = StdioHost::start(&mut command, &json!({"elicitation": {}}));
        let params = json!({"name": "run_script", "arguments": {"code": CODE}});
        host.ask("tools/call", &params);
        host.wait_for(|it| it["method"] == "elicitation/create");
        drop(host);
        assert_eq!(stage.is_suspended(), is_suspended, "{after}");
    }
}
