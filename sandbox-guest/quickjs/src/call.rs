//! A call: from a stub's argument to bytes for the host, and from the host's
//! outcome back to a settled promise.

use std::rc::Rc;

use rquickjs::{Ctx, Function, Persistent, Result, Value};
use sandbox_protocol::{CallOutcome, CallTicket, Failure, OpenCall, Outcome};

use crate::place::{self, Place};
use crate::raw::{self, Unread};
use crate::run::{Run, Waiting};
use crate::to_json::{self, Bounds, Purpose, Refusal};
use crate::{naming, native, quiet, tokens, tool_error};

/// What a stub does. Bad arguments reject the promise that is returned, as
/// those of any asynchronous function would.
pub(crate) fn make<'js>(
    ctx: &Ctx<'js>,
    run: &Rc<Run>,
    (server, tool): (u16, u16),
    args: &[Value<'js>],
) -> Result<Value<'js>> {
    let encoded = match encode_args(ctx, run, (server, tool), args) {
        Ok(encoded) => encoded,
        Err(refusal) => return rejected(ctx, run, (server, tool), refusal),
    };
    let places = places_of_call(ctx, run, (server, tool));
    let (line, column) = places
        .first()
        .map_or((0, 0), |place| (place.line, place.column));
    let (promise, resolve, reject) = ctx.promise()?;
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
    let waiting = Waiting {
        resolve: Persistent::save(ctx, resolve),
        reject: Persistent::save(ctx, reject),
        places,
    };
    calls.waiting.insert(ticket, waiting);
    Ok(promise.into_value())
}

/// A call is where its bracket is, as in every guest; the engine points at the member, or into
/// the arguments.
fn places_of_call(ctx: &Ctx<'_>, run: &Run, (server, tool): (u16, u16)) -> Vec<Place> {
    let mut places = place::here(ctx, run);
    let stubs = run.stubs.borrow();
    let tools = stubs.get(usize::from(server)).map(|server| &server.tools);
    let stub = tools.and_then(|tools| tools.get(usize::from(tool)));
    if let (Some(place), Some(stub)) = (places.first_mut(), stub) {
        let script = run.script.borrow();
        let tokens = run.tokens.get_or_init(|| tokens::of(&script));
        let names = [&*stub.member, &*stub.flat, &*stub.short];
        let found = naming::bracket_of(&script, tokens, (place.line, place.column), names);
        if let Some(found) = found {
            (place.line, place.column) = found;
        }
    }
    places
}

fn encode_args<'js>(
    ctx: &Ctx<'js>,
    run: &Run,
    (server, tool): (u16, u16),
    args: &[Value<'js>],
) -> std::result::Result<Vec<u8>, Refusal> {
    let limits = run.limits.get();
    let bounds = Bounds {
        bytes_max: limits.args_bytes_max as usize,
        depth_max: limits.json_depth_max,
    };
    let first = native::arg(ctx, args, 0);
    if first.is_undefined() && args.len() <= 1 {
        return Ok(b"{}".to_vec());
    }
    let order = order(server, tool, run);
    if !order.is_empty() && (args.len() > 1 || !first.is_object()) {
        return encode_in_order(args, &order, bounds, run);
    }
    let unsuitable = |what: &str| {
        Refusal::Unsayable(format!(
            "a tool takes one object of named arguments, not {what}"
        ))
    };
    if args.len() > 1 {
        return Err(unsuitable("several values"));
    }
    let encoded = to_json::encode(&first, "arguments", Purpose::Arguments, bounds, run)?;
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
    values: &[Value<'_>],
    order: &[String],
    bounds: Bounds,
    run: &Run,
) -> std::result::Result<Vec<u8>, Refusal> {
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
        let Some(text) = to_json::encode(value, name, Purpose::Arguments, left, run)? else {
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

fn rejected<'js>(
    ctx: &Ctx<'js>,
    run: &Run,
    (server, tool): (u16, u16),
    refusal: Refusal,
) -> Result<Value<'js>> {
    let reason = match refusal {
        Refusal::Thrown(error) => native::caught(ctx, error),
        Refusal::Unsayable(sentence) | Refusal::TooDeep(sentence) => {
            native::type_error(ctx, run, &sentence)?
        }
        Refusal::TooLarge => {
            let bytes_max = run.limits.get().args_bytes_max;
            let message = format!("the arguments are larger than {bytes_max} bytes");
            let failure = failure("limit-payload", tool_name(server, tool, run), message);
            let places = places_of_call(ctx, run, (server, tool));
            tool_error::make(ctx, run, &failure, None, places)?
        }
    };
    let (promise, _, reject) = ctx.promise()?;
    let _: Value<'js> = reject.call((reason,))?;
    Ok(promise.into_value())
}

fn failure(code: &str, tool: String, message: String) -> Failure {
    Failure {
        code: code.to_owned(),
        tool,
        message,
        retryable: false,
        content: Vec::new(),
        structured_content: Vec::new(),
    }
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
pub(crate) fn settle(ctx: &Ctx<'_>, run: &Run, outcome: CallOutcome) -> Result<()> {
    let Some(waiting) = run.calls.borrow_mut().waiting.remove(&outcome.ticket) else {
        return Ok(());
    };
    let ticket = outcome.ticket;
    let failure = match outcome.outcome {
        Outcome::Value(text) => match decoded(ctx, run, text) {
            Ok(value) => return call(ctx, waiting.resolve, value),
            Err(why) => {
                let message = format!("the result is not usable JSON: {why}");
                failure("result-invalid", String::new(), message)
            }
        },
        Outcome::Failure(failure) => failure,
    };
    reject(ctx, run, &failure, ticket, waiting)
}

fn reject(
    ctx: &Ctx<'_>,
    run: &Run,
    failure: &Failure,
    ticket: CallTicket,
    Waiting { reject, places, .. }: Waiting,
) -> Result<()> {
    let error = tool_error::make(ctx, run, failure, Some(ticket), places)?;
    call(ctx, reject, error)
}

fn call<'js>(
    ctx: &Ctx<'js>,
    function: Persistent<Function<'static>>,
    value: Value<'js>,
) -> Result<()> {
    let _: Value<'js> = function.restore(ctx)?.call((value,))?;
    Ok(())
}

/// A value from JSON text; no text is `undefined`.
pub(crate) fn decoded<'js>(
    ctx: &Ctx<'js>,
    run: &Run,
    mut text: Vec<u8>,
) -> std::result::Result<Value<'js>, String> {
    if text.is_empty() {
        return Ok(native::undefined(ctx));
    }
    let depth_max = run.limits.get().json_depth_max;
    let too_deep = || format!("it is nested more than {depth_max} levels deep");
    let error = match raw::from_json(ctx, &mut text, depth_max) {
        Ok(value) => return Ok(value),
        Err(Unread::TooDeep) => return Err(too_deep()),
        Err(Unread::Thrown(error)) => error,
        Err(Unread::Unsure) if to_json::depth_of(&text) > depth_max => return Err(too_deep()),
        // The engine has the words for what is wrong.
        Err(Unread::Unsure) => match ctx.json_parse(text) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        },
    };
    let error = native::caught(ctx, error);
    let message = error
        .as_object()
        .and_then(|error| quiet::text(error, "message", 200));
    Err(message.unwrap_or_else(|| "it cannot be read".to_owned()))
}
