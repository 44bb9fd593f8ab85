//! One visit to the approver's page: a broker that shows its questions there, a script whose calls
//! need approval, and the browser in which a person opened the link.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airlock::approver::Web;
use airlock::config::{Config, Environment, Flags};
use airlock::core::id::RunId;
use airlock::core::limits::Limits;
use airlock::core::report::Report;
use airlock::core::shared_state::SessionName;
use airlock::private_file::StateDir;
use airlock::secrets::Secrets;
use airlock::{Broker, InProcessTool, ResumeOptions, RunContext, RunHandle, Script, ToolFailure};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::binary::{target_dir, workspace};
use tests::browser::Browser;
use tests::patience::PATIENCE;
use tokio::runtime::Runtime;

/// The time after which a call without an answer is given up.
const LOST_AFTER_MS: u64 = 500;

const LABELS: &str = r#"
[labels.mail]
reads = ["untrusted", "private:mail"]
writes = []

[labels.mail.tools.send]
reads = []
writes = ["external"]
destinations = ["/to"]

[labels.tickets]
reads = []
writes = ["state"]
"#;

pub(crate) struct Visit {
    pub(crate) browser: Arc<Browser>,
    name: &'static str,
    runtime: Runtime,
    broker: Option<Broker>,
    links: Receiver<String>,
    /// Arguments that reached `tickets.create` and `mail.send`.
    reached: Arc<Mutex<Vec<Value>>>,
    state: TempDir,
}

