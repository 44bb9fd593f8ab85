//! The state of one run besides the engine: limits, open calls, timers and printed lines.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;

use guest_common::calls::Calls;
use guest_common::console::Console;
use guest_common::limits;
use guest_common::place::Place;
use guest_common::rng::Rng;
use guest_common::timers::Timers;
use rquickjs::{Error, Function, Persistent, Result, Value};
use sandbox_protocol::{GuestLimits, ServerStubs};

use crate::intrinsics::Intrinsics;
use crate::timers::Turn;
use crate::tokens::Token;

/// A call that waits for its outcome.
pub(crate) struct PendingCall {
    pub(crate) resolve: Persistent<Function<'static>>,
    pub(crate) reject: Persistent<Function<'static>>,
    /// Where the script made the call, innermost frame first.
    pub(crate) places: Vec<Place>,
}

pub(crate) struct Run {
    pub(crate) limits: Cell<GuestLimits>,
    pub(crate) chance: RefCell<Rng>,
    pub(crate) console: RefCell<Console>,
    pub(crate) calls: RefCell<Calls<PendingCall>>,
    pub(crate) timers: RefCell<Timers<Turn>>,
    pub(crate) stubs: RefCell<Vec<ServerStubs>>,
    /// Functions of tools created so far, by server and tool.
    pub(crate) members: RefCell<BTreeMap<(u16, u16), Persistent<Function<'static>>>>,
    /// Rejected promises without a handler so far.
    pub(crate) unhandled: RefCell<Vec<Persistent<Value<'static>>>>,
    pub(crate) script: RefCell<String>,
    /// The script's tokens, computed on first use.
    pub(crate) tokens: OnceCell<Vec<Token>>,
    pub(crate) script_name: RefCell<String>,
    /// Number of lines of the wrapper before the script's first line.
    pub(crate) lines_before: Cell<u32>,
    pub(crate) script_lines: Cell<u32>,
    kept: OnceCell<Intrinsics>,
}

impl Run {
    pub(crate) fn new() -> Self {
        Self {
            limits: Cell::new(limits::NONE_YET),
            chance: RefCell::new(Rng::new(0)),
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

    pub(crate) fn keep(&self, kept: Intrinsics) {
        let _ = self.kept.set(kept);
    }

    pub(crate) fn kept(&self) -> Result<&Intrinsics> {
        self.kept.get().ok_or(Error::Unknown)
    }

    /// Whether no open call or timer can continue the script.
    pub(crate) fn is_stuck(&self) -> bool {
        self.calls.borrow().waiting.is_empty() && self.timers.borrow().next_due_ms().is_none()
    }
}
