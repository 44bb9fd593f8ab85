//! A model on loopback that a test plays: the test says which tool the model calls next, and gets
//! the result as the host passes it on.
//!
//! It speaks the interfaces that hosts use: chat completions and responses of OpenAI, messages of
//! Anthropic, and `generateContent` of Gemini, each with and without streaming.

mod chat;
mod gemini;
mod http;
mod messages;
mod responses;

use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::patience::PATIENCE;

/// Only requests that offer this tool belong to a conversation. Hosts also send others, for example for
/// a title.
const OF_AIRLOCK: &str = "run_script";
/// Interval of the check whether the host still runs.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The model, and what it has said so far in its only conversation.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    requests: Receiver<OpenRequest>,
    open: Option<OpenRequest>,
    turns: Vec<Turn>,
}

/// What a host sends to its model.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    pub tools: Vec<ShownTool>,
    pub results: Vec<ToolResult>,
    /// The whole request.
    pub text: String,
}

#[derive(Debug, Clone, Default)]
pub struct ShownTool {
    pub name: String,
    pub description: String,
    /// The name space that the call has to name, for hosts that group their tools.
    pub namespace: Option<String>,
}

/// The result of a call, as the model gets it.
#[derive(Debug, Clone, Default)]
pub struct ToolResult {
    pub text: String,
    /// The images, in base64 or as an address with the data.
    pub images: Vec<String>,
}

/// What the model says.
#[derive(Debug, Clone)]
enum Turn {
    Call {
        tool: ShownTool,
        id: String,
        args: Value,
    },
    Say(String),
}

#[derive(Debug)]
struct OpenRequest {
    conversation: Conversation,
    answer: Sender<Turn>,
}

impl Conversation {
    /// Returns a tool of airlock, whatever the host puts before its name.
    #[must_use]
    pub fn tool(&self, name: &str) -> &ShownTool {
        let found = self.tools.iter().find(|it| it.name.ends_with(name));
        found.unwrap_or_else(|| panic!("the model sees no {name}"))
    }
}

impl ScriptedModel {
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (tell, requests) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let tell = tell.clone();
                thread::spawn(move || http::serve(stream, |path, body| answer(path, body, &tell)));
            }
        });
        Self {
            address,
            requests,
            open: None,
            turns: Vec::new(),
        }
    }

    /// Returns the address without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits for the host's next request. Returns `None` if `is_running` is false before, or if no
    /// request comes.
    pub fn conversation(&mut self, is_running: impl FnMut() -> bool) -> Option<&Conversation> {
        Some(&self.wait(is_running)?.conversation)
    }

    /// Calls a tool of airlock, and returns its result.
    pub fn call(
        &mut self,
        tool: &str,
        args: Value,
        mut is_running: impl FnMut() -> bool,
    ) -> Option<ToolResult> {
        let conversation = self.conversation(&mut is_running)?;
        let tool = conversation.tool(tool).clone();
        let id = format!("call_{}", self.turns.len());
        self.say(Turn::Call { tool, id, args });
        let results = &self.wait(is_running)?.conversation.results;
        results.last().cloned()
    }

    /// Ends the conversation.
    pub fn end(&mut self, is_running: impl FnMut() -> bool) -> Option<()> {
        self.wait(is_running)?;
        self.say(Turn::Say("done".to_owned()));
        Some(())
    }

    fn say(&mut self, turn: Turn) {
        let open = self.open.take().expect("an open request");
        // A host that has given up sends the request again.
        let _ = open.answer.send(turn.clone());
        self.turns.push(turn);
    }

    fn wait(&mut self, mut is_running: impl FnMut() -> bool) -> Option<&OpenRequest> {
        let since = Instant::now();
        while self.open.is_none() {
            match self.requests.recv_timeout(LOOK_AGAIN) {
                // A repeated request gets the same answer.
                Ok(request) => match self.turns.get(request.conversation.results.len()) {
                    Some(turn) => drop(request.answer.send(turn.clone())),
                    None => self.open = Some(request),
                },
                Err(RecvTimeoutError::Timeout) if is_running() && since.elapsed() < PATIENCE => (),
                Err(_) => return None,
            }
        }
        self.open.as_ref()
    }
}

/// Returns the content type and body that answer a request, or `None` if there is no such path.
fn answer(path: &str, body: &Value, tell: &Sender<OpenRequest>) -> Option<(&'static str, String)> {
    let path = path.split('?').next().unwrap_or_default();
    let interface = interface(path)?;
    let load = (interface.load)(body);
    let turn = load.unwrap_or_else(|| {
        let mut conversation = (interface.read)(body);
        conversation.text = body.to_string();
        turn(conversation, tell)
    });
    let streams = body["stream"] == true || path.ends_with(":streamGenerateContent");
    Some(match streams {
        true => ("text/event-stream", (interface.stream)(&turn)),
        false => ("application/json", (interface.whole)(&turn).to_string()),
    })
}

/// One of the interfaces.
struct Interface {
    /// Returns the call that loads airlock's tools, if the host shows only their names.
    load: fn(&Value) -> Option<Turn>,
    read: fn(&Value) -> Conversation,
    whole: fn(&Turn) -> Value,
    stream: fn(&Turn) -> String,
}

fn interface(path: &str) -> Option<Interface> {
    if path.ends_with("/chat/completions") {
        Some(Interface {
            load: |_| None,
            read: chat::read,
            whole: chat::whole,
            stream: chat::stream,
        })
    } else if path.ends_with("/responses") {
        Some(Interface {
            load: |_| None,
            read: responses::read,
            whole: responses::whole,
            stream: responses::stream,
        })
    } else if path.ends_with("/messages") {
        Some(Interface {
            load: messages::load,
            read: messages::read,
            whole: messages::whole,
            stream: messages::stream,
        })
    } else if path.ends_with("enerateContent") {
        Some(Interface {
            load: |_| None,
            read: gemini::read,
            whole: gemini::whole,
            stream: gemini::stream,
        })
    } else {
        None
    }
}

/// Gets the model's turn from the test. Requests outside the conversation get a short text.
fn turn(conversation: Conversation, tell: &Sender<OpenRequest>) -> Turn {
    let is_other = !conversation
        .tools
        .iter()
        .any(|it| it.name.ends_with(OF_AIRLOCK));
    let (answer, answers) = channel();
    let request = OpenRequest {
        conversation,
        answer,
    };
    if is_other || tell.send(request).is_err() {
        return Turn::Say("ok".to_owned());
    }
    answers.recv().unwrap_or(Turn::Say("ok".to_owned()))
}

/// Returns the events of a stream, each with its name where the interface names events.
fn events(events: &[Value], is_named: bool) -> String {
    let event = |it: &Value| match is_named {
        true => format!(
            "event: {}\ndata: {it}\n\n",
            it["type"].as_str().unwrap_or_default()
        ),
        false => format!("data: {it}\n\n"),
    };
    events.iter().map(event).collect()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Adds the content of a result: a text, or a list of parts of this form.
fn add_content(result: &mut ToolResult, content: &Value, add_part: fn(&mut ToolResult, &Value)) {
    match content {
        Value::String(text) => add_text(result, text),
        Value::Array(parts) => parts.iter().for_each(|part| add_part(result, part)),
        _ => (),
    }
}

fn add_text(result: &mut ToolResult, text: &str) {
    if !result.text.is_empty() {
        result.text.push('\n');
    }
    result.text.push_str(text);
}
