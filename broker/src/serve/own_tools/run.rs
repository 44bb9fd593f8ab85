//! `run_script`: runs a script and returns its result. Every tool that the script uses must be
//! disclosed in the session before the script starts.

use std::sync::Arc;
use std::time::Duration;

use airlock_core::code::Code;
use airlock_core::id::Digest;
use airlock_core::limits::Limit;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::{OwnToolAnswer, follow, handoff, resumable};
use crate::approver::Approver;
use crate::broker::tool_index::args::{names, only, text_of};
use crate::broker::tool_index::details::describe;
use crate::broker::tool_index::search::search_now;
use crate::broker::tool_index::{RUN, ToolIndex};
use crate::broker::{
    DescribedTools, IdleFlag, ReachedLabels, RunContext, Script, SuspendedFlag, ToolDiscovery,
};
use crate::client_bridge::ProgressSink;
use crate::extract::Extractor;
use crate::serve::client_request::ClientRequestQueue;
use crate::serve::context::ServeContext;
use crate::serve::disclosure;
use crate::serve::followed_run::{FollowedRun, FollowedScript, RunLinks};
use crate::serve::host_approver::HostApprover;
use crate::serve::logging::LogForwarder;
use crate::serve::request::Request;
use crate::serve::run_description;
use crate::serve::sampling::HostModel;
use crate::serve::server_requests::HostBridge;
use crate::serve::session::HostSession;
use crate::serve::shown_list::ShownList;

const NAME: &str = "script.js";

pub(super) fn description(tool_index: &ToolIndex, shown: &ShownList) -> Value {
    json!({
        "name": RUN,
        "title": "Run a script",
        "description": about(tool_index, shown),
        "inputSchema": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "JavaScript or TypeScript with top-level await and return"},
                "input": {"description": "Any JSON; the script's global `input`"},
                "timeout_ms": {"type": "integer", "minimum": 1, "description": "Cannot exceed the configured limit"},
                "tools": {"type": "array", "items": {"type": "string"}, "description": "Names of tools the script will use"},
                "resume": {"type": "string", "description": "Id of a run to resume: calls that happened are not made again"},
            },
            "required": ["code"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true},
    })
}

fn about(tool_index: &ToolIndex, shown: &ShownList) -> String {
    let text = run_description::introduction(shown);
    match run_description::declared_after(&text, shown) {
        Some(declarations) => format!("{text}\n\n{declarations}"),
        None => {
            let in_script = match tool_index.broker.has_discovery() {
                true => ", or in the script: `airlock.search(query)`, `airlock.describe(name)`",
                false => "",
            };
            format!(
                "{text} First find tools with search_tools and read them with \
                 get_tool_details{in_script}."
            )
        }
    }
}

pub(super) async fn call(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    args: &Map<String, Value>,
) -> Result<OwnToolAnswer, OwnToolAnswer> {
    let (script, declared) = script(tool_index, args)?;
    let broker = &tool_index.broker;
    let limits = broker.limits();
    if script.text.len() > limits.script_bytes_max as usize {
        let next = "make the script smaller; pass large data as `input`";
        let why = limits.says(Limit::Source);
        let code = Code::LimitSource;
        return Err(OwnToolAnswer::not_started(code, &why, next, None));
    }
    let wanted = (&*script.text, &*declared);
    check_disclosed(context, tool_index, request, wanted).await?;
    let quotable = tool_index.broker.is_quotable(&script.text);
    let followed = FollowedScript {
        name: NAME.to_owned(),
        text: if quotable {
            script.text.clone()
        } else {
            String::new()
        },
        is_direct: false,
    };
    let (resumed, script) = (script.resume.clone(), script.into_script());
    let script = match resumed {
        Some(run) => resumable::edited(tool_index, request, &run, script).await?,
        None => script,
    };
    Ok(start(context, tool_index, request, script, followed).await)
}

/// Refuses a script that uses tools which are not disclosed in the session. `declared` are tools that
/// the host names itself.
pub(super) async fn check_disclosed(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    (text, declared): (&str, &[String]),
) -> Result<(), OwnToolAnswer> {
    let uses = tool_index
        .broker
        .uses(&request.caller, text, &request.cancel);
    let uses = uses.await.map_err(|busy| OwnToolAnswer::busy(&busy))?;
    match disclosure::missing(context, tool_index, request, &uses, declared) {
        Ok(missing) if missing.is_empty() => Ok(()),
        Ok(missing) => Err(OwnToolAnswer::error(disclosure::required(&missing))),
        Err(unknown) => Err(OwnToolAnswer::error(unknown)),
    }
}

