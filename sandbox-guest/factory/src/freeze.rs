//! Runs a guest's initialisation and writes the memory that it leaves into a
//! new module.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasmtime::{Config, Engine, Module, OptLevel, Val};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};

use crate::FactoryError;
use crate::callees::Callees;
use crate::marking::marking;
use crate::plan::{Fresh, Plan};

/// Initialised once, at build time.
const INIT: &str = "init";

/// Where a guest is told what runs write.
const PLAN: &str = "plan";

/// Wasm stack of a guest that is not optimised.
const STACK_BYTES_MAX: usize = 2 * 1024 * 1024;

pub(crate) fn freeze(wasm: &[u8]) -> Result<Vec<u8>, FactoryError> {
    let freezing = |why| FactoryError::Wasmtime {
        doing: "initialising the guest",
        why,
    };
    let mut wizer = Wizer::new();
    wizer.init_func(INIT);
    let (module, instrumented) = wizer.instrument(wasm).map_err(freezing)?;
    let mut config = Config::new();
    // It runs for a few milliseconds only.
    config
        .cranelift_opt_level(OptLevel::None)
        .max_wasm_stack(STACK_BYTES_MAX);
    let engine = Engine::new(&config).map_err(freezing)?;
    let compiled = Module::new(&engine, &marking(&instrumented)?).map_err(freezing)?;
    let (guest, callees) = planned(&compiled).map_err(freezing)?;
    let frozen = ready(wizer.snapshot(&module, &mut Left(guest))).map_err(freezing)?;
    Ok(callees.named_first(&frozen)?)
}

/// Everything that an image holds, with what runs write side by side, if the guest can do that.
fn planned(module: &Module) -> wasmtime::Result<(Fresh, Callees)> {
    let mut guest = Fresh::new(module)?;
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

/// The state that the initialisation left.
struct Left(Fresh);

impl InstanceState for Left {
    async fn global_get(&mut self, name: &str, _: ValType) -> SnapshotVal {
        let Fresh {
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
        let Fresh {
            store, instance, ..
        } = &mut self.0;
        match instance.get_memory(&mut *store, name) {
            Some(memory) => contents(memory.data(store)),
            None => contents(&[]),
        }
    }
}

/// The answer of a future that never really waits.
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
