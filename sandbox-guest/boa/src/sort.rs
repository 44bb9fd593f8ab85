//! `sort` and `toSorted`. The engine uses Rust's own sort, which may panic if a script's comparison
//! contradicts itself. This is a merge sort: any comparison results give some order, and an
//! exception ends the sort.

mod plain;

use std::cmp::Ordering;

use boa_engine::object::builtins::{JsArray, JsTypedArray};
use boa_engine::object::{IndexPropertyValues, JsObject};
use boa_engine::property::PropertyDescriptor;
use boa_engine::string::{JsStr, JsStrVariant};
use boa_engine::{Context, JsArgs, JsNativeError, JsResult, JsString, JsValue, js_string};

use crate::builtin::{self, Native};
use plain::Numbers;

/// Maximum length of an array in the language.
const ARRAY_LENGTH_MAX: u64 = u32::MAX as u64;

/// Replaces the engine's functions, which can then only be called from here.
pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let arrays = builtin::prototype_of("Array", context)?;
    let bytes = builtin::prototype_of("Uint8Array", context)?;
    let typed = bytes
        .prototype()
        .ok_or_else(|| JsNativeError::typ().with_message("typed arrays share no prototype"))?;
    let functions: [(&JsObject, &str, Native); 4] = [
        (&arrays, "sort", sort),
        (&arrays, "toSorted", to_sorted),
        (&typed, "sort", sort_typed),
        (&typed, "toSorted", to_sorted_typed),
    ];
    for (prototype, name, native) in functions {
        builtin::replace(prototype, js_string!(name), native, context)?;
    }
    Ok(())
}

fn sort(
    this: &JsValue,
    args: &[JsValue],
    _: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let compare = comparison(args)?;
    let object = this.to_object(context)?;
    let length = length_of(&object, context)?;
    let items = match dense(&object, length) {
        Some(items) => items,
        None => present(&object, length, context)?,
    };
    let items = in_order(items, compare.as_ref(), context)?;
    let count = items.len() as u64;
    if count == length && is_dense(&object, length) {
        put_in(&object, items);
        return Ok(object.into());
    }
    for (i, item) in (0..count).zip(items) {
        object.set(i, item, true, context)?;
    }
    // Holes go to the end.
    for i in count..length {
        object.delete_property_or_throw(i, context)?;
    }
    Ok(object.into())
}

/// Returns the items of an array whose items are all own data properties.
fn dense(object: &JsObject, length: u64) -> Option<Vec<JsValue>> {
    if !object.is_array() {
        return None;
    }
    let object = object.borrow();
    let items: Vec<JsValue> = match object.properties().index_property_values() {
        IndexPropertyValues::DenseI32(items) => items.copied().map(JsValue::from).collect(),
        IndexPropertyValues::DenseF64(items) => items.copied().map(JsValue::from).collect(),
        IndexPropertyValues::DenseElement(items) => items.cloned().collect(),
        _ => return None,
    };
    (items.len() as u64 == length).then_some(items)
}

/// Whether all items are still own data properties after the comparisons, which may have changed
/// the array.
fn is_dense(object: &JsObject, length: u64) -> bool {
    if !object.is_array() {
        return false;
    }
    let object = object.borrow();
    let count = match object.properties().index_property_values() {
        IndexPropertyValues::DenseI32(items) => items.len(),
        IndexPropertyValues::DenseF64(items) => items.len(),
        IndexPropertyValues::DenseElement(items) => items.len(),
        _ => return false,
    };
    count as u64 == length
}

/// Replaces the items of a dense array; the script cannot observe how.
fn put_in(object: &JsObject, items: Vec<JsValue>) {
    for (i, item) in (0_u32..).zip(items) {
        let item = PropertyDescriptor::builder()
            .value(item)
            .writable(true)
            .enumerable(true)
            .configurable(true);
        object.insert_property(i, item);
    }
}

/// Returns the items that are not holes, read as the specification requires.
fn present(object: &JsObject, length: u64, context: &mut Context) -> JsResult<Vec<JsValue>> {
    let mut items = Vec::new();
    for i in 0..length {
        if object.has_property(i, context)? {
            items.push(object.get(i, context)?);
        }
    }
    Ok(items)
}

fn to_sorted(
    this: &JsValue,
    args: &[JsValue],
    _: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let compare = comparison(args)?;
    let object = this.to_object(context)?;
    let length = length_of(&object, context)?;
    if length > ARRAY_LENGTH_MAX {
        return Err(JsNativeError::range()
            .with_message("the array is too long")
            .into());
    }
    let items = match dense(&object, length) {
        Some(items) => items,
        None => (0..length)
            .map(|i| object.get(i, context))
            .collect::<JsResult<_>>()?,
    };
    let items = in_order(items, compare.as_ref(), context)?;
    Ok(JsArray::from_iter(items, context).into())
}

