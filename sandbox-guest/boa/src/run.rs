//! What one run of a script knows beside the engine: its limits, its open
//! calls, its timers, what it printed. Native functions reach it through the
//! engine's context.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use boa_engine::builtins::promise::ResolvingFunctions;
use boa_engine::job::Job;
use boa_engine::{Context, JsError, JsNativeError, JsObject, JsResult};
use sandbox_protocol::{CallTicket, GuestLimits, OpenCall, ServerStubs};

use crate::chance::Chance;
use crate::changed::{Rooms, Shifts};
use crate::clock::GivenClock;
use crate::console::Console;
use crate::place::Place;
use crate::timers::Timers;

/// A call that waits for its outcome.
pub(crate) struct Waiting {
    pub(crate) resolvers: ResolvingFunctions,
    /// Where the script made it, innermost first.
    pub(crate) places: Vec<Place>,
}

#[derive(Default)]
pub(crate) struct Calls {
    /// Made since the last step.
    pub(crate) made: Vec<OpenCall>,
    pub(crate) waiting: BTreeMap<CallTicket, Waiting>,
    next: u32,
}

impl Calls {
    pub(crate) fn ticket(&mut self) -> CallTicket {
        let ticket = CallTicket(self.next);
        self.next += 1;
        ticket
    }
}

pub(crate) struct Run {
    pub(crate) limits: Cell<GuestLimits>,
    pub(crate) clock: Rc<GivenClock>,
    pub(crate) chance: RefCell<Chance>,
    pub(crate) console: RefCell<Console>,
    pub(crate) calls: RefCell<Calls>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) jobs: RefCell<VecDeque<Job>>,
    pub(crate) stubs: RefCell<Vec<ServerStubs>>,
    /// Promises that were rejected and that nobody has asked about yet.
    pub(crate) unhandled: RefCell<Vec<JsObject>>,
    pub(crate) script_name: RefCell<String>,
    /// Lines of wrapper before the script's own first line.
    pub(crate) lines_before: Cell<u32>,
    pub(crate) script_lines: Cell<u32>,
    /// Scripts are not changed before they are read.
    pub(crate) as_written: Cell<bool>,
    /// Where columns are not the script's own.
    pub(crate) shifts: RefCell<Shifts>,
    /// A script that catches errors was told that its calls go too deep.
    pub(crate) was_too_deep: Cell<bool>,
    /// Long texts that the script makes longer.
    pub(crate) rooms: RefCell<Rooms>,
}

/// The limits of a run that has not been told its own.
const NO_LIMITS_YET: GuestLimits = GuestLimits {
    console_bytes_max: 0,
    console_flood_bytes_max: 0,
    args_bytes_max: 0,
    value_bytes_max: 0,
    json_depth_max: 64,
    recursion_max: 512,
};

impl Run {
    pub(crate) fn new(clock: Rc<GivenClock>) -> Self {
        Self {
            limits: Cell::new(NO_LIMITS_YET),
            clock,
            chance: RefCell::new(Chance::new(0)),
            console: RefCell::default(),
            calls: RefCell::default(),
            timers: RefCell::default(),
            jobs: RefCell::default(),
            stubs: RefCell::default(),
            unhandled: RefCell::default(),
            script_name: RefCell::default(),
            lines_before: Cell::new(0),
            as_written: Cell::new(false),
            shifts: RefCell::default(),
            was_too_deep: Cell::new(false),
            rooms: RefCell::default(),
            script_lines: Cell::new(0),
        }
    }

    pub(crate) fn of(context: &Context) -> JsResult<Rc<Self>> {
        context.get_data::<Rc<Self>>().cloned().ok_or_else(|| {
            JsError::from_native(JsNativeError::error().with_message("the guest has no run"))
        })
    }

    /// Nothing that is still outside can make the script go on.
    pub(crate) fn is_stuck(&self) -> bool {
        self.calls.borrow().waiting.is_empty() && self.timers.borrow().next_due_ms().is_none()
    }
}
