//! Native functions of this guest, and the errors that they throw.

use std::rc::Rc;

use rquickjs::function::Rest;
use rquickjs::{Ctx, Error, Exception, Function, Result, Value};

use crate::run::Run;

/// A native function of this guest.
pub(crate) type Native = for<'js> fn(&Ctx<'js>, &Rc<Run>, &[Value<'js>]) -> Result<Value<'js>>;

pub(crate) fn function<'js>(
    ctx: &Ctx<'js>,
    run: &Rc<Run>,
    (name, native, length): (&str, Native, usize),
) -> Result<Function<'js>> {
    let run = Rc::clone(run);
    let call = move |ctx: Ctx<'js>, args: Rest<Value<'js>>| native(&ctx, &run, &args.0);
    Function::new(ctx.clone(), call)?
        .with_name(name)?
        .with_length(length)
}

/// Returns the argument at an index; `undefined` if there is none.
pub(crate) fn arg<'js>(ctx: &Ctx<'js>, args: &[Value<'js>], index: usize) -> Value<'js> {
    let undefined = || Value::new_undefined(ctx.clone());
    args.get(index).cloned().unwrap_or_else(undefined)
}

pub(crate) fn undefined<'js>(ctx: &Ctx<'js>) -> Value<'js> {
    Value::new_undefined(ctx.clone())
}

pub(crate) fn string<'js>(ctx: &Ctx<'js>, text: &str) -> Result<Value<'js>> {
    Ok(rquickjs::String::from_str(ctx.clone(), text)?.into_value())
}

/// Creates a `TypeError` with its constructor, so that the error records where it was created.
pub(crate) fn type_error<'js>(ctx: &Ctx<'js>, run: &Run, message: &str) -> Result<Value<'js>> {
    run.kept()?.type_error(ctx)?.construct((message,))
}

pub(crate) fn throw_type(ctx: &Ctx<'_>, run: &Run, message: &str) -> Error {
    thrown(ctx, type_error(ctx, run, message))
}

pub(crate) fn throw_range<'js>(ctx: &Ctx<'js>, run: &Run, message: &str) -> Error {
    let made = || -> Result<Value<'js>> { run.kept()?.range_error(ctx)?.construct((message,)) };
    thrown(ctx, made())
}

fn thrown<'js>(ctx: &Ctx<'js>, error: Result<Value<'js>>) -> Error {
    match error {
        Ok(error) => ctx.throw(error),
        Err(error) => error,
    }
}

/// Returns the value, or `None` for an error. Clears the pending error.
pub(crate) fn quietly<T>(ctx: &Ctx<'_>, made: Result<T>) -> Option<T> {
    made.map_err(|error| caught(ctx, error)).ok()
}

/// Returns the thrown value of an error, whatever its origin.
pub(crate) fn caught<'js>(ctx: &Ctx<'js>, error: Error) -> Value<'js> {
    if !matches!(error, Error::Exception) {
        Exception::throw_message(ctx, &error.to_string());
    }
    ctx.catch()
}
