//! The two realms that are compared, and the functions that both offer in addition to those of the
//! language.

use boa_engine::builtins::promise::PromiseState;
use boa_engine::object::builtins::JsArrayBuffer;
use boa_engine::property::PropertyDescriptor;
use boa_engine::{
    Context, JsArgs, JsNativeError, JsObject, JsResult, JsValue, NativeFunction, Source, js_string,
};
use guest_boa::Guest;
use sandbox_protocol::{GuestLimits, Start, StepState};

/// Maximum number of iterations of one loop, and of nested calls; then a script is stopped.
const ROUNDS_MAX: u64 = 200_000;
const CALLS_MAX: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealmKind {
    /// The realm of a script: the engine with replaced built-ins.
    Guest,
    /// The unmodified engine.
    Bare,
}

/// A realm in which no script has run yet.
pub struct Realm(Inner);

enum Inner {
    Guest(Box<Guest>),
    Bare(Box<Context>),
}

impl std::fmt::Debug for Realm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Realm").finish_non_exhaustive()
    }
}

impl Realm {
    /// # Errors
    /// Fails if the guest's globals cannot be created, which is a defect of the guest.
    pub fn new(which: RealmKind) -> Result<Self, String> {
        let inner = match which {
            RealmKind::Guest => Inner::Guest(Box::new(Guest::new()?)),
            RealmKind::Bare => Inner::Bare(Box::default()),
        };
        let mut realm = Self(inner);
        let context = realm.context();
        context.strict(false);
        let limits = context.runtime_limits_mut();
        limits.set_loop_iteration_limit(ROUNDS_MAX);
        limits.set_recursion_limit(CALLS_MAX);
        realm.offer("detach", NativeFunction::from_fn_ptr(detach));
        Ok(realm)
    }

    pub fn context(&mut self) -> &mut Context {
        match &mut self.0 {
            Inner::Guest(guest) => guest.context(),
            Inner::Bare(context) => context,
        }
    }

    /// Runs a script as the body of an async function, as in a run. Returns how the script ended:
    /// undefined, or an error's name and message.
    pub fn start(&mut self, script: &str) -> String {
        match &mut self.0 {
            Inner::Guest(guest) => match guest.start(start_of(script)).state {
                StepState::Done { .. } => "undefined".to_owned(),
                StepState::Failed(error) => format!("{}: {}", error.name, error.message),
                other => format!("{other:?}"),
            },
            Inner::Bare(context) => {
                let text = format!("(async () => {{ {{\n{script}\n}} }})()");
                let promise = context.eval(Source::from_bytes(&text));
                let ran = promise.and_then(|promise| context.run_jobs().map(|()| promise));
                match ran.map(|promise| promise.as_promise().map(|promise| promise.state())) {
                    Ok(Some(PromiseState::Rejected(reason))) => reason.display().to_string(),
                    Ok(_) => "undefined".to_owned(),
                    Err(error) => error.to_string(),
                }
            }
        }
    }

    /// Adds a native function to the globals, not enumerable.
    pub fn offer(&mut self, name: &str, function: NativeFunction) {
        let context = self.context();
        let global = context.global_object();
        let function = function.to_js_function(context.realm());
        hide(&global, name, JsObject::from(function).into());
    }

    /// Adds an object with native functions to the globals, not enumerable.
    pub fn offer_object(&mut self, name: &str, members: Vec<(&str, NativeFunction)>) {
        let context = self.context();
        let object = JsObject::with_object_proto(context.intrinsics());
        for (name, function) in members {
            let function = function.to_js_function(context.realm());
            hide(&object, name, JsObject::from(function).into());
        }
        let global = context.global_object();
        hide(&object, "global", global.clone().into());
        hide(&global, name, object.into());
    }
}

fn start_of(script: &str) -> Start {
    Start {
        script: script.to_owned(),
        script_name: "script.js".to_owned(),
        stubs: Vec::new(),
        input: Vec::new(),
        seed: 1,
        now_ms: 0,
        limits: GuestLimits {
            console_bytes_max: 1 << 16,
            console_flood_bytes_max: 1 << 20,
            args_bytes_max: 1 << 20,
            value_bytes_max: 1 << 20,
            json_depth_max: 256,
            recursion_max: CALLS_MAX as u32,
        },
    }
}

/// Detaches a buffer, which a script cannot do in this engine.
///
/// # Errors
/// Fails if there is no buffer, or if the buffer is already detached.
pub fn detach(_: &JsValue, args: &[JsValue], _: &mut Context) -> JsResult<JsValue> {
    let missing = || JsNativeError::typ().with_message("the value has no buffer");
    let buffer = args.get_or_undefined(0).as_object().ok_or_else(missing)?;
    JsArrayBuffer::from_object(buffer)?.detach(&JsValue::undefined())?;
    Ok(JsValue::null())
}

fn hide(object: &JsObject, name: &str, value: JsValue) {
    object.insert_property(
        js_string!(name),
        PropertyDescriptor::builder()
            .value(value)
            .writable(true)
            .enumerable(false)
            .configurable(true),
    );
}
