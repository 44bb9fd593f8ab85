//! What the engine can do and its Rust binding does not offer in a safe form.
//! With the exports, this is all the `unsafe` of this guest.

#![expect(
    unsafe_code,
    reason = "the engine is C, and these of its functions are called as they are"
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

/// What the engine makes of a text that is a script. The text may hold a zero, which the binding
/// refuses.
pub(crate) fn eval<'js>(ctx: &Ctx<'js>, name: &str, text: String) -> Result<Value<'js>> {
    compiled(ctx, name, text, qjs::JS_EVAL_TYPE_GLOBAL)
}

/// A text that is a module, which does not run yet.
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
    // SAFETY: the text is that long and ends with a zero, and the name does too.
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

/// Runs a module: what it exports, and the promise of its end.
pub(crate) fn run_module<'js>(module: &Value<'js>) -> Result<(Object<'js>, Promise<'js>)> {
    let ctx = module.ctx();
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the value is a module of this context, of which the evaluation takes one reference.
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

/// What the engine answered, when it is a value; the caller's from here on.
fn ours<'js>(ctx: &Ctx<'js>, answer: qjs::JSValue) -> Result<Value<'js>> {
    // SAFETY: an answer of the engine is a value of this context, which is freed here alone.
    unsafe {
        if qjs::JS_IsException(answer) {
            return Err(Error::Exception);
        }
        Ok(Value::from_raw(ctx.clone(), answer))
    }
}

/// A property that an object has itself.
pub(crate) enum Own<'js> {
    Value(Value<'js>),
    /// Reading it would run a function.
    Accessor,
}

/// An own property, without a line of the script running for it; of a proxy, which would run
/// one, there is none.
pub(crate) fn own<'js>(object: &Object<'js>, key: &Value<'js>) -> Option<Own<'js>> {
    if object.as_value().is_proxy() {
        return None;
    }
    let ctx = object.ctx();
    let raw = ctx.as_raw().as_ptr();
    let mut found = MaybeUninit::<qjs::JSPropertyDescriptor>::uninit();
    // SAFETY: object and key are alive; the descriptor is written when the answer is positive,
    // and then each of its values is ours to free, which wrapping them does.
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
            Own::Accessor
        } else {
            Own::Value(value)
        })
    }
}

/// The enumerable own keys, texts and symbols; of a proxy, which would be asked, there are none.
pub(crate) fn shown_keys<'js>(object: &Object<'js>) -> Vec<Value<'js>> {
    let ctx = object.ctx();
    let raw = ctx.as_raw().as_ptr();
    if object.as_value().is_proxy() {
        return Vec::new();
    }
    let (mut keys, mut count) = (std::ptr::null_mut(), 0);
    let all = qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_SYMBOL_MASK | qjs::JS_GPN_ENUM_ONLY;
    // SAFETY: keys and count are written when the answer is not negative; each key is read
    // before all of them are freed.
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

/// The text of a string, number or BigInt; half a surrogate pair is three bytes that are no UTF-8.
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

/// The description of a symbol, empty where it has none. The member of that name is one that a
/// script can replace.
pub(crate) fn description(symbol: &Value<'_>) -> String {
    let ctx = symbol.ctx();
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the symbol is alive, and its atom is freed once it was read.
    let text = unsafe {
        let atom = qjs::JS_ValueToAtom(raw, symbol.as_raw());
        let text = ours(ctx, qjs::JS_AtomToString(raw, atom));
        qjs::JS_FreeAtom(raw, atom);
        text
    };
    let text = native::quietly(ctx, text);
    text.map_or(String::new(), |text| quiet::lossy(&text))
}

/// Which of the engine's classes a value is of; 0 for what is no object.
pub(crate) fn class_of(value: &Value<'_>) -> u32 {
    // SAFETY: the value is alive, and anything may be asked about.
    unsafe { qjs::JS_GetClassID(value.as_raw()) }
}

pub(crate) fn is_typed_array(value: &Value<'_>) -> bool {
    // SAFETY: the value is alive, and anything may be asked about.
    unsafe { qjs::JS_GetTypedArrayType(value.as_raw()) >= 0 }
}

/// Makes the pending exception one that no script can catch.
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

