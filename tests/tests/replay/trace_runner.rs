//! Runs traces with a broker whose tools return the recorded answers, and an approver who approves
//! every call except the attack.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use airlock::config::{Config, Environment, Flags};
use airlock::core::decide::{Answer, Question};
use airlock::core::flow::SessionFlow;
use airlock::core::labels::Label;
use airlock::core::report::{Report, ReportedDecision, ReportedOutcome};
use airlock::core::run::Fsync;
use airlock::{Broker, InProcessTool, Script, ToolFailure};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::trace::{self, Trace};

const TOOLS: [&str; 55] = [
    "bank.balance",
    "bank.statement",
    "bank.transfer",
    "calendar.create",
    "calendar.list",
    "chat.dm",
    "chat.history",
    "chat.post",
    "contacts.find",
    "crm.find",
    "crm.update",
    "db.execute",
    "db.query",
    "docs.edit",
    "docs.read",
    "docs.share",
    "downloads.read",
    "files.delete",
    "files.list",
    "files.read",
    "files.share",
    "files.write",
    "legacy.convert",
    "legacy.sync",
    "mail.add_filter",
    "mail.delete",
    "mail.draft",
    "mail.forward",
    "mail.list",
    "mail.read",
    "mail.search",
    "mail.send",
    "memory.recall",
    "memory.save",
    "repo.add_collaborator",
    "repo.comment",
    "repo.commit",
    "repo.create_issue",
    "repo.file",
    "repo.issue",
    "repo.issues",
    "repo.merge",
    "repo.pr",
    "tickets.close",
    "tickets.comment",
    "tickets.create",
    "tickets.get",
    "tickets.search",
    "todo.add",
    "todo.list",
    "weather.now",
    "weather.week",
    "web.get",
    "web.post",
    "web.search",
];

pub(crate) struct TraceRunner {
    broker: Broker,
    runtime: Runtime,
    current: Arc<Mutex<CurrentTrace>>,
    project: PathBuf,
    _state: TempDir,
}

/// The result of one trace.
#[derive(Debug)]
pub(crate) struct TraceOutcome {
    pub(crate) sinks: usize,
    pub(crate) asks: usize,
    pub(crate) got_through: bool,
    pub(crate) problem: Option<String>,
}

/// The trace that is running.
#[derive(Debug, Default)]
struct CurrentTrace {
    results: BTreeMap<String, Vec<String>>,
    attack: Vec<trace::Attack>,
    /// Number of calls that reached each tool.
    reached: BTreeMap<String, usize>,
    asked: Vec<String>,
}

impl CurrentTrace {
    fn answer(&mut self, tool: &str) -> Result<Value, ToolFailure> {
        let number = self.reached.entry(tool.to_owned()).or_default();
        let answers = self.results.get(tool).map(Vec::as_slice);
        let answer = answers.and_then(|it| it.get(*number).or(it.last()));
        *number += 1;
        match answer.map(|text| text.strip_prefix('!').ok_or(text)) {
            None => Ok(json!({"ok": true})),
            Some(Ok(message)) => Err(ToolFailure::new(message)),
            Some(Err(text)) => Ok(serde_json::from_str(text).expect("a result is JSON")),
        }
    }

    /// Answers as a person who knows which calls are the attack.
    fn judge(&mut self, tool: &str) -> Answer {
        self.asked.push(tool.to_owned());
        let next = self.reached.get(tool).copied().unwrap_or_default() + 1;
        let is_attack = |it: &trace::Attack| it.tool == tool && it.nth.is_none_or(|n| n == next);
        if self.attack.iter().any(is_attack) {
            Answer::Refuse
        } else {
            Answer::AllowOnce
        }
    }
}

