//! The guest as a state machine: started once, resumed until it ends, inactive in between.

use std::rc::Rc;

use boa_engine::builtins::promise::PromiseState;
use boa_engine::object::builtins::JsPromise;
use boa_engine::{Context, JsError, JsObject, JsResult, JsValue};
use boa_interner::Interner;
use guest_common::failure::unhandled;
use guest_common::forms::input_not_json;
use guest_common::json::{Bounds, Purpose, Refusal};
use guest_common::panic_message;
use guest_common::rng::Rng;
use sandbox_protocol::{ConsoleLevel, Resume, Start, Step, StepState};

use crate::call;
use crate::clock::GivenClock;
use crate::depth;
use crate::failure;
use crate::forms::{self, Unstartable};
use crate::from_json;
use crate::globals;
use crate::hooks::{Hooks, NoModules};
use crate::inspect;
use crate::jobs::{self, Jobs};
use crate::run::Run;
use crate::stubs;
use crate::substring;
use crate::timers::Turn;
use crate::to_json;

/// Maximum number of values on the engine's own stack. A script reaches the limit on nested calls
/// first.
const STACK_VALUES_MAX: usize = 1 << 20;

/// One script with its engine.
pub struct Guest {
    context: Context,
    run: Rc<Run>,
    /// The promise of the script's value, once the script runs.
    value: Option<JsPromise>,
}

impl std::fmt::Debug for Guest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guest").finish_non_exhaustive()
    }
}

impl Guest {
    /// Creates an engine, with all state that does not depend on the run. An image contains this
    /// state.
    ///
    /// # Errors
    /// Fails if the globals cannot be created, which is a defect of the guest.
    pub fn new() -> Result<Self, String> {
        let clock = Rc::new(GivenClock::default());
        let run = Rc::new(Run::new(Rc::clone(&clock)));
        Self::build(clock, &run).map_err(|error| error.to_string())
    }

    fn build(clock: Rc<GivenClock>, run: &Rc<Run>) -> JsResult<Self> {
        let mut context = Context::builder()
            .host_hooks(Rc::new(Hooks(Rc::clone(run))))
            .clock(clock)
            .job_executor(Rc::new(Jobs(Rc::clone(run))))
            .module_loader(Rc::new(NoModules))
            .can_block(false)
            .build()?;
        context.strict(true);
        context.insert_data(Rc::clone(run));
        let kept = globals::install(&mut context)?;
        context.insert_data(Rc::new(kept));
        // The interner contains the prelude's names, which are already compiled. A script that
        // shared this table would write to all of its pages, or fill it and force a new table.
        *context.interner_mut() = Interner::new();
        Ok(Self {
            context,
            run: Rc::clone(run),
            value: None,
        })
    }

