//! Engine functions for which the Rust binding has no safe form. Apart from the exports, all
//! `unsafe` code of this guest is here.

#![expect(
    unsafe_code,
    reason = "the engine is C, and has no safe form of these functions"
)]

use std::ffi::{CString, c_int, c_void};
use std::mem::MaybeUninit;
use std::slice;

use guest_common::not_json;
use guest_common::text::beginning;
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::Constructor;
use rquickjs::{Ctx, Error, JsLifetime, Object, Promise, Result, Value, qjs};

use crate::stubs::Server;
use crate::tool_error::Origin;
use crate::{native, quiet};

/// Evaluates a script. The text may contain a zero byte, which the binding refuses.
pub(crate) fn eval<'js>(ctx: &Ctx<'js>, name: &str, text: String) -> Result<Value<'js>> {
    compiled(ctx, name, text, qjs::JS_EVAL_TYPE_GLOBAL)
}

/// Compiles a module without running it.
pub(crate) fn module<'js>(ctx: &Ctx<'js>, name: &str, text: String) -> Result<Value<'js>> {
    let kind = qjs::JS_EVAL_TYPE_MODULE | qjs::JS_EVAL_FLAG_COMPILE_ONLY;
    compiled(ctx, name, text, kind)
}

fn compiled<'js>(ctx: &Ctx<'js>, name: &str, text: String, kind: u32) -> Result<Value<'js>> {
    let name = CString::new(name)?;
    let mut text = text.into_bytes();
    let length = text.len();
    text.push(0);
    let flags = kind | qjs::JS_EVAL_FLAG_STRICT;
    // SAFETY: the text has this length and ends with a zero byte, and so does the name.
    let value = unsafe {
        qjs::JS_Eval(
            ctx.as_raw().as_ptr(),
            text.as_ptr().cast(),
            length as _,
            name.as_ptr(),
            flags as c_int,
        )
    };
    ours(ctx, value)
}

/// Runs a module; returns its exports and the promise of its evaluation.
pub(crate) fn run_module<'js>(module: &Value<'js>) -> Result<(Object<'js>, Promise<'js>)> {
    let ctx = module.ctx();
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the value is a module of this context; the evaluation takes one reference to it.
    let (evaluated, exports) = unsafe {
        let taken = qjs::JS_DupValue(raw, module.as_raw());
        let evaluated = ours(ctx, qjs::JS_EvalFunction(raw, taken))?;
        let definition = qjs::JS_VALUE_GET_PTR(module.as_raw()).cast();
        (
            evaluated,
            ours(ctx, qjs::JS_GetModuleNamespace(raw, definition))?,
        )
    };
    let exports = exports.into_object().ok_or(Error::Unknown)?;
    let evaluated = evaluated.into_promise().ok_or(Error::Unknown)?;
    Ok((exports, evaluated))
}

/// Takes ownership of the engine's result, if it is a value.
fn ours<'js>(ctx: &Ctx<'js>, answer: qjs::JSValue) -> Result<Value<'js>> {
    // SAFETY: the engine's result is a value of this context, and only this code frees it.
    unsafe {
        if qjs::JS_IsException(answer) {
            return Err(Error::Exception);
        }
        Ok(Value::from_raw(ctx.clone(), answer))
    }
}

/// An object's own property.
pub(crate) enum OwnProperty<'js> {
    Value(Value<'js>),
    /// An accessor: reading it would run a function.
    Accessor,
}

