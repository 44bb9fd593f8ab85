//! Dispatches each request by its method, in both eras.

use std::sync::Arc;

use airlock_core::id::ServerName;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};

use super::context::ServeContext;
use super::method::Method;
use super::request::Request;
use super::rpc::{self, CachePolicy, RpcErrorResponse};
use super::settings::{ListMode, ServeSettings};
use super::{
    disclosure, listen, notifications, own_tools, passthrough, prompt, resources, server_wait,
    subscriptions,
};
use crate::broker::tool_index::ToolIndex;
use crate::broker::tool_index::filter::{self, Filter};
use crate::client_bridge::{ClientCapabilities, LogLevel};
use crate::config::OfferKind;
use crate::upstream::Era;
use crate::upstream::era::MODERN_VERSION;

type MethodResult = Result<(Value, CachePolicy), RpcErrorResponse>;

/// Answers a request and returns the complete result as it is sent to the host.
pub(super) async fn answer(
    context: &ServeContext,
    request: &Request,
) -> Result<Value, RpcErrorResponse> {
    request.session.touch(context.now_ms());
    own_tools::check_state(context, request)?;
    declare_for(context, request);
    let answered = match without_tools(context, request) {
        Some(answered) => answered,
        None if request.method == Method::Listen && request.era == Era::Modern => {
            let ended = listen::listen(context, request).await;
            ended.map(|it| (it, CachePolicy::No))
        }
        None => with_tools(context, request).await,
    };
    let (result, lasting) = answered?;
    Ok(rpc::enveloped(result, request.era, lasting))
}

/// Declares the host's capabilities to servers, unless capabilities are declared already.
fn declare_for(context: &ServeContext, request: &Request) {
    let is_silent =
        request.era == Era::Legacy && matches!(request.method, Method::Ping | Method::Discover);
    if is_silent || context.declared().borrow().is_some() {
        return;
    }
    let pass = context.settings().pass;
    let abilities = match (&request.method, request.params.get("capabilities")) {
        (Method::Initialize, Some(capabilities)) => {
            ClientCapabilities::from_capabilities(capabilities).within(pass)
        }
        _ => request.abilities(pass),
    };
    context.declare(abilities);
}

/// Answers requests that do not need the servers. Returns `None` for all other requests.
fn without_tools(context: &ServeContext, request: &Request) -> Option<MethodResult> {
    let settings = context.settings();
    let has_offers = !settings.offers.is_empty();
    let one_page = |list: Value| one_page(request).map(|()| (list, CachePolicy::Private));
    let uncached = |result: Value| (result, CachePolicy::No);
    Some(match (&request.method, request.era) {
        (Method::Initialize, Era::Legacy) => Ok(uncached(initialized(settings, request))),
        (Method::Ping, Era::Legacy) => Ok(uncached(json!({}))),
        (Method::Initialize | Method::Ping, Era::Modern) => {
            Err(RpcErrorResponse::no_method(request.method.as_str()))
        }
        (Method::Discover, Era::Modern) => {
            Ok((discovered(settings, request), CachePolicy::Private))
        }
        (Method::Discover, Era::Legacy) => {
            let message = format!("`_meta` lacks `{}`", rpc::VERSION_KEY);
            Err(RpcErrorResponse::invalid(message))
        }
        (Method::SetLogLevel, Era::Legacy) if settings.logs => set_log_level(request).map(uncached),
        (Method::UnsubscribeResource, Era::Legacy) if settings.offers.any(OfferKind::Resources) => {
            subscriptions::unsubscribe(request).map(uncached)
        }
        (Method::ListResources, _) if !has_offers => one_page(resources::list()),
        (Method::ListResourceTemplates, _) if !has_offers => one_page(resources::templates()),
        (Method::ListPrompts, _) if !has_offers => one_page(prompt::list()),
        (Method::GetPrompt, _) if !has_offers || prompt::is_own(request) => {
            prompt::read(request, settings.mode).map(uncached)
        }
        _ => return None,
    })
}

