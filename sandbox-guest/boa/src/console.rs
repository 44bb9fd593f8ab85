//! What a script prints: kept up to a bound, counted beyond it.

use std::sync::atomic::{AtomicBool, Ordering};

use boa_engine::error::{EngineError, PanicError};
use boa_engine::{Context, JsArgs, JsError, JsResult, JsValue};
use sandbox_protocol::codec::{append_line, decode_lines};
use sandbox_protocol::{ConsoleLevel, ConsoleLine, GuestLimits};

use crate::inspect;
use crate::landmark;
use crate::run::Run;

/// What the guest says of a flood that ends it at a place where nothing can be answered.
pub(crate) const FLOOD: &str = "output flood";

static FLOODED: AtomicBool = AtomicBool::new(false);

/// Whether the script has printed too much, asked while the guest panics: an asynchronous
/// generator of the engine does so about an error that nobody can catch.
#[cfg(target_arch = "wasm32")]
pub(crate) fn has_flooded() -> bool {
    FLOODED.load(Ordering::Relaxed)
}

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
        FLOODED.store(self.flooded, Ordering::Relaxed);
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
pub(crate) fn print(_this: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let level = match args.get_or_undefined(0).as_i32() {
        Some(0) => ConsoleLevel::Debug,
        Some(2) => ConsoleLevel::Info,
        Some(3) => ConsoleLevel::Warn,
        Some(4) => ConsoleLevel::Error,
        _ => ConsoleLevel::Log,
    };
    let run = Run::of(context)?;
    let text = inspect::line(args.get(1..).unwrap_or_default(), context);
    let mut console = run.console.borrow_mut();
    console.print(level, &text, &run.limits.get());
    if console.flooded {
        // Not an exception: no script can catch it.
        return Err(JsError::from(EngineError::from(PanicError::new(FLOOD))));
    }
    Ok(JsValue::undefined())
}