/// Returns an own property without running code of the script. For a proxy, which would run code,
/// returns `None`.
pub(crate) fn own<'js>(object: &Object<'js>, key: &Value<'js>) -> Option<OwnProperty<'js>> {
    if object.as_value().is_proxy() {
        return None;
    }
    let ctx = object.ctx();
    let raw = ctx.as_raw().as_ptr();
    let mut found = MaybeUninit::<qjs::JSPropertyDescriptor>::uninit();
    // SAFETY: object and key are alive. The descriptor is written if the answer is positive; each
    // of its values is then owned here, and its wrapper frees it.
    unsafe {
        let atom = qjs::JS_ValueToAtom(raw, key.as_raw());
        let answer = qjs::JS_GetOwnProperty(raw, found.as_mut_ptr(), object.as_raw(), atom);
        qjs::JS_FreeAtom(raw, atom);
        if answer < 0 {
            ctx.catch();
        }
        if answer <= 0 {
            return None;
        }
        let found = found.assume_init();
        let value = Value::from_raw(ctx.clone(), found.value);
        let getter = Value::from_raw(ctx.clone(), found.getter);
        let setter = Value::from_raw(ctx.clone(), found.setter);
        drop((getter, setter));
        let flags = u32::try_from(found.flags).unwrap_or(0);
        Some(if flags & qjs::JS_PROP_GETSET != 0 {
            OwnProperty::Accessor
        } else {
            OwnProperty::Value(value)
        })
    }
}

/// Returns the enumerable own keys, strings and symbols. For a proxy, whose traps would run,
/// returns none.
pub(crate) fn shown_keys<'js>(object: &Object<'js>) -> Vec<Value<'js>> {
    let ctx = object.ctx();
    let raw = ctx.as_raw().as_ptr();
    if object.as_value().is_proxy() {
        return Vec::new();
    }
    let (mut keys, mut count) = (std::ptr::null_mut(), 0);
    let all = qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_SYMBOL_MASK | qjs::JS_GPN_ENUM_ONLY;
    // SAFETY: keys and count are written if the answer is not negative; each key is read before all
    // of them are freed.
    unsafe {
        let answer = qjs::JS_GetOwnPropertyNames(
            raw,
            &raw mut keys,
            &raw mut count,
            object.as_raw(),
            all as i32,
        );
        if answer < 0 {
            ctx.catch();
            return Vec::new();
        }
        let found = if keys.is_null() {
            &[]
        } else {
            slice::from_raw_parts(keys, count as usize)
        };
        let value = |key: &qjs::JSPropertyEnum| {
            Value::from_raw(ctx.clone(), qjs::JS_AtomToValue(raw, key.atom))
        };
        let values = found.iter().map(value).collect();
        qjs::JS_FreePropertyEnum(raw, keys, count);
        values
    }
}

/// Returns the text of a string, number or BigInt; a lone surrogate becomes three bytes that are
/// not UTF-8.
pub(crate) fn text_bytes(primitive: &Value<'_>) -> Vec<u8> {
    let raw = primitive.ctx().as_raw().as_ptr();
    let mut length = 0;
    // SAFETY: the text is valid for `length` bytes until it is freed.
    unsafe {
        let text = qjs::JS_ToCStringLen(raw, &raw mut length, primitive.as_raw());
        if text.is_null() {
            primitive.ctx().catch();
            return Vec::new();
        }
        let bytes = slice::from_raw_parts(text.cast::<u8>(), length).to_vec();
        qjs::JS_FreeCString(raw, text);
        bytes
    }
}

/// Returns the description of a symbol, empty if it has none. The property `description` is not
/// used, because a script can replace it.
pub(crate) fn description(symbol: &Value<'_>) -> String {
    let ctx = symbol.ctx();
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the symbol is alive, and its atom is freed after it was read.
    let text = unsafe {
        let atom = qjs::JS_ValueToAtom(raw, symbol.as_raw());
        let text = ours(ctx, qjs::JS_AtomToString(raw, atom));
        qjs::JS_FreeAtom(raw, atom);
        text
    };
    let text = native::quietly(ctx, text);
    text.map_or(String::new(), |text| quiet::lossy(&text))
}

/// Returns the engine's class of a value; 0 for a value that is not an object.
pub(crate) fn class_of(value: &Value<'_>) -> u32 {
    // SAFETY: the value is alive, and the function accepts any value.
    unsafe { qjs::JS_GetClassID(value.as_raw()) }
}

