//! One host, its airlock with three servers, and the conversation of its model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::agent_hosts::{self, AgentHost, Target};
use tests::approval_page;
use tests::binary::airlock;
use tests::changing::{ChangingServer, tool};
use tests::command::{Home, PATIENT, RunningCommand, program, start};
use tests::scripted_model::{ScriptedModel, ToolResult};
use tests::serving::ServeProcess;
use tests::stdio_host::StdioHost;

const TOOLS: [&str; 3] = ["demo.tickets_list", "test.simple_text", "notes.read"];
const SERVERS: &str = "const {tickets} = await demo.tickets_list({});
    return [tickets.length > 0, await test.simple_text({}), await notes.read({})];";
const ASKED: &str = "return await notes.write({})";
/// Returns 300 kB, see [`long_value`].
const LONG: &str =
    "return Array.from({length: 30_000}, (_, n) => String(n).padStart(9, '0')).join(' ')";
const IMAGE: &str = "return await test.image_content({})";
/// The image that the tool returns, in base64.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

pub(crate) struct Conversation {
    model: ScriptedModel,
    /// The host's process, until it is waited for.
    host: Option<RunningCommand>,
    /// The home of the host.
    home: Home,
    is_new_session_per_call: bool,
    serving: Option<ServeProcess>,
    _notes: ChangingServer,
}

/// What became of each scenario, as the document says it.
pub(crate) struct Outcome {
    pub(crate) instructions: &'static str,
    pub(crate) servers: &'static str,
    pub(crate) approval: &'static str,
    pub(crate) value: String,
    pub(crate) image: &'static str,
}

impl Conversation {
    /// Starts airlock and the host. Returns `None` if the host cannot be installed.
    pub(crate) fn start(host: &AgentHost, transport: &str) -> Option<Self> {
        let home = Home::new();
        let notes = notes();
        let browser = approval_page::browser(&home).display().to_string();
        let mut args = args(&home, &notes);
        let pause_after = host
            .pause_after
            .filter(|_| !agent_hosts::has_default_pause());
        args.extend(pause_after.map(|it| format!("--pause-after={it}")));
        let mut serving = None;
        let target = if transport == "HTTP" {
            let its_home = Home::new();
            let mut command = its_home.airlock(["serve"]);
            command.args(&args).env("BROWSER", browser);
            let serving = serving.insert(ServeProcess::start_command(its_home, command));
            Target::Url(serving.url())
        } else {
            // Some hosts give their servers few of their own variables.
            let mut command = vec!["/usr/bin/env".to_owned(), format!("BROWSER={browser}")];
            command.push(airlock().display().to_string());
            command.extend(["serve".to_owned(), "--quiet".to_owned()]);
            command.extend(args);
            Target::Command(command)
        };
        let model = ScriptedModel::start();
        let mut command = host.command(&home, &model.url(), &target)?;
        Some(Self {
            model,
            host: Some(start(&mut command, "")),
            home,
            is_new_session_per_call: host.is_new_session_per_call,
            serving,
            _notes: notes,
        })
    }

    /// Goes through all scenarios.
    pub(crate) fn run(mut self) -> Outcome {
        let outcome = Outcome {
            instructions: self.instructions(),
            servers: self.script_over_three_servers(),
            approval: self.approval(),
            value: self.long_value(),
            image: self.image(),
        };
        let host = &mut self.host;
        if self.model.end(|| is_running(host)).is_none() {
            self.fail();
        }
        let host = self.host.take().expect("a host");
        let _ = host.wait().expect_code(0);
        outcome
    }

    fn call(&mut self, tool: &str, args: Value) -> ToolResult {
        let host = &mut self.host;
        let result = self.model.call(tool, args, || is_running(host));
        result.unwrap_or_else(|| self.fail())
    }

    fn script(&mut self, code: &str) -> ToolResult {
        self.call("run_script", json!({ "code": code }))
    }

    /// Ends the host and shows its output.
    fn fail(&mut self) -> ! {
        let mut host = self.host.take().expect("a host");
        if host.is_running() {
            host.signal(Signal::KILL);
        }
        panic!("the host asked its model nothing\n{}", host.wait());
    }

