//! airlock's own tools: searching tools, reading their descriptions, and running scripts that call
//! them.

mod call;
mod details;
mod follow;
mod full_listing;
mod handoff;
mod late_answers;
mod read;
mod resumable;
mod resume;
mod run;
mod search;
mod servers;

use std::time::Duration;

use airlock_core::code::Code;
use serde_json::{Map, Value, json};

use super::context::ServeContext;
use super::request::Request;
use super::rpc::{REPORT_KEY, RpcErrorResponse, set_member};
use super::run_text;
use super::settings::{ListMode, ServeSettings};
use super::shown_list::ShownList;
use crate::broker::ToolSnapshot;
use crate::broker::tool_index::filter::{self, Filter};
use crate::broker::tool_index::{
    CALL, DETAILS, DISABLE, ENABLE, ListedTool, OWN_NAMES, READ, RESUME, RUN, SEARCH, SERVERS,
    ToolIndex,
};
use crate::render::{escape, run_again};
use airlock_sandbox::budget::Busy;

pub(super) use call::call_directly;
pub(super) use handoff::{check_state, invalid_state, session_of};

/// The answer of one of airlock's own tools.
#[derive(Debug, PartialEq)]
pub(super) enum OwnToolAnswer {
    Done {
        text: String,
        structured: Option<Value>,
        is_error: bool,
    },
    /// Content blocks: of a tool that was called directly, or an image that was read.
    Content(Vec<Value>),
    /// A text with images. The report is in `_meta`, because some hosts show only structured content
    /// if there is any.
    WithImages {
        text: String,
        images: Vec<Value>,
        report: Value,
    },
    /// A complete `input_required` result.
    InputRequired(Value),
    /// The request itself is invalid and is refused.
    Refused(RpcErrorResponse),
}

impl OwnToolAnswer {
    /// Builds an error for a mistake that the model can correct itself.
    pub(super) fn wrong(text: impl Into<String>) -> Self {
        Self::Done {
            text: format!("error: {}", text.into()),
            structured: None,
            is_error: true,
        }
    }

    /// Builds a result from one of the documented errors. The text is the error as JSON.
    pub(super) fn error(error: Value) -> Self {
        Self::Done {
            text: error.to_string(),
            structured: Some(error),
            is_error: true,
        }
    }

    /// Reports a script that was not started, in the format of a run's result.
    fn not_started(code: Code, why: &str, next: &str, retry_after: Option<Duration>) -> Self {
        let mut error = json!({"code": code, "message": why});
        if let Some(after) = retry_after {
            set_member(&mut error, "retry_after_ms", after.as_millis() as u64);
        }
        Self::Done {
            text: run_text::problem_text("the run was not started", why, next, code.as_str()),
            structured: Some(json!({ "error": error })),
            is_error: true,
        }
    }

    /// Reports that there is no capacity for a run.
    fn busy(busy: &Busy) -> Self {
        let next = run_again(busy.retry_after_ms());
        Self::not_started(Code::Busy, &busy.to_string(), &next, Some(busy.retry_after))
    }

    pub(super) fn into_result(self) -> Result<Value, RpcErrorResponse> {
        Ok(match self {
            Self::Done {
                text,
                structured,
                is_error,
            } => {
                let shown = escape::message(&text);
                let mut result = json!({"content": [{"type": "text", "text": shown}]});
                if let Some(structured) = structured {
                    set_member(&mut result, "structuredContent", structured);
                }
                set_member(&mut result, "isError", is_error);
                result
            }
            Self::Content(blocks) => json!({"content": blocks, "isError": false}),
            Self::WithImages {
                text,
                images,
                report,
            } => {
                let text = json!({"type": "text", "text": escape::message(&text)});
                let content: Vec<Value> = std::iter::once(text).chain(images).collect();
                json!({"content": content, "isError": false, "_meta": {REPORT_KEY: report}})
            }
            Self::InputRequired(result) => result,
            Self::Refused(refusal) => return Err(refusal),
        })
    }
}

/// A mistake that the model can correct itself.
impl From<String> for OwnToolAnswer {
    fn from(text: String) -> Self {
        Self::wrong(text)
    }
}

impl From<&str> for OwnToolAnswer {
    fn from(text: &str) -> Self {
        Self::wrong(text)
    }
}

/// Whether one of airlock's own tools has this name.
pub(super) fn is_own(name: &str) -> bool {
    OWN_NAMES.contains(&name)
}

