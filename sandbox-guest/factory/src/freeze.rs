//! Runs a guest's initialisation and writes the memory that it leaves into a
//! new module.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasmtime::{Config, Engine, Instance, Linker, Module, OptLevel, Store, Val};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};

use crate::FactoryError;

/// Initialised once, at build time.
const INIT: &str = "init";

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
    config.cranelift_opt_level(OptLevel::None);
    let engine = Engine::new(&config).map_err(freezing)?;
    let compiled = Module::new(&engine, &instrumented).map_err(freezing)?;
    let mut store = Store::new(&engine, ());
    let instance = Linker::new(&engine)
        .instantiate(&mut store, &compiled)
        .map_err(freezing)?;
    let done = instance
        .get_typed_func::<(), ()>(&mut store, INIT)
        .and_then(|init| init.call(&mut store, ()));
    if let Err(error) = done {
        let told = told(&instance, &mut store).unwrap_or_default();
        return Err(freezing(error.context(told)));
    }
    ready(wizer.snapshot(&module, &mut Left { store, instance })).map_err(freezing)
}

/// What the guest left to say about its end; its `landmark` module has the layout.
fn told(instance: &Instance, store: &mut Store<()>) -> Option<String> {
    let landmark = instance
        .get_typed_func::<(), u32>(&mut *store, "landmark")
        .ok()?;
    let address = usize::try_from(landmark.call(&mut *store, ()).ok()?).ok()?;
    let memory = instance.get_memory(&mut *store, "memory")?.data(&*store);
    let length = memory.get(address + 8..)?.first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let text = memory.get(address + 12..)?.get(..length)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// The state that the initialisation left.
struct Left {
    store: Store<()>,
    instance: Instance,
}

impl InstanceState for Left {
    async fn global_get(&mut self, name: &str, _: ValType) -> SnapshotVal {
        let global = self.instance.get_global(&mut self.store, name);
        match global.map(|global| global.get(&mut self.store)) {
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
        match self.instance.get_memory(&mut self.store, name) {
            Some(memory) => contents(memory.data(&self.store)),
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
