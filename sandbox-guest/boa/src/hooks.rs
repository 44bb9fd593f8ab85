//! What the engine asks its host: here, mostly, to refuse.

use std::cell::RefCell;
use std::rc::Rc;

use boa_engine::builtins::promise::{OperationType, Promise};
use boa_engine::context::HostHooks;
use boa_engine::module::{ModuleLoader, ModuleRequest, Referrer};
use boa_engine::realm::Realm;
use boa_engine::{Context, JsNativeError, JsObject, JsResult, JsString, Module};

use crate::module_value;
use crate::room;
use crate::run::Run;

/// Bytes of one `ArrayBuffer`. The guest's memory is bounded by the host anyway.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// Rejected promises that are remembered until somebody asks about them.
const UNHANDLED_MAX: usize = 1_000;

pub(crate) struct Hooks(pub(crate) Rc<Run>);

impl HostHooks for Hooks {
    fn ensure_can_compile_strings(
        &self,
        _realm: Realm,
        _parameters: &[JsString],
        _body: &JsString,
        _direct: bool,
        _context: &mut Context,
    ) -> JsResult<()> {
        Err(JsNativeError::eval()
            .with_message("a script cannot turn text into code; write the code itself")
            .into())
    }

    fn promise_rejection_tracker(
        &self,
        promise: &JsObject<Promise>,
        operation: OperationType,
        _context: &mut Context,
    ) {
        let promise = promise.clone().upcast();
        let mut unhandled = self.0.unhandled.borrow_mut();
        match operation {
            OperationType::Reject if unhandled.len() < UNHANDLED_MAX => unhandled.push(promise),
            OperationType::Reject => {}
            OperationType::Handle => {
                if let Some(at) = unhandled
                    .iter()
                    .rposition(|other| JsObject::equals(other, &promise))
                {
                    unhandled.swap_remove(at);
                }
            }
        }
    }

    fn local_timezone_offset_seconds(&self, _unix_time_seconds: i64) -> i32 {
        0
    }

    fn max_buffer_size(&self, _context: &mut Context) -> u64 {
        room::sweep_when_full();
        BUFFER_BYTES_MAX
    }
}

/// Finds no module, whatever it is asked for.
pub(crate) struct NoModules;

impl ModuleLoader for NoModules {
    async fn load_imported_module(
        self: Rc<Self>,
        _referrer: Referrer,
        _request: ModuleRequest,
        _context: &RefCell<&mut Context>,
    ) -> JsResult<Module> {
        Err(module_value::no_imports())
    }
}
