//! Our own tools: finding tools, reading about them, and running scripts that
//! call them.

mod call;
mod details;
mod resume;
mod run;
mod search;
mod servers;
mod whole;

use std::time::Duration;

use airlock_core::code::Code;
use serde_json::{Map, Value, json};

use super::desk::Desk;
use super::filter::{self, Filter};
use super::request::Request;
use super::rpc::{Refusal, put};
use super::settings::Mode;
use super::shelf::{Shelf, Shown};
use super::text;
use crate::broker::Known;
use crate::budget::Busy;
use crate::render::run_again;

pub(super) use call::call_directly;
pub(super) use details::{describe_in_script, disclose, look_up};
pub(super) use run::follow;
pub(super) use search::search_in_script;
pub(super) use whole::schema as listed_schema;

const SEARCH: &str = "search_tools";
const DETAILS: &str = "get_tool_details";
pub(super) const RUN: &str = "run_script";
const RESUME: &str = "resume_run";
const CALL: &str = "call_tool";
const SERVERS: &str = "search_available_servers";
const ENABLE: &str = "enable_server";
const DISABLE: &str = "disable_server";

/// No tool of a server is listed under one of these.
pub(super) const NAMES: [&str; 8] = [SEARCH, DETAILS, RUN, RESUME, CALL, SERVERS, ENABLE, DISABLE];

/// What a tool of ours answers.
#[derive(Debug, PartialEq)]
pub(super) enum Answered {
    Done {
        text: String,
        structured: Option<Value>,
        is_error: bool,
    },
    /// What a tool that was called directly answered, block by block.
    Content(Vec<Value>),
    /// A whole result that says that input is required.
    InputRequired(Value),
    /// The request itself is none that can be worked on.
    Refused(Refusal),
}

impl Answered {
    /// What a model can correct by itself.
    pub(super) fn wrong(text: impl Into<String>) -> Self {
        Self::Done {
            text: format!("error: {}", text.into()),
            structured: None,
            is_error: true,
        }
    }

    /// One of the documented errors, as JSON text.
    pub(super) fn error(error: Value) -> Self {
        Self::Done {
            text: error.to_string(),
            structured: Some(error),
            is_error: true,
        }
    }

    /// A script that was not even started, in the words that the end of a run has.
    fn not_started(code: Code, why: &str, (next, retry_after): (&str, Option<Duration>)) -> Self {
        let mut error = json!({"code": code, "message": why});
        if let Some(after) = retry_after {
            put(&mut error, "retry_after_ms", after.as_millis() as u64);
        }
        Self::Done {
            text: text::told("the run was not started", [why, next], code.as_str()),
            structured: Some(json!({ "error": error })),
            is_error: true,
        }
    }

    /// There is no room for it.
    fn busy(busy: &Busy) -> Self {
        let next = run_again(busy.retry_after_ms());
        let next = (next.as_str(), Some(busy.retry_after));
        Self::not_started(Code::Busy, &busy.to_string(), next)
    }

    pub(super) fn into_result(self) -> Result<Value, Refusal> {
        Ok(match self {
            Self::Done {
                text,
                structured,
                is_error,
            } => {
                let mut result = json!({"content": [{"type": "text", "text": text}]});
                if let Some(structured) = structured {
                    put(&mut result, "structuredContent", structured);
                }
                put(&mut result, "isError", is_error);
                result
            }
            Self::Content(blocks) => json!({"content": blocks, "isError": false}),
            Self::InputRequired(result) => result,
            Self::Refused(refusal) => return Err(refusal),
        })
    }
}

/// Answers a `tools/call`; none when no tool of ours has that name.
pub(super) async fn call(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
    name: &str,
    args: &Map<String, Value>,
) -> Option<Answered> {
    let answered = match name {
        SEARCH => search::call(shelf, args).await,
        DETAILS => details::call(desk, shelf, request, args),
        RUN => run::call(desk, shelf, request, args).await,
        RESUME => resume::call(desk, request, args).await,
        CALL if desk.settings().mode == Mode::Stable => {
            call::call(desk, shelf, request, args).await
        }
        SERVERS => servers::search(shelf, args),
        ENABLE => servers::enable(desk, shelf, args).await,
        DISABLE => servers::disable(shelf, args).await,
        _ => return None,
    };
    Some(answered)
}

/// `tools/list`: ours, and in progressive mode every tool in minimal form.
/// Where no transport carries a session, ours take its handle as an argument.
pub(super) fn list(shelf: &Shelf, mode: Mode, takes_handle: bool) -> Vec<Value> {
    let mut tools = vec![
        search::description(),
        details::description(),
        run::description(shelf, mode),
        resume::description(),
    ];
    if mode == Mode::Stable {
        tools.push(call::description());
    }
    if shelf.known.servers.iter().any(|it| it.is_on_demand) {
        tools.extend(servers::descriptions());
    }
    if takes_handle {
        let about = "The session that get_tool_details has named";
        for tool in &mut tools {
            if let Some(properties) = tool.pointer_mut("/inputSchema/properties") {
                put(
                    properties,
                    "session",
                    json!({"type": "string", "description": about}),
                );
            }
        }
    }
    match mode {
        Mode::Code | Mode::Stable => {}
        Mode::Progressive => {
            let known = shelf.broker.known();
            tools.extend(shelf.tools.iter().map(|shown| listed(shelf, &known, shown)));
        }
    }
    tools
}

/// `tools/list` with a filter: ours are in no group and have no tag.
pub(super) fn filtered(shelf: &Shelf, mode: Mode, filter: &Filter) -> Vec<Value> {
    let known = shelf.broker.known();
    let fits = |shown: &&Shown| mode == Mode::Progressive && filter.fits(&known, shown);
    let tools = shelf.tools.iter().filter(fits);
    tools.map(|shown| listed(shelf, &known, shown)).collect()
}

fn listed(shelf: &Shelf, known: &Known, shown: &Shown) -> Value {
    let minimal = minimal(known, shown);
    match shelf.lists_whole {
        true => whole::of(known, shown, minimal),
        false => minimal,
    }
}

/// Enough to choose by, and nothing of how it is called.
fn minimal(known: &Known, shown: &Shown) -> Value {
    let mut tool = json!({
        "name": shown.flat,
        "description": shown.summary(),
        "inputSchema": {"type": "object", "additionalProperties": true},
        "groups": filter::groups_of(known, shown),
    });
    let tags = filter::tags_of(known, shown);
    if !tags.is_empty() {
        put(&mut tool, "tags", tags);
    }
    tool
}

/// A list of names: an array of strings, or one string with commas.
fn names(args: &Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    const NAMES_MAX: usize = 200;
    let names: Vec<String> = match args.get(key) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => text.split(',').map(|it| it.trim().to_owned()).collect(),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| format!("`{key}` is not a list of strings"))?,
        Some(_) => return Err(format!("`{key}` is not a list of strings")),
    };
    if names.len() > NAMES_MAX {
        return Err(format!("`{key}` has more than {NAMES_MAX} names"));
    }
    Ok(names.into_iter().filter(|name| !name.is_empty()).collect())
}

/// The arguments that are known; anything else is a mistake worth a word.
fn only(args: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    let Some(other) = args.keys().find(|key| !known.contains(&key.as_str())) else {
        return Ok(());
    };
    let closest = codegen::closest::closest(other, known.iter().copied());
    let hint = closest.map(|it| format!("; did you mean `{it}`?"));
    let hint = hint.unwrap_or_else(|| format!("; there are {}", known.join(", ")));
    Err(format!(
        "there is no argument `{}`{hint}",
        super::rpc::shown(other)
    ))
}