    /// Checks that the model sees the whole description of `run_script`, and returns whether it
    /// sees airlock's instructions.
    fn instructions(&mut self) -> &'static str {
        let OwnTexts {
            run_script: description,
            instructions,
            ..
        } = airlocks_own();
        let host = &mut self.host;
        let Some(conversation) = self.model.conversation(|| is_running(host)) else {
            self.fail();
        };
        // Some hosts write an ellipsis as three dots.
        let shown = conversation
            .tool("run_script")
            .description
            .replace("...", "…");
        assert!(
            shown.contains(description),
            "{shown}\ninstead of {description}"
        );
        let start: String = instructions.lines().next().unwrap_or_default().to_owned();
        match conversation.text.contains(&start) {
            true => "shown",
            false => "not shown",
        }
    }

    fn script_over_three_servers(&mut self) -> &'static str {
        let found = self.call("search_tools", json!({"query": "list tickets"}));
        assert!(found.text.contains(TOOLS[0]), "{found:?}");
        let details = self.call("get_tool_details", json!({ "tools": TOOLS }));
        for part in ["tickets_list(", "simple_text(", "read("] {
            assert!(details.text.contains(part), "{part}: {details:?}");
        }
        let ran = self.script(SERVERS);
        for part in ["true", "this is simple_text", "read"] {
            assert!(ran.text.contains(part), "{part}: {ran:?}");
        }
        self.descriptions();
        self.advice();
        "works"
    }

    /// Reads the descriptions of ten tools, in as many results as the host needs, and checks that no
    /// part of a description is lost.
    fn descriptions(&mut self) {
        let own = &airlocks_own().descriptions;
        let mut missing: Vec<String> = own.keys().cloned().collect();
        let mut shown = String::new();
        while !missing.is_empty() {
            let count = missing.len();
            let details = self.call("get_tool_details", json!({ "tools": missing }));
            missing = left_out(&details.text);
            assert!(missing.len() < count, "{details:?}");
            shown.push_str(&letters(&details.text));
        }
        for (name, description) in own {
            assert!(
                shown.contains(&letters(description)),
                "{name}: {description}\nis not in {shown}"
            );
        }
    }

    /// Checks that the model gets all of an error: what is wrong, where, and what to do next.
    fn advice(&mut self) {
        for (code, parts) in [
            (
                "return await demo.ticket_list({})",
                [
                    "`demo` has no tool `ticket_list`",
                    "script.js:1:19",
                    "Did you mean `tickets_list`?",
                    "check-failed",
                ],
            ),
            (
                "const a = await demo.tickets_list({}); return a.items.length",
                [
                    "cannot read `length` of `a.items`, which is undefined; `a` has: tickets",
                    "script.js:1:55",
                    "correct the script",
                    "Correct the script and call run_script with resume",
                ],
            ),
        ] {
            let failed = self.script(code);
            for part in parts {
                assert!(failed.text.contains(part), "{part}: {failed:?}");
            }
            // Some hosts end after two errors of one tool in a row.
            self.script("return 'corrected'");
        }
    }

    fn approval(&mut self) -> &'static str {
        self.call("get_tool_details", json!({"tools": ["notes.write"]}));
        let ran = self.script(ASKED);
        if !ran.text.contains("paused") {
            assert!(ran.text.contains("returned"), "{ran:?}");
            return "the host asks";
        }
        for part in ["opened in the browser on this machine", "resume_run"] {
            assert!(ran.text.contains(part), "{part}: {ran:?}");
        }
        if self.is_new_session_per_call && self.serving.is_none() {
            return "the page ends with the call";
        }
        approval_page::allow_once(self.home.path());
        let run = between(&ran.text, "resume_run with {\"run\": \"", "\"");
        let resumed = self.call("resume_run", json!({ "run": run }));
        // The run went on in the session of the first call. In another session, the result comes
        // from the journal, without the list of calls.
        let expected = match self.is_new_session_per_call {
            true => "write",
            false => "returned",
        };
        assert!(resumed.text.contains(expected), "{resumed:?}");
        "the page asks"
    }

    /// Reads a long value to its end. Each part must follow on the one before.
    fn long_value(&mut self) -> String {
        let value = long_value();
        let mut shown = self.script(LONG);
        let (mut from, mut parts) = (0, 1);
        loop {
            let next = next_part(&shown.text);
            let end = next.as_ref().map_or(value.len(), |(_, next)| *next);
            let part = value.get(from..end).unwrap_or_default();
            assert!(
                end > from && shown.text.contains(part),
                "{from} to {end} of {}: {}",
                value.len(),
                shown.text
            );
            let Some((uri, next)) = next else { break };
            (from, parts) = (next, parts + 1);
            shown = self.call("read_result", json!({"uri": uri, "from": from}));
            if self.is_new_session_per_call {
                assert!(shown.text.contains("no stored result"), "{shown:?}");
                return "the first part".to_owned();
            }
        }
        format!("works, in {parts} parts")
    }

    fn image(&mut self) -> &'static str {
        self.call("get_tool_details", json!({"tools": ["test.image_content"]}));
        let shown = self.script(IMAGE);
        let is_shown = shown.images.iter().any(|it| it.ends_with(PNG));
        assert!(is_shown, "{shown:?}");
        "works"
    }
}

fn notes() -> ChangingServer {
    ChangingServer::new("notes", &[tool("read"), tool("write")])
}

