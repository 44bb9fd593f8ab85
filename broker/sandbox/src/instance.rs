//! The instance of a guest: its memory, its functions, and the reason for which it ended.

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
use super::bounds::{EpochGuard, GuestBounds, GuestControl, StopReason};
use super::image::LoadedImage;
use super::memory::{self, FinalOutput};
use super::pool::PoolSlot;
use super::reader::StepReader;
use super::shadow_stack;
use crate::budget::{Busy, Charge};

/// Maximum number of stack frames in the message of a fault.
const FRAMES_TOLD_MAX: usize = 3;

/// The function of the guest that receives a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuestTurn {
    Start,
    Resume,
}

pub(super) struct GuestInstance {
    sandbox: Sandbox,
    store: Store<EpochGuard>,
    is_pooled: bool,
    instance: Instance,
    memory: Memory,
    /// The address of the guest's final output, once the guest has reported it.
    landmark: Option<u32>,
    reader: StepReader,
    shadow_stack_bytes: usize,
    /// Declared after the store, so that the memory is freed before it is offered to others.
    _charge: Option<Arc<Charge>>,
    _in_pool: Option<PoolSlot>,
}

impl fmt::Debug for GuestInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestInstance").finish_non_exhaustive()
    }
}

impl GuestInstance {
    /// Creates an instance in the pool, or outside of it if the pool is full.
    pub(super) fn new(
        sandbox: &Sandbox,
        bounds: GuestBounds,
        control: &GuestControl,
        tools: &[usize],
    ) -> Result<Self, GuestStop> {
        let instantiate = |loaded, in_pool| {
            let guard = EpochGuard::new(bounds, control, sandbox.clock());
            Self::instantiate(sandbox, loaded, in_pool, (guard, tools))
        };
        if let Some(pooled) = sandbox.pooled() {
            match instantiate(pooled, Some(sandbox.pool().enter())) {
                Err(error) if error.is::<PoolConcurrencyLimitError>() => {}
                made => return made.map_err(fault),
            }
        }
        match sandbox.unpooled() {
            Some(loaded) => instantiate(loaded, None).map_err(fault),
            None => Err(fault("no memory is left for another guest")),
        }
    }

    fn instantiate(
        sandbox: &Sandbox,
        loaded: &LoadedImage,
        in_pool: Option<PoolSlot>,
        (guard, tools): (EpochGuard, &[usize]),
    ) -> wasmtime::Result<Self> {
        let charge = guard.charge();
        let mut store = Store::new(&loaded.engine, guard);
        store.limiter(|guard| guard);
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
            reader: StepReader::new(tools),
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
        let guard = self.store.data();
        GuestUsage {
            guest_cpu_us: guard.cpu_us(),
            memory_bytes_peak: guard.memory_bytes_peak().max(size),
        }
    }

    /// Passes a frame in two pieces, and runs until the guest waits or ends.
    pub(super) fn turn(&mut self, frame: [&[u8]; 2], turn: GuestTurn) -> Result<Step, GuestStop> {
        let step = self.run(frame, turn, |reader, memory, answer| {
            reader.step(memory, answer).map_err(Into::into)
        })?;
        if turn == GuestTurn::Start && matches!(step.state, StepState::Waiting { .. }) {
            shadow_stack::release(
                self.memory.data_mut(&mut self.store),
                self.shadow_stack_bytes,
            );
        }
        Ok(step)
    }

    /// Passes a frame, and returns the guest's answer unchanged.
    pub(super) fn exchange(&mut self, frame: &[u8], turn: GuestTurn) -> Result<Vec<u8>, GuestStop> {
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
        turn: GuestTurn,
        read: impl FnOnce(&mut StepReader, &[u8], u64) -> wasmtime::Result<T>,
    ) -> Result<T, GuestStop> {
        let sandbox = self.sandbox.clone();
        let loaded = if self.is_pooled {
            sandbox.pooled()
        } else {
            sandbox.unpooled()
        };
        let Some(loaded) = loaded else {
            return Err(fault("the guest's image is not loaded"));
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

    /// Calls the guest with a frame, and returns the address and length of its answer.
    fn call(
        &mut self,
        loaded: &LoadedImage,
        frame: [&[u8]; 2],
        turn: GuestTurn,
    ) -> wasmtime::Result<u64> {
        let exports = &loaded.exports;
        if self.landmark.is_none() {
            self.landmark = Some(self.find_landmark(loaded)?);
        }
        let export = match turn {
            GuestTurn::Start => &exports.start,
            GuestTurn::Resume => &exports.resume,
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

    /// Returns the address of the landmark, which is the same for all guests of an image.
    fn find_landmark(&mut self, loaded: &LoadedImage) -> wasmtime::Result<u32> {
        if let Some(known) = loaded.landmark.get() {
            return Ok(*known);
        }
        let exports = &loaded.exports;
        let landmark = function::<(), u32>(&self.instance, &mut self.store, &exports.landmark)?;
        let found = landmark.call(&mut self.store, ())?;
        Ok(*loaded.landmark.get_or_init(|| found))
    }

    /// Converts an error of Wasmtime.
    fn stop_of(&self, error: &wasmtime::Error) -> GuestStop {
        let memory = self.memory.data(&self.store);
        let FinalOutput { console, fault } = self
            .landmark
            .map(|landmark| FinalOutput::read(memory, landmark))
            .unwrap_or_default();
        match self.store.data().stopped {
            Some(StopReason::Outside) => return GuestStop::Interrupted { console },
            Some(StopReason::Limit(limit)) => return GuestStop::Limit { limit, console },
            Some(StopReason::Busy) => {
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
            // The shadow stack is at the beginning of the memory, so an overflow addresses bytes
            // outside the memory.
            Some(Trap::MemoryOutOfBounds) if self.sandbox.is_checker() => Some(Limit::Stack),
            Some(Trap::UnreachableCodeReached) if is_about_memory(&fault) => Some(Limit::Memory),
            // A guest stops with this text if its script prints too much and no step can be
            // returned.
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

/// Returns why a call ended, and the first frames of the backtrace. The error's own text begins
/// with the whole backtrace, which would hide the reason.
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
    store: &mut Store<EpochGuard>,
    export: &ModuleExport,
) -> wasmtime::Result<TypedFunc<P, R>> {
    instance
        .get_module_export(&mut *store, export)
        .and_then(Extern::into_func)
        .ok_or_else(|| wasmtime::Error::msg("a function of the guest is missing"))?
        .typed::<P, R>(&*store)
}

pub(super) fn fault(why: impl fmt::Display) -> GuestStop {
    GuestStop::EngineFault {
        why: format!("{why:#}"),
        console: Vec::new(),
    }
}

/// The fault text of a guest whose script printed too much, if the guest cannot return a step.
const FLOOD: &str = "output flood";

/// Returns whether the text is one of Rust's messages for memory that is not available.
fn is_about_memory(told: &str) -> bool {
    ["capacity overflow", "memory allocation", "out of memory"]
        .iter()
        .any(|words| told.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_message_omits_backtrace() {
        let trap = wasmtime::Error::from(Trap::MemoryOutOfBounds);
        let error = trap.context("error while executing at wasm backtrace:\n    0: <unknown>");
        assert_eq!(reason(&error), "wasm trap: out of bounds memory access");
        assert_eq!(
            reason(&wasmtime::Error::msg("a frame is cut")),
            "a frame is cut"
        );
    }
}
