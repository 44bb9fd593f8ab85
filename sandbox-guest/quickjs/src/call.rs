//! Calls: converts a stub's arguments to bytes for the host, and settles the promise with the
//! host's outcome.

use std::rc::Rc;

use guest_common::args::{self, ArgsShape, StubArgs};
use guest_common::calls;
use guest_common::json::{Bounds, Purpose, Refusal};
use guest_common::place::{Place, innermost};
use guest_common::stubs::{self, ToolAt};
use rquickjs::{Ctx, Error, Function, Persistent, Result, Value};
use sandbox_protocol::{CallOutcome, CallTicket, Failure, OpenCall, Outcome};

use crate::place;
use crate::raw::{self, JsonReadError};
use crate::run::{PendingCall, Run};
use crate::{naming, native, quiet, to_json, tokens, tool_error};

/// Makes a call for a stub. Invalid arguments reject the returned promise, as in any async
/// function.
pub(crate) fn make<'js>(
    ctx: &Ctx<'js>,
    run: &Rc<Run>,
    at: ToolAt,
    args: &[Value<'js>],
) -> Result<Value<'js>> {
    let encoded = match encode_args(ctx, run, at, args) {
        Ok(encoded) => encoded,
        Err(refusal) => return rejected(ctx, run, at, refusal),
    };
    let places = places_of_call(ctx, run, at)?;
    let (line, column) = innermost(&places);
    let (promise, resolve, reject) = ctx.promise()?;
    let mut calls = run.calls.borrow_mut();
    let ticket = calls.ticket();
    calls.made.push(OpenCall {
        ticket,
        server: at.0,
        tool: at.1,
        args: encoded,
        line,
        column,
    });
    let waiting = PendingCall {
        resolve: Persistent::save(ctx, resolve),
        reject: Persistent::save(ctx, reject),
        places,
    };
    calls.waiting.insert(ticket, waiting);
    Ok(promise.into_value())
}

/// Returns the places of a call. A call is located at its parenthesis, as in every guest; the
/// engine's own position is that of the member, or one inside the arguments.
fn places_of_call(ctx: &Ctx<'_>, run: &Run, at: ToolAt) -> Result<Vec<Place>> {
    let mut places = place::here(ctx, run)?;
    let stubs = run.stubs.borrow();
    if let (Some(place), Some(stub)) = (places.first_mut(), stubs::tool(&stubs, at)) {
        let script = run.script.borrow();
        let tokens = run.tokens.get_or_init(|| tokens::tokenize(&script));
        let names = [&*stub.member, &*stub.flat, &*stub.short];
        let found = naming::bracket_of(&script, tokens, (place.line, place.column), names);
        if let Some(found) = found {
            (place.line, place.column) = found;
        }
    }
    Ok(places)
}

fn encode_args<'js>(
    ctx: &Ctx<'js>,
    run: &Run,
    at: ToolAt,
    args: &[Value<'js>],
) -> std::result::Result<Vec<u8>, Refusal<Error>> {
    let limits = run.limits.get();
    let bounds = Bounds {
        bytes_max: limits.args_bytes_max as usize,
        depth_max: limits.json_depth_max,
    };
    let first = native::arg(ctx, args, 0);
    let order = {
        let stubs = run.stubs.borrow();
        stubs::tool(&stubs, at).map(|stub| stub.order.clone())
    };
    let order = order.unwrap_or_default();
    let given = StubArgs {
        count: args.len(),
        first_is_object: first.is_object(),
        first_is_undefined: first.is_undefined(),
    };
    let encode = |value: &Value<'js>, name: &str, bounds| {
        to_json::encode(value, name, Purpose::Arguments, bounds, run)
    };
    match given.way(&order)? {
        ArgsShape::Nothing => Ok(b"{}".to_vec()),
        ArgsShape::InOrder => args::in_order(args, &order, bounds, encode),
        ArgsShape::AsObject => args::object(encode(&first, "arguments", bounds)?),
    }
}

fn rejected<'js>(
    ctx: &Ctx<'js>,
    run: &Run,
    at: ToolAt,
    refusal: Refusal<Error>,
) -> Result<Value<'js>> {
    let reason = match refusal {
        Refusal::Thrown(error) => native::caught(ctx, error),
        Refusal::Unsayable(sentence) => native::type_error(ctx, run, &sentence)?,
        Refusal::TooLarge => {
            let bytes_max = run.limits.get().args_bytes_max;
            limit_error(ctx, run, at, |tool| calls::args_too_large(tool, bytes_max))?
        }
        Refusal::TooDeep(why) => limit_error(ctx, run, at, |tool| calls::args_too_deep(tool, why))?,
    };
    let (promise, _, reject) = ctx.promise()?;
    let _: Value<'js> = reject.call((reason,))?;
    Ok(promise.into_value())
}

/// Returns the error for a call that exceeds a limit.
fn limit_error<'js>(
    ctx: &Ctx<'js>,
    run: &Run,
    at: ToolAt,
    failure: impl FnOnce(String) -> Failure,
) -> Result<Value<'js>> {
    let failure = failure(stubs::tool_name(&run.stubs.borrow(), at));
    let places = places_of_call(ctx, run, at)?;
    tool_error::make(ctx, run, &failure, None, places)
}

/// Settles the promise of one call. A ticket that is not open is ignored: the host can only settle
/// promises that the script waits for.
pub(crate) fn settle(ctx: &Ctx<'_>, run: &Run, outcome: CallOutcome) -> Result<()> {
    let Some(waiting) = run.calls.borrow_mut().waiting.remove(&outcome.ticket) else {
        return Ok(());
    };
    let ticket = outcome.ticket;
    let failure = match outcome.outcome {
        Outcome::Value(text) => match decoded(ctx, run, text) {
            Ok(value) => return call(ctx, waiting.resolve, value),
            Err(why) => calls::result_invalid(&why),
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
    PendingCall { reject, places, .. }: PendingCall,
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

/// Parses JSON text; an empty text gives `undefined`.
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
        Err(JsonReadError::TooDeep) => return Err(too_deep()),
        Err(JsonReadError::Thrown(error)) => error,
        Err(JsonReadError::Unsure) if to_json::depth_of(&text) > depth_max => {
            return Err(too_deep());
        }
        // The engine produces the error message.
        Err(JsonReadError::Unsure) => match ctx.json_parse(text) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        },
    };
    let error = native::caught(ctx, error);
    let message = error
        .as_object()
        .and_then(|error| quiet::text(error, "message", 200));
    Err(message.unwrap_or_else(|| "unknown error".to_owned()))
}
