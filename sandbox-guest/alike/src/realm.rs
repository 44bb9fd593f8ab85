//! The two realms that are compared, and what both offer beside the language.

use boa_engine::builtins::promise::PromiseState;
use boa_engine::object::builtins::JsArrayBuffer;
use boa_engine::property::PropertyDescriptor;
use boa_engine::{
    Context, JsArgs, JsNativeError, JsObject, JsResult, JsValue, NativeFunction, Source, js_string,
};
use guest_boa::Guest;
use sandbox_protocol::{GuestLimits, Start, StepState};

/// Rounds of one loop, and calls in each other, after which a script is not worth waiting for.
const ROUNDS_MAX: u64 = 200_000;
const CALLS_MAX: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// What a script gets: the engine with built-ins of our own.
    Guest,
    /// The engine as it comes.
    Bare,
}

/// A realm that no script has run in yet.
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
    /// When the guest's surface cannot be built, which is a defect of the guest.
    pub fn new(which: Which) -> Result<Self, String> {
        let inner = match which {
            Which::Guest => Inner::Guest(Box::new(Guest::new()?)),
            Which::Bare => Inner::Bare(Box::default()),
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

    /// Runs a script in the form that scripts have: the body of an asynchronous function.
    /// Answers how it ended, which is undefined or an error's name and words.
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

    /// Puts a function of ours among the globals, where nothing that lists them sees it.
    pub fn offer(&mut self, name: &str, function: NativeFunction) {
        let context = self.context();
        let global = context.global_object();
        let function = function.to_js_function(context.realm());
        hide(&global, name, JsObject::from(function).into());
    }

    /// Puts an object among the globals, likewise.
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

/// Takes a buffer's memory away, which a script cannot do in this engine.
///
/// # Errors
/// When there is no buffer, or its memory is gone already.
pub fn detach(_: &JsValue, args: &[JsValue], _: &mut Context) -> JsResult<JsValue> {
    let missing = || JsNativeError::typ().with_message("no buffer");
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
