//! The arguments of a call: one object, or values in the order that the tool defines.

use crate::json::{Bounds, Refusal};

/// The arguments passed to a stub, before any value is read.
#[derive(Debug, Clone, Copy)]
pub struct StubArgs {
    pub count: usize,
    pub first_is_object: bool,
    pub first_is_undefined: bool,
}

/// How the arguments of a stub become one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgsShape {
    /// No arguments, which means an empty object.
    Nothing,
    /// The first value is the object.
    AsObject,
    /// Each value gets a name from the tool's order.
    InOrder,
}

impl StubArgs {
    pub fn way<E>(self, order: &[String]) -> Result<ArgsShape, Refusal<E>> {
        if self.first_is_undefined && self.count <= 1 {
            return Ok(ArgsShape::Nothing);
        }
        if !order.is_empty() && (self.count > 1 || !self.first_is_object) {
            return Ok(ArgsShape::InOrder);
        }
        if self.count > 1 {
            return Err(unsuitable("several values"));
        }
        Ok(ArgsShape::AsObject)
    }
}

/// Returns the encoded arguments if they are an object.
pub fn object<E>(encoded: Option<Vec<u8>>) -> Result<Vec<u8>, Refusal<E>> {
    let Some(encoded) = encoded else {
        return Err(unsuitable("undefined"));
    };
    match encoded.first() {
        Some(b'{') => Ok(encoded),
        Some(b'[') => Err(unsuitable("an array")),
        Some(b'"') => Err(unsuitable("a string")),
        _ => Err(unsuitable(&String::from_utf8_lossy(&encoded))),
    }
}

fn unsuitable<E>(what: &str) -> Refusal<E> {
    Refusal::Unsayable(format!(
        "a tool takes one object of named arguments, not {what}"
    ))
}

/// Builds one object from values whose names the tool lists in order. `encode` encodes one value
/// within the remaining limits, or returns nothing for `undefined`.
pub fn in_order<V, E>(
    values: &[V],
    order: &[String],
    bounds: Bounds,
    mut encode: impl FnMut(&V, &str, Bounds) -> Result<Option<Vec<u8>>, Refusal<E>>,
) -> Result<Vec<u8>, Refusal<E>> {
    if values.len() > order.len() {
        let message = format!("it takes only {}", order.join(", "));
        return Err(Refusal::Unsayable(message));
    }
    let mut object = b"{".to_vec();
    for (name, value) in order.iter().zip(values) {
        let left = Bounds {
            bytes_max: bounds.bytes_max.saturating_sub(object.len()),
            depth_max: bounds.depth_max.saturating_sub(1),
        };
        let Some(text) = encode(value, name, left)? else {
            continue;
        };
        if object.len() > 1 {
            object.push(b',');
        }
        object.extend_from_slice(format!("\"{name}\":").as_bytes());
        object.extend_from_slice(&text);
    }
    object.push(b'}');
    if object.len() > bounds.bytes_max {
        return Err(Refusal::TooLarge);
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Vec<String> {
        ["path", "limit"].map(str::to_owned).to_vec()
    }

    fn way(count: usize, first_is_object: bool, order: &[String]) -> Option<ArgsShape> {
        let given = StubArgs {
            count,
            first_is_object,
            first_is_undefined: count == 0,
        };
        given.way::<()>(order).ok()
    }

    #[test]
    fn values_are_taken_where_the_tool_has_an_order_for_them() {
        assert_eq!(way(0, false, &order()), Some(ArgsShape::Nothing));
        assert_eq!(way(1, true, &order()), Some(ArgsShape::AsObject));
        assert_eq!(way(1, false, &order()), Some(ArgsShape::InOrder));
        assert_eq!(way(2, true, &order()), Some(ArgsShape::InOrder));
        assert_eq!(way(1, false, &[]), Some(ArgsShape::AsObject));
        assert_eq!(way(2, true, &[]), None);
    }

    #[test]
    fn only_an_object_is_an_object() {
        let said = |text: &str| match object::<()>(Some(text.as_bytes().to_vec())) {
            Ok(_) => String::new(),
            Err(Refusal::Unsayable(sentence)) => sentence,
            Err(other) => format!("{other:?}"),
        };
        assert_eq!(said("{}"), "");
        for (text, what) in [
            ("[]", "an array"),
            ("\"\"", "a string"),
            ("7", "7"),
            ("null", "null"),
        ] {
            assert!(said(text).ends_with(&format!(", not {what}")), "{text}");
        }
        assert!(matches!(object::<()>(None), Err(Refusal::Unsayable(_))));
    }

    #[test]
    fn named_values_keep_within_the_bounds() {
        let encode = |values: &[&str], bytes_max| {
            let bounds = Bounds {
                bytes_max,
                depth_max: 2,
            };
            in_order::<_, ()>(values, &order(), bounds, |value, _, left| {
                assert_eq!(left.depth_max, 1);
                let text = value.as_bytes().to_vec();
                Ok(Some(text).filter(|text| !text.is_empty()))
            })
        };
        assert_eq!(
            encode(&["1", "2"], 20).unwrap(),
            b"{\"path\":1,\"limit\":2}"
        );
        assert!(matches!(encode(&["1", "2"], 19), Err(Refusal::TooLarge)));
        assert_eq!(encode(&["", "2"], 20).unwrap(), b"{\"limit\":2}");
        let Err(Refusal::Unsayable(sentence)) = encode(&["1", "2", "3"], 20) else {
            panic!("three values for two names");
        };
        assert_eq!(sentence, "it takes only path, limit");
    }
}
