//! Functions and prototypes of the engine, saved before any script can change them, and the
//! engine's class numbers.

use rquickjs::function::{Constructor, This};
use rquickjs::{Ctx, Function, Object, Persistent, Result, Value};

use crate::raw;

/// Evaluated before any other code, in the order of the fields.
const FUNCTIONS: &str = "(() => {
  const getter = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name).get;
  return [
    getter(Error.prototype, 'stack'), Map.prototype.forEach, Set.prototype.forEach,
    Date.prototype.getTime, Date.prototype.toISOString, getter(RegExp.prototype, 'source'),
    getter(Object.getPrototypeOf(Uint8Array.prototype), 'length'),
    getter(Object.getPrototypeOf(Uint8Array.prototype), 'buffer'),
    getter(Object.getPrototypeOf(Uint8Array.prototype), 'byteOffset'),
    getter(Object.getPrototypeOf(Uint8Array.prototype), 'byteLength'),
    Array.isArray, Promise.resolve.bind(Promise),
    Number.prototype.valueOf, String.prototype.valueOf, Boolean.prototype.valueOf,
    BigInt.prototype.valueOf,
  ];
})()";

/// The getters of the regular expression flags, in the order of their letters.
const REGEX_FLAGS: &str = "['hasIndices', 'global', 'ignoreCase', 'multiline', 'dotAll', 'unicode',
  'unicodeSets', 'sticky'].map((name) => Object.getOwnPropertyDescriptor(RegExp.prototype, name).get)";
const FLAG_LETTERS: &str = "dgimsuvy";

const SAMPLES: &str = "[new Map(), new Set(), new Date(0), /x/, Object(1), Object(''),
  Object(true), Object(1n), new ArrayBuffer(0)]";

const ERRORS: &str = "[Error, TypeError, RangeError]";

type Fn = Persistent<Function<'static>>;
type New = Persistent<Constructor<'static>>;

/// The kinds of values that this guest treats specially.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Map,
    Set,
    Date,
    Regex,
    Number,
    Text,
    Truth,
    BigInt,
    Buffer,
    Other,
}

const KINDS: [Kind; 9] = [
    Kind::Map,
    Kind::Set,
    Kind::Date,
    Kind::Regex,
    Kind::Number,
    Kind::Text,
    Kind::Truth,
    Kind::BigInt,
    Kind::Buffer,
];

pub(crate) struct Intrinsics {
    error_stack: Fn,
    map_each: Fn,
    set_each: Fn,
    date_time: Fn,
    to_iso: Fn,
    regex_source: Fn,
    typed_length: Fn,
    typed_buffer: Fn,
    typed_offset: Fn,
    typed_bytes: Fn,
    is_array: Fn,
    promise_resolve: Fn,
    /// `valueOf` of numbers, strings, booleans and BigInts.
    values_of: [Fn; 4],
    regex_flags: Vec<Fn>,
    classes: Vec<u32>,
    error: New,
    type_error: New,
    range_error: New,
    tool_error_prototype: Persistent<Object<'static>>,
    /// The traps of every server's stub.
    traps: Persistent<Object<'static>>,
}