/// Sorts a typed array with the script's comparison; without a comparison, the engine's numeric
/// order is used. If the value is not a typed array, the engine throws its own error.
fn sort_typed(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let Some((object, items)) = typed_items(this, args, context)? else {
        return original.call(this, args, context);
    };
    write(&object, items, args, context)
}

fn to_sorted_typed(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let Some((_, items)) = typed_items(this, args, context)? else {
        return original.call(this, args, context);
    };
    let copy = original.call(this, &[], context)?.to_object(context)?;
    write(&copy, items, args, context)
}

fn typed_items(
    this: &JsValue,
    args: &[JsValue],
    context: &mut Context,
) -> JsResult<Option<(JsObject, Vec<JsValue>)>> {
    let object = this
        .as_object()
        .filter(|_| args.get_or_undefined(0).is_callable());
    let typed = object.and_then(|object| JsTypedArray::from_object(object).ok());
    let Some(typed) = typed else { return Ok(None) };
    let length = typed.length(context)?;
    // Empty, or with a detached buffer, for which the engine throws its own error.
    if length == 0 {
        return Ok(None);
    }
    let object = JsObject::from(typed);
    let items = (0..length)
        .map(|i| object.get(i, context))
        .collect::<JsResult<_>>()?;
    Ok(Some((object, items)))
}

fn write(
    object: &JsObject,
    items: Vec<JsValue>,
    args: &[JsValue],
    context: &mut Context,
) -> JsResult<JsValue> {
    let compare = comparison(args)?;
    let items = in_order(items, compare.as_ref(), context)?;
    for (i, item) in items.into_iter().enumerate() {
        object.set(i, item, true, context)?;
    }
    Ok(object.clone().into())
}

fn comparison(args: &[JsValue]) -> JsResult<Option<JsObject>> {
    let compare = args.get_or_undefined(0);
    if compare.is_undefined() {
        return Ok(None);
    }
    let what = "The comparison function must be either a function or undefined";
    let callable = compare.as_callable();
    Ok(Some(
        callable.ok_or_else(|| JsNativeError::typ().with_message(what))?,
    ))
}

fn length_of(object: &JsObject, context: &mut Context) -> JsResult<u64> {
    object
        .get(js_string!("length"), context)?
        .to_length(context)
}

/// Sorts the items. Undefined items are last and are never compared.
fn in_order(
    items: Vec<JsValue>,
    compare: Option<&JsObject>,
    context: &mut Context,
) -> JsResult<Vec<JsValue>> {
    let (undefined, items): (Vec<_>, Vec<_>) = items.into_iter().partition(JsValue::is_undefined);
    let order = match compare {
        // A single item is neither compared nor read.
        _ if items.len() < 2 => (0..items.len()).collect(),
        Some(compare) => {
            let plain = Numbers::of(&items, compare, context);
            match plain.and_then(|numbers| numbers.order()) {
                Some(order) => order,
                None => merge_sort(items.len(), |a, b| {
                    by_script(compare, a, b, &items, context)
                })?,
            }
        }
        None => by_text(&items, context)?,
    };
    let sorted = order.into_iter().filter_map(|i| items.get(i).cloned());
    Ok(sorted.chain(undefined).collect())
}

