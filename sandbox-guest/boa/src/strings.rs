//! `split`, `indexOf`, `lastIndexOf`, `includes`, `replace` and `replaceAll` with strings. The
//! engine's own functions start a new search for every occurrence. Calls with other arguments are
//! passed to the engine. Also the functions that create a text of a given length, which may exceed
//! the maximum.

use boa_engine::object::JsObject;
use boa_engine::object::builtins::JsArray;
use boa_engine::{Context, JsArgs, JsError, JsNativeError, JsResult, JsString, JsValue, js_string};

use crate::builtin::{self, Native};
use crate::search::{self, Search};
use crate::substring::part;
use crate::template::{BuiltText, Template};

pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let strings = builtin::prototype_of("String", context)?;
    let functions: [(&str, Native); 9] = [
        ("split", split),
        ("indexOf", index_of),
        ("lastIndexOf", last_index_of),
        ("includes", includes),
        ("replace", replace_first),
        ("replaceAll", replace_all),
        ("repeat", repeat),
        ("padStart", pad),
        ("padEnd", pad),
    ];
    for (name, native) in functions {
        builtin::replace(&strings, js_string!(name), native, context)?;
    }
    Ok(())
}

fn split(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let separator = args.get_or_undefined(0).as_string();
    let (Some(text), Some(separator)) = (this.as_string(), separator) else {
        return original.call(this, args, context);
    };
    match builtin::limit(args, context)? {
        Some(limit) if !separator.is_empty() && !text.is_empty() => {
            let parts = parts(&text, &separator, limit);
            Ok(JsArray::from_iter(parts, context).into())
        }
        _ => original.call(this, args, context),
    }
}

fn parts(text: &JsString, separator: &JsString, limit: usize) -> Vec<JsValue> {
    let search = Search::new(text.as_str(), separator.as_str());
    let mut parts = Vec::new();
    let mut from = 0;
    while parts.len() < limit {
        let Some(at) = search.next(from) else {
            parts.push(part(text, from, text.len()).into());
            break;
        };
        parts.push(part(text, from, at).into());
        from = at + separator.len();
    }
    parts
}

fn index_of(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    Ok(match place(this, args) {
        Some(place) => place.map_or(JsValue::from(-1), JsValue::from),
        None => original.call(this, args, context)?,
    })
}

fn last_index_of(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let sought = args.get_or_undefined(0).as_string();
    let position = args.get_or_undefined(1);
    let from = match position.as_number() {
        // The conversion saturates; a non-number means the end.
        Some(number) if !number.is_nan() => Some(number as usize),
        Some(_) => Some(usize::MAX),
        None => position.is_undefined().then_some(usize::MAX),
    };
    let (Some(text), Some(sought), Some(from)) = (this.as_string(), sought, from) else {
        return original.call(this, args, context);
    };
    let place = search::last(text.as_str(), sought.as_str(), from);
    Ok(place.map_or(JsValue::from(-1), JsValue::from))
}

fn includes(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    Ok(match place(this, args) {
        Some(place) => place.is_some().into(),
        None => original.call(this, args, context)?,
    })
}

/// Returns where the first argument occurs at or after the second; `None` for unusual arguments.
fn place(this: &JsValue, args: &[JsValue]) -> Option<Option<usize>> {
    let text = this.as_string()?;
    let sought = args.get_or_undefined(0).as_string()?;
    let position = args.get_or_undefined(1);
    let from = match position.as_number() {
        // The conversion saturates; a non-number becomes 0.
        Some(position) => (position as usize).min(text.len()),
        None if position.is_undefined() => 0,
        None => return None,
    };
    Some(Search::new(text.as_str(), sought.as_str()).next(from))
}

fn replace_first(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    match ReplaceCall::of(this, args) {
        Some(replacing) => {
            let place = replacing.search().next(0);
            replacing.at(place, context)
        }
        None => original.call(this, args, context),
    }
}

fn replace_all(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let Some(replacing) = ReplaceCall::of(this, args) else {
        return original.call(this, args, context);
    };
    let search = replacing.search();
    let step = replacing.sought.len().max(1);
    let places = std::iter::successors(search.next(0), |place| search.next(place + step));
    replacing.at(places, context)
}

/// Maximum length of a created text. A longer text is refused before memory is requested; the
/// engine would end the run.
const CHARACTERS_MAX: f64 = ((1 << 30) - 1) as f64;

fn too_long() -> JsError {
    JsNativeError::range()
        .with_message(format!("a text has at most {CHARACTERS_MAX} characters"))
        .into()
}

fn repeat(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let times = args.get_or_undefined(0).as_number();
    let length = this.as_string().map(|text| text.len() as f64);
    if let (Some(times), Some(length)) = (times, length)
        && times.is_finite()
        && times.trunc() * length > CHARACTERS_MAX
    {
        return Err(too_long());
    }
    original.call(this, args, context)
}

/// Implements `padStart` and `padEnd`.
fn pad(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let length = args.get_or_undefined(0).as_number();
    let filler = args.get_or_undefined(1);
    let fills = match filler.as_string() {
        Some(filler) => !filler.is_empty(),
        None => filler.is_undefined(),
    };
    if this.is_string() && fills && length.is_some_and(|length| length > CHARACTERS_MAX) {
        return Err(too_long());
    }
    original.call(this, args, context)
}

/// A string to find in another, and its replacement.
struct ReplaceCall {
    text: JsString,
    sought: JsString,
    by: Replacement,
}

enum Replacement {
    Text(JsString),
    Function(JsObject),
}

impl ReplaceCall {
    fn of(this: &JsValue, args: &[JsValue]) -> Option<Self> {
        let by = args.get_or_undefined(1);
        Some(Self {
            text: this.as_string()?,
            sought: args.get_or_undefined(0).as_string()?,
            by: match by.as_string() {
                Some(by) => Replacement::Text(by),
                None => Replacement::Function(by.as_callable()?),
            },
        })
    }

    fn search(&self) -> Search<'_> {
        Search::new(self.text.as_str(), self.sought.as_str())
    }

    fn at(
        &self,
        places: impl IntoIterator<Item = usize>,
        context: &mut Context,
    ) -> JsResult<JsValue> {
        let text = self.text.as_str();
        match &self.by {
            Replacement::Text(by) => {
                let template = Template::new(by);
                let whole = |place| (place, place + self.sought.len());
                let mut made = BuiltText::new(text);
                for (start, end) in places.into_iter().map(whole) {
                    template.fill(&mut made, (start, end), &[]);
                }
                Ok(made.finish().into())
            }
            Replacement::Function(function) => {
                let places: Vec<usize> = places.into_iter().collect();
                let by = places
                    .iter()
                    .map(|place| self.ask(function, *place, context))
                    .collect::<JsResult<Vec<JsString>>>()?;
                let mut made = BuiltText::new(text);
                for (place, by) in places.into_iter().zip(&by) {
                    made.put(place, by.as_str(), place + self.sought.len());
                }
                Ok(made.finish().into())
            }
        }
    }

    fn ask(&self, function: &JsObject, place: usize, context: &mut Context) -> JsResult<JsString> {
        let args = [
            self.sought.clone().into(),
            place.into(),
            self.text.clone().into(),
        ];
        function
            .call(&JsValue::undefined(), &args, context)?
            .to_string(context)
    }
}