pub(crate) fn is_typed_array(value: &Value<'_>) -> bool {
    // SAFETY: the value is alive, and the function accepts any value.
    unsafe { qjs::JS_GetTypedArrayType(value.as_raw()) >= 0 }
}

/// Turns the pending exception into one that no script can catch.
pub(crate) fn throw_uncatchable(ctx: &Ctx<'_>, error: &Value<'_>) {
    // SAFETY: the error is an object of this context.
    unsafe { qjs::JS_SetUncatchableError(ctx.as_raw().as_ptr(), error.as_raw()) };
}

pub(crate) fn freeze(object: &Object<'_>) {
    // SAFETY: the object is alive.
    let frozen = unsafe { qjs::JS_FreezeObject(object.ctx().as_raw().as_ptr(), object.as_raw()) };
    if frozen < 0 {
        object.ctx().catch();
    }
}

/// Why a JSON text could not be parsed; `engine/json.h` has the numbers.
#[derive(Debug)]
pub(crate) enum JsonReadError {
    /// Not JSON, or a text that only the engine can handle.
    Unsure,
    TooDeep,
    Thrown(Error),
}

// SAFETY: as declared in `engine/json.h`.
unsafe extern "C" {
    fn airlock_json(
        ctx: *mut qjs::JSContext,
        text: *const u8,
        length: usize,
        depth_max: u32,
        value: *mut qjs::JSValue,
    ) -> c_int;
    fn airlock_install(ctx: *mut qjs::JSContext) -> c_int;
    fn airlock_stop(ctx: *mut qjs::JSContext);
    fn airlock_release(ctx: *mut qjs::JSContext);
    fn airlock_write(
        ctx: *mut qjs::JSContext,
        value: qjs::JSValue,
        text: *mut c_void,
        bytes_max: usize,
        depth_max: u32,
        length: *mut usize,
    ) -> c_int;
}

/// Stops the script: no more of its code runs, even if the error that stops it is handled. A
/// promise's executor, for example, turns every error into a rejection and continues.
pub(crate) fn stop(ctx: &Ctx<'_>) {
    // SAFETY: the context is alive.
    unsafe { airlock_stop(ctx.as_raw().as_ptr()) }
}

/// Releases the objects that weak references kept until the end of the job.
pub(crate) fn release_kept(ctx: &Ctx<'_>) {
    // SAFETY: the context is alive.
    unsafe { airlock_release(ctx.as_raw().as_ptr()) }
}

/// Returns the value of a JSON text. The text is mutable so that a zero byte can be appended.
pub(crate) fn from_json<'js>(
    ctx: &Ctx<'js>,
    text: &mut Vec<u8>,
    depth_max: u32,
) -> std::result::Result<Value<'js>, JsonReadError> {
    let length = text.len();
    text.push(0);
    let mut value = MaybeUninit::uninit();
    // SAFETY: the text has this length and ends with a zero byte; the value is always written, and
    // is owned here if the result is 0.
    let answer = unsafe {
        airlock_json(
            ctx.as_raw().as_ptr(),
            text.as_ptr(),
            length,
            depth_max,
            value.as_mut_ptr(),
        )
    };
    text.truncate(length);
    match answer {
        // SAFETY: see above.
        0 => Ok(unsafe { Value::from_raw(ctx.clone(), value.assume_init()) }),
        1 => Err(JsonReadError::Unsure),
        2 => Err(JsonReadError::TooDeep),
        _ => Err(JsonReadError::Thrown(Error::Exception)),
    }
}

