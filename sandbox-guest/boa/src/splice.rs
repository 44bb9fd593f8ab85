//! `unshift` and `splice`. The engine's own functions move the later items one by one, each as an
//! observable property. If a script cannot observe the steps, the items are moved all at once.

mod turn;

use boa_engine::object::builtins::JsArray;
use boa_engine::object::{IndexPropertyValues, JsObject};
use boa_engine::property::PropertyKey;
use boa_engine::{Context, JsArgs, JsResult, JsSymbol, JsValue, js_string};

use crate::builtin::{self, Native};
use crate::intrinsics::Intrinsics;

pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let arrays = builtin::prototype_of("Array", context)?;
    let functions: [(&str, Native); 2] = [("unshift", unshift), ("splice", splice)];
    for (name, native) in functions {
        builtin::replace(&arrays, js_string!(name), native, context)?;
    }
    Ok(())
}

fn unshift(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    match PlainArray::read(this, context)? {
        Some(list) if !args.is_empty() => {
            list.insert(0, args, context)?;
            Ok((list.length + args.len()).into())
        }
        _ => original.call(this, args, context),
    }
}

fn splice(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let list = PlainArray::read(this, context)?;
    let list = list.filter(|list| list.has_usual_class(context));
    let cut = list.and_then(|list| Some((Cut::read(args, list.length)?, list)));
    let Some((cut, list)) = cut else {
        return original.call(this, args, context);
    };
    let items = args.get(2..).unwrap_or_default();
    let removed = list.exchange(&cut, items, context)?;
    Ok(JsArray::from_iter(removed, context).into())
}

/// The items that `splice` removes: a number of items from a position on.
struct Cut {
    from: usize,
    count: usize,
}

impl Cut {
    /// Reads the arguments. Returns `None` if code of the script would have to convert an argument
    /// to a number.
    fn read(args: &[JsValue], length: usize) -> Option<Self> {
        let whole = |at: usize| {
            let value = args.get_or_undefined(at);
            match value.as_number() {
                Some(number) if number.is_nan() => Some(0.0),
                Some(number) => Some(number.trunc()),
                None => value.is_undefined().then_some(0.0),
            }
        };
        let end = length as f64;
        let from = whole(0)?;
        let from = if from < 0.0 {
            (end + from).max(0.0)
        } else {
            from.min(end)
        };
        let count = match args.len() {
            0 => 0.0,
            1 => end - from,
            _ => whole(1)?.clamp(0.0, end - from),
        };
        Some(Self {
            from: from as usize,
            count: count as usize,
        })
    }
}

/// An array whose items are plain data without holes, and whose length can change unobserved.
struct PlainArray {
    array: JsArray,
    object: JsObject,
    length: usize,
}

impl PlainArray {
    fn read(this: &JsValue, context: &mut Context) -> JsResult<Option<Self>> {
        let Some(object) = this.as_object().filter(JsObject::is_array) else {
            return Ok(None);
        };
        let Some(length) = dense_length(&object) else {
            return Ok(None);
        };
        if !object.is_extensible(context)? || !is_nothing_above(&object) {
            return Ok(None);
        }
        let array = JsArray::from_object(object.clone())?;
        Ok(Some(Self {
            array,
            object,
            length,
        }))
    }

    /// Whether an array derived from this one is an ordinary array.
    fn has_usual_class(&self, context: &Context) -> bool {
        let class = PropertyKey::from(js_string!("constructor"));
        let constructors = context.intrinsics().constructors().array();
        let (arrays, constructor) = (constructors.prototype(), constructors.constructor());
        let own = |object: &JsObject, key: &PropertyKey| object.borrow().properties().get(key);
        let made_by = own(&arrays, &class).and_then(|it| it.value().cloned());
        let species = own(&constructor, &JsSymbol::species().into());
        let species = species.and_then(|it| it.get().and_then(JsValue::as_object));
        let usual = Intrinsics::of(context).map(|kept| kept.array_species.clone());
        self.object.prototype().as_ref() == Some(&arrays)
            && own(&self.object, &class).is_none()
            && made_by.and_then(|class| class.as_object()).as_ref() == Some(&constructor)
            && species == usual.ok()
    }

