//! Calls: converts a stub's arguments to bytes for the host, and settles the promise with the
//! host's outcome.

use boa_engine::object::builtins::JsPromise;
use boa_engine::{Context, JsArgs, JsError, JsObject, JsResult, JsValue, js_string};
use guest_common::args::{self, ArgsShape, StubArgs};
use guest_common::json::{Bounds, Purpose, Refusal};
use guest_common::place::innermost;
use guest_common::{calls, stubs};
use sandbox_protocol::{CallOutcome, Failure, OpenCall, Outcome};

use crate::from_json;
use crate::intrinsics::Intrinsics;
use crate::place;
use crate::run::{PendingCall, Run};
use crate::to_json;
use crate::tool_error;

/// Makes a call for a stub. Invalid arguments reject the returned promise, as in any async
/// function.
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
    let (line, column) = innermost(&places);
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
    calls
        .waiting
        .insert(ticket, PendingCall { resolvers, places });
    Ok(promise.into())
}

fn encode_args(
    server: u16,
    tool: u16,
    args: &[JsValue],
    run: &Run,
    context: &mut Context,
) -> Result<Vec<u8>, Refusal<JsError>> {
    let limits = run.limits.get();
    let bounds = Bounds {
        bytes_max: limits.args_bytes_max as usize,
        depth_max: limits.json_depth_max,
    };
    let first = args.get_or_undefined(0);
    let order = {
        let stubs = run.stubs.borrow();
        stubs::tool(&stubs, (server, tool)).map(|stub| stub.order.clone())
    };
    let order = order.unwrap_or_default();
    let given = StubArgs {
        count: args.len(),
        first_is_object: first.is_object(),
        first_is_undefined: first.is_undefined(),
    };
    let mut encode = |value: &JsValue, name: &str, bounds| {
        to_json::encode(value, name, Purpose::Arguments, bounds, context)
    };
    match given.way(&order)? {
        ArgsShape::Nothing => Ok(b"{}".to_vec()),
        ArgsShape::InOrder => args::in_order(args, &order, bounds, encode),
        ArgsShape::AsObject => args::object(encode(first, "arguments", bounds)?),
    }
}

fn rejected(
    server: u16,
    tool: u16,
    refusal: Refusal<JsError>,
    run: &Run,
    context: &mut Context,
) -> JsResult<JsValue> {
    let name_of_tool = || stubs::tool_name(&run.stubs.borrow(), (server, tool));
    let limits = run.limits.get();
    let reason: JsValue = match refusal {
        Refusal::Thrown(error) => error.into_opaque(context)?,
        Refusal::TooLarge => {
            let failure = calls::args_too_large(name_of_tool(), limits.args_bytes_max);
            limit_error(&failure, run, context)?
        }
        Refusal::TooDeep(why) => {
            limit_error(&calls::args_too_deep(name_of_tool(), why), run, context)?
        }
        Refusal::Unsayable(sentence) => {
            // Created by its constructor, so that the error records where it was created.
            let constructor = Intrinsics::of(context)?.type_error.clone();
            constructor
                .construct(&[js_string!(sentence).into()], None, context)?
                .into()
        }
    };
    let (promise, resolvers) = JsPromise::new_pending(context);
    resolvers
        .reject
        .call(&JsValue::undefined(), &[reason], context)?;
    Ok(promise.into())
}

/// Returns the error for a call that exceeds a limit.
fn limit_error(failure: &Failure, run: &Run, context: &mut Context) -> JsResult<JsValue> {
    let places = place::here(context, run);
    let name = run.script_name.borrow().clone();
    let depth_max = run.limits.get().json_depth_max;
    tool_error::make(failure, None, places, &name, depth_max, context).map(Into::into)
}

/// Settles the promise of one call. A ticket that is not open is ignored: the host can only settle
/// promises that the script waits for.
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
                let failure = calls::result_invalid(not_json.what);
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