/// Sorts items by their texts. Texts have a total order, so Rust's own sort is safe.
fn by_text(items: &[JsValue], context: &mut Context) -> JsResult<Vec<usize>> {
    let texts = items
        .iter()
        .map(|item| item.to_string(context))
        .collect::<JsResult<Vec<JsString>>>()?;
    if let Some(order) = by_bytes(&texts) {
        return Ok(order);
    }
    let mut pairs: Vec<(JsStr<'_>, usize)> = texts.iter().map(JsString::as_str).zip(0..).collect();
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(pairs.into_iter().map(|(_, place)| place).collect())
}

/// Sorts texts of one byte per character. A common prefix is skipped, and then the next eight bytes
/// are compared as one number.
fn by_bytes(texts: &[JsString]) -> Option<Vec<usize>> {
    let bytes: Vec<&[u8]> = texts
        .iter()
        .map(|text| match text.variant() {
            JsStrVariant::Latin1(bytes) => Some(bytes),
            JsStrVariant::Utf16(_) => None,
        })
        .collect::<Option<_>>()?;
    let first = *bytes.first()?;
    let same = |text: &&[u8]| first.iter().zip(*text).take_while(|(a, b)| a == b).count();
    let common = bytes.iter().map(same).min().unwrap_or(0);
    let key = |text: &[u8]| {
        let mut key = [0; 8];
        key.iter_mut()
            .zip(text)
            .for_each(|(key, byte)| *key = *byte);
        u64::from_be_bytes(key)
    };
    let rest = |place: u32| {
        let text = bytes.get(place as usize).copied().unwrap_or_default();
        text.get(common..).unwrap_or_default()
    };
    let mut keyed: Vec<(u64, u32)> = (0..u32::try_from(bytes.len()).ok()?)
        .map(|place| (key(rest(place)), place))
        .collect();
    // No two keys are equal, because the positions differ, so stability does not matter.
    keyed.sort_unstable_by(|a, b| {
        a.0.cmp(&b.0)
            .then_with(|| rest(a.1).cmp(rest(b.1)))
            .then(a.1.cmp(&b.1))
    });
    Some(keyed.into_iter().map(|(_, place)| place as usize).collect())
}

fn by_script(
    compare: &JsObject,
    a: usize,
    b: usize,
    items: &[JsValue],
    context: &mut Context,
) -> JsResult<Ordering> {
    let pair = [a, b].map(|i| items.get(i).cloned().unwrap_or_default());
    let answer = compare
        .call(&JsValue::undefined(), &pair, context)?
        .to_number(context)?;
    Ok(answer.partial_cmp(&0.0).unwrap_or(Ordering::Equal))
}

/// Sorts the numbers below `count` by `compare`. The sort is stable.
fn merge_sort(
    count: usize,
    mut compare: impl FnMut(usize, usize) -> JsResult<Ordering>,
) -> JsResult<Vec<usize>> {
    let mut from: Vec<usize> = (0..count).collect();
    let mut into = Vec::with_capacity(count);
    let mut width = 1;
    while width < count {
        into.clear();
        for pair in from.chunks(width * 2) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, &mut into, &mut compare)?;
        }
        std::mem::swap(&mut from, &mut into);
        width *= 2;
    }
    Ok(from)
}

fn merge(
    mut left: &[usize],
    mut right: &[usize],
    into: &mut Vec<usize>,
    compare: &mut impl FnMut(usize, usize) -> JsResult<Ordering>,
) -> JsResult<()> {
    // Most inputs are nearly sorted.
    let in_order = match (left.last(), right.first()) {
        (Some(a), Some(b)) => compare(*a, *b)?.is_le(),
        _ => true,
    };
    while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
        if in_order || compare(*a, *b)?.is_le() {
            into.push(*a);
            left = left_rest;
        } else {
            into.push(*b);
            right = right_rest;
        }
    }
    into.extend_from_slice(left);
    into.extend_from_slice(right);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(items: &[i32]) -> Vec<i32> {
        let order = merge_sort(items.len(), |a, b| Ok(items[a].cmp(&items[b]))).unwrap();
        order.into_iter().map(|i| items[i]).collect()
    }

    #[test]
    fn numbers_come_out_in_order_and_equals_in_their_own() {
        for items in [
            &[][..],
            &[1],
            &[2, 1],
            &[3, 1, 2],
            &[5, 4, 3, 2, 1, 0, 9, 9, 1],
        ] {
            let mut expected = items.to_vec();
            expected.sort_unstable();
            assert_eq!(sorted(items), expected);
        }
        let keys = [1, 0, 1, 0, 1];
        let order = merge_sort(5, |a, b| Ok(keys[a].cmp(&keys[b]))).unwrap();
        assert_eq!(order, [1, 3, 0, 2, 4]);
    }

    #[test]
    fn texts_of_bytes_are_sorted_as_texts_are() {
        let texts = [
            "user-b",
            "user-",
            "user-a\0",
            "user-a",
            "user-é",
            "user-abcdefghij",
            "user-abcdefghi",
        ];
        let texts = texts.map(JsString::from);
        let order = by_bytes(&texts).unwrap();
        let mut expected: Vec<usize> = (0..texts.len()).collect();
        expected.sort_by(|a, b| texts[*a].as_str().cmp(&texts[*b].as_str()));
        assert_eq!(order, expected);
        assert!(by_bytes(&["€".into()]).is_none() && by_bytes(&[]).is_none());
        assert_eq!(
            by_bytes(&["b".into(), "".into(), "b".into()]).unwrap(),
            [1, 0, 2]
        );
    }

    #[test]
    fn a_comparison_that_contradicts_itself_loses_and_doubles_nothing() {
        let mut flip = Ordering::Less;
        let mut order = merge_sort(1000, |_, _| {
            flip = flip.reverse();
            Ok(flip)
        })
        .unwrap();
        order.sort_unstable();
        assert!(order.into_iter().eq(0..1000));
    }
}