/// Answers requests that need the tools or the servers' other lists.
async fn with_tools(context: &ServeContext, request: &Request) -> MethodResult {
    let tool_index = &*tool_index_for(context, request).await?;
    let offers = &context.settings().offers;
    let subscribes = request.era == Era::Legacy && offers.any(OfferKind::Resources);
    Ok(match &request.method {
        Method::ListTools => {
            let changes = context.settings().mode == ListMode::Progressive;
            let lasting = if changes && tool_index.is_filling() {
                CachePolicy::Briefly
            } else {
                CachePolicy::Private
            };
            (list_tools(context, tool_index, request)?, lasting)
        }
        Method::ListGroups => {
            request.session.note_asked_list(notifications::GROUPS);
            (filter::groups(tool_index), CachePolicy::Private)
        }
        Method::ListTags => {
            request.session.note_asked_list(notifications::TAGS);
            (filter::tags(tool_index), CachePolicy::Private)
        }
        Method::CallTool => {
            let result = call_tool(context, tool_index, request).await?;
            (result, CachePolicy::No)
        }
        Method::ReadResource => {
            let contents = read_resource(context, tool_index, request).await?;
            (contents, CachePolicy::Once)
        }
        Method::SubscribeResource if subscribes => {
            let subscribed = subscriptions::subscribe(context, tool_index, request).await?;
            (subscribed, CachePolicy::No)
        }
        Method::ListResources => {
            one_page(request)?;
            let list = passthrough::list_resources(context, tool_index, request).await;
            (list, CachePolicy::Briefly)
        }
        Method::ListResourceTemplates => {
            one_page(request)?;
            let list = passthrough::list_templates(context, tool_index, request).await;
            (list, CachePolicy::Briefly)
        }
        Method::ListPrompts => {
            one_page(request)?;
            let list = passthrough::list_prompts(context, tool_index, request).await;
            (list, CachePolicy::Briefly)
        }
        Method::GetPrompt => {
            let prompt = passthrough::get_prompt(context, tool_index, request).await?;
            (prompt, CachePolicy::No)
        }
        Method::Complete if !offers.is_empty() => {
            let completion = passthrough::complete(context, tool_index, request).await?;
            (completion, CachePolicy::No)
        }
        other => {
            // If the request has a cursor, the error about the cursor comes first.
            if !offers.is_empty() && other.as_str().ends_with("/list") {
                one_page(request)?;
            }
            return Err(RpcErrorResponse::no_method(other.as_str()));
        }
    })
}

/// Returns the current tools. If the request names servers whose tools are not known, waits for
/// these servers without a time limit.
async fn tool_index_for(
    context: &ServeContext,
    request: &Request,
) -> Result<Arc<ToolIndex>, RpcErrorResponse> {
    let tool_index = context.tool_index().await?;
    let needed = server_wait::needed(&tool_index, request).await;
    if needed.is_empty() {
        return Ok(tool_index);
    }
    let joining = needed.iter().map(|it| ServerName(it.as_str().into()));
    let joining: Vec<_> = joining.collect();
    let joined = join_all(joining.iter().map(|it| tool_index.broker.join(it)));
    tokio::select! {
        _ = joined => {}
        _ = request.cancel.cancelled() => return Ok(tool_index),
        refusal = context.ending().refusal() => return Err(refusal),
    }
    context.seen(&needed).await
}

async fn read_resource(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> Result<Value, RpcErrorResponse> {
    let uri = request.params.get("uri").and_then(Value::as_str);
    if uri.is_none_or(resources::is_own) || context.settings().offers.is_empty() {
        return resources::read(context, tool_index, request);
    }
    passthrough::read_resource(context, tool_index, request).await
}

fn initialized(settings: &ServeSettings, request: &Request) -> Value {
    let capabilities = request.params.get("capabilities");
    let mut capabilities = capabilities.filter(|it| it.is_object()).cloned();
    let capabilities = capabilities.get_or_insert_with(|| json!({}));
    // The name of the client is stored with its capabilities, because its limits depend on it.
    if let Some(name) = request.params.pointer("/clientInfo/name") {
        rpc::set_member(capabilities, rpc::CLIENT_INFO_KEY, json!({ "name": name }));
    }
    request.session.set_capabilities(capabilities.take());
    json!({
        "protocolVersion": rpc::agreed_version(&request.params),
        "capabilities": own_capabilities(settings),
        "serverInfo": rpc::server_info(),
        "instructions": prompt::instructions(settings, request.can_ask()),
    })
}

fn discovered(settings: &ServeSettings, request: &Request) -> Value {
    json!({
        "supportedVersions": [MODERN_VERSION],
        "capabilities": own_capabilities(settings),
        "instructions": prompt::instructions(settings, request.can_ask()),
    })
}

fn own_capabilities(settings: &ServeSettings) -> Value {
    let lists = json!({"groups": {"listChanged": true}, "tags": {"listChanged": true}});
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {},
        "prompts": {},
        "filtering": lists,
        // The same lists again, where hosts of the newer era look for extensions.
        "extensions": {
            "dev.airlock/filtering": lists,
            "dev.airlock/tools": features(settings.mode),
        },
    });
    let offers = &settings.offers;
    if !offers.is_empty() {
        rpc::set_member(&mut capabilities, "completions", json!({}));
    }
    if offers.any(OfferKind::Prompts) {
        rpc::set_member(&mut capabilities, "prompts", json!({"listChanged": true}));
    }
    if offers.any(OfferKind::Resources) {
        let both = json!({"subscribe": true, "listChanged": true});
        rpc::set_member(&mut capabilities, "resources", both);
    }
    if settings.logs {
        rpc::set_member(&mut capabilities, "logging", json!({}));
    }
    capabilities
}

