//! Shows a server's request for input at the terminal: a form, field by field, or a URL to open.
//! airlock sends nothing before the person has seen all values and agreed. An unclear reply counts
//! as no answer.

use std::io;

use rustix::fs::OFlags;
use rustix::termios::{QueueSelector, tcflush};
use serde_json::{Map, Value, json};

use super::{OpenPrompt, Terminal, Turn, open, turn};
use crate::approver::form::{Form, display_value};
use crate::approver::keyboard::Keyboard;
use crate::client_bridge::{AnswerDeadline, ClientReply, InquiryKind, ServerRequest};
use crate::render::escape;

const ADDRESS_CHARS_MAX: usize = 4_096;
const HELP: &str = "        type /decline or /cancel to give no answer\n";

/// The person's reply to a prompt.
enum PromptReply {
    Line(String),
    /// The reply `decline` or `cancel`, which ends the request without values.
    Over(&'static str),
}

impl Terminal {
    /// Shows a server's request to the person. An error of the terminal counts as no answer. The
    /// time limit starts when the request is shown.
    pub(crate) async fn inquire(
        &self,
        inquiry: &ServerRequest,
        time: &AnswerDeadline,
    ) -> ClientReply {
        let answered = match inquiry.wants {
            InquiryKind::Form => self.fill_in(inquiry, time).await,
            InquiryKind::Address => self.open_address(inquiry, time).await,
            InquiryKind::Sampling | InquiryKind::Roots => return ClientReply::Nothing,
        };
        answered.map_or(ClientReply::Nothing, ClientReply::Result)
    }

    async fn fill_in(&self, inquiry: &ServerRequest, time: &AnswerDeadline) -> io::Result<Value> {
        let mut talk = self.begin(inquiry, time).await?;
        let nothing = json!({});
        let schema = inquiry.params.get("requestedSchema").unwrap_or(&nothing);
        let form = match Form::read(schema) {
            Ok(form) => form,
            Err(why) => {
                self.show(&format!("        the form cannot be shown here: {why}\n"))?;
                talk.shown.is_open = false;
                return Ok(json!({"action": "cancel"}));
            }
        };
        self.write(HELP)?;
        loop {
            let mut content = Map::new();
            for (at, field) in form.fields.iter().enumerate() {
                let place = format!("{}/{}", at + 1, form.fields.len());
                let question = format!("{place:>7} {}", field.question());
                let value = loop {
                    self.show(&format!("{question}      > "))?;
                    let line = match talk.typed().await {
                        PromptReply::Line(line) => line,
                        PromptReply::Over(action) => return Ok(talk.over(action)),
                    };
                    match field.take(&line) {
                        Ok(value) => break value,
                        Err(why) => self.show(&format!("        {why}\n"))?,
                    }
                };
                content.extend(value.map(|value| (field.name().to_owned(), value)));
            }
            let content = Value::from(content);
            let findings = form.findings(&content);
            if !findings.is_empty() {
                let why = escape::line(&findings.join("; ")).into_owned();
                self.show(&format!("        invalid answers: {why}\n"))?;
                continue;
            }
            self.show(&summary(inquiry, &content))?;
            talk.forget_typed();
            self.show(&answers("[s]end, [e]dit, [d]ecline, [c]ancel"))?;
            match talk.typed().await {
                PromptReply::Over(action) => return Ok(talk.over(action)),
                PromptReply::Line(line) => match line.trim() {
                    "s" | "send" => {
                        talk.shown.is_open = false;
                        return Ok(json!({"action": "accept", "content": content}));
                    }
                    "d" | "decline" => return Ok(talk.over("decline")),
                    "c" | "cancel" => return Ok(talk.over("cancel")),
                    _ => self.write("        starting again at the first field\n")?,
                },
            }
        }
    }