impl Intrinsics {
    pub(crate) fn gather<'js>(
        ctx: &Ctx<'js>,
        tool_error_prototype: Object<'js>,
        traps: Object<'js>,
    ) -> Result<Self> {
        let functions: Vec<Function<'js>> = ctx.eval(FUNCTIONS)?;
        let functions = functions.into_iter().map(|f| Persistent::save(ctx, f));
        let functions: Vec<Fn> = functions.collect();
        let [
            error_stack,
            map_each,
            set_each,
            date_time,
            to_iso,
            regex_source,
            typed_length,
            typed_buffer,
            typed_offset,
            typed_bytes,
            is_array,
            promise_resolve,
            number,
            text,
            truth,
            big_int,
        ] = <[Fn; 16]>::try_from(functions).map_err(|_| rquickjs::Error::Unknown)?;
        let flags: Vec<Function<'js>> = ctx.eval(REGEX_FLAGS)?;
        let samples: Vec<Value<'js>> = ctx.eval(SAMPLES)?;
        let errors: Vec<Constructor<'js>> = ctx.eval(ERRORS)?;
        let errors = errors.into_iter().map(|error| Persistent::save(ctx, error));
        let [error, type_error, range_error] = <[New; 3]>::try_from(errors.collect::<Vec<_>>())
            .map_err(|_| rquickjs::Error::Unknown)?;
        Ok(Self {
            error_stack,
            map_each,
            set_each,
            date_time,
            to_iso,
            regex_source,
            typed_length,
            typed_buffer,
            typed_offset,
            typed_bytes,
            is_array,
            promise_resolve,
            values_of: [number, text, truth, big_int],
            regex_flags: flags
                .into_iter()
                .map(|getter| Persistent::save(ctx, getter))
                .collect(),
            classes: samples.iter().map(raw::class_of).collect(),
            error,
            type_error,
            range_error,
            tool_error_prototype: Persistent::save(ctx, tool_error_prototype),
            traps: Persistent::save(ctx, traps),
        })
    }

    pub(crate) fn with_tool_errors<'js>(self, ctx: &Ctx<'js>, prototype: Object<'js>) -> Self {
        Self {
            tool_error_prototype: Persistent::save(ctx, prototype),
            ..self
        }
    }

    pub(crate) fn kind(&self, value: &Value<'_>) -> Kind {
        let class = raw::class_of(value);
        let at = self.classes.iter().position(|&other| other == class);
        at.and_then(|at| KINDS.get(at).copied())
            .filter(|_| class != 0)
            .unwrap_or(Kind::Other)
    }

    pub(crate) fn error<'js>(&self, ctx: &Ctx<'js>) -> Result<Constructor<'js>> {
        self.error.clone().restore(ctx)
    }

    pub(crate) fn type_error<'js>(&self, ctx: &Ctx<'js>) -> Result<Constructor<'js>> {
        self.type_error.clone().restore(ctx)
    }

    pub(crate) fn range_error<'js>(&self, ctx: &Ctx<'js>) -> Result<Constructor<'js>> {
        self.range_error.clone().restore(ctx)
    }

    pub(crate) fn tool_error_prototype<'js>(&self, ctx: &Ctx<'js>) -> Result<Object<'js>> {
        self.tool_error_prototype.clone().restore(ctx)
    }

    pub(crate) fn traps<'js>(&self, ctx: &Ctx<'js>) -> Result<Object<'js>> {
        self.traps.clone().restore(ctx)
    }

    /// Returns the engine's own stack text of an error; `undefined` for any other object.
    pub(crate) fn error_stack<'js>(&self, error: &Value<'js>) -> Result<Value<'js>> {
        on(&self.error_stack, error)
    }

    /// Returns the ISO text of a date; `None` if the date is invalid.
    pub(crate) fn to_iso<'js>(&self, date: &Value<'js>) -> Result<Option<Value<'js>>> {
        match on(&self.date_time, date)?.as_number() {
            Some(time) if !time.is_nan() => on(&self.to_iso, date).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns `/source/flags`.
    pub(crate) fn regex_text(&self, regex: &Value<'_>) -> Result<String> {
        let source = on(&self.regex_source, regex)?;
        let mut text = format!("/{}/", crate::quiet::lossy(&source));
        for (letter, getter) in FLAG_LETTERS.chars().zip(&self.regex_flags) {
            if on(getter, regex)?.as_bool() == Some(true) {
                text.push(letter);
            }
        }
        Ok(text)
    }

    pub(crate) fn typed_length(&self, array: &Value<'_>) -> Result<usize> {
        Ok(on(&self.typed_length, array)?.as_number().unwrap_or(0.0) as usize)
    }

    /// Returns the buffer of a typed array, its offset, and its length in bytes.
    pub(crate) fn typed_view<'js>(&self, array: &Value<'js>) -> Result<(Value<'js>, usize, usize)> {
        let number = |value: Value<'_>| value.as_number().unwrap_or(0.0) as usize;
        Ok((
            on(&self.typed_buffer, array)?,
            number(on(&self.typed_offset, array)?),
            number(on(&self.typed_bytes, array)?),
        ))
    }

    /// Whether a value is an array or a proxy of one.
    pub(crate) fn is_array(&self, value: &Value<'_>) -> Result<bool> {
        let is_array = self.is_array.clone().restore(value.ctx())?;
        is_array.call((value.clone(),))
    }

    pub(crate) fn promise_resolve<'js>(&self, value: Value<'js>) -> Result<Value<'js>> {
        let resolve = self.promise_resolve.clone().restore(value.ctx())?;
        resolve.call((value,))
    }

    /// Returns the primitive value in an object of [`Kind::Number`] or a similar kind.
    pub(crate) fn unboxed<'js>(
        &self,
        value: &Value<'js>,
        kind: Kind,
    ) -> Result<Option<Value<'js>>> {
        let [number, text, truth, big_int] = &self.values_of;
        let value_of = match kind {
            Kind::Number => number,
            Kind::Text => text,
            Kind::Truth => truth,
            Kind::BigInt => big_int,
            _ => return Ok(None),
        };
        on(value_of, value).map(Some)
    }

    /// Returns the keys and values of a map, in their order.
    pub(crate) fn entries<'js>(&self, map: &Value<'js>) -> Result<Vec<(Value<'js>, Value<'js>)>> {
        each(&self.map_each, map)
    }

    pub(crate) fn items<'js>(&self, set: &Value<'js>) -> Result<Vec<Value<'js>>> {
        let items = each(&self.set_each, set)?;
        Ok(items.into_iter().map(|(item, _)| item).collect())
    }
}

fn on<'js>(function: &Fn, this: &Value<'js>) -> Result<Value<'js>> {
    let function = function.clone().restore(this.ctx())?;
    function.call((This(this.clone()),))
}

fn each<'js>(for_each: &Fn, of: &Value<'js>) -> Result<Vec<(Value<'js>, Value<'js>)>> {
    use std::cell::RefCell;
    use std::rc::Rc;
    let ctx = of.ctx();
    let found = Rc::new(RefCell::new(Vec::new()));
    let keep = Rc::clone(&found);
    let callback = Function::new(ctx.clone(), move |value: Value<'js>, key: Value<'js>| {
        keep.borrow_mut().push((key, value));
    })?;
    let for_each = for_each.clone().restore(ctx)?;
    let _: Value<'js> = for_each.call((This(of.clone()), callback))?;
    Ok(found.take())
}
