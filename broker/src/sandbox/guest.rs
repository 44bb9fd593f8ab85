//! One guest: its memory, its functions, and how it ends.

use std::fmt;

use airlock_core::effect::{GuestStop, GuestUsage};
use airlock_core::limits::Limit;
use sandbox_protocol::codec::{decode_step, encode_resume, encode_start};
use sandbox_protocol::{Resume, Start, Step};
use wasmtime::{Instance, Memory, Store, Trap, TypedFunc, UpdateDeadline};

use super::Sandbox;
use super::bounds::{GuestBounds, StopHandle, Stopped, Watch};
use super::image::Loaded;
use super::memory::{self, LastWords};

/// A guest of a sandbox. Dropping it frees everything it has.
pub struct Guest {
    sandbox: Sandbox,
    bounds: GuestBounds,
    stop: StopHandle,
    live: Option<Live>,
    usage: GuestUsage,
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest")
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

struct Live {
    store: Store<Watch>,
    is_pooled: bool,
    memory: Memory,
    alloc: TypedFunc<u32, u32>,
    start: TypedFunc<(), u64>,
    resume: TypedFunc<(), u64>,
    landmark: u32,
    /// How many tools each server has; a call of another one makes no sense.
    tools: Vec<usize>,
    next_ticket: u32,
}

impl Guest {
    pub(super) fn new(sandbox: Sandbox, bounds: GuestBounds, stop: StopHandle) -> Self {
        Self {
            sandbox,
            bounds,
            stop,
            live: None,
            usage: GuestUsage::default(),
        }
    }

    /// Totals so far.
    pub fn usage(&self) -> GuestUsage {
        self.usage
    }

    /// Moves the deadline, in milliseconds since the epoch.
    pub fn stop_at_ms(&mut self, deadline_at_ms: u64) {
        self.bounds.deadline_at_ms = deadline_at_ms;
        if let Some(live) = &mut self.live {
            live.store.data_mut().set_deadline(deadline_at_ms);
        }
    }

    /// Starts the script and runs it as far as it goes.
    pub fn start(&mut self, start: &Start) -> Result<Step, GuestStop> {
        let live = self.instantiate(start)?;
        self.live = Some(live);
        let frame = encode_start(start).map_err(fault)?;
        self.turn(&frame, |live| live.start.clone())
    }

    /// Hands outcomes in and runs on.
    pub fn resume(&mut self, resume: &Resume) -> Result<Step, GuestStop> {
        let frame = encode_resume(resume).map_err(fault)?;
        self.turn(&frame, |live| live.resume.clone())
    }

    fn instantiate(&self, start: &Start) -> Result<Live, GuestStop> {
        if let Some(pooled) = self.sandbox.pooled() {
            match self.instantiate_in(pooled, true, start) {
                Err(error) if error.is::<wasmtime::PoolConcurrencyLimitError>() => {}
                made => return made.map_err(fault),
            }
        }
        match self.sandbox.unpooled() {
            Some(loaded) => self.instantiate_in(loaded, false, start).map_err(fault),
            None => Err(fault("no memory can be had for another guest")),
        }
    }

    fn instantiate_in(
        &self,
        loaded: &Loaded,
        is_pooled: bool,
        start: &Start,
    ) -> wasmtime::Result<Live> {
        let watch = Watch::new(self.bounds, self.stop.clone(), self.sandbox.clock());
        let mut store = Store::new(&loaded.engine, watch);
        store.limiter(|watch| watch);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|mut context| {
            Ok(if context.data_mut().must_stop() {
                UpdateDeadline::Interrupt
            } else {
                UpdateDeadline::Continue(1)
            })
        });
        let instance = loaded.instances.instantiate(&mut store)?;
        let exports = &loaded.exports;
        let memory = instance
            .get_module_export(&mut store, &exports.memory)
            .and_then(wasmtime::Extern::into_memory)
            .ok_or_else(|| wasmtime::Error::msg("the guest exports no memory"))?;
        let landmark = function::<(), u32>(&instance, &mut store, &exports.landmark)?;
        let landmark = landmark.call(&mut store, ())?;
        Ok(Live {
            is_pooled,
            memory,
            alloc: function(&instance, &mut store, &exports.alloc)?,
            start: function(&instance, &mut store, &exports.start)?,
            resume: function(&instance, &mut store, &exports.resume)?,
            landmark,
            tools: start
                .stubs
                .iter()
                .map(|server| server.tools.len())
                .collect(),
            next_ticket: 0,
            store,
        })
    }

