//! What one run of a script knows beside the engine: its limits, its open
//! calls, its timers, what it printed.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;

use guest_common::calls::Calls;
use guest_common::chance::Chance;
use guest_common::console::Console;
use guest_common::limits;
use guest_common::place::Place;
use guest_common::timers::Timers;
use rquickjs::{Error, Function, Persistent, Result, Value};
use sandbox_protocol::{GuestLimits, ServerStubs};

use crate::kept::Kept;
use crate::timers::Turn;
use crate::tokens::Token;

/// A call that waits for its outcome.
pub(crate) struct Waiting {
    pub(crate) resolve: Persistent<Function<'static>>,
    pub(crate) reject: Persistent<Function<'static>>,
    /// Where the script made it, innermost first.
    pub(crate) places: Vec<Place>,
}

pub(crate) struct Run {
    pub(crate) limits: Cell<GuestLimits>,
    pub(crate) chance: RefCell<Chance>,
    pub(crate) console: RefCell<Console>,
    pub(crate) calls: RefCell<Calls<Waiting>>,
    pub(crate) timers: RefCell<Timers<Turn>>,
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

impl Run {
    pub(crate) fn new() -> Self {
        Self {
            limits: Cell::new(limits::NONE_YET),
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