    fn exchange(
        &self,
        cut: &Cut,
        items: &[JsValue],
        context: &mut Context,
    ) -> JsResult<Vec<JsValue>> {
        let mut removed = Vec::with_capacity(cut.count);
        let in_place = cut.count.min(items.len());
        let (by, more) = items.split_at(in_place);
        for (at, by) in (cut.from..).zip(by) {
            removed.push(self.object.get(at, context)?);
            self.object.set(at, by.clone(), true, context)?;
        }
        let (from, count) = (cut.from + in_place, cut.count - in_place);
        self.remove(from, count, &mut removed, context)?;
        self.insert(from, more, context)?;
        Ok(removed)
    }

    /// Removes items: moves them to the end and cuts them off.
    fn remove(
        &self,
        from: usize,
        count: usize,
        removed: &mut Vec<JsValue>,
        context: &mut Context,
    ) -> JsResult<()> {
        if count == 0 {
            return Ok(());
        }
        turn::left(&self.object, from, count);
        let before = removed.len();
        for _ in 0..count {
            removed.push(self.array.pop(context)?);
        }
        if let Some(these) = removed.get_mut(before..) {
            these.reverse();
        }
        Ok(())
    }

    /// Inserts items: appends them, and moves them into place.
    fn insert(&self, at: usize, items: &[JsValue], context: &mut Context) -> JsResult<()> {
        if items.is_empty() {
            return Ok(());
        }
        self.array.push_items(items, context)?;
        turn::right(&self.object, at, items.len());
        Ok(())
    }
}

/// Returns the length of an array if all its items are own data properties and its length is
/// writable.
fn dense_length(object: &JsObject) -> Option<usize> {
    let object = object.borrow();
    let properties = object.properties();
    let count = match properties.index_property_values() {
        IndexPropertyValues::DenseI32(items) => items.len(),
        IndexPropertyValues::DenseF64(items) => items.len(),
        IndexPropertyValues::DenseElement(items) => items.len(),
        _ => return None,
    };
    let length = properties.get(&js_string!("length").into())?;
    let is_all = length.value()?.as_number()? == count as f64;
    (is_all && length.writable() == Some(true)).then_some(count)
}

/// Whether no prototype of an object has items, so that a new item is simply added.
fn is_nothing_above(object: &JsObject) -> bool {
    let mut above = object.prototype();
    while let Some(object) = above {
        let has_items = object.borrow().properties().index_property_keys().next();
        if has_items.is_some() || !(object.is_ordinary() || object.is_array()) {
            return false;
        }
        above = object.prototype();
    }
    true
}

#[cfg(test)]
mod tests {
    use boa_engine::Source;

    use crate::Guest;

    /// The first value of each row is the result of the engine's own functions, which would take
    /// far too long.
    #[test]
    fn long_lists_are_made_and_eaten_at_either_end() {
        let script = "
            const n = 20000, a = [], b = [];
            for (let i = 0; i < n; i++) { a.unshift(i); b.unshift('t' + i, i) }
            const made = a.every((v, i) => v === n - 1 - i) && b.every((v, i) => v === (i % 2 ? n - 1 - (i >> 1) : 't' + (n - 1 - (i >> 1))));
            let sum = 0;
            while (a.length > 0) sum += a.splice(0, 1)[0];
            while (b.length > 1) if (b.splice(1, 1)[0] === undefined) sum += 1;
            String([made, sum, a.length, b])";
        let mut guest = Guest::new().unwrap();
        let found = guest.context().eval(Source::from_bytes(script)).unwrap();
        let found = found.as_string().map(|text| text.to_std_string_escaped());
        assert_eq!(found.as_deref(), Some("true,199990000,0,t19999"));
    }
}
