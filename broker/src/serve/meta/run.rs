//! `run_script`: code in, result out. What it uses must have been disclosed in
//! the session before anything of it runs.

use std::sync::Arc;

use airlock_core::code::Code;
use airlock_core::limits::Limit;
use serde_json::{Map, Value, json};

use super::{Answered, names, only};
use crate::approver::Approver;
use crate::broker::{Reached, Rest, Script, Seat};
use crate::extract::Extractor;
use crate::serve::asking::ByHost;
use crate::serve::desk::Desk;
use crate::serve::disclosure;
use crate::serve::discovery::InSession;
use crate::serve::inquiring::ToHost;
use crate::serve::logging::Remarked;
use crate::serve::request::Request;
use crate::serve::rpc::text_of;
use crate::serve::sampling::HostModel;
use crate::serve::settings::Mode;
use crate::serve::shelf::Shelf;
use crate::serve::suspended::{Followed, FollowedScript, Suspended};
use crate::serve::wish::Wishes;
use crate::serve::{blocks, handing, text};

const NAME: &str = "script.js";

pub(super) fn description(shelf: &Shelf, mode: Mode) -> Value {
    json!({
        "name": super::RUN,
        "title": "Run a script",
        "description": about(shelf, mode),
        "inputSchema": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "JavaScript or TypeScript with top-level await and return"},
                "input": {"description": "Any JSON; the script's global `input`"},
                "timeout_ms": {"type": "integer", "minimum": 1, "description": "At most the limit that is set here"},
                "tools": {"type": "array", "items": {"type": "string"}, "description": "Tools that the script means to use"},
            },
            "required": ["code"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true},
    })
}

fn about(shelf: &Shelf, mode: Mode) -> String {
    // How many tools a server has may change while a host is connected.
    let servers = match mode {
        Mode::Stable => format!("Servers: {}", shelf.server_names()),
        Mode::Code | Mode::Progressive => format!("Servers (tools): {}", shelf.servers()),
    };
    let mut text = format!(
        "Runs one script that calls tools and returns a value. Call tools as \
         `await server.tool({{…}})`; loop, filter and combine in the script and return only what is \
         needed. No network, files or imports. Failed calls throw ToolError. Every call is decided \
         by rules. {servers}."
    );
    if shelf.broker.has_extraction() {
        text.push_str(" `extract(value, schema)` has a model read text into JSON.");
    }
    match &shelf.at_once {
        Some(declarations) => text.push_str(&format!("\n\n{declarations}")),
        None => {
            text.push_str(
                " First find tools with search_tools and read them with get_tool_details",
            );
            if shelf.broker.has_discovery() {
                text.push_str(
                    ", or in the script: `airlock.search(query)`, `airlock.describe({tools})`",
                );
            }
            text.push('.');
        }
    }
    text
}

pub(super) async fn call(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
    args: &Map<String, Value>,
) -> Answered {
    if let Some(state) = request.params.get("requestState") {
        return handing::go_on(desk, request, state).await;
    }
    let (script, declared) = match script(shelf, args) {
        Ok(read) => read,
        Err(why) => return Answered::wrong(why),
    };
    let broker = &shelf.broker;
    let limits = broker.limits();
    if script.text.len() > limits.script_bytes_max as usize {
        let next = "make the script smaller; what it works on can be its `input`";
        let why = limits.says(Limit::Source);
        return Answered::not_started(Code::LimitSource, &why, (next, None));
    }
    let uses = match broker
        .uses(&request.caller, &script.text, &request.cancel)
        .await
    {
        Ok(uses) => uses,
        Err(busy) => return Answered::busy(&busy),
    };
    let missing = disclosure::missing((desk, shelf), &request.session, &uses, &declared);
    match missing {
        Ok(missing) if !missing.is_empty() => {
            return Answered::error(disclosure::required(&missing));
        }
        Ok(_) => {}
        Err(unknown) => return Answered::error(unknown),
    }
    let quotable = shelf.broker.is_quotable(&script.text);
    let followed = FollowedScript {
        name: NAME.to_owned(),
        text: if quotable {
            script.text.clone()
        } else {
            String::new()
        },
        is_direct: false,
    };
    start(desk, shelf, request, script.into_script(), followed).await
}