/// Returns the arguments of `airlock serve`, except for the transport.
fn args(home: &Home, notes: &ChangingServer) -> Vec<String> {
    let config = home.write("airlock.toml", "approver = \"web\"\n");
    let fixture = format!("test={}", program("fixture-server").display());
    let own = |flag: &str, value: &str| [flag.to_owned(), value.to_owned()];
    let mut args = vec!["--demo".to_owned()];
    args.extend(own("--server", &fixture));
    args.extend(own("--server", &notes.flag()));
    args.extend(own("--config", &text(&config)));
    for allowed in ["demo.*_list", "test.*", "notes.read"] {
        args.extend(own("--allow", allowed));
    }
    args.extend(own("--ask", "notes.write"));
    args.extend(PATIENT.map(str::to_owned));
    args
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Texts as airlock sends them to a host that it does not know.
struct OwnTexts {
    /// The description of `run_script`.
    run_script: String,
    instructions: String,
    /// The declaration of each tool of the demo server.
    descriptions: BTreeMap<String, String>,
}

fn airlocks_own() -> &'static OwnTexts {
    static OWN: OnceLock<OwnTexts> = OnceLock::new();
    OWN.get_or_init(|| {
        let (home, notes) = (Home::new(), notes());
        let mut command = home.airlock(["serve", "--quiet"]);
        command.args(args(&home, &notes));
        let mut host = StdioHost::start(&mut command, &json!({}));
        let listed = host.request("tools/list", &json!({}));
        let tools = listed["tools"].as_array().expect("a list");
        let run = tools.iter().find(|it| it["name"] == "run_script");
        let described = run.and_then(|it| it["description"].as_str());
        let instructions = host.greeting["instructions"].as_str();
        let own = |text: Option<&str>| text.expect("a text").to_owned();
        let (run_script, instructions) = (own(described), own(instructions));
        let mut call = |tool: &str, args: Value| {
            let params = json!({"name": tool, "arguments": args});
            host.request("tools/call", &params)
        };
        let _waits_for_the_server = call("get_tool_details", json!({"tools": [TOOLS[0]]}));
        let found = call("search_tools", json!({"query": "", "servers": ["demo"]}));
        let found = found["structuredContent"]["tools"].as_array();
        let names = found
            .expect("a list")
            .iter()
            .map(|it| own(it["name"].as_str()));
        let names: Vec<String> = names.collect();
        let mut description = |name: String| {
            let details = call("get_tool_details", json!({ "tools": [name] }));
            let text = own(details["content"][0]["text"].as_str());
            let (_, declared) = text
                .split_once("declare const demo: {")
                .expect("a declaration");
            let (declared, _) = declared.rsplit_once('}').expect("its end");
            (name, declared.to_owned())
        };
        let descriptions: BTreeMap<_, _> = names.into_iter().map(&mut description).collect();
        assert_eq!(descriptions.len(), 10, "tools of the demo server");
        OwnTexts {
            run_script,
            instructions,
            descriptions,
        }
    })
}

/// Returns the tools whose descriptions a result leaves out because the host cuts long results.
fn left_out(text: &str) -> Vec<String> {
    let Some((_, names)) = text.split_once("this host cuts long results: ") else {
        return Vec::new();
    };
    let names = names.split(';').next().unwrap_or_default();
    names.split(", ").map(str::to_owned).collect()
}

/// Returns a text without white space and without the escapes of JSON, in which some hosts pass a
/// text on.
fn letters(text: &str) -> String {
    let text = text.replace("\\n", "").replace('\\', "");
    text.split_whitespace().collect()
}

/// Returns the value of the script [`LONG`].
fn long_value() -> String {
    let numbers: Vec<_> = (0..30_000).map(|n| format!("{n:09}")).collect();
    numbers.join(" ")
}

fn is_running(host: &mut Option<RunningCommand>) -> bool {
    host.as_mut().is_some_and(RunningCommand::is_running)
}

/// Returns the address and the first byte of the next part, which the text names in JSON. The text
/// may itself be in JSON.
fn next_part(text: &str) -> Option<(String, usize)> {
    let plain = text.replace('\\', "");
    let call = plain.rsplit_once("read_result(")?.1;
    let call = call.split_once(')')?.0;
    let call: Value = serde_json::from_str(call).ok()?;
    let from = call["from"]
        .as_u64()
        .and_then(|it| usize::try_from(it).ok())?;
    Some((call["uri"].as_str()?.to_owned(), from))
}

/// Returns the text between two others. The whole text may be in JSON.
fn between(text: &str, before: &str, after: &str) -> String {
    let plain = text.replace('\\', "");
    let rest = plain.split_once(before).expect("the text before").1;
    rest.split_once(after).expect("the text after").0.to_owned()
}
