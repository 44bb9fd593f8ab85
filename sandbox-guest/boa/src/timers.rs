//! Timers live in the guest; the host hears only when the next one is due.

use std::collections::BTreeMap;

use boa_engine::object::builtins::JsFunction;
use boa_engine::{Context, JsArgs, JsNativeError, JsResult, JsValue};

use crate::run::Run;

/// Timers that may be set at once.
const TIMERS_MAX: usize = 10_000;

/// The longest delay, about 24 days; as elsewhere, a longer one means "now".
const DELAY_MS_MAX: f64 = 2_147_483_647.0;

pub(crate) struct Timer {
    pub(crate) callback: JsFunction,
    pub(crate) args: Vec<JsValue>,
    /// Set again after each turn, this much later.
    every_ms: Option<u64>,
    id: u32,
}

#[derive(Default)]
pub(crate) struct Timers {
    /// By due time, then by the order of setting.
    set: BTreeMap<(u64, u64), Timer>,
    /// Where each number is, so that clearing one does not search.
    by_id: BTreeMap<u32, (u64, u64)>,
    turns: u64,
    last_id: u32,
}

impl Timers {
    pub(crate) fn next_due_ms(&self) -> Option<u64> {
        self.set.first_key_value().map(|(&(due, _), _)| due)
    }

    /// Takes the earliest timer that is due. An interval sets itself again.
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<(JsFunction, Vec<JsValue>)> {
        let entry = self
            .set
            .first_entry()
            .filter(|entry| entry.key().0 <= now_ms)?;
        let timer = entry.remove();
        self.by_id.remove(&timer.id);
        let turn = (timer.callback.clone(), timer.args.clone());
        if let Some(every_ms) = timer.every_ms {
            self.insert(now_ms.saturating_add(every_ms), timer);
        }
        Some(turn)
    }

    fn insert(&mut self, due_ms: u64, timer: Timer) {
        let key = (due_ms, self.turns);
        self.turns += 1;
        self.by_id.insert(timer.id, key);
        self.set.insert(key, timer);
    }

    fn clear(&mut self, id: u32) {
        if let Some(key) = self.by_id.remove(&id) {
            self.set.remove(&key);
        }
    }
}

pub(crate) fn set_timeout(
    _this: &JsValue,
    args: &[JsValue],
    context: &mut Context,
) -> JsResult<JsValue> {
    set(args, false, context)
}

pub(crate) fn set_interval(
    _this: &JsValue,
    args: &[JsValue],
    context: &mut Context,
) -> JsResult<JsValue> {
    set(args, true, context)
}

fn set(args: &[JsValue], repeats: bool, context: &mut Context) -> JsResult<JsValue> {
    let name = if repeats { "setInterval" } else { "setTimeout" };
    let callback = args
        .get_or_undefined(0)
        .as_object()
        .and_then(|object| JsFunction::from_object(object.clone()))
        .ok_or_else(|| {
            JsNativeError::typ().with_message(format!("{name} needs a function to call"))
        })?;
    let delay = args.get_or_undefined(1).to_number(context)?;
    // A delay below one millisecond counts as one: time that stands still would never end.
    let delay_ms = if (1.0..=DELAY_MS_MAX).contains(&delay) {
        delay as u64
    } else {
        1
    };
    let run = Run::of(context)?;
    let mut timers = run.timers.borrow_mut();
    if timers.set.len() >= TIMERS_MAX {
        return Err(JsNativeError::range()
            .with_message(format!("more than {TIMERS_MAX} timers are set at once"))
            .into());
    }
    timers.last_id = timers.last_id.wrapping_add(1).max(1);
    let id = timers.last_id;
    let timer = Timer {
        callback,
        args: args.get(2..).unwrap_or_default().to_vec(),
        every_ms: repeats.then_some(delay_ms),
        id,
    };
    timers.insert(run.clock.now_ms().saturating_add(delay_ms), timer);
    Ok(id.into())
}

pub(crate) fn clear(_this: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let id = args.get_or_undefined(0);
    if !id.is_null_or_undefined() {
        let id = id.to_u32(context)?;
        Run::of(context)?.timers.borrow_mut().clear(id);
    }
    Ok(JsValue::undefined())
}