fn list_tools(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> Result<Value, RpcErrorResponse> {
    one_page(request)?;
    let takes_handle = request.handle.is_some();
    if let Some(filter) = Filter::read(&request.params).map_err(RpcErrorResponse::invalid)? {
        let settings = context.settings();
        let chars_max = request.limits(settings).description_chars_max;
        let tools = own_tools::filtered(tool_index, settings, &filter, chars_max);
        return Ok(json!({ "tools": tools }));
    }
    let shown = disclosure::list(context, tool_index, request);
    let list = own_tools::list(tool_index, &shown, context.settings(), takes_handle);
    Ok(json!({ "tools": list }))
}

async fn call_tool(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> Result<Value, RpcErrorResponse> {
    let name = request.params.get("name").and_then(Value::as_str);
    let name =
        name.ok_or_else(|| RpcErrorResponse::invalid("`name` is missing or not a string"))?;
    let nothing = Map::new();
    let args = match request.params.get("arguments") {
        None | Some(Value::Null) => &nothing,
        Some(Value::Object(args)) => args,
        Some(_) => return Err(RpcErrorResponse::invalid("`arguments` is not an object")),
    };
    if let Some(answered) = own_tools::call(context, tool_index, request, name, args).await {
        return answered.into_result();
    }
    if let Some(why) = tool_index.denial(name) {
        return own_tools::OwnToolAnswer::error(disclosure::denied(&why)).into_result();
    }
    let Some(tool) = tool_index.find(name) else {
        let message = format!("there is no tool `{}`", rpc::sanitize(name));
        return Err(RpcErrorResponse::invalid(message));
    };
    let answered = match context.settings().mode {
        // In code mode, hosts find tools with a filter.
        ListMode::Progressive | ListMode::Code => {
            own_tools::call_directly(context, tool_index, request, tool, name, args).await
        }
        ListMode::Stable => own_tools::OwnToolAnswer::wrong(format!(
            "call `{name}` with call_tool, or in a script as {}",
            tool.in_scripts()
        )),
    };
    answered.into_result()
}

/// Handles `logging/setLevel` of the older era.
fn set_log_level(request: &Request) -> Result<Value, RpcErrorResponse> {
    let level = request.params.get("level").and_then(Value::as_str);
    let level = level.and_then(LogLevel::from_word).ok_or_else(|| {
        let why =
            "invalid `level`; expected one of debug, info, notice, warning, error, critical, alert, emergency";
        RpcErrorResponse::invalid(why)
    })?;
    request.session.set_log_level(level);
    Ok(json!({}))
}

/// Describes the supported features, so that a host can know them without trying.
fn features(mode: ListMode) -> Value {
    json!({
        "mode": match mode {
            ListMode::Code => "code",
            ListMode::Progressive => "progressive",
            ListMode::Stable => "stable",
        },
        "search": {
            "modes": ["words", "regex"],
            "filters": ["servers", "groups", "tags", "category"],
            "details": ["names", "lines", "signatures", "full"],
        },
        "details": ["typescript", "json"],
        "metadata": ["category", "version", "deprecated", "replacement"],
    })
}

fn one_page(request: &Request) -> Result<(), RpcErrorResponse> {
    match request.params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(RpcErrorResponse::invalid(
            "invalid `cursor`; the list has only one page",
        )),
    }
}