    async fn open_address(
        &self,
        inquiry: &ServerRequest,
        time: &AnswerDeadline,
    ) -> io::Result<Value> {
        let mut talk = self.begin(inquiry, time).await?;
        let url = inquiry.params.get("url").and_then(Value::as_str);
        let url = escape::line(url.unwrap_or_default());
        if url.chars().count() > ADDRESS_CHARS_MAX {
            self.show("        the address is too long to be shown; the request is cancelled\n")?;
            return Ok(talk.over("cancel"));
        }
        // Not broken into lines, so that it can be copied. It contains no space and no control
        // character.
        self.write(&format!("{:>7} {url}\n", "address"))?;
        self.show("        open this address if you trust it and the server\n")?;
        loop {
            talk.forget_typed();
            self.show(&answers("[o]pened, [d]ecline, [c]ancel"))?;
            let line = match talk.typed().await {
                PromptReply::Line(line) => line,
                PromptReply::Over(action) => return Ok(talk.over(action)),
            };
            let action = match line.trim() {
                "o" | "opened" => "accept",
                "d" | "decline" => "decline",
                "c" | "cancel" => "cancel",
                _ => {
                    self.write("        unknown answer\n")?;
                    continue;
                }
            };
            return Ok(talk.over(action));
        }
    }

    /// Waits for the terminal, and shows which server asks and what.
    async fn begin(
        &self,
        inquiry: &ServerRequest,
        time: &AnswerDeadline,
    ) -> io::Result<FormDialogue<'_>> {
        let turn = turn(time).await;
        // Input typed before the question was shown is not an answer to it.
        let _ = tcflush(&*self.screen, QueueSelector::IFlush);
        let talk = FormDialogue {
            keyboard: Keyboard::new(open(OFlags::NONBLOCK)?),
            shown: OpenPrompt {
                terminal: self,
                is_open: true,
            },
            _turn: turn,
        };
        self.show(&message(inquiry))?;
        Ok(talk)
    }
}

/// A server's request while it uses the terminal.
struct FormDialogue<'a> {
    keyboard: Keyboard<std::fs::File>,
    shown: OpenPrompt<'a>,
    _turn: Turn,
}

impl FormDialogue<'_> {
    fn forget_typed(&mut self) {
        self.shown.terminal.forget_typed(&mut self.keyboard);
    }

    /// Reads a reply. The end of the input cancels the request.
    async fn typed(&mut self) -> PromptReply {
        let terminal = self.shown.terminal;
        match self.keyboard.line(|| terminal.is_in_foreground()).await {
            None => PromptReply::Over("cancel"),
            Some(line) => match line.trim() {
                "/decline" => PromptReply::Over("decline"),
                "/cancel" => PromptReply::Over("cancel"),
                _ => PromptReply::Line(line),
            },
        }
    }

    fn over(&mut self, action: &str) -> Value {
        self.shown.is_open = false;
        json!({ "action": action })
    }
}

/// Formats the server's message: the server's name first, then each line of the message with a
/// mark.
fn message(inquiry: &ServerRequest) -> String {
    let server = escape::line(&inquiry.server.0);
    let theirs = inquiry.params.get("message").and_then(Value::as_str);
    let mut text = format!("\n{:>7} the server `{server}`, during a call:\n", "asks");
    for line in escape::quoted(theirs.unwrap_or_default()).lines() {
        text.push_str(&format!("        {line}\n"));
    }
    text
}

/// Lists all values that would be sent, and the server that gets them.
fn summary(inquiry: &ServerRequest, content: &Value) -> String {
    let server = escape::line(&inquiry.server.0);
    let mut text = format!("{:>7} to the server `{server}`:\n", "send");
    for (name, value) in content.as_object().into_iter().flatten() {
        let (name, value) = (escape::line(name), display_value(value));
        let value = escape::line(&value);
        text.push_str(&format!("        {name} = {value}\n"));
    }
    if content.as_object().is_some_and(Map::is_empty) {
        text.push_str("        your consent, without values\n");
    }
    text
}

fn answers(words: &str) -> String {
    format!("{:>7} {words}\n      > ", "answer")
}
