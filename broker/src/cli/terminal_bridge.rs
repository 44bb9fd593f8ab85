//! Passes servers' requests for input to the person at the terminal during `airlock run`. Without a
//! terminal, requests are declined and a note is printed.

use crate::approver::Terminal;
use crate::client_bridge::{
    AnswerDeadline, BridgeFuture, ClientBridge, ClientCapabilities, ClientReply, InquiryKind,
    ServerRequest,
};
use crate::render::escape;

use super::screen::Screen;

pub(super) struct TerminalBridge {
    terminal: Option<Terminal>,
    screen: Screen,
}

impl TerminalBridge {
    /// Creates a bridge. Without a terminal, it declines all requests.
    pub(super) fn new(terminal: Option<Terminal>, screen: &Screen) -> Self {
        Self {
            terminal,
            screen: screen.clone(),
        }
    }
}

impl ClientBridge for TerminalBridge {
    fn abilities(&self) -> ClientCapabilities {
        ClientCapabilities {
            form: true,
            address: true,
            ..ClientCapabilities::default()
        }
    }

    fn can_log_in(&self) -> bool {
        self.terminal.is_some()
    }

    fn carry(&self, inquiry: ServerRequest, time: AnswerDeadline) -> BridgeFuture<'_> {
        Box::pin(async move {
            if let Some(terminal) = &self.terminal {
                self.screen.clear_progress();
                return terminal.inquire(&inquiry, &time).await;
            }
            let server = escape::line(&inquiry.server.0);
            let what = match inquiry.wants {
                InquiryKind::Address => "the user to open an address",
                _ => "the user to fill in a form",
            };
            self.screen.show(&format!(
                "the server `{server}` asked {what}; airlock declined, because there is no terminal\n"
            ));
            ClientReply::Result(serde_json::json!({"action": "decline"}))
        })
    }
}
