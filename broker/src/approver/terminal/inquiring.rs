//! What a server asks in the middle of a call, at the terminal: a form, field by field,
//! or an address to open. Nothing leaves before the person has seen all of it and said
//! so, and what is no answer is none.

use std::io;

use rustix::fs::OFlags;
use rustix::termios::{QueueSelector, tcflush};
use serde_json::{Map, Value, json};

use super::{Shown, Terminal, open, turn};
use crate::approver::form::{Form, said};
use crate::approver::keyboard::Keyboard;
use crate::carrier::{Inquiry, Said, Time, Wants};
use crate::render::escape;

const ADDRESS_CHARS_MAX: usize = 4_096;
const HELP: &str = "        type /decline or /cancel to give no answer\n";

/// How a person went on from a prompt.
enum Typed {
    Line(String),
    /// `decline` or `cancel`.
    Over(&'static str),
}

impl Terminal {
    /// Brings an inquiry before the person; an error of the terminal is no answer. Its time
    /// begins when it is shown.
    pub(crate) async fn inquire(&self, inquiry: &Inquiry, time: &Time) -> Said {
        let answered = match inquiry.wants {
            Wants::Form => self.fill_in(inquiry, time).await,
            Wants::Address => self.open_address(inquiry, time).await,
            Wants::Sampling | Wants::Roots => return Said::Nothing,
        };
        answered.map_or(Said::Nothing, Said::Result)
    }

    async fn fill_in(&self, inquiry: &Inquiry, time: &Time) -> io::Result<Value> {
        let mut talk = self.begin(inquiry, time).await?;
        let nothing = json!({});
        let schema = inquiry.params.get("requestedSchema").unwrap_or(&nothing);
        let form = match Form::read(schema) {
            Ok(form) => form,
            Err(why) => {
                self.show(&format!("        it cannot be answered here: {why}\n"))?;
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
                        Typed::Line(line) => line,
                        Typed::Over(action) => return Ok(talk.over(action)),
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
                self.show(&format!("        it does not fit the form: {why}\n"))?;
                continue;
            }
            self.show(&summary(inquiry, &content))?;
            talk.forget_typed();
            self.show(&answers("[s]end, [e]dit, [d]ecline, [c]ancel"))?;
            match talk.typed().await {
                Typed::Over(action) => return Ok(talk.over(action)),
                Typed::Line(line) => match line.trim() {
                    "s" | "send" => {
                        talk.shown.is_open = false;
                        return Ok(json!({"action": "accept", "content": content}));
                    }
                    "d" | "decline" => return Ok(talk.over("decline")),
                    "c" | "cancel" => return Ok(talk.over("cancel")),
                    _ => self.write("        once more, from the first field\n")?,
                },
            }
        }
    }

    async fn open_address(&self, inquiry: &Inquiry, time: &Time) -> io::Result<Value> {
        let mut talk = self.begin(inquiry, time).await?;
        let url = inquiry.params.get("url").and_then(Value::as_str);
        let url = escape::line(url.unwrap_or_default());
        if url.chars().count() > ADDRESS_CHARS_MAX {
            self.show("        it cannot be opened here: the address is too long to be shown\n")?;
            return Ok(talk.over("cancel"));
        }
        self.show(&format!(
            "{:>7} {url}\n        open it yourself, if you trust the server and the address\n",
            "address"
        ))?;
        loop {
            talk.forget_typed();
            self.show(&answers("[o]pened, [d]ecline, [c]ancel"))?;
            let line = match talk.typed().await {
                Typed::Line(line) => line,
                Typed::Over(action) => return Ok(talk.over(action)),
            };
            let action = match line.trim() {
                "o" | "opened" => "accept",
                "d" | "decline" => "decline",
                "c" | "cancel" => "cancel",
                _ => {
                    self.write("        that is not one of the answers\n")?;
                    continue;
                }
            };
            return Ok(talk.over(action));
        }
    }

    /// Takes the terminal, and shows who asks what.
    async fn begin(&self, inquiry: &Inquiry, time: &Time) -> io::Result<Talk<'_>> {
        let turn = turn(time).await;
        // What was typed before the question was shown is no answer to it.
        let _ = tcflush(&*self.screen, QueueSelector::IFlush);
        let talk = Talk {
            keyboard: Keyboard::new(open(OFlags::NONBLOCK)?),
            shown: Shown {
                terminal: self,
                is_open: true,
            },
            _turn: turn,
        };
        self.show(&message(inquiry))?;
        Ok(talk)
    }
}

/// One inquiry while it has the terminal.
struct Talk<'a> {
    keyboard: Keyboard<std::fs::File>,
    shown: Shown<'a>,
    _turn: tokio::sync::MutexGuard<'static, ()>,
}

impl Talk<'_> {
    fn forget_typed(&mut self) {
        self.shown.terminal.forget_typed(&mut self.keyboard);
    }

    /// The end of what can be typed is the end of the question.
    async fn typed(&mut self) -> Typed {
        let terminal = self.shown.terminal;
        match self.keyboard.line(|| terminal.is_in_foreground()).await {
            None => Typed::Over("cancel"),
            Some(line) => match line.trim() {
                "/decline" => Typed::Over("decline"),
                "/cancel" => Typed::Over("cancel"),
                _ => Typed::Line(line),
            },
        }
    }

    fn over(&mut self, action: &str) -> Value {
        self.shown.is_open = false;
        json!({ "action": action })
    }
}

/// Who asks stands in front, and each line of the server's behind a mark.
fn message(inquiry: &Inquiry) -> String {
    let server = escape::line(&inquiry.server.0);
    let theirs = inquiry.params.get("message").and_then(Value::as_str);
    let mut text = format!(
        "\n{:>7} the server `{server}`, in the middle of a call:\n",
        "asks"
    );
    for line in escape::quoted(theirs.unwrap_or_default()).lines() {
        text.push_str(&format!("        {line}\n"));
    }
    text
}

/// Everything that would be sent, and to whom.
fn summary(inquiry: &Inquiry, content: &Value) -> String {
    let server = escape::line(&inquiry.server.0);
    let mut text = format!("{:>7} to the server `{server}`:\n", "send");
    for (name, value) in content.as_object().into_iter().flatten() {
        let (name, value) = (escape::line(name), said(value));
        let value = escape::line(&value);
        text.push_str(&format!("        {name} = {value}\n"));
    }
    if content.as_object().is_some_and(Map::is_empty) {
        text.push_str("        that you agree, and nothing else\n");
    }
    text
}

fn answers(words: &str) -> String {
    format!("{:>7} {words}\n      > ", "answer")
}
