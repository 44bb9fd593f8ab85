//! What one run of a script knows beside the engine: its limits, its open
//! calls, its timers, what it printed. Native functions reach it through the
//! engine's context.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use boa_engine::builtins::promise::ResolvingFunctions;
use boa_engine::job::Job;
use boa_engine::{Context, JsError, JsNativeError, JsObject, JsResult};
use guest_common::calls::Calls;
use guest_common::chance::Chance;
use guest_common::console::Console;
use guest_common::limits;
use guest_common::place::Place;
use guest_common::timers::Timers;
use sandbox_protocol::{GuestLimits, ServerStubs};

use crate::changed::{Rooms, Shifts};
use crate::clock::GivenClock;
use crate::timers::Turn;

/// A call that waits for its outcome.
pub(crate) struct Waiting {
    pub(crate) resolvers: ResolvingFunctions,
    /// Where the script made it, innermost first.
    pub(crate) places: Vec<Place>,
}

pub(crate) struct Run {
    pub(crate) limits: Cell<GuestLimits>,
    pub(crate) clock: Rc<GivenClock>,
    pub(crate) chance: RefCell<Chance>,
    pub(crate) console: RefCell<Console>,
    pub(crate) calls: RefCell<Calls<Waiting>>,
    pub(crate) timers: RefCell<Timers<Turn>>,
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

impl Run {
    pub(crate) fn new(clock: Rc<GivenClock>) -> Self {
        Self {
            limits: Cell::new(limits::NONE_YET),
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