/// Answers a `tools/call`. Returns `None` if airlock has no tool of this name.
pub(super) async fn call(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    name: &str,
    args: &Map<String, Value>,
) -> Option<OwnToolAnswer> {
    let state = request.params.get("requestState");
    let answered = match (name, state) {
        (RUN | RESUME, Some(state)) => {
            resume::take_answers(context, tool_index, request, state).await
        }
        _ => return new_call(context, tool_index, request, name, args).await,
    };
    Some(answered)
}

/// Answers a request that continues no earlier one.
async fn new_call(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    name: &str,
    args: &Map<String, Value>,
) -> Option<OwnToolAnswer> {
    let answered = match name {
        SEARCH => search::call(context, tool_index, request, args).await,
        DETAILS => details::call(context, tool_index, request, args),
        RUN => run::call(context, tool_index, request, args).await,
        READ => read::call(context, request, args),
        RESUME => Ok(resume::call(context, tool_index, request, args).await),
        CALL if context.settings().mode == ListMode::Stable => {
            call::call(context, tool_index, request, args).await
        }
        SERVERS => servers::search(tool_index, &request.session, args),
        ENABLE => servers::enable(context, tool_index, &request.session, args).await,
        DISABLE => servers::disable(tool_index, &request.session, args).await,
        _ => return None,
    };
    Some(answered.unwrap_or_else(|refused| refused))
}

/// Returns the list for `tools/list`: airlock's own tools and, in progressive mode, every tool in
/// minimal form. With `takes_handle`, airlock's own tools take the session's handle as an argument.
pub(super) fn list(
    tool_index: &ToolIndex,
    shown: &ShownList,
    settings: &ServeSettings,
    takes_handle: bool,
) -> Vec<Value> {
    let mode = settings.mode;
    let mut tools = vec![
        search::description(),
        details::description(),
        run::description(tool_index, shown),
        read::description(),
        resume::description(),
    ];
    if mode == ListMode::Stable {
        tools.push(call::description());
    }
    if tool_index.known.servers.iter().any(|it| it.is_on_demand) {
        tools.extend(servers::descriptions());
    }
    if takes_handle {
        let about = "A session's handle, or `new`";
        for tool in &mut tools {
            if let Some(properties) = tool.pointer_mut("/inputSchema/properties") {
                set_member(
                    properties,
                    "session",
                    json!({"type": "string", "description": about}),
                );
            }
        }
    }
    tools.extend(listed_tools(tool_index, settings, shown.chars_max));
    tools
}

/// Returns the part of the list that changes when servers join or change.
pub(super) fn changing(tool_index: &ToolIndex, settings: &ServeSettings) -> Vec<Value> {
    listed_tools(tool_index, settings, usize::MAX)
}

/// Returns the entries of the servers' tools, which are in the list in progressive mode.
fn listed_tools(tool_index: &ToolIndex, settings: &ServeSettings, chars_max: usize) -> Vec<Value> {
    if settings.mode != ListMode::Progressive {
        return Vec::new();
    }
    let known = tool_index.broker.known();
    let tools = tool_index.tools.iter();
    tools
        .map(|shown| listed(settings, &known, shown, chars_max))
        .collect()
}

/// Returns the list for `tools/list` with a filter. airlock's own tools are in no group and have no
/// tag.
pub(super) fn filtered(
    tool_index: &ToolIndex,
    settings: &ServeSettings,
    filter: &Filter,
    chars_max: usize,
) -> Vec<Value> {
    let known = tool_index.broker.known();
    let fits = |shown: &&ListedTool| filter.fits(&known, shown);
    let tools = tool_index.tools.iter().filter(fits);
    tools
        .map(|shown| listed(settings, &known, shown, chars_max))
        .collect()
}

fn listed(
    settings: &ServeSettings,
    known: &ToolSnapshot,
    shown: &ListedTool,
    chars_max: usize,
) -> Value {
    let minimal = minimal(known, shown);
    match settings.lists_whole() {
        true => full_listing::tool_entry(known, shown, minimal, chars_max),
        false => minimal,
    }
}

/// Returns a tool's minimal entry: enough to choose the tool, but without its parameters.
fn minimal(known: &ToolSnapshot, shown: &ListedTool) -> Value {
    let mut tool = json!({
        "name": shown.flat,
        "description": shown.summary(),
        "inputSchema": {"type": "object", "additionalProperties": true},
        "groups": filter::groups_of(known, shown),
    });
    let tags = filter::tags_of(known, shown);
    if !tags.is_empty() {
        set_member(&mut tool, "tags", tags);
    }
    tool
}
