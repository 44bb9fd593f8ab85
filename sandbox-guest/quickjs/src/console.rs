//! What a script prints: kept up to a bound, counted beyond it.

use std::rc::Rc;

use rquickjs::{Ctx, Error, Result, Value};
use sandbox_protocol::codec::{append_line, decode_lines};
use sandbox_protocol::{ConsoleLevel, ConsoleLine, GuestLimits};

use crate::run::Run;
use crate::{inspect, landmark, native, raw};

#[derive(Default)]
pub(crate) struct Console {
    /// Lines since the last step, encoded, where the host finds them after a trap.
    printed: Vec<u8>,
    kept_bytes: u64,
    dropped_bytes: u64,
    pub(crate) flooded: bool,
}

impl Console {
    /// Keeps what fits and counts the rest.
    pub(crate) fn print(&mut self, level: ConsoleLevel, text: &str, limits: &GuestLimits) {
        // A line costs its line break too, or empty ones would be free; the host counts alike.
        let length = text.len() as u64 + 1;
        let room = u64::from(limits.console_bytes_max).saturating_sub(self.kept_bytes);
        if length <= room && self.dropped_bytes == 0 {
            self.kept_bytes += length;
            append_line(&mut self.printed, level, text);
        } else {
            let kept = if self.dropped_bytes == 0 {
                beginning(text, room.saturating_sub(1))
            } else {
                ""
            };
            self.dropped_bytes += length;
            if !kept.is_empty() {
                let kept_bytes = kept.len() as u64 + 1;
                self.kept_bytes += kept_bytes;
                self.dropped_bytes -= kept_bytes;
                append_line(&mut self.printed, level, kept);
            }
        }
        self.flooded |= self.kept_bytes + self.dropped_bytes > limits.console_flood_bytes_max;
        landmark::printed_at(&self.printed);
    }

    pub(crate) fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }

    pub(crate) fn take(&mut self) -> Vec<ConsoleLine> {
        let lines = decode_lines(&self.printed).unwrap_or_default();
        self.printed.clear();
        landmark::printed_at(&self.printed);
        lines
    }
}

/// As much of the text as fits, in whole characters.
fn beginning(text: &str, bytes_max: u64) -> &str {
    let mut cut = usize::try_from(bytes_max)
        .unwrap_or(usize::MAX)
        .min(text.len());
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    text.get(..cut).unwrap_or_default()
}

/// `print(level, ...values)`: what every method of `console` ends in.
pub(crate) fn print<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let level = match native::arg(ctx, args, 0).as_int() {
        Some(0) => ConsoleLevel::Debug,
        Some(2) => ConsoleLevel::Info,
        Some(3) => ConsoleLevel::Warn,
        Some(4) => ConsoleLevel::Error,
        _ => ConsoleLevel::Log,
    };
    let text = inspect::line(args.get(1..).unwrap_or_default(), run);
    let mut console = run.console.borrow_mut();
    console.print(level, &text, &run.limits.get());
    if console.flooded {
        drop(console);
        let error = native::type_error(ctx, run, "output flood")?;
        ctx.throw(error.clone());
        raw::throw_uncatchable(ctx, &error);
        raw::stop(ctx);
        return Err(Error::Exception);
    }
    Ok(native::undefined(ctx))
}