    /// One turn of the guest. Whatever ends it frees it.
    fn turn(
        &mut self,
        frame: &[u8],
        export: fn(&Live) -> TypedFunc<(), u64>,
    ) -> Result<Step, GuestStop> {
        let Some(mut live) = self.live.take() else {
            return Err(fault("the guest was resumed after its end"));
        };
        let loaded = if live.is_pooled {
            self.sandbox.pooled()
        } else {
            self.sandbox.unpooled()
        };
        let Some(loaded) = loaded else {
            return Err(fault("the guest has lost its engine"));
        };
        let computing = loaded.ticker.while_computing();
        live.store.data_mut().enter();
        live.store.set_epoch_deadline(1);
        let export = export(&live);
        let step = if live.store.data_mut().must_stop() {
            Err(wasmtime::Error::msg("stopped before it could run"))
        } else {
            live.exchange(frame, &export)
        };
        drop(computing);
        let watch = live.store.data_mut();
        watch.leave();
        let size = live.memory.data_size(&live.store) as u64;
        let watch = live.store.data();
        self.usage = GuestUsage {
            guest_cpu_us: watch.cpu_us(),
            memory_bytes_peak: watch.memory_bytes_peak().max(size),
        };
        let step = step.map_err(|error| live.stop_of(&error))?;
        live.check(&step)?;
        self.live = Some(live);
        Ok(step)
    }
}

fn function<P: wasmtime::WasmParams, R: wasmtime::WasmResults>(
    instance: &Instance,
    store: &mut Store<Watch>,
    export: &wasmtime::ModuleExport,
) -> wasmtime::Result<TypedFunc<P, R>> {
    instance
        .get_module_export(&mut *store, export)
        .and_then(wasmtime::Extern::into_func)
        .ok_or_else(|| wasmtime::Error::msg("the guest lacks a function"))?
        .typed::<P, R>(&*store)
}

fn fault(why: impl fmt::Display) -> GuestStop {
    GuestStop::EngineFault {
        why: format!("{why:#}"),
        console: Vec::new(),
    }
}

impl Live {
    fn exchange(&mut self, frame: &[u8], export: &TypedFunc<(), u64>) -> wasmtime::Result<Step> {
        let length = u32::try_from(frame.len())?;
        let address = self.alloc.call(&mut self.store, length)?;
        self.memory
            .write(&mut self.store, address as usize, frame)?;
        let answer = export.call(&mut self.store, ())?;
        let frame = memory::frame(self.memory.data(&self.store), answer)
            .ok_or_else(|| wasmtime::Error::msg("the guest's frame lies outside its memory"))?;
        Ok(decode_step(frame)?)
    }

    /// Tickets count up by one, and every call is of a tool that was offered.
    fn check(&mut self, step: &Step) -> Result<(), GuestStop> {
        for call in &step.calls {
            let offered = self.tools.get(usize::from(call.server));
            if call.ticket.0 != self.next_ticket {
                return Err(fault("the guest reused or skipped the number of a call"));
            }
            if offered.is_none_or(|&tools| usize::from(call.tool) >= tools) {
                return Err(fault("the guest called a tool that was never offered"));
            }
            self.next_ticket = self.next_ticket.saturating_add(1);
        }
        Ok(())
    }

    /// What an error of the engine means.
    fn stop_of(&self, error: &wasmtime::Error) -> GuestStop {
        let LastWords { console, fault } =
            LastWords::read(self.memory.data(&self.store), self.landmark);
        match self.store.data().stopped {
            Some(Stopped::Outside) => return GuestStop::Interrupted { console },
            Some(Stopped::Limit(limit)) => return GuestStop::Limit { limit, console },
            None => {}
        }
        let limit = match error.downcast_ref::<Trap>() {
            Some(Trap::StackOverflow) => Some(Limit::Stack),
            Some(Trap::UnreachableCodeReached) if is_about_memory(&fault) => Some(Limit::Memory),
            _ => None,
        };
        match limit {
            Some(limit) => GuestStop::Limit { limit, console },
            None if fault.is_empty() => GuestStop::EngineFault {
                why: format!("{error:#}"),
                console,
            },
            None => GuestStop::EngineFault {
                why: fault,
                console,
            },
        }
    }
}

/// Rust's own words for a size that cannot be had.
fn is_about_memory(told: &str) -> bool {
    ["capacity overflow", "memory allocation", "out of memory"]
        .iter()
        .any(|words| told.contains(words))
}
