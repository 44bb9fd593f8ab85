//! The guest as a state machine: started once, resumed until it ends, inactive in between.

use std::rc::Rc;

use guest_common::failure::unhandled;
use guest_common::forms::input_not_json;
use guest_common::json::{Bounds, Purpose, Refusal};
use guest_common::panic_message;
use guest_common::rng::Rng;
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Error, Object, Persistent, Promise, Result, Runtime, Value};
use sandbox_protocol::{ConsoleLevel, Resume, Start, Step, StepState};

use crate::forms::{self, NoModules, StartedScript, Unstartable};
use crate::run::Run;
use crate::timers::Turn;
use crate::{call, clock, failure, globals, inspect, native, raw, stubs, to_json};

/// Size in bytes of the stack that the engine's own check allows. The guest's stack is four times
/// as large, for uses that the check does not include, such as a recursive parser.
const STACK_BYTES_MAX: usize = 256 * 1024;

/// Size of the heap in bytes at the first search for unreachable cycles. Later searches start when
/// the heap has grown by half since the last search. A search touches all memory of the image.
const COLLECT_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of unhandled rejections that are remembered.
const UNHANDLED_MAX: usize = 1_000;

/// One script with its engine.
pub(crate) struct Guest {
    context: Context,
    run: Rc<Run>,
    /// The promise of the script's value, once the script runs.
    value: Option<Persistent<Promise<'static>>>,
    /// The exports of a module; the promise above is then that of the module's evaluation.
    module: Option<Persistent<Object<'static>>>,
}

impl Guest {
    /// Creates an engine, with all state that does not depend on the run. An image contains this
    /// state.
    pub(crate) fn new() -> std::result::Result<Self, String> {
        let run = Rc::new(Run::new());
        Self::build(&run).map_err(|error| error.to_string())
    }