impl Visit {
    pub(crate) fn start(name: &'static str, browser: &Arc<Browser>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let mut visit = Self {
            browser: Arc::clone(browser),
            name,
            runtime,
            broker: None,
            links: channel().1,
            reached: Arc::default(),
            state: TempDir::with_prefix("airlock-page-")?,
        };
        visit.browser.resize(1100, 900)?;
        visit.browser.prefer("light")?;
        // Clears the messages that the previous page logged when its server ended.
        visit.browser.open("about:blank")?;
        visit.browser.console()?;
        visit.serve(60_000)?;
        Ok(visit)
    }

    /// Starts a broker with its page. Questions expire after `ask_wall_ms_max`.
    pub(crate) fn serve(&mut self, ask_wall_ms_max: u64) -> Result<()> {
        let (told, links) = channel();
        let told = Mutex::new(told);
        let tell = move |link: &str| {
            let _ = told
                .lock()
                .expect("the lock of the links")
                .send(link.to_owned());
        };
        let limits = Limits {
            ask_wall_ms_max,
            call_wall_ms_max: LOST_AFTER_MS,
            args_bytes_max: 16 * 1024 * 1024,
            ..Limits::default()
        };
        let state = self.state.path();
        let labels = state.join("labels.toml");
        std::fs::write(&labels, LABELS)?;
        let flags = Flags {
            labels: vec![labels],
            policies: vec![workspace().join("policies")],
            state_dir: Some(state.to_owned()),
            ..Flags::default()
        };
        let config = Config::load(flags, &Environment::from([("HOME", "/nowhere")]))
            .map_err(|problem| anyhow::anyhow!("{problem}"))?;
        let broker = self.runtime.block_on(async {
            let runs = StateDir::existing(state.to_owned())
                .map_err(|problem| anyhow::anyhow!("{problem}"))?;
            let page = Web::start(Box::new(tell))?.with_suspended_runs(runs, Secrets::default());
            Broker::builder()
                .config(config)
                .limits(limits)
                .state_dir(state)
                .session(SessionName::parse("review-1")?)
                .ask("tickets.*")?
                .tool(self.tool("tickets.create", "writes"))
                .tool(lost())
                .tool(self.tool("mail.read", "reads"))
                .tool(self.tool("mail.send", "sends"))
                .approver(page)
                .build()
                .await
                .context("a broker")
        })?;
        (self.broker, self.links) = (Some(broker), links);
        Ok(())
    }

    fn tool(&self, name: &str, verb: &str) -> InProcessTool {
        let (server, tool) = name.split_once('.').expect("a name with a dot");
        let schema = json!({"type": "object", "properties": {"to": {}}});
        let description = json!({"name": tool, "description": verb, "inputSchema": schema});
        let reached = Arc::clone(&self.reached);
        let reads = tool == "read";
        InProcessTool::new(server, description, move |args: Value| {
            if !reads {
                reached.lock().expect("the lock of the calls").push(args);
            }
            async { Ok(json!({"from": "eve@evil.example", "text": "the merger closes on Friday"})) }
        })
    }

    /// Starts a script with the name of a file.
    pub(crate) fn run(&self, script: &str) -> Result<RunHandle> {
        let script = Script::body(script).named("triage.js");
        Ok(self.broker.as_ref().context("a broker")?.run(script))
    }

    /// Runs a script, or resumes a run with it, until it is suspended or ends.
    pub(crate) fn until_suspended(&self, script: &str, resumed: Option<&str>) -> Result<Report> {
        let script = Script::body(script).named("triage.js");
        let script = script.suspended_after(Duration::ZERO);
        let broker = self.broker.as_ref().context("a broker")?;
        let running = match resumed {
            None => broker.run(script),
            Some(run) => {
                let options = ResumeOptions {
                    script: Some(script),
                    ..ResumeOptions::default()
                };
                broker.resume(RunContext::default(), &RunId(run.into()), options)?
            }
        };
        self.report(running)
    }

    /// Opens the link that the broker printed.
    pub(crate) fn enter(&self) -> Result<String> {
        let link = self.links.recv_timeout(PATIENCE).context("no link")?;
        self.browser.open(&link)?;
        Ok(link)
    }

    /// Waits until this many questions are on the page and can be answered.
    pub(crate) fn asked(&self, count: usize) -> Result<()> {
        self.browser.wait(&format!(
            "document.querySelectorAll('.card').length === {count} && \
             ![...document.querySelectorAll('.answers button')].some((it) => it.disabled)"
        ))
    }

    /// Returns the value of the run. Fails if the run failed.
    pub(crate) fn value(&self, running: RunHandle) -> Result<Value> {
        let report = self.report(running)?;
        let value = report.value.as_ref().map_or("null", |value| value.get());
        match &report.error {
            Some(error) => Ok(json!({"error": error.code, "message": error.message})),
            None => Ok(serde_json::from_str(value)?),
        }
    }

    fn report(&self, running: RunHandle) -> Result<Report> {
        let ended = async { tokio::time::timeout(PATIENCE, running.report()).await };
        self.runtime.block_on(ended).context("the run did not end")
    }

    pub(crate) fn reached(&self) -> Vec<Value> {
        self.reached.lock().expect("the lock of the calls").clone()
    }

    /// Saves a screenshot for reviewers of the page.
    pub(crate) fn picture(&self, of: &str) -> Result<()> {
        let folder: PathBuf = target_dir()?.join("approver-page");
        std::fs::create_dir_all(&folder)?;
        let name = format!("{}-{of}.png", self.name.replace('_', "-"));
        self.browser.screenshot(&folder.join(name))
    }

    /// Checks that no script of the arguments ran, that the browser loaded and refused nothing, and
    /// that the page caused no error.
    pub(crate) fn nothing_broke(&self) -> Result<()> {
        let ran = self.browser.value("window.pwned ?? null")?;
        ensure!(ran.is_null(), "a script of the arguments ran: {ran}");
        let bad: Vec<String> = self
            .browser
            .console()?
            .into_iter()
            .filter(|line| !line.contains("/answer") && !line.contains("/questions"))
            .collect();
        ensure!(bad.is_empty(), "messages on the console: {bad:?}");
        Ok(())
    }
}

impl Visit {
    /// Returns the address of the page in this tab.
    pub(crate) fn browser_home(&self, tab: &str) -> Result<String> {
        self.browser.switch_to(tab)?;
        let home = self.browser.value("location.href")?;
        Ok(home.as_str().unwrap_or_default().to_owned())
    }
}

/// A tool that never answers, so the outcome of its calls is unknown.
fn lost() -> InProcessTool {
    let description = json!({"name": "lose", "inputSchema": {"type": "object"}});
    InProcessTool::new("tickets", description, |_: Value| {
        std::future::pending::<Result<Value, ToolFailure>>()
    })
}

/// Starts another server on this machine, which records the first request that it gets.
pub(crate) fn eavesdrop() -> Result<(SocketAddr, Receiver<String>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten().take(1) {
            let mut reader = BufReader::new(&stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|n| n > 0) {}
            let page = "<!doctype html><title>x</title>";
            let _ = write!(
                &stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
                page.len()
            );
            let _ = tell.send(head);
        }
    });
    Ok((address, heard))
}

/// Sends exactly these bytes to a server and returns its answer.
pub(crate) fn raw(host: &str, request: &str) -> Result<String> {
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}
