//! A guest's instance: its memory, its functions, and what its end means.

use std::fmt;
use std::sync::Arc;

use airlock_core::effect::{GuestStop, GuestUsage};
use airlock_core::limits::Limit;
use sandbox_protocol::{Step, StepState};
use wasmtime::{
    Extern, FrameInfo, Instance, Memory, ModuleExport, PoolConcurrencyLimitError, Store, Trap,
    TypedFunc, UpdateDeadline, WasmBacktrace, WasmParams, WasmResults,
};

use super::Sandbox;
use super::bounds::{GuestBounds, GuestControl, Stopped, Watch};
use super::image::Loaded;
use super::memory::{self, LastWords};
use super::pool::InPool;
use super::reader::Reader;
use super::shadow_stack;
use crate::budget::{Busy, Charge};

/// Frames of a fault that are told.
const FRAMES_TOLD_MAX: usize = 3;

/// Which of a guest's functions takes the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Start,
    Resume,
}

pub(super) struct Live {
    sandbox: Sandbox,
    store: Store<Watch>,
    is_pooled: bool,
    instance: Instance,
    memory: Memory,
    /// Where its last words would be, once it has said so.
    landmark: Option<u32>,
    reader: Reader,
    shadow_stack_bytes: usize,
    /// Behind the store: others are given its memory when that is gone.
    _charge: Option<Arc<Charge>>,
    _in_pool: Option<InPool>,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

impl Live {
    /// From the pool, or beside it when it is used up.
    pub(super) fn new(
        sandbox: &Sandbox,
        bounds: GuestBounds,
        control: &GuestControl,
        tools: &[usize],
    ) -> Result<Self, GuestStop> {
        let instantiate = |loaded, in_pool| {
            let watch = Watch::new(bounds, control, sandbox.clock());
            Self::instantiate(sandbox, loaded, in_pool, (watch, tools))
        };
        if let Some(pooled) = sandbox.pooled() {
            match instantiate(pooled, Some(sandbox.pool().enter())) {
                Err(error) if error.is::<PoolConcurrencyLimitError>() => {}
                made => return made.map_err(fault),
            }
        }
        match sandbox.unpooled() {
            Some(loaded) => instantiate(loaded, None).map_err(fault),
            None => Err(fault("no memory can be had for another guest")),
        }
    }

    fn instantiate(
        sandbox: &Sandbox,
        loaded: &Loaded,
        in_pool: Option<InPool>,
        (watch, tools): (Watch, &[usize]),
    ) -> wasmtime::Result<Self> {
        let charge = watch.charge();
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
        let memory = instance
            .get_module_export(&mut store, &loaded.exports.memory)
            .and_then(Extern::into_memory)
            .ok_or_else(|| wasmtime::Error::msg("the guest exports no memory"))?;
        let begin = memory.data_ptr(&store);
        let bytes = memory.data_size(&store);
        let is_pooled = in_pool.is_some();
        loaded.single_pages.of(begin, bytes, is_pooled);
        if let Some(in_pool) = &in_pool {
            in_pool.has(begin);
        }
        store.data_mut().set_memory(begin);
        Ok(Self {
            sandbox: sandbox.clone(),
            store,
            is_pooled,
            instance,
            memory,
            landmark: None,
            reader: Reader::new(tools),
            shadow_stack_bytes: loaded.shadow_stack_bytes,
            _charge: charge,
            _in_pool: in_pool,
        })
    }

    pub(super) fn set_deadline(&mut self, deadline_at_ms: u64) {
        self.store.data_mut().set_deadline(deadline_at_ms);
    }

    pub(super) fn usage(&self) -> GuestUsage {
        let size = self.memory.data_size(&self.store) as u64;
        let watch = self.store.data();
        GuestUsage {
            guest_cpu_us: watch.cpu_us(),
            memory_bytes_peak: watch.memory_bytes_peak().max(size),
        }
    }

    /// Hands a frame in, in two pieces, and runs until the guest waits or ends.
    pub(super) fn turn(&mut self, frame: [&[u8]; 2], turn: Turn) -> Result<Step, GuestStop> {
        let step = self.run(frame, turn, |reader, memory, answer| {
            reader.step(memory, answer).map_err(Into::into)
        })?;
        if turn == Turn::Start && matches!(step.state, StepState::Waiting { .. }) {
            shadow_stack::release(
                self.memory.data_mut(&mut self.store),
                self.shadow_stack_bytes,
            );
        }
        Ok(step)
    }

    /// Hands a frame in and answers the guest's frame as it is.
    pub(super) fn exchange(&mut self, frame: &[u8], turn: Turn) -> Result<Vec<u8>, GuestStop> {
        self.run([frame, &[]], turn, |_, memory, answer| {
            let frame = memory::frame(memory, answer);
            frame
                .map(<[u8]>::to_vec)
                .ok_or_else(|| wasmtime::Error::msg("the guest's frame lies outside its memory"))
        })
    }

    /// Runs the guest until it answers, and reads the answer from its memory.
    fn run<T>(
        &mut self,
        frame: [&[u8]; 2],
        turn: Turn,
        read: impl FnOnce(&mut Reader, &[u8], u64) -> wasmtime::Result<T>,
    ) -> Result<T, GuestStop> {
        let sandbox = self.sandbox.clone();
        let loaded = if self.is_pooled {
            sandbox.pooled()
        } else {
            sandbox.unpooled()
        };
        let Some(loaded) = loaded else {
            return Err(fault("the guest has lost its engine"));
        };
        self.store.data_mut().enter(&loaded.interrupt);
        let computing = loaded.ticker.while_computing();
        self.store.set_epoch_deadline(1);
        let answer = if self.store.data_mut().must_not_begin() {
            Err(wasmtime::Error::msg("stopped before it could run"))
        } else {
            self.call(loaded, frame, turn)
        };
        let answer = answer.and_then(|answer| {
            let memory = self.memory.data(&self.store);
            read(&mut self.reader, memory, answer)
        });
        drop(computing);
        self.store.data_mut().leave();
        answer.map_err(|error| self.stop_of(&error))
    }

