//! Sends progress notifications to the host, if the host wants them: one line for each event of a
//! run.

use std::collections::HashMap;

use airlock_core::id::CallId;
use serde_json::{Value, json};

use super::request::Request;
use crate::client_bridge::CallProgress;
use crate::render::escape;
use crate::run_event::RunEvent;

const LINE_CHARS_MAX: usize = 200;

pub(super) struct Progress<'a> {
    request: &'a Request,
    token: Option<&'a Value>,
    told: u64,
    tools: HashMap<CallId, String>,
}

impl<'a> Progress<'a> {
    pub(super) fn for_request(request: &'a Request) -> Self {
        Self {
            request,
            token: request.progress_token(),
            told: 0,
            tools: HashMap::new(),
        }
    }

    /// Whether a line with the script's own text is sent for this event. Such text may contain data
    /// that the script has read.
    pub(super) fn tells(&self, event: &RunEvent) -> bool {
        self.token.is_some() && matches!(event, RunEvent::Console { .. })
    }

    pub(super) async fn tell(&mut self, event: &RunEvent) {
        if self.token.is_none() {
            return;
        }
        if let Some(line) = self.line(event) {
            self.send(&line).await;
        }
    }

    async fn send(&mut self, line: &str) {
        let Some(token) = self.token else { return };
        self.told += 1;
        let message = escape::brief(line, LINE_CHARS_MAX);
        let params = json!({"progressToken": token, "progress": self.told, "message": message});
        self.request
            .peer
            .notify("notifications/progress", &params)
            .await;
    }

    /// Passes on what a server reports of its call.
    pub(super) async fn tell_report(&mut self, report: &CallProgress) {
        let known = self.tools.get(&report.call).cloned();
        let tool = known.unwrap_or_else(|| report.server.0.to_string());
        let total = report.total.map(|it| format!(" of {it}"));
        let total = total.unwrap_or_default();
        let message = report.message.as_deref().unwrap_or_default();
        let between = if message.is_empty() { "" } else { ", " };
        let (call, progress) = (report.call.0, report.progress);
        self.send(&format!(
            "call {call} of {tool}: {progress}{total}{between}{message}"
        ))
        .await;
    }

    fn line(&mut self, event: &RunEvent) -> Option<String> {
        let tool = |tools: &HashMap<CallId, String>, call: &CallId| {
            tools.get(call).cloned().unwrap_or_default()
        };
        match event {
            RunEvent::Started { run } => Some(format!("run {} has started", run.0)),
            RunEvent::Console { text, .. } => Some(text.clone()),
            RunEvent::Asked { call, tool } => {
                Some(format!("call {} of {tool} waits for an answer", call.0))
            }
            RunEvent::Checked { .. }
            | RunEvent::Answered { .. }
            | RunEvent::InquiryEnded { .. }
            | RunEvent::Signed { .. } => None,
            RunEvent::Inquired { call, wants, .. } => {
                let tool = tool(&self.tools, call);
                let wants = wants.in_words();
                Some(format!(
                    "call {} of {tool}: the server asks for {wants}",
                    call.0
                ))
            }
            RunEvent::CallDecided {
                call,
                tool,
                decision,
                ..
            } => {
                self.tools.insert(*call, tool.to_string());
                let decision = format!("{decision:?}").to_lowercase();
                Some(format!("call {} of {tool}: {decision}", call.0))
            }
            RunEvent::CallReused { call, tool, why } => {
                self.tools.insert(*call, tool.to_string());
                Some(format!("call {} of {tool}: {why}", call.0))
            }
            RunEvent::CallSettled {
                call, outcome, ms, ..
            } => {
                let outcome = format!("{outcome:?}").to_lowercase();
                let tool = tool(&self.tools, call);
                Some(format!(
                    "call {} of {tool}: {outcome} after {ms} ms",
                    call.0
                ))
            }
        }
    }
}
