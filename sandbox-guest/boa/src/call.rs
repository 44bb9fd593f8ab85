//! A call: from a stub's argument to bytes for the host, and from the host's
//! outcome back to a settled promise.

use boa_engine::object::builtins::JsPromise;
use boa_engine::{Context, JsArgs, JsObject, JsResult, JsValue, js_string};
use sandbox_protocol::{CallOutcome, Failure, OpenCall, Outcome};

use crate::from_json;
use crate::kept::Kept;
use crate::place;
use crate::run::{Run, Waiting};
use crate::to_json::{self, Bounds, Purpose, Refusal};
use crate::tool_error;

/// What a stub does. Bad arguments reject the promise that is returned, as
/// those of any asynchronous function would.
pub(crate) fn make(
    server: u16,
    tool: u16,
    args: &[JsValue],
    context: &mut Context,
) -> JsResult<JsValue> {
    let run = Run::of(context)?;
    let encoded = match encode_args(server, tool, args, &run, context) {
        Ok(encoded) => encoded,
        Err(refusal) => return rejected(server, tool, refusal, &run, context),
    };
    let places = place::here(context, &run);
    let (line, column) = places
        .first()
        .map_or((0, 0), |place| (place.line, place.column));
    let (promise, resolvers) = JsPromise::new_pending(context);
    let mut calls = run.calls.borrow_mut();
    let ticket = calls.ticket();
    calls.made.push(OpenCall {
        ticket,
        server,
        tool,
        args: encoded,
        line,
        column,
    });
    calls.waiting.insert(ticket, Waiting { resolvers, places });
    Ok(promise.into())
}

fn encode_args(
    server: u16,
    tool: u16,
    args: &[JsValue],
    run: &Run,
    context: &mut Context,
) -> Result<Vec<u8>, Refusal> {
    let limits = run.limits.get();
    let bounds = Bounds {
        bytes_max: limits.args_bytes_max as usize,
        depth_max: limits.json_depth_max,
    };
    let first = args.get_or_undefined(0);
    if first.is_undefined() && args.len() <= 1 {
        return Ok(b"{}".to_vec());
    }
    let order = order(server, tool, run);
    if !order.is_empty() && (args.len() > 1 || !first.is_object()) {
        return encode_in_order(args, &order, bounds, context);
    }
    let unsuitable = |what: &str| {
        Refusal::Unsayable(format!(
            "a tool takes one object of named arguments, not {what}"
        ))
    };
    if args.len() > 1 {
        return Err(unsuitable("several values"));
    }
    let encoded = to_json::encode(first, "arguments", Purpose::Arguments, bounds, context)?;
    match encoded {
        Some(encoded) if encoded.first() == Some(&b'{') => Ok(encoded),
        Some(encoded) if encoded.first() == Some(&b'[') => Err(unsuitable("an array")),
        Some(encoded) if encoded.first() == Some(&b'"') => Err(unsuitable("a string")),
        Some(encoded) => Err(unsuitable(&String::from_utf8_lossy(&encoded))),
        None => Err(unsuitable("undefined")),
    }
}

/// Values that stand for one object, whose names the tool has in an order.
fn encode_in_order(
    values: &[JsValue],
    order: &[String],
    bounds: Bounds,
    context: &mut Context,
) -> Result<Vec<u8>, Refusal> {
    if values.len() > order.len() {
        let message = format!("it takes {}, and nothing more", order.join(", "));
        return Err(Refusal::Unsayable(message));
    }
    let mut object = b"{".to_vec();
    for (name, value) in order.iter().zip(values) {
        let left = Bounds {
            bytes_max: bounds.bytes_max.saturating_sub(object.len()),
            depth_max: bounds.depth_max.saturating_sub(1),
        };
        let Some(text) = to_json::encode(value, name, Purpose::Arguments, left, context)? else {
            continue;
        };
        if object.len() > 1 {
            object.push(b',');
        }
        object.extend_from_slice(format!("\"{name}\":").as_bytes());
        object.extend_from_slice(&text);
    }
    object.push(b'}');
    if object.len() > bounds.bytes_max {
        return Err(Refusal::TooLarge);
    }
    Ok(object)
}

