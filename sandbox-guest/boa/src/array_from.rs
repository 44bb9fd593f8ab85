//! `Array.from({ length: 1000 }, (_, i) => …)`, the usual way in which scripts create a list by
//! counting. The engine's own function defines every item of the new array as a separate property.

use boa_engine::object::JsObject;
use boa_engine::object::builtins::JsArray;
use boa_engine::property::PropertyKey;
use boa_engine::{Context, JsArgs, JsResult, JsSymbol, JsValue, js_string};

use crate::builtin;

/// Maximum length; the engine may refuse a longer array with its own error.
const LENGTH_MAX: f64 = (1_u32 << 24) as f64;

pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let arrays = context.intrinsics().constructors().array().constructor();
    builtin::replace(&arrays, js_string!("from"), from, context)?;
    Ok(())
}

fn from(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let Some(counted) = ArrayFrom::read(this, args, context) else {
        return original.call(this, args, context);
    };
    let this_inside = args.get_or_undefined(2);
    let mut made = Vec::new();
    for i in 0..counted.length {
        // The called function may have set this item of the source meanwhile.
        let item = counted.source.get(i, context)?;
        made.push(counted.make.call(this_inside, &[item, i.into()], context)?);
    }
    Ok(JsArray::from_iter(made, context).into())
}

struct ArrayFrom {
    source: JsObject,
    length: u32,
    make: JsObject,
}

impl ArrayFrom {
    /// Reads a plain object that has only a length, and a function. The script cannot observe this.
    fn read(this: &JsValue, args: &[JsValue], context: &Context) -> Option<Self> {
        let constructors = context.intrinsics().constructors();
        let this = this.as_object()?;
        let is_plain_array = this == constructors.array().constructor();
        let source = args.first()?.as_object().filter(JsObject::is_ordinary)?;
        let make = args.get(1)?.as_callable()?;
        let above = constructors.object().prototype();
        if !is_plain_array || source.prototype().as_ref() != Some(&above) || can_be_walked(&above) {
            return None;
        }
        let length = length_alone(&source)?;
        Some(Self {
            source,
            length,
            make,
        })
    }
}

fn can_be_walked(object: &JsObject) -> bool {
    let key = JsSymbol::iterator().into();
    object.borrow().properties().contains_key(&key)
}

/// Returns the length of an object that has no other property.
fn length_alone(object: &JsObject) -> Option<u32> {
    let object = object.borrow();
    let properties = object.properties();
    let key = PropertyKey::from(js_string!("length"));
    let others = properties.index_property_keys().next();
    if others.is_some() || object.shape().keys() != [key.clone()] {
        return None;
    }
    let length = properties.get(&key)?.value()?.as_number()?;
    let is_usual = (0.0..=LENGTH_MAX).contains(&length) && length.trunc() == length;
    is_usual.then_some(length as u32)
}

#[cfg(test)]
mod tests {
    use boa_engine::Source;

    use crate::Guest;

    fn check(script: &str, expected: &str) {
        let mut guest = Guest::new().unwrap();
        let told = format!(
            "(() => {{ try {{ return JSON.stringify((() => {{ {script} }})()) }} \
             catch (error) {{ return String(error) }} }})()"
        );
        let found = guest.context().eval(Source::from_bytes(&told)).unwrap();
        let found = found.as_string().map(|text| text.to_std_string_escaped());
        assert_eq!(found.as_deref(), Some(expected), "{script}");
    }

    #[test]
    fn counting_gives_what_each_call_answers() {
        check(
            "return Array.from({ length: 3 }, (_, i) => i * 2)",
            "[0,2,4]",
        );
        check(
            "return Array.from({ length: 2 }, (...all) => all)",
            "[[null,0],[null,1]]",
        );
        check(
            "return Array.from({ length: 1 }, function () { return this.a }, { a: 1 })",
            "[1]",
        );
        check("return Array.from({ length: 0 }, () => 1)", "[]");
        check("return Array.from({ length: -0 }, () => 1)", "[]");
        check(
            "const made = Array.from({ length: 2 }, () => 1); made.push(2); return [made.length, made]",
            "[3,[1,1,2]]",
        );
    }

    #[test]
    fn whatever_is_unusual_is_as_it_was() {
        check("return Array.from({ length: 2.5 }, (_, i) => i)", "[0,1]");
        check("return Array.from({ length: '2' }, (_, i) => i)", "[0,1]");
        check("return Array.from({ length: NaN }, (_, i) => i)", "[]");
        check(
            "return Array.from({ length: 2, 1: 'b' }, (item) => item)",
            "[null,\"b\"]",
        );
        check("return Array.from({ length: 2 })", "[null,null]");
        check(
            "return Array.from('ab', (item) => item + item)",
            "[\"aa\",\"bb\"]",
        );
        check(
            "return Array.from({ length: 1e12 }, () => 1)",
            "RangeError: invalid array length",
        );
        check(
            "const source = { length: 3 }; \
             return Array.from(source, (item, i) => { source[i + 1] = i; return item ?? 'none' })",
            "[\"none\",0,1]",
        );
        check(
            "Object.prototype[1] = 'above'; return Array.from({ length: 2 }, (item) => item ?? 0)",
            "[0,\"above\"]",
        );
        check(
            "Object.prototype[Symbol.iterator] = function* () { yield 7 }; \
             return Array.from({ length: 2 }, (item) => item)",
            "[7]",
        );
        check(
            "class Other extends Array {}; \
             return Other.from({ length: 1 }, () => 1) instanceof Other",
            "true",
        );
        check(
            "return Array.from({ length: 2 }, (_, i) => { if (i) throw 'at ' + i })",
            "at 1",
        );
    }
}
