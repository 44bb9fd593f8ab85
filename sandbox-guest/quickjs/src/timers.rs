//! Timers live in the guest; the host hears only when the next one is due.

use std::collections::BTreeMap;
use std::rc::Rc;

use rquickjs::convert::Coerced;
use rquickjs::{Ctx, FromJs, Function, Persistent, Result, Value};

use crate::run::Run;
use crate::{clock, native};

/// Timers that may be set at once.
const TIMERS_MAX: usize = 10_000;

/// The longest delay, about 24 days; as elsewhere, a longer one means "now".
const DELAY_MS_MAX: f64 = 2_147_483_647.0;

type Callback = Persistent<Function<'static>>;
type Args = Vec<Persistent<Value<'static>>>;

struct Timer {
    callback: Callback,
    args: Args,
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
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<(Callback, Args)> {
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

pub(crate) fn set_timeout<'js>(
    ctx: &Ctx<'js>,
    run: &Rc<Run>,
    args: &[Value<'js>],
) -> Result<Value<'js>> {
    set(ctx, run, args, "setTimeout")
}

pub(crate) fn set_interval<'js>(
    ctx: &Ctx<'js>,
    run: &Rc<Run>,
    args: &[Value<'js>],
) -> Result<Value<'js>> {
    set(ctx, run, args, "setInterval")
}

fn set<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>], name: &str) -> Result<Value<'js>> {
    let Some(callback) = native::arg(ctx, args, 0).into_function() else {
        let message = format!("{name} needs a function to call");
        return Err(native::throw_type(ctx, run, &message));
    };
    let delay = native::arg(ctx, args, 1);
    let delay = match delay.as_number() {
        Some(delay) => delay,
        None => Coerced::<f64>::from_js(ctx, delay)?.0,
    };
    // A delay below one millisecond counts as one: time that stands still would never end.
    let delay_ms = if (1.0..=DELAY_MS_MAX).contains(&delay) {
        delay as u64
    } else {
        1
    };
    let mut timers = run.timers.borrow_mut();
    if timers.set.len() >= TIMERS_MAX {
        drop(timers);
        let message = format!("more than {TIMERS_MAX} timers are set at once");
        return Err(native::throw_range(ctx, run, &message));
    }
    timers.last_id = timers.last_id.wrapping_add(1).max(1);
    let id = timers.last_id;
    let args = args.get(2..).unwrap_or_default().iter();
    let timer = Timer {
        callback: Persistent::save(ctx, callback),
        args: args.map(|arg| Persistent::save(ctx, arg.clone())).collect(),
        every_ms: (name == "setInterval").then_some(delay_ms),
        id,
    };
    timers.insert(clock::now_ms().saturating_add(delay_ms), timer);
    Ok(Value::new_number(ctx.clone(), f64::from(id)))
}

pub(crate) fn clear<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let id = native::arg(ctx, args, 0);
    if !id.is_null() && !id.is_undefined() {
        let id = Coerced::<f64>::from_js(ctx, id)?.0;
        run.timers.borrow_mut().clear(to_u32(id));
    }
    Ok(native::undefined(ctx))
}

/// As the language makes a number of 32 bits: whole, and modulo 2³².
fn to_u32(number: f64) -> u32 {
    number.trunc().rem_euclid(4_294_967_296.0) as u32
}
