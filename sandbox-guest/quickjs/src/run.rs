//! What one run of a script knows beside the engine: its limits, its open
//! calls, its timers, what it printed.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;

use rquickjs::{Error, Function, Persistent, Result, Value};
use sandbox_protocol::{CallTicket, GuestLimits, OpenCall, ServerStubs};

use crate::chance::Chance;
use crate::console::Console;
use crate::kept::Kept;
use crate::place::Place;
use crate::timers::Timers;
use crate::tokens::Token;

/// A call that waits for its outcome.
pub(crate) struct Waiting {
    pub(crate) resolve: Persistent<Function<'static>>,
    pub(crate) reject: Persistent<Function<'static>>,
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
    pub(crate) chance: RefCell<Chance>,
    pub(crate) console: RefCell<Console>,
    pub(crate) calls: RefCell<Calls>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) stubs: RefCell<Vec<ServerStubs>>,
    /// Functions of tools made so far, by server and tool.
    pub(crate) members: RefCell<BTreeMap<(u16, u16), Persistent<Function<'static>>>>,
    /// Promises that were rejected and that nobody has asked about yet.
    pub(crate) unhandled: RefCell<Vec<Persistent<Value<'static>>>>,
    pub(crate) script: RefCell<String>,
    /// The script's tokens, once somebody asks.
    pub(crate) tokens: OnceCell<Vec<Token>>,
    pub(crate) script_name: RefCell<String>,
    /// Lines of wrapper before the script's own first line.
    pub(crate) lines_before: Cell<u32>,
    pub(crate) script_lines: Cell<u32>,
    kept: OnceCell<Kept>,
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
    pub(crate) fn new() -> Self {
        Self {
            limits: Cell::new(NO_LIMITS_YET),
            chance: RefCell::new(Chance::new(0)),
            console: RefCell::default(),
            calls: RefCell::default(),
            timers: RefCell::default(),
            stubs: RefCell::default(),
            members: RefCell::default(),
            unhandled: RefCell::default(),
            script: RefCell::default(),
            tokens: OnceCell::new(),
            script_name: RefCell::default(),
            lines_before: Cell::new(0),
            script_lines: Cell::new(0),
            kept: OnceCell::new(),
        }
    }

    pub(crate) fn keep(&self, kept: Kept) {
        let _ = self.kept.set(kept);
    }

    pub(crate) fn kept(&self) -> Result<&Kept> {
        self.kept.get().ok_or(Error::Unknown)
    }

    /// Nothing that is still outside can make the script go on.
    pub(crate) fn is_stuck(&self) -> bool {
        self.calls.borrow().waiting.is_empty() && self.timers.borrow().next_due_ms().is_none()
    }
}
