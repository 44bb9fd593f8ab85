//! The native part of `console`. `guest_common` stores the printed lines.

use std::rc::Rc;

use guest_common::console::{FLOOD, level};
use rquickjs::{Ctx, Error, Result, Value};

use crate::run::Run;
use crate::{inspect, native, raw};

/// `print(level, ...values)`: every method of `console` calls it.
pub(crate) fn print<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let level = level(native::arg(ctx, args, 0).as_int());
    let text = inspect::line(args.get(1..).unwrap_or_default(), run)?;
    let mut console = run.console.borrow_mut();
    console.print(level, &text, &run.limits.get());
    if console.flooded {
        drop(console);
        let error = native::type_error(ctx, run, FLOOD)?;
        ctx.throw(error.clone());
        raw::throw_uncatchable(ctx, &error);
        raw::stop(ctx);
        return Err(Error::Exception);
    }
    Ok(native::undefined(ctx))
}
