//! The engine's requests to its host. Most of them are refused.

use std::cell::RefCell;
use std::rc::Rc;

use boa_engine::builtins::promise::{OperationType, Promise};
use boa_engine::context::HostHooks;
use boa_engine::error::RuntimeLimitError;
use boa_engine::module::{ModuleLoader, ModuleRequest, Referrer};
use boa_engine::realm::Realm;
use boa_engine::{Context, JsError, JsNativeError, JsObject, JsResult, JsString, Module};

use crate::run::Run;
use crate::{depth, gc_budget, module_value, rope};

/// Maximum size of one `ArrayBuffer` in bytes. The host also limits the guest's memory.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// Maximum number of unhandled rejections that are remembered.
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

    fn too_many_calls(&self, _limit: RuntimeLimitError) -> JsError {
        self.0.was_too_deep.set(true);
        depth::error()
    }

    fn concat_strings(&self, left: &JsString, right: &JsString) -> JsString {
        if left.len() < rope::LENGTH_MIN {
            return JsString::concat(left.as_str(), right.as_str());
        }
        self.0.ropes.borrow_mut().append(left, right)
    }

    fn before_allocation(&self) {
        gc_budget::sweep_when_full();
    }

    fn max_buffer_size(&self, _context: &mut Context) -> u64 {
        gc_budget::sweep_when_full();
        BUFFER_BYTES_MAX
    }
}

/// A module loader that refuses every module.
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
