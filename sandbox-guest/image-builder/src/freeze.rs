//! Runs a guest's initialisation, and writes the resulting memory into a new module.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasmtime::{Config, Engine, Module, OptLevel, Val};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};

use crate::BuilderError;
use crate::callees::Callees;
use crate::marking::marking;
use crate::plan::{FreshGuest, Plan};

/// The export that initialises the guest, called once at build time.
const INIT: &str = "init";

/// The export through which a guest gets the plan of written blocks.
const PLAN: &str = "plan";

/// Wasm stack in bytes of an unoptimised guest.
const STACK_BYTES_MAX: usize = 2 * 1024 * 1024;

pub(crate) fn freeze(wasm: &[u8]) -> Result<Vec<u8>, BuilderError> {
    let freezing = |why| BuilderError::Wasmtime {
        doing: "initialising the guest",
        why,
    };
    let mut wizer = Wizer::new();
    wizer.init_func(INIT);
    let (module, instrumented) = wizer.instrument(wasm).map_err(freezing)?;
    let mut config = Config::new();
    // The engine runs for a few milliseconds only.
    config
        .cranelift_opt_level(OptLevel::None)
        .max_wasm_stack(STACK_BYTES_MAX);
    let engine = Engine::new(&config).map_err(freezing)?;
    let compiled = Module::new(&engine, &marking(&instrumented)?).map_err(freezing)?;
    let (guest, callees) = planned(&compiled).map_err(freezing)?;
    let frozen = ready(wizer.snapshot(&module, &mut FrozenState(guest))).map_err(freezing)?;
    Ok(callees.named_first(&frozen)?)
}

/// Returns the initialised guest, with written blocks side by side if the guest supports plans.
fn planned(module: &Module) -> wasmtime::Result<(FreshGuest, Callees)> {
    let mut guest = FreshGuest::new(module)?;
    if module.get_export(PLAN).is_none() {
        guest.init()?;
        return Ok((guest, Callees::default()));
    }
    let plan = Plan::find(module)?;
    plan.tell(&mut guest)?;
    guest.init()?;
    plan.check(&mut guest)?;
    Ok((guest, plan.callees))
}

/// The state after the initialisation.
struct FrozenState(FreshGuest);

impl InstanceState for FrozenState {
    async fn global_get(&mut self, name: &str, _: ValType) -> SnapshotVal {
        let FreshGuest {
            store, instance, ..
        } = &mut self.0;
        let global = instance.get_global(&mut *store, name);
        match global.map(|global| global.get(store)) {
            Some(Val::I32(value)) => SnapshotVal::I32(value),
            Some(Val::I64(value)) => SnapshotVal::I64(value),
            Some(Val::F32(value)) => SnapshotVal::F32(value),
            Some(Val::F64(value)) => SnapshotVal::F64(value),
            Some(Val::V128(value)) => SnapshotVal::V128(value.as_u128()),
            other => {
                eprintln!(
                    "error: the guest has a global `{name}` that cannot be frozen: {other:?}"
                );
                std::process::exit(1)
            }
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        let FreshGuest {
            store, instance, ..
        } = &mut self.0;
        match instance.get_memory(&mut *store, name) {
            Some(memory) => contents(memory.data(store)),
            None => contents(&[]),
        }
    }
}

/// Returns the result of a future that is ready at once.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(answer) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return answer;
        }
    }
}
