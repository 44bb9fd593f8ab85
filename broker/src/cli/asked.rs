//! What servers ask in the middle of a call of `airlock run`: the person at the terminal
//! answers, and where there is none it is declined, and said.

use crate::approver::Terminal;
use crate::carrier::{Abilities, Carrier, Carrying, Inquiry, Said, Time, Wants};
use crate::render::escape;

use super::screen::Screen;

pub(super) struct Asked {
    terminal: Option<Terminal>,
    screen: Screen,
}

impl Asked {
    /// Without a terminal nobody is there.
    pub(super) fn new(terminal: Option<Terminal>, screen: &Screen) -> Self {
        Self {
            terminal,
            screen: screen.clone(),
        }
    }
}

impl Carrier for Asked {
    fn abilities(&self) -> Abilities {
        Abilities {
            form: true,
            address: true,
            ..Abilities::default()
        }
    }

    fn carry(&self, inquiry: Inquiry, time: Time) -> Carrying<'_> {
        Box::pin(async move {
            if let Some(terminal) = &self.terminal {
                self.screen.clear_progress();
                return terminal.inquire(&inquiry, &time).await;
            }
            let server = escape::line(&inquiry.server.0);
            let what = match inquiry.wants {
                Wants::Address => "an address to be opened",
                _ => "an answer to a form",
            };
            self.screen.show(&format!(
                "the server `{server}` asked for {what}; it was declined, because there is no terminal\n"
            ));
            Said::Result(serde_json::json!({"action": "decline"}))
        })
    }
}