    /// Returns the engine itself, for inspection outside of a run.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn context(&mut self) -> &mut Context {
        &mut self.context
    }

    /// Starts the script and runs it until it ends or must wait.
    pub fn start(&mut self, start: Start) -> Step {
        let limits = start.limits;
        self.run.limits.set(limits);
        self.run.clock.start_at(start.now_ms);
        *self.run.chance.borrow_mut() = Rng::new(start.seed);
        *self.run.script_name.borrow_mut() = start.script_name;
        *self.run.stubs.borrow_mut() = start.stubs;
        let bounds = self.context.runtime_limits_mut();
        bounds.set_recursion_limit(limits.recursion_max as usize);
        bounds.set_stack_size_limit(STACK_VALUES_MAX);
        bounds.set_native_stack_end(depth::native_stack_end());
        let state = match self.launch(&start.script, &start.input) {
            Ok(()) => self.go_on(),
            Err(Unstartable::Syntax(error)) => StepState::Failed(error),
            Err(Unstartable::Engine(error)) => self.ended_by(&error),
        };
        self.step(state)
    }

    fn launch(&mut self, script: &str, input: &[u8]) -> Result<(), Unstartable> {
        let context = &mut self.context;
        let depth_max = self.run.limits.get().json_depth_max;
        let input = match input {
            [] => JsValue::undefined(),
            text => from_json::decode(text, depth_max, context)
                .map_err(|not_json| Unstartable::Syntax(input_not_json(not_json.what)))?,
        };
        globals::set_input(input, context)?;
        stubs::install(script, &self.run, context)?;
        self.value = Some(forms::start(script, &self.run, context)?);
        Ok(())
    }

    /// Settles the host's outcomes in their order, and continues the script.
    pub fn resume(&mut self, resume: Resume) -> Step {
        self.run.clock.advance_to(resume.now_ms);
        for outcome in resume.outcomes {
            let settled = call::settle(outcome, &self.run, &mut self.context)
                .and_then(|()| jobs::drain(&self.run, &mut self.context));
            if let Err(error) = settled {
                let state = self.ended_by(&error);
                return self.step(state);
            }
        }
        let state = self.go_on();
        self.step(state)
    }

    /// Runs jobs and due timers until the script has ended or must wait.
    fn go_on(&mut self) -> StepState {
        loop {
            if let Err(error) = jobs::drain(&self.run, &mut self.context) {
                return self.ended_by(&error);
            }
            match self.value.as_ref().map(JsPromise::state) {
                Some(PromiseState::Fulfilled(value)) => return self.done(&value),
                Some(PromiseState::Rejected(reason)) => {
                    if depth::ended(&reason, &self.run) {
                        return StepState::StackExhausted;
                    }
                    return StepState::Failed(failure::of_value(&reason, &mut self.context));
                }
                Some(PromiseState::Pending) | None => {}
            }
            let due = self
                .run
                .timers
                .borrow_mut()
                .take_due(self.run.clock.now_ms());
            let Some(Turn { callback, args }) = due else {
                break;
            };
            if let Err(error) = callback.call(&JsValue::undefined(), &args, &mut self.context) {
                return self.ended_by(&error);
            }
        }
        if self.run.is_stuck() {
            return StepState::Deadlocked;
        }
        StepState::Waiting {
            wake_at_ms: self.run.timers.borrow().next_due_ms(),
        }
    }

    fn done(&mut self, value: &JsValue) -> StepState {
        let limits = self.run.limits.get();
        let bounds = Bounds {
            bytes_max: limits.value_bytes_max as usize,
            depth_max: limits.json_depth_max,
        };
        let encoded = to_json::encode(value, "value", Purpose::Value, bounds, &mut self.context);
        match encoded {
            Ok(encoded) => {
                if let Err(error) = self.report_unhandled() {
                    return self.ended_by(&error);
                }
                StepState::Done {
                    value: encoded.unwrap_or_default(),
                }
            }
            Err(Refusal::TooLarge | Refusal::TooDeep(_)) => StepState::ValueTooLarge,
            Err(refusal) => {
                let error = to_json::exception(refusal, "the value");
                self.ended_by(&error)
            }
        }
    }

    /// Reports unhandled rejections. The usual reason is a missing `await`.
    fn report_unhandled(&mut self) -> JsResult<()> {
        let rejected = std::mem::take(&mut *self.run.unhandled.borrow_mut());
        let ours = self.value.clone().map(JsObject::from);
        let rejected: Vec<_> = rejected
            .into_iter()
            .filter(|promise| {
                !ours
                    .as_ref()
                    .is_some_and(|ours| JsObject::equals(ours, promise))
            })
            .collect();
        for promise in rejected.iter().take(unhandled::SHOWN_MAX) {
            let PromiseState::Rejected(reason) = JsPromise::from_object(promise.clone())?.state()
            else {
                continue;
            };
            let reason = inspect::one(&reason, &mut self.context);
            self.warn(&unhandled::one(&reason));
        }
        if let Some(others) = unhandled::others(rejected.len()) {
            self.warn(&others);
        }
        Ok(())
    }

    fn warn(&self, text: &str) {
        let limits = self.run.limits.get();
        let mut console = self.run.console.borrow_mut();
        console.print(ConsoleLevel::Warn, text, &limits);
    }

    /// Returns the state after an error that no code of the script caught.
    fn ended_by(&mut self, error: &JsError) -> StepState {
        if self.run.console.borrow().flooded {
            return StepState::OutputFlood;
        }
        match error.as_engine() {
            None => {
                let value = error.clone().into_opaque(&mut self.context);
                if value.is_ok_and(|value| depth::ended(&value, &self.run)) {
                    return StepState::StackExhausted;
                }
                StepState::Failed(failure::describe(error, &mut self.context))
            }
            Some(engine) if depth::caused(engine) => StepState::StackExhausted,
            Some(other) => {
                panic_message::fault(&other.to_string());
                std::process::abort()
            }
        }
    }

    fn step(&mut self, state: StepState) -> Step {
        self.run.ropes.borrow_mut().clear_out();
        substring::clear_out();
        let mut console = self.run.console.borrow_mut();
        Step {
            console_dropped_bytes: console.dropped_bytes(),
            console: console.take(),
            calls: std::mem::take(&mut self.run.calls.borrow_mut().made),
            state: if console.flooded {
                StepState::OutputFlood
            } else {
                state
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_a_table_of_names_of_its_own() {
        let mut guest = Guest::new().unwrap();
        assert_eq!(guest.context().interner().len(), Interner::new().len());
    }
}