    fn build(run: &Rc<Run>) -> Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_max_stack_size(STACK_BYTES_MAX);
        runtime.set_loader(NoModules, NoModules);
        let tracked = Rc::clone(run);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, _reason, is_handled| track(&ctx, &tracked, promise, is_handled),
        )));
        let context = Context::full(&runtime)?;
        context.with(|ctx| {
            globals::install(&ctx, run).map_err(|error| {
                let thrown = native::caught(&ctx, error);
                panic_message::fault(&format!("{thrown:?}"));
                Error::Unknown
            })
        })?;
        runtime.run_gc();
        runtime.set_gc_threshold(COLLECT_BYTES);
        Ok(Self {
            context,
            run: Rc::clone(run),
            value: None,
            module: None,
        })
    }

    /// Starts the script and runs it until it ends or must wait.
    pub(crate) fn start(&mut self, start: Start) -> Step {
        let run = Rc::clone(&self.run);
        run.limits.set(start.limits);
        clock::start_at(start.now_ms);
        *run.chance.borrow_mut() = Rng::new(start.seed);
        // The engine does not accept a name that contains a zero byte.
        *run.script_name.borrow_mut() = start.script_name.replace('\0', "");
        *run.stubs.borrow_mut() = start.stubs;
        *run.script.borrow_mut() = start.script;
        let context = self.context.clone();
        let state = context.with(|ctx| match self.launch(&ctx, start.input) {
            Ok(()) => self.go_on(&ctx),
            Err(Unstartable::Syntax(error)) => StepState::Failed(*error),
            Err(Unstartable::Engine(error)) => self.ended_by(&ctx, error),
        });
        self.step(state)
    }

    fn launch(&mut self, ctx: &Ctx<'_>, input: Vec<u8>) -> std::result::Result<(), Unstartable> {
        let run = Rc::clone(&self.run);
        let input = call::decoded(ctx, &run, input)
            .map_err(|why| Unstartable::Syntax(Box::new(input_not_json(&why))))?;
        globals::set_input(ctx, input)?;
        let script = run.script.borrow().clone();
        stubs::install(ctx, &script, &run)?;
        match forms::start(ctx, &script, &run)? {
            StartedScript::Value(value) => self.value = Some(Persistent::save(ctx, value)),
            StartedScript::Module(exports, evaluated) => {
                self.module = Some(Persistent::save(ctx, exports));
                self.value = Some(Persistent::save(ctx, evaluated));
            }
        }
        Ok(())
    }

    /// Settles the host's outcomes in their order, and continues the script.
    pub(crate) fn resume(&mut self, resume: Resume) -> Step {
        clock::advance_to(resume.now_ms);
        let context = self.context.clone();
        let state = context.with(|ctx| {
            for outcome in resume.outcomes {
                if let Err(error) = call::settle(&ctx, &self.run, outcome) {
                    return self.ended_by(&ctx, error);
                }
                self.drain(&ctx);
            }
            self.go_on(&ctx)
        });
        self.step(state)
    }

    /// Runs jobs until the queue is empty. If the host stops the guest, this loop stops too.
    fn drain(&self, ctx: &Ctx<'_>) {
        raw::release_kept(ctx);
        while !self.run.console.borrow().flooded && ctx.execute_pending_job() {
            raw::release_kept(ctx);
        }
    }

    /// Runs jobs and due timers until the script has ended or must wait.
    fn go_on(&mut self, ctx: &Ctx<'_>) -> StepState {
        loop {
            self.drain(ctx);
            if self.run.console.borrow().flooded {
                return StepState::OutputFlood;
            }
            match self.settled(ctx) {
                Ok(ResultState::Value(value)) => return self.done(ctx, &value),
                Ok(ResultState::Module(exports)) => match self.follow(ctx, &exports) {
                    Ok(()) => continue,
                    Err(error) => return self.ended_by(ctx, error),
                },
                Ok(ResultState::NotYet) => {}
                Err(error) => return self.ended_by(ctx, error),
            }
            let due = self.run.timers.borrow_mut().take_due(clock::now_ms());
            let Some(due) = due else { break };
            if let Err(error) = turn(ctx, due) {
                return self.ended_by(ctx, error);
            }
        }
        if self.run.is_stuck() {
            return StepState::Deadlocked;
        }
        StepState::Waiting {
            wake_at_ms: self.run.timers.borrow().next_due_ms(),
        }
    }

    /// Returns the state of the promise.
    fn settled<'js>(&mut self, ctx: &Ctx<'js>) -> Result<ResultState<'js>> {
        let Some(value) = self.value.clone() else {
            return Ok(ResultState::NotYet);
        };
        let promise = value.restore(ctx)?;
        if promise.state() == PromiseState::Pending {
            return Ok(ResultState::NotYet);
        }
        let value = match promise.result() {
            Some(value) => value?,
            None => return Ok(ResultState::NotYet),
        };
        match self.module.take() {
            Some(exports) => Ok(ResultState::Module(exports.restore(ctx)?)),
            None => Ok(ResultState::Value(value)),
        }
    }

    /// Replaces the promise of a module's evaluation with the promise of the module's value.
    fn follow<'js>(&mut self, ctx: &Ctx<'js>, exports: &Object<'js>) -> Result<()> {
        let value = forms::default_export(exports)?;
        let promise = self.run.kept()?.promise_resolve(value)?;
        let promise = promise.into_promise().ok_or(Error::Unknown)?;
        self.value = Some(Persistent::save(ctx, promise));
        Ok(())
    }

    fn done(&mut self, ctx: &Ctx<'_>, value: &Value<'_>) -> StepState {
        let limits = self.run.limits.get();
        let bounds = Bounds {
            bytes_max: limits.value_bytes_max as usize,
            depth_max: limits.json_depth_max,
        };
        match to_json::encode(value, "value", Purpose::Value, bounds, &self.run) {
            Ok(encoded) => {
                self.report_unhandled(ctx);
                StepState::Done {
                    value: encoded.unwrap_or_default(),
                }
            }
            Err(Refusal::TooLarge | Refusal::TooDeep(_)) => StepState::ValueTooLarge,
            Err(Refusal::Thrown(error)) => self.ended_by(ctx, error),
            Err(Refusal::Unsayable(sentence)) => {
                let error = native::throw_type(ctx, &self.run, &sentence);
                self.ended_by(ctx, error)
            }
        }
    }

    /// Reports unhandled rejections. The usual reason is a missing `await`.
    fn report_unhandled(&self, ctx: &Ctx<'_>) {
        let rejected = self.run.unhandled.take();
        let limits = self.run.limits.get();
        let print = |text: &str| {
            let mut console = self.run.console.borrow_mut();
            console.print(ConsoleLevel::Warn, text, &limits);
        };
        let others = unhandled::others(rejected.len());
        for promise in rejected.into_iter().take(unhandled::SHOWN_MAX) {
            let promise = promise.restore(ctx).ok().and_then(Value::into_promise);
            let Some(Err(error)) = promise.and_then(|promise| promise.result::<Value<'_>>()) else {
                continue;
            };
            let reason = inspect::one(&native::caught(ctx, error), &self.run);
            if let Some(reason) = native::quietly(ctx, reason) {
                print(&unhandled::one(&reason));
            }
        }
        if let Some(others) = others {
            print(&others);
        }
    }

    /// Returns the state after an error that no code of the script caught.
    fn ended_by(&self, ctx: &Ctx<'_>, error: Error) -> StepState {
        let thrown = native::caught(ctx, error);
        if self.run.console.borrow().flooded {
            return StepState::OutputFlood;
        }
        failure::state_of(&thrown, &self.run)
    }

    fn step(&self, state: StepState) -> Step {
        let mut console = self.run.console.borrow_mut();
        Step {
            console: console.take(),
            console_dropped_bytes: console.dropped_bytes(),
            calls: std::mem::take(&mut self.run.calls.borrow_mut().made),
            state,
        }
    }
}

enum ResultState<'js> {
    NotYet,
    Value(Value<'js>),
    Module(Object<'js>),
}

/// Runs the callback of a timer.
fn turn(ctx: &Ctx<'_>, Turn { callback, args }: Turn) -> Result<()> {
    let callback = callback.restore(ctx)?;
    let mut given = rquickjs::function::Args::new(ctx.clone(), args.len());
    for arg in args {
        given.push_arg(arg.restore(ctx)?)?;
    }
    let _: Value<'_> = callback.call_arg(given)?;
    Ok(())
}

fn track<'js>(ctx: &Ctx<'js>, run: &Run, promise: Value<'js>, is_handled: bool) {
    let promise = Persistent::save(ctx, promise);
    let mut unhandled = run.unhandled.borrow_mut();
    if is_handled {
        if let Some(at) = unhandled.iter().rposition(|other| *other == promise) {
            unhandled.swap_remove(at);
        }
    } else if unhandled.len() < UNHANDLED_MAX {
        unhandled.push(promise);
    }
}