    /// The guest's answer to a frame: where its own frame is.
    fn call(&mut self, loaded: &Loaded, frame: [&[u8]; 2], turn: Turn) -> wasmtime::Result<u64> {
        let exports = &loaded.exports;
        if self.landmark.is_none() {
            self.landmark = Some(self.find_landmark(loaded)?);
        }
        let export = match turn {
            Turn::Start => &exports.start,
            Turn::Resume => &exports.resume,
        };
        let alloc = function::<u32, u32>(&self.instance, &mut self.store, &exports.alloc)?;
        let run = function::<(), u64>(&self.instance, &mut self.store, export)?;
        let [first, last] = frame;
        let length = u32::try_from(first.len() + last.len())?;
        let address = alloc.call(&mut self.store, length)? as usize;
        self.memory.write(&mut self.store, address, first)?;
        self.memory
            .write(&mut self.store, address + first.len(), last)?;
        run.call(&mut self.store, ())
    }

    /// A number in the image, and so the same for each of its guests.
    fn find_landmark(&mut self, loaded: &Loaded) -> wasmtime::Result<u32> {
        if let Some(known) = loaded.landmark.get() {
            return Ok(*known);
        }
        let exports = &loaded.exports;
        let landmark = function::<(), u32>(&self.instance, &mut self.store, &exports.landmark)?;
        let found = landmark.call(&mut self.store, ())?;
        Ok(*loaded.landmark.get_or_init(|| found))
    }

    /// What an error of the engine means.
    fn stop_of(&self, error: &wasmtime::Error) -> GuestStop {
        let memory = self.memory.data(&self.store);
        let LastWords { console, fault } = self
            .landmark
            .map(|landmark| LastWords::read(memory, landmark))
            .unwrap_or_default();
        match self.store.data().stopped {
            Some(Stopped::Outside) => return GuestStop::Interrupted { console },
            Some(Stopped::Limit(limit)) => return GuestStop::Limit { limit, console },
            Some(Stopped::Busy) => {
                let busy = self.store.data().refusal();
                return GuestStop::Busy {
                    why: busy.as_ref().map(ToString::to_string).unwrap_or_default(),
                    retry_after_ms: busy.as_ref().map_or(0, Busy::retry_after_ms),
                    console,
                };
            }
            None => {}
        }
        let limit = match error.downcast_ref::<Trap>() {
            Some(Trap::StackOverflow) => Some(Limit::Stack),
            // The shadow stack lies at the very beginning of the memory: below it there is nothing.
            Some(Trap::MemoryOutOfBounds) if self.sandbox.is_checker() => Some(Limit::Stack),
            Some(Trap::UnreachableCodeReached) if is_about_memory(&fault) => Some(Limit::Memory),
            // Where a guest cannot answer as it does otherwise.
            Some(Trap::UnreachableCodeReached) if fault == FLOOD => Some(Limit::Output),
            _ => None,
        };
        match limit {
            Some(limit) => GuestStop::Limit { limit, console },
            None if fault.is_empty() => GuestStop::EngineFault {
                why: reason(error),
                console,
            },
            None => GuestStop::EngineFault {
                why: fault,
                console,
            },
        }
    }
}

/// Why a call ended, and the first frames of where: the backtrace that an error begins with would
/// hide the reason behind it.
fn reason(error: &wasmtime::Error) -> String {
    let root = error.root_cause().to_string();
    let frames = error.downcast_ref::<WasmBacktrace>();
    let frames = frames.map(WasmBacktrace::frames).unwrap_or_default();
    let place = |frame: &FrameInfo| match frame.func_name() {
        Some(name) => name.to_owned(),
        None => format!("function {}", frame.func_index()),
    };
    let places: Vec<_> = frames.iter().take(FRAMES_TOLD_MAX).map(place).collect();
    if places.is_empty() {
        return root;
    }
    format!("{root} (in {})", places.join(", in "))
}

fn function<P: WasmParams, R: WasmResults>(
    instance: &Instance,
    store: &mut Store<Watch>,
    export: &ModuleExport,
) -> wasmtime::Result<TypedFunc<P, R>> {
    instance
        .get_module_export(&mut *store, export)
        .and_then(Extern::into_func)
        .ok_or_else(|| wasmtime::Error::msg("the guest lacks a function"))?
        .typed::<P, R>(&*store)
}

pub(super) fn fault(why: impl fmt::Display) -> GuestStop {
    GuestStop::EngineFault {
        why: format!("{why:#}"),
        console: Vec::new(),
    }
}

/// What a guest says of a script that printed too much, where it can say no more.
const FLOOD: &str = "output flood";

/// Rust's own words for a size that cannot be had.
fn is_about_memory(told: &str) -> bool {
    ["capacity overflow", "memory allocation", "out of memory"]
        .iter()
        .any(|words| told.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_says_its_reason_and_not_its_backtrace() {
        let trap = wasmtime::Error::from(Trap::MemoryOutOfBounds);
        let error = trap.context("error while executing at wasm backtrace:\n    0: <unknown>");
        assert_eq!(reason(&error), "wasm trap: out of bounds memory access");
        assert_eq!(
            reason(&wasmtime::Error::msg("a frame is cut")),
            "a frame is cut"
        );
    }
}