/// Starts a run in the session of the request and follows it.
pub(super) async fn start(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
    script: Script,
    followed: FollowedScript,
) -> Answered {
    let Ok(_room) = request.session.room.clone().acquire_owned().await else {
        return Answered::wrong("the session is over");
    };
    let script = if shelf.broker.is_watching() {
        script.carrying(request.session.carried())
    } else {
        script
    };
    let parent = request.params.pointer("/_meta/traceparent");
    let script = match parent.and_then(Value::as_str) {
        Some(parent) => script.traced_by(parent),
        None => script,
    };
    let (wishes, wanted) = Wishes::new();
    let passes = desk.settings().logs;
    let (remarked, remarks) = Remarked::of(request, &shelf.broker, passes);
    let host = (request, request.abilities(desk));
    let to_host = ToHost::new(wishes.clone(), &shelf.broker, host, remarks);
    let (reached, rest) = (Reached::default(), Rest::default());
    let by_host = || Arc::new(ByHost(wishes.clone())) as Arc<dyn Approver>;
    let by_model = || Arc::new(HostModel::new(wishes.clone())) as Arc<dyn Extractor>;
    let seat = Seat {
        caller: Arc::clone(&request.caller),
        disclosed: disclosure::of(desk, shelf, &request.session),
        approver: request.can_ask().then(by_host),
        extractor: request.can_sample().then(by_model),
        librarian: Some(Arc::new(InSession {
            desk: desk.clone(),
            session: Arc::clone(&request.session),
        })),
        carrier: Some(Arc::new(to_host)),
        reached: reached.clone(),
        rest: rest.clone(),
    };
    let running = shelf.broker.run_in(seat, script);
    let told = (wanted, remarked, (reached, rest));
    let run = Suspended::new(running, told, followed, request);
    follow(desk, request, run).await
}

/// Follows a run to its end, or to where somebody has to answer first.
pub(in crate::serve) async fn follow(desk: &Desk, request: &Request, run: Suspended) -> Answered {
    let script = run.script.clone();
    match run.follow(request).await {
        (_, Followed::Over(report)) => {
            if let Some(carried) = &report.flow {
                request.session.carry(carried);
            }
            let told = text::of_run(
                &report,
                &script,
                &request.session,
                desk.settings().text_bytes_max,
            );
            let blocks = report
                .value
                .as_ref()
                .filter(|_| script.is_direct && !told.is_error);
            match blocks.and_then(|it| blocks::of_value(it, desk.settings().text_bytes_max)) {
                Some(blocks) => Answered::Content(blocks),
                None => result_of(told, &report, script.is_direct),
            }
        }
        (Some(run), Followed::Wants) => handing::hand_over(desk, request, run),
        (Some(run), Followed::Waits) => handing::wait_elsewhere(request, run),
        (None, _) => Answered::wrong("the run is gone"),
    }
}

/// The end of a run as a tool result; a direct call answers with its value alone.
pub(in crate::serve) fn result_of(
    told: text::RunText,
    report: &airlock_core::report::Report,
    is_direct: bool,
) -> Answered {
    let structured = if !is_direct {
        Some(told.report)
    } else if told.is_error {
        report
            .error
            .as_ref()
            .map(|error| json!({"error": {"code": error.code, "message": error.message}}))
    } else {
        Some(told.report.get("value").cloned().unwrap_or_default()).filter(Value::is_object)
    };
    Answered::Done {
        text: told.text,
        structured,
        is_error: told.is_error,
    }
}

/// What a host wants run.
struct Wanted {
    text: String,
    input: Option<Value>,
    limits: airlock_core::limits::Limits,
}

impl Wanted {
    fn into_script(self) -> Script {
        let script = Script::body(self.text).named(NAME).with_limits(self.limits);
        match self.input {
            Some(input) => script.with_input(&input),
            None => script,
        }
    }
}

fn script(shelf: &Shelf, args: &Map<String, Value>) -> Result<(Wanted, Vec<String>), String> {
    only(args, &["code", "input", "timeout_ms", "tools", "session"])?;
    let text = text_of(args, "code")?.unwrap_or_default();
    if text.trim().is_empty() {
        return Err("`code` is empty; write at least a `return`, such as `return 1 + 1`".into());
    }
    let mut limits = *shelf.broker.limits();
    if let Some(timeout) = args.get("timeout_ms").filter(|it| !it.is_null()) {
        let wanted = timeout.as_u64().filter(|ms| *ms > 0);
        let wanted = wanted.ok_or("`timeout_ms` is no positive whole number")?;
        limits.run_wall_ms_max = limits.run_wall_ms_max.min(wanted);
    }
    let wanted = Wanted {
        text: text.to_owned(),
        input: args.get("input").cloned(),
        limits,
    };
    Ok((wanted, names(args, "tools")?))
}
