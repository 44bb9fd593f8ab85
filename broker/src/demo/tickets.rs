//! The demo server's tickets. They are lost when the process ends.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Priority {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Open,
    Closed,
}

#[derive(Debug, Serialize)]
struct Ticket {
    id: u64,
    title: String,
    body: String,
    priority: Priority,
    status: Status,
    labels: Vec<String>,
    url: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TicketFilter {
    status: Option<Status>,
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Draft {
    title: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    priority: Priority,
    #[serde(default)]
    labels: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Tickets {
    kept: Vec<Ticket>,
    last_id: u64,
}

impl Default for Tickets {
    fn default() -> Self {
        let mut tickets = Self {
            kept: Vec::new(),
            last_id: 0,
        };
        tickets.add(
            Status::Closed,
            draft(
                "payments: refunds are booked twice",
                "Fixed with release 41.",
                Priority::Urgent,
                "payments",
            ),
        );
        tickets.add(
            Status::Open,
            draft(
                "mailer: the queue grows on Mondays",
                "",
                Priority::Low,
                "mailer",
            ),
        );
        tickets
    }
}

fn draft(title: &str, body: &str, priority: Priority, label: &str) -> Draft {
    Draft {
        title: title.into(),
        body: body.into(),
        priority,
        labels: vec![label.into()],
    }
}

impl Tickets {
    pub(super) fn list(&self, filter: &TicketFilter) -> Value {
        let text = filter.text.as_deref().map(str::to_lowercase);
        let found: Vec<&Ticket> = self
            .kept
            .iter()
            .filter(|ticket| filter.status.is_none_or(|status| status == ticket.status))
            .filter(|ticket| text.as_deref().is_none_or(|text| ticket.mentions(text)))
            .collect();
        json!({"tickets": found})
    }

    pub(super) fn create(&mut self, draft: Draft) -> Result<Value, String> {
        const TICKETS_MAX: usize = 10_000;
        const TITLE_CHARS_MAX: usize = 200;
        match draft.title.chars().count() {
            1..=TITLE_CHARS_MAX => {}
            chars => {
                return Err(format!(
                    "the title has {chars} characters; expected 1 to {TITLE_CHARS_MAX}"
                ));
            }
        }
        if self.kept.len() >= TICKETS_MAX {
            return Err(format!(
                "there are {TICKETS_MAX} tickets already; delete some"
            ));
        }
        Ok(json!(self.add(Status::Open, draft)))
    }

    fn add(&mut self, status: Status, draft: Draft) -> Option<&Ticket> {
        self.last_id += 1;
        let Draft {
            title,
            body,
            priority,
            labels,
        } = draft;
        let url = format!("https://tickets.example/{}", self.last_id);
        self.kept.push(Ticket {
            id: self.last_id,
            title,
            body,
            priority,
            status,
            labels,
            url,
        });
        self.kept.last()
    }

    pub(super) fn delete(&mut self, id: u64) -> Result<Value, String> {
        let place = self.kept.iter().position(|ticket| ticket.id == id);
        let place = place.ok_or_else(|| format!("there is no ticket {id}"))?;
        self.kept.remove(place);
        Ok(json!({"deleted": id, "remaining": self.kept.len()}))
    }
}

impl Ticket {
    fn mentions(&self, text: &str) -> bool {
        [&self.title, &self.body]
            .iter()
            .any(|field| field.to_lowercase().contains(text))
    }
}