/// Starts a run in the session of the request and follows it.
pub(super) async fn start(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    script: Script,
    followed: FollowedScript,
) -> OwnToolAnswer {
    let origin = resumable::origin_of_script(tool_index, request, &script);
    if script.resume.is_none()
        && let Some(run) = paused_run(context, tool_index, request, &origin).await
    {
        return handoff::begun_before(&run);
    }
    let Ok(_room) = request.session.call_slots.clone().acquire_owned().await else {
        return OwnToolAnswer::wrong("the session is over");
    };
    let script = if tool_index.broker.is_watching() {
        script.carrying(request.session.carried())
    } else {
        script
    };
    let parent = request.params.pointer("/_meta/traceparent");
    let script = match parent.and_then(Value::as_str) {
        Some(parent) => script.traced_by(parent),
        None => script,
    };
    let settings = context.settings();
    // Such a host would only refuse, and the question waits for a later answer in any case.
    let is_for_later = settings.answers_come_later && !request.reaches_person();
    let asks_host = request.can_ask() && !is_for_later;
    let suspend_after = match is_for_later {
        true => Some(Duration::ZERO),
        false => settings.suspend_after,
    };
    let script = match suspend_after {
        Some(wait) => script.suspended_after(wait),
        None => script,
    };
    let broker = &tool_index.broker;
    let (client_requests, wanted) = ClientRequestQueue::new();
    let level = request.log_level().filter(|_| settings.logs);
    let (logs, log_sink) = LogForwarder::new(level);
    let abilities = request.abilities(settings.pass);
    let to_host = HostBridge::new(
        client_requests.clone(),
        broker,
        request,
        abilities,
        log_sink,
    );
    let (progress_sink, reports) = request
        .progress_token()
        .map(|_| ProgressSink::new())
        .unzip();
    let to_host = to_host.with_progress(progress_sink);
    let (reached, rest) = (ReachedLabels::default(), IdleFlag::default());
    let suspended = SuspendedFlag::default();
    let (pass_on, passed_on) = mpsc::unbounded_channel();
    let by_host = || {
        Arc::new(HostApprover {
            client_requests: client_requests.clone(),
            session: Arc::clone(&request.session),
            other: broker.shared_approver(),
            passed_on: pass_on,
            is_direct: followed.is_direct,
        }) as Arc<dyn Approver>
    };
    let by_model = || Arc::new(HostModel::new(client_requests.clone())) as Arc<dyn Extractor>;
    let run_context = RunContext {
        caller: Arc::clone(&request.caller),
        host: request.client_name(),
        disclosed: disclosure::disclosed_tools(context, tool_index, request),
        session: request.session.record().cloned(),
        approver: asks_host.then(by_host),
        extractor: request.can_sample().then(by_model),
        discovery: Some(Arc::new(SessionDiscovery {
            context: context.clone(),
            session: Arc::clone(&request.session),
        })),
        client_bridge: Some(Arc::new(to_host)),
        reached: reached.clone(),
        rest: rest.clone(),
        suspended: suspended.clone(),
    };
    let running = broker.run_in(run_context, script);
    let links = RunLinks {
        broker: broker.clone(),
        client_requests: wanted,
        delivery: request.way(),
        asks_elsewhere: !asks_host,
        passed_on,
        logs,
        reports,
        reached,
        rest,
        suspended,
    };
    let run = FollowedRun::new(running, links, followed, origin);
    follow::follow(context, request, run).await
}

/// Returns the paused run of the same caller, script and input, unless it has ended since. A run that
/// cannot be read at the moment, for instance because another request resumes it, counts as paused.
async fn paused_run(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    origin: &Digest,
) -> Option<String> {
    let run = context.paused_runs().find(origin)?;
    if request.session.has_paused(&run) {
        return Some(run);
    }
    if resumable::has_ended(tool_index, request, &run).await {
        context.paused_runs().forget(origin);
        return None;
    }
    Some(run)
}

/// Tool discovery for scripts of one session. Descriptions that a script reads are disclosed in the
/// session.
struct SessionDiscovery {
    context: ServeContext,
    session: Arc<HostSession>,
}

impl SessionDiscovery {
    fn tool_index(&self) -> Result<Arc<ToolIndex>, String> {
        let tool_index = self.context.tool_index_now();
        tool_index.ok_or("the broker has shut down".to_owned())
    }
}

impl ToolDiscovery for SessionDiscovery {
    fn search(&self, args: &Map<String, Value>) -> Result<Value, String> {
        let hidden = self.session.disabled_servers();
        search_now(&*self.tool_index()?, args, &hidden).map(|found| found.structured())
    }

    fn describe(&self, args: &Map<String, Value>) -> Result<DescribedTools, String> {
        let tool_index = self.tool_index()?;
        describe(args, |wanted| {
            disclosure::disclose(&self.context, &tool_index, &self.session, wanted)
        })
    }
}

/// The script, input and limits that a host requests.
struct RunRequest {
    text: String,
    input: Option<Value>,
    limits: airlock_core::limits::Limits,
    /// The run to resume.
    resume: Option<String>,
}

impl RunRequest {
    fn into_script(self) -> Script {
        let script = Script::body(self.text).named(NAME).with_limits(self.limits);
        match self.input {
            Some(input) => script.with_input(&input),
            None => script,
        }
    }
}

fn script(
    tool_index: &ToolIndex,
    args: &Map<String, Value>,
) -> Result<(RunRequest, Vec<String>), String> {
    only(
        args,
        &["code", "input", "timeout_ms", "tools", "resume", "session"],
    )?;
    let text = text_of(args, "code")?.unwrap_or_default();
    if text.trim().is_empty() {
        return Err("`code` is empty; write at least a `return`, such as `return 1 + 1`".into());
    }
    let mut limits = *tool_index.broker.limits();
    if let Some(timeout) = args.get("timeout_ms").filter(|it| !it.is_null()) {
        let wanted = timeout.as_u64().filter(|ms| *ms > 0);
        let wanted = wanted.ok_or("`timeout_ms` is not a positive integer")?;
        limits.run_wall_ms_max = limits.run_wall_ms_max.min(wanted);
    }
    let wanted = RunRequest {
        text: text.to_owned(),
        input: args.get("input").cloned(),
        limits,
        resume: text_of(args, "resume")?.map(str::to_owned),
    };
    Ok((wanted, names(args, "tools")?))
}
