//! Reads a server's list of tools, page by page and tool by tool. An invalid tool is reported and
//! skipped; the others are kept.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use airlock_core::json::{self, Bounds};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::connection::Connection;
use super::groups_and_tags::{self, GroupsAndTags};
use super::headers::{MirroredHeader, mirrored};
use super::jsonrpc::{Answer, METHOD_NOT_FOUND};
use super::link::Link;
use super::outgoing::LinkError;
use super::raw::read_object;

/// A part of a list that was skipped, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListProblem {
    #[error("the tool `{tool}` was skipped: {why}")]
    Tool { tool: String, why: String },
    #[error("tool number {at} of the list was skipped: {why}")]
    Nameless { at: usize, why: String },
    #[error("the list was cut off after {tools} tools: {why}")]
    Cut { tools: usize, why: String },
    /// The list of groups or of tags is missing. All tools are there.
    #[error("`{method}` could not be read: {why}")]
    Filtering { method: &'static str, why: String },
}

impl ListProblem {
    /// Applies `shown` to every text that may come from the server.
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
            Self::Filtering { method, why } => Self::Filtering {
                method,
                why: shown(&why),
            },
        }
    }
}

/// The reason why there is no list.
#[derive(Debug)]
pub(crate) enum ListError {
    Link(LinkError),
    Failed(String),
}

#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<Value>,
    pub(crate) problems: Vec<ListProblem>,
    pub(crate) groups_and_tags: GroupsAndTags,
    /// The arguments that are repeated in headers, by tool.
    pub(crate) mirrored: HashMap<String, Vec<MirroredHeader>>,
    /// The lifetime that the server states for the list: the shortest lifetime of any page.
    pub(crate) holds_for: Option<Duration>,
    names: HashSet<String>,
    seen: usize,
    bytes: usize,
}

/// Bounds of one description. The [`MessageLimits`](super::MessageLimits) bound the whole list.
const TOOL_BOUNDS: Bounds = Bounds {
    depth_max: 120,
    nodes_max: 1_000_000,
    ..Bounds::WIDEST
};

#[derive(Deserialize)]
struct ListPage<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(default, rename = "nextCursor")]
    next_cursor: Option<String>,
    /// Ignored unless it is a number of milliseconds.
    #[serde(default, rename = "ttlMs")]
    ttl_ms: Option<Value>,
}

/// Reads the tools that arrive `within` the time, and the lists of groups and tags.
pub(crate) async fn list(connection: &Connection, within: Duration) -> Result<Listing, ListError> {
    let deadline = Instant::now() + within;
    let mut listing = pages(connection, within).await?;
    let left = deadline.saturating_duration_since(Instant::now());
    let (groups_and_tags, problems) = groups_and_tags::read(connection, left).await;
    listing.groups_and_tags = groups_and_tags;
    for (method, why) in problems {
        listing.report(ListProblem::Filtering { method, why });
    }
    Ok(listing)
}

/// Reads all pages that arrive `within` the time.
async fn pages(connection: &Connection, within: Duration) -> Result<Listing, ListError> {
    let message_limits = connection.message_limits;
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
        let page: ListPage<'_> = match read_object(page.get()) {
            Ok(page) => page,
            Err(error) if cursor.is_none() => return Err(ListError::Failed(error.to_string())),
            Err(error) => return Ok(listing.cut(format!("the next page is invalid: {error}"))),
        };
        let ttl_ms = page.ttl_ms.as_ref().and_then(Value::as_u64);
        listing.hold(ttl_ms.map(Duration::from_millis));
        for tool in page.tools {
            if listing.tools.len() >= message_limits.tools_max {
                return Ok(listing.cut(format!("more than {} tools", message_limits.tools_max)));
            }
            listing.bytes = listing.bytes.saturating_add(tool.get().len());
            if listing.bytes > message_limits.list_bytes_max {
                return Ok(
                    listing.cut(format!("more than {} bytes", message_limits.list_bytes_max))
                );
            }
            listing.take(tool.get(), matches!(connection.link, Link::Http(_)));
        }
        // Some servers send an empty cursor on the last page.
        let Some(next) = page.next_cursor.filter(|next| !next.is_empty()) else {
            return Ok(listing);
        };
        if !cursors.insert(next.clone()) {
            return Ok(listing.cut("the server repeats a cursor".to_owned()));
        }
        if cursors.len() >= message_limits.list_pages_max {
            return Ok(listing.cut(format!("more than {} pages", message_limits.list_pages_max)));
        }
        cursor = Some(next);
    }
}

/// Reads one page. Returns `None` if the server has no tools and does not know the method.
async fn page(
    connection: &Connection,
    cursor: Option<&str>,
    within: Duration,
) -> Result<Option<Box<RawValue>>, ListError> {
    let bytes_max = connection.message_limits.list_page_bytes_max;
    match connection
        .list_page(cursor, within)
        .await
        .map_err(ListError::Link)?
    {
        Answer::Result(result) if result.get().len() > bytes_max => {
            Err(ListError::Link(LinkError::too_large(bytes_max)))
        }
        Answer::Result(result) => Ok(Some(result)),
        Answer::Error(error) if error.code == METHOD_NOT_FOUND => Ok(None),
        Answer::Error(error) => Err(ListError::Failed(format!(
            "the server answered with error {}: {}",
            error.code, error.message
        ))),
        Answer::Unreadable(why) => Err(ListError::Failed(why)),
    }
}

impl ListError {
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Link(error) => error.why(),
            Self::Failed(why) => why.clone(),
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
            let why = "`name` is missing or not a string".to_owned();
            return self.leave_out_nameless(at, why);
        };
        match self.marks(&name, &tool, over_http) {
            Ok(marks) => {
                self.mirrored.insert(name.clone(), marks);
                self.names.insert(name);
                self.tools.push(tool);
            }
            Err(why) => self.report(ListProblem::Tool {
                tool: display_name(&name),
                why,
            }),
        }
    }

    fn marks(
        &self,
        name: &str,
        tool: &Value,
        over_http: bool,
    ) -> Result<Vec<MirroredHeader>, String> {
        const NAME_BYTES_MAX: usize = 256;
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(format!(
                "the name has {} bytes; expected 1 to {NAME_BYTES_MAX}",
                name.len()
            ));
        }
        if name.chars().any(char::is_control) {
            return Err("the name contains control characters".to_owned());
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

    /// Reports a problem. The number of problems is limited, because every tool of a list may be
    /// invalid.
    fn report(&mut self, problem: ListProblem) {
        const PROBLEMS_MAX: usize = 100;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }
}

fn display_name(name: &str) -> String {
    const CHARS: usize = 80;
    name.chars()
        .take(CHARS)
        .filter(|c| !c.is_control())
        .collect()
}
