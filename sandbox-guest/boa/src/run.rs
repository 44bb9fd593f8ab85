//! The state of one run besides the engine: limits, open calls, timers and printed lines. Native
//! functions get it through the engine's context.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use boa_engine::builtins::promise::ResolvingFunctions;
use boa_engine::job::Job;
use boa_engine::{Context, JsError, JsNativeError, JsObject, JsResult};
use guest_common::calls::Calls;
use guest_common::console::Console;
use guest_common::limits;
use guest_common::place::Place;
use guest_common::rng::Rng;
use guest_common::timers::Timers;
use sandbox_protocol::{GuestLimits, ServerStubs};

use crate::clock::GivenClock;
use crate::rope::Ropes;
use crate::timers::Turn;

/// A call that waits for its outcome.
pub(crate) struct PendingCall {
    pub(crate) resolvers: ResolvingFunctions,
    /// Where the script made the call, innermost frame first.
    pub(crate) places: Vec<Place>,
}

pub(crate) struct Run {
    pub(crate) limits: Cell<GuestLimits>,
    pub(crate) clock: Rc<GivenClock>,
    pub(crate) chance: RefCell<Rng>,
    pub(crate) console: RefCell<Console>,
    pub(crate) calls: RefCell<Calls<PendingCall>>,
    pub(crate) timers: RefCell<Timers<Turn>>,
    pub(crate) jobs: RefCell<VecDeque<Job>>,
    pub(crate) stubs: RefCell<Vec<ServerStubs>>,
    /// Rejected promises without a handler so far.
    pub(crate) unhandled: RefCell<Vec<JsObject>>,
    pub(crate) script_name: RefCell<String>,
    /// Number of lines of the wrapper before the script's first line.
    pub(crate) lines_before: Cell<u32>,
    pub(crate) script_lines: Cell<u32>,
    /// Whether a call has failed because too many calls were nested.
    pub(crate) was_too_deep: Cell<bool>,
    /// Long texts to which the script appends.
    pub(crate) ropes: RefCell<Ropes>,
}

impl Run {
    pub(crate) fn new(clock: Rc<GivenClock>) -> Self {
        Self {
            limits: Cell::new(limits::NONE_YET),
            clock,
            chance: RefCell::new(Rng::new(0)),
            console: RefCell::default(),
            calls: RefCell::default(),
            timers: RefCell::default(),
            jobs: RefCell::default(),
            stubs: RefCell::default(),
            unhandled: RefCell::default(),
            script_name: RefCell::default(),
            lines_before: Cell::new(0),
            was_too_deep: Cell::new(false),
            ropes: RefCell::default(),
            script_lines: Cell::new(0),
        }
    }

    pub(crate) fn of(context: &Context) -> JsResult<Rc<Self>> {
        context.get_data::<Rc<Self>>().cloned().ok_or_else(|| {
            JsError::from_native(JsNativeError::error().with_message("the guest has no run"))
        })
    }

    /// Whether no open call or timer can continue the script.
    pub(crate) fn is_stuck(&self) -> bool {
        self.calls.borrow().waiting.is_empty() && self.timers.borrow().next_due_ms().is_none()
    }
}