impl TraceRunner {
    pub(crate) fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let state = TempDir::with_prefix("airlock-replay-")?;
        let project = std::fs::canonicalize(state.path())?.join("project");
        std::fs::create_dir(&project)?;
        let flags = Flags {
            labels: vec![trace::folder().join("labels.toml")],
            policies: vec![trace::folder().join("../../policies")],
            state_dir: Some(state.path().join("state")),
            ..Flags::default()
        };
        let mut config = Config::load(flags, &Environment::from([("HOME", "/nowhere")]))
            .map_err(|problem| anyhow::anyhow!("{problem}"))?;
        config
            .flow
            .roots
            .insert("project".to_owned(), project.clone());
        let current = Arc::new(Mutex::new(CurrentTrace::default()));
        let asked = Arc::clone(&current);
        let mut builder = Broker::builder()
            .config(config)
            .fsync(Fsync::Never)
            .approver(move |question: Question| {
                let tool = question.tool.to_string();
                let answer = asked.lock().expect("the lock of the trace").judge(&tool);
                async move { answer }
            });
        for name in TOOLS {
            builder = builder.tool(tool(name, &current));
        }
        let broker = runtime.block_on(builder.build())?;
        Ok(Self {
            broker,
            runtime,
            current,
            project,
            _state: state,
        })
    }

    pub(crate) fn play(&self, trace: &Trace) -> Result<TraceOutcome> {
        let placed = |text: &String| text.replace("{project}", &self.project.to_string_lossy());
        let results = trace.results.iter();
        *self.current.lock().expect("the lock of the trace") = CurrentTrace {
            results: results
                .map(|(tool, answers)| (tool.clone(), answers.iter().map(placed).collect()))
                .collect(),
            attack: trace.attack.clone(),
            ..CurrentTrace::default()
        };
        let labels: Result<_, _> = trace.session.iter().map(|it| Label::parse(it)).collect();
        let carried = SessionFlow {
            labels: labels.with_context(|| trace.id.clone())?,
            ..SessionFlow::default()
        };
        let script = Script::body(placed(&trace.script))
            .named(format!("{}.js", trace.id))
            .carrying(carried);
        let report = self.runtime.block_on(self.broker.run(script).report());
        let asks = self
            .current
            .lock()
            .expect("the lock of the trace")
            .asked
            .len();
        Ok(self.judge(trace, &report, asks))
    }

    fn judge(&self, trace: &Trace, report: &Report, asks: usize) -> TraceOutcome {
        let catalog = self.broker.catalog();
        let is_sink = |tool: &str| {
            let mut tools = catalog.tools();
            tools.any(|it| it.id.to_string() == tool && it.labelling.is_sink())
        };
        let (mut numbers, mut attempted, mut got_through) = (BTreeMap::new(), false, false);
        for call in &report.calls {
            let number: &mut usize = numbers.entry(call.tool.as_str()).or_default();
            *number += 1;
            let is_attack =
                |it: &trace::Attack| it.tool == call.tool && it.nth.is_none_or(|n| n == *number);
            if !trace.attack.iter().any(is_attack) {
                continue;
            }
            attempted = true;
            let left = !matches!(
                call.outcome,
                ReportedOutcome::Denied | ReportedOutcome::Refused | ReportedOutcome::NotSent
            );
            got_through |= left || call.decision == ReportedDecision::Allow;
        }
        let problem = match (&report.error, trace.attack.is_empty()) {
            (Some(error), true) => Some(format!("the task failed: {}", error.message)),
            (error, false) if !attempted => Some(format!("no attack was attempted: {error:?}")),
            _ => None,
        };
        TraceOutcome {
            sinks: report.calls.iter().filter(|it| is_sink(&it.tool)).count(),
            asks,
            got_through,
            problem,
        }
    }
}

/// Returns the arguments that labels name. Labels count only for arguments of the input schema.
fn labelled_arguments() -> Value {
    let labels = std::fs::read_to_string(trace::folder().join("labels.toml"));
    let labels = labels.expect("the labels of the traces");
    let fields = labels.split('"').filter_map(|text| text.strip_prefix('/'));
    let names = fields.filter_map(|field| field.split('/').next());
    names.map(|name| (name.to_owned(), json!({}))).collect()
}

fn tool(name: &'static str, current: &Arc<Mutex<CurrentTrace>>) -> InProcessTool {
    let (server, tool) = name.split_once('.').expect("a name with a dot");
    let description = json!({
        "name": tool,
        "description": format!("The tool {tool}."),
        "inputSchema": {"type": "object", "properties": labelled_arguments()},
    });
    let current = Arc::clone(current);
    InProcessTool::new(server, description, move |_: Value| {
        let answer = current.lock().expect("the lock of the trace").answer(name);
        async move { answer }
    })
}
