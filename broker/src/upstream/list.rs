//! Reading a server's list of tools: page by page, tool by tool. One bad tool
//! is reported and left out; the others stay.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use airlock_core::json::{self, Bounds};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::connection::Connection;
use super::headers::{Mirrored, mirrored};
use super::jsonrpc::{Answer, METHOD_NOT_FOUND};
use super::link::{Link, LinkError};
use super::raw::read_object;

/// Something that was left out of a list, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListProblem {
    #[error("the tool `{tool}` is left out: {why}")]
    Tool { tool: String, why: String },
    #[error("tool number {at} of the list is left out: {why}")]
    Nameless { at: usize, why: String },
    #[error("the list is cut off after {tools} tools: {why}")]
    Cut { tools: usize, why: String },
}

impl ListProblem {
    /// The same with `shown` in place of every text that may be the server's.
    pub(super) fn map_texts(self, shown: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Tool { tool, why } => Self::Tool {
                tool: shown(&tool),
                why: shown(&why),
            },
            Self::Nameless { at, why } => Self::Nameless {
                at,
                why: shown(&why),
            },
            Self::Cut { tools, why } => Self::Cut {
                tools,
                why: shown(&why),
            },
        }
    }
}

/// Why there is no list at all.
#[derive(Debug)]
pub(crate) enum NoList {
    Link(LinkError),
    Said(String),
}

#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<Value>,
    pub(crate) problems: Vec<ListProblem>,
    /// The arguments that go into headers too, by tool.
    pub(crate) mirrored: HashMap<String, Vec<Mirrored>>,
    /// How long the server says that the list holds: the shortest time of any page.
    pub(crate) holds_for: Option<Duration>,
    names: HashSet<String>,
    seen: usize,
    bytes: usize,
}

/// One description. How large a list may be in all is among the [`Caps`](super::Caps).
const TOOL_BOUNDS: Bounds = Bounds {
    depth_max: 120,
    nodes_max: 1_000_000,
    ..Bounds::WIDEST
};

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(default, rename = "nextCursor")]
    next_cursor: Option<String>,
    /// Anything but a number of milliseconds says nothing.
    #[serde(default, rename = "ttlMs")]
    ttl_ms: Option<Value>,
}

/// All pages that come `within` the time.
pub(crate) async fn list(connection: &Connection, within: Duration) -> Result<Listing, NoList> {
    let caps = connection.caps;
    let deadline = Instant::now() + within;
    let mut listing = Listing::default();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let page = match page(connection, cursor.as_deref(), left).await {
            Ok(Some(page)) => page,
            Ok(None) => return Ok(listing),
            Err(error) if cursor.is_none() => return Err(error),
            Err(error) => return Ok(listing.cut(format!("the next page failed: {}", error.why()))),
        };
        let page: Page<'_> = match read_object(page.get()) {
            Ok(page) => page,
            Err(error) if cursor.is_none() => return Err(NoList::Said(error.to_string())),
            Err(error) => return Ok(listing.cut(format!("the next page cannot be read: {error}"))),
        };
        let ttl_ms = page.ttl_ms.as_ref().and_then(Value::as_u64);
        listing.hold(ttl_ms.map(Duration::from_millis));
        for tool in page.tools {
            if listing.tools.len() >= caps.tools_max {
                return Ok(listing.cut(format!("more than {} tools", caps.tools_max)));
            }
            listing.bytes = listing.bytes.saturating_add(tool.get().len());
            if listing.bytes > caps.list_bytes_max {
                return Ok(listing.cut(format!("more than {} bytes", caps.list_bytes_max)));
            }
            listing.take(tool.get(), matches!(connection.link, Link::Http(_)));
        }
        // An empty cursor is what some servers say at the end.
        let Some(next) = page.next_cursor.filter(|next| !next.is_empty()) else {
            return Ok(listing);
        };
        if !cursors.insert(next.clone()) {
            return Ok(listing.cut("the server repeats a cursor".to_owned()));
        }
        if cursors.len() >= caps.list_pages_max {
            return Ok(listing.cut(format!("more than {} pages", caps.list_pages_max)));
        }
        cursor = Some(next);
    }
}

/// `None`: the server has no tools to offer and does not know the method.
async fn page(
    connection: &Connection,
    cursor: Option<&str>,
    within: Duration,
) -> Result<Option<Box<RawValue>>, NoList> {
    let bytes_max = connection.caps.list_page_bytes_max;
    match connection
        .list_page(cursor, within)
        .await
        .map_err(NoList::Link)?
    {
        Answer::Result(result) if result.get().len() > bytes_max => {
            Err(NoList::Link(LinkError::too_large(bytes_max)))
        }
        Answer::Result(result) => Ok(Some(result)),
        Answer::Error(error) if error.code == METHOD_NOT_FOUND => Ok(None),
        Answer::Error(error) => Err(NoList::Said(format!(
            "the server answers with the error {}: {}",
            error.code, error.message
        ))),
        Answer::Unreadable(why) => Err(NoList::Said(why)),
    }
}

impl NoList {
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Link(error) => error.why(),
            Self::Said(why) => why.clone(),
        }
    }
}

impl Listing {
    fn cut(mut self, why: String) -> Self {
        let tools = self.tools.len();
        self.problems.push(ListProblem::Cut { tools, why });
        self
    }

    fn hold(&mut self, page: Option<Duration>) {
        self.holds_for = self.holds_for.into_iter().chain(page).min();
    }

    fn take(&mut self, text: &str, over_http: bool) {
        self.seen += 1;
        let at = self.seen;
        let tool = match json::read(text.as_bytes(), TOOL_BOUNDS) {
            Ok(tool) => tool,
            Err(bad) => return self.leave_out_nameless(at, bad.to_string()),
        };
        let Some(name) = tool
            .get("name")
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
        else {
            return self.leave_out_nameless(at, "it has no name".to_owned());
        };
        match self.marks(&name, &tool, over_http) {
            Ok(marks) => {
                self.mirrored.insert(name.clone(), marks);
                self.names.insert(name);
                self.tools.push(tool);
            }
            Err(why) => self.report(ListProblem::Tool {
                tool: shown(&name),
                why,
            }),
        }
    }

    fn marks(&self, name: &str, tool: &Value, over_http: bool) -> Result<Vec<Mirrored>, String> {
        const NAME_BYTES_MAX: usize = 256;
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(format!(
                "its name has {} bytes, and 1 to {NAME_BYTES_MAX} are allowed",
                name.len()
            ));
        }
        if name.chars().any(char::is_control) {
            return Err("its name has control characters".to_owned());
        }
        if self.names.contains(name) {
            return Err("an earlier tool of the list has the same name".to_owned());
        }
        match tool.get("inputSchema") {
            Some(schema) if over_http => mirrored(schema).map_err(|bad| bad.to_string()),
            _ => Ok(Vec::new()),
        }
    }

    fn leave_out_nameless(&mut self, at: usize, why: String) {
        self.report(ListProblem::Nameless { at, why });
    }

    /// A list may be bad from end to end; its reader is spared the repetition.
    fn report(&mut self, problem: ListProblem) {
        const PROBLEMS_MAX: usize = 100;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }
}

fn shown(name: &str) -> String {
    const CHARS: usize = 80;
    name.chars()
        .take(CHARS)
        .filter(|c| !c.is_control())
        .collect()
}