/// Why there is no value of a JSON text; `engine/json.h` has the numbers.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Not JSON, or something of which the engine is to be asked.
    Unsure,
    TooDeep,
    Thrown(Error),
}

// SAFETY: as they stand in `engine/json.h`.
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

/// From here on no line of the script runs, whatever becomes of the error that stops it: a
/// promise's executor, for one, turns every error into a rejection and goes on behind it.
pub(crate) fn stop(ctx: &Ctx<'_>) {
    // SAFETY: the context is alive.
    unsafe { airlock_stop(ctx.as_raw().as_ptr()) }
}

/// Lets go of what weak references kept for a job that has ended.
pub(crate) fn release_kept(ctx: &Ctx<'_>) {
    // SAFETY: the context is alive.
    unsafe { airlock_release(ctx.as_raw().as_ptr()) }
}

/// The value of a JSON text. The text is given along to have a zero put behind it.
pub(crate) fn from_json<'js>(
    ctx: &Ctx<'js>,
    text: &mut Vec<u8>,
    depth_max: u32,
) -> std::result::Result<Value<'js>, Unread> {
    let length = text.len();
    text.push(0);
    let mut value = MaybeUninit::uninit();
    // SAFETY: the text is that long and ends with a zero; the value is written in any case, and
    // is ours where the answer is 0.
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
        1 => Err(Unread::Unsure),
        2 => Err(Unread::TooDeep),
        _ => Err(Unread::Thrown(Error::Exception)),
    }
}

/// The JSON text of a value, when it is plain all through; nothing where the script would have to
/// be asked, or where it cannot be said.
pub(crate) fn plain_json(
    value: &Value<'_>,
    bytes_max: usize,
    depth_max: u32,
) -> Result<Option<Vec<u8>>> {
    let mut text: Vec<u8> = Vec::new();
    let mut length = 0;
    // SAFETY: the value is alive, and so is the text, which is asked for room by `airlock_room`
    // alone; that much of it was written.
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

/// Room for some more bytes of a text of which so many are written.
///
/// SAFETY: as it stands in `engine/write.h`, which calls it with the text of [`plain_json`].
#[unsafe(no_mangle)]
unsafe extern "C" fn airlock_room(
    text: *mut c_void,
    written: usize,
    more: usize,
    end: *mut *mut u8,
) -> *mut u8 {
    // SAFETY: the text is alive, that much of it was written, and nobody else has it.
    unsafe {
        let text = &mut *text.cast::<Vec<u8>>();
        text.set_len(written);
        text.reserve(more.max(ROOM_BYTES));
        let start = text.as_mut_ptr();
        *end = start.add(text.capacity());
        start
    }
}

/// What a text has at first.
const ROOM_BYTES: usize = 256;

/// What is wrong with a text, as far as there is room for it; nothing when it is JSON.
///
/// SAFETY: as it stands in `engine/json.h`, which calls it with a text and room of these lengths.
#[unsafe(no_mangle)]
unsafe extern "C" fn airlock_not_json(
    text: *const u8,
    length: usize,
    words: *mut u8,
    words_max: usize,
) -> usize {
    // SAFETY: see above; what is written comes from elsewhere.
    unsafe {
        let said = not_json::describe(slice::from_raw_parts(text, length)).unwrap_or_default();
        let said = beginning(&said, words_max as u64);
        words.copy_from_nonoverlapping(said.as_ptr(), said.len());
        said.len()
    }
}

/// Makes `JSON.parse` read as [`from_json`] does.
pub(crate) fn install_json(ctx: &Ctx<'_>) -> Result<()> {
    // SAFETY: the context is alive.
    match unsafe { airlock_install(ctx.as_raw().as_ptr()) } {
        0.. => Ok(()),
        _ => Err(Error::Exception),
    }
}

/// The bytes of an `ArrayBuffer`, for as long as `use_them` takes.
pub(crate) fn with_bytes<R>(
    buffer: &Value<'_>,
    use_them: impl FnOnce(&mut [u8]) -> R,
) -> Option<R> {
    let raw = buffer.ctx().as_raw().as_ptr();
    let mut length = 0;
    // SAFETY: the bytes are valid for `length` and nobody else's while no script runs, which
    // `use_them` has no way to bring about.
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
        // SAFETY: it holds no value of the engine.
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