fn order(server: u16, tool: u16, run: &Run) -> Vec<String> {
    let stubs = run.stubs.borrow();
    let tools = stubs.get(usize::from(server)).map(|server| &server.tools);
    let stub = tools.and_then(|tools| tools.get(usize::from(tool)));
    stub.map(|stub| stub.order.clone()).unwrap_or_default()
}

fn rejected(
    server: u16,
    tool: u16,
    refusal: Refusal,
    run: &Run,
    context: &mut Context,
) -> JsResult<JsValue> {
    let reason: JsValue = match refusal {
        Refusal::Thrown(error) => error.into_opaque(context)?,
        Refusal::Unsayable(sentence) | Refusal::TooDeep(sentence) => {
            // Made by its constructor, so that it knows where it was made.
            let constructor = Kept::of(context)?.type_error.clone();
            constructor
                .construct(&[js_string!(sentence).into()], None, context)?
                .into()
        }
        Refusal::TooLarge => {
            let limits = run.limits.get();
            let failure = Failure {
                code: "limit-payload".to_owned(),
                tool: tool_name(server, tool, run),
                message: format!(
                    "the arguments are larger than {} bytes",
                    limits.args_bytes_max
                ),
                retryable: false,
                content: Vec::new(),
                structured_content: Vec::new(),
            };
            let places = place::here(context, run);
            let name = run.script_name.borrow().clone();
            tool_error::make(
                &failure,
                None,
                places,
                &name,
                limits.json_depth_max,
                context,
            )?
            .into()
        }
    };
    let (promise, resolvers) = JsPromise::new_pending(context);
    resolvers
        .reject
        .call(&JsValue::undefined(), &[reason], context)?;
    Ok(promise.into())
}

fn tool_name(server: u16, tool: u16, run: &Run) -> String {
    let stubs = run.stubs.borrow();
    let Some(server) = stubs.get(usize::from(server)) else {
        return String::new();
    };
    let tool = server
        .tools
        .get(usize::from(tool))
        .map_or("", |tool| tool.member.as_str());
    format!("{}.{tool}", server.name)
}

/// Settles the promise of one call. A ticket that is not open is ignored: the
/// host's word cannot reach what the script does not wait for.
pub(crate) fn settle(outcome: CallOutcome, run: &Run, context: &mut Context) -> JsResult<()> {
    let Some(waiting) = run.calls.borrow_mut().waiting.remove(&outcome.ticket) else {
        return Ok(());
    };
    let depth_max = run.limits.get().json_depth_max;
    let script_name = run.script_name.borrow().clone();
    let ticket = Some(outcome.ticket);
    let (settle, value) = match outcome.outcome {
        Outcome::Value(text) if text.is_empty() => {
            (waiting.resolvers.resolve, JsValue::undefined())
        }
        Outcome::Value(text) => match from_json::decode(&text, depth_max, context) {
            Ok(value) => (waiting.resolvers.resolve, value),
            Err(not_json) => {
                let failure = Failure {
                    code: "result-invalid".to_owned(),
                    tool: String::new(),
                    message: format!("the result is not usable JSON: {}", not_json.what),
                    retryable: false,
                    content: Vec::new(),
                    structured_content: Vec::new(),
                };
                let places = waiting.places;
                let error =
                    tool_error::make(&failure, ticket, places, &script_name, depth_max, context)?;
                (waiting.resolvers.reject, error.into())
            }
        },
        Outcome::Failure(failure) => {
            let places = waiting.places;
            let error: JsObject =
                tool_error::make(&failure, ticket, places, &script_name, depth_max, context)?;
            (waiting.resolvers.reject, error.into())
        }
    };
    settle
        .call(&JsValue::undefined(), &[value], context)
        .map(drop)
}