/// Returns the JSON text of a value that is entirely plain. Returns `None` if code of the script
/// would run, or if JSON cannot express the value.
pub(crate) fn plain_json(
    value: &Value<'_>,
    bytes_max: usize,
    depth_max: u32,
) -> Result<Option<Vec<u8>>> {
    let mut text: Vec<u8> = Vec::new();
    let mut length = 0;
    // SAFETY: the value is alive, and so is the text, whose memory only `airlock_room` changes;
    // this many bytes of it were written.
    unsafe {
        let raw = value.ctx().as_raw().as_ptr();
        let answer = airlock_write(
            raw,
            value.as_raw(),
            (&raw mut text).cast(),
            bytes_max,
            depth_max,
            &raw mut length,
        );
        match answer {
            0 => {
                text.set_len(length);
                Ok(Some(text))
            }
            1 => Ok(None),
            _ => Err(Error::Exception),
        }
    }
}

/// Makes room for `more` bytes in a text of which `used` bytes are written.
///
/// SAFETY: as declared in `engine/write.h`, which calls it with the text of [`plain_json`].
#[unsafe(no_mangle)]
unsafe extern "C" fn airlock_room(
    text: *mut c_void,
    written: usize,
    more: usize,
    end: *mut *mut u8,
) -> *mut u8 {
    // SAFETY: the text is alive, this many bytes of it were written, and nothing else refers to it.
    unsafe {
        let text = &mut *text.cast::<Vec<u8>>();
        text.set_len(written);
        text.reserve(more.max(ROOM_BYTES));
        let start = text.as_mut_ptr();
        *end = start.add(text.capacity());
        start
    }
}

/// Initial capacity of a text in bytes.
const ROOM_BYTES: usize = 256;

/// Writes the error message for a text, as far as there is room; nothing if the text is JSON.
///
/// SAFETY: as declared in `engine/json.h`, which calls it with a text and room of these lengths.
#[unsafe(no_mangle)]
unsafe extern "C" fn airlock_not_json(
    text: *const u8,
    length: usize,
    words: *mut u8,
    words_max: usize,
) -> usize {
    // SAFETY: see above; the copied text is in other memory.
    unsafe {
        let said = not_json::describe(slice::from_raw_parts(text, length)).unwrap_or_default();
        let said = beginning(&said, words_max as u64);
        words.copy_from_nonoverlapping(said.as_ptr(), said.len());
        said.len()
    }
}

/// Replaces `JSON.parse` with a function that uses the parser of [`from_json`].
pub(crate) fn install_json(ctx: &Ctx<'_>) -> Result<()> {
    // SAFETY: the context is alive.
    match unsafe { airlock_install(ctx.as_raw().as_ptr()) } {
        0.. => Ok(()),
        _ => Err(Error::Exception),
    }
}

/// Passes the bytes of an `ArrayBuffer` to `use_them`.
pub(crate) fn with_bytes<R>(
    buffer: &Value<'_>,
    use_them: impl FnOnce(&mut [u8]) -> R,
) -> Option<R> {
    let raw = buffer.ctx().as_raw().as_ptr();
    let mut length = 0;
    // SAFETY: the bytes are valid for `length` and not shared while no script runs, and `use_them`
    // cannot run one.
    unsafe {
        let bytes = qjs::JS_GetArrayBuffer(raw, &raw mut length, buffer.as_raw());
        if bytes.is_null() {
            buffer.ctx().catch();
            // An empty buffer has no address.
            return Some(use_them(&mut []));
        }
        Some(use_them(slice::from_raw_parts_mut(bytes, length as usize)))
    }
}

macro_rules! plain_class {
    ($class:ident) => {
        // SAFETY: it contains no value of the engine.
        unsafe impl<'js> JsLifetime<'js> for $class {
            type Changed<'to> = $class;
        }

        impl<'js> Trace<'js> for $class {
            fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
        }

        impl<'js> JsClass<'js> for $class {
            const NAME: &'static str = stringify!($class);
            type Mutable = Readable;

            fn constructor(_: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
                Ok(None)
            }
        }
    };
}

plain_class!(Server);
plain_class!(Origin);

#[cfg(test)]
mod tests;
