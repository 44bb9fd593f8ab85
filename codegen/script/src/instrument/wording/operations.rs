//! Describes failed operators, assignments and classes. If the reason is known, airlock writes its
//! own message, so that every engine reports the same.

use super::super::place::{Place, SiteKind};
use super::super::transcript::{Note, Value};
use super::{TracedValue, kind};

/// Returns the message, or `None` to keep the engine's own.
pub(super) fn message(place: &Place, note: &Note) -> Option<String> {
    let told = |value: &Value| {
        let (parent, from) = (note.parent.as_ref(), place.from.as_ref());
        let told = TracedValue {
            value,
            parent,
            from,
            up: note.up,
        };
        told.which()
    };
    match (&place.what, note.operands.as_slice()) {
        (
            SiteKind::Operation {
                operator,
                left,
                right: Some(right),
            },
            [one, other],
        ) => match operator.as_str() {
            "in" => not_in(left, right, other, &told(other)),
            "instanceof" => (other.kind != "function").then(|| {
                let what = told(other);
                format!("`{right}` after `instanceof` is not a class but {what}")
            }),
            operator => mixed(operator, (left, one), (right, other)),
        },
        (
            SiteKind::Operation {
                operator,
                left,
                right: None,
            },
            [one],
        ) => match one.kind.as_str() {
            "bigint" if operator == "+" => Some(format!(
                "`{left}` is a bigint, which `+` cannot convert to a number: use `Number({left})`"
            )),
            "symbol" => Some(symbol(operator, left)),
            _ => None,
        },
        (SiteKind::Held { of }, [one]) if one.kind == "symbol" => Some(format!(
            "`{of}` is a symbol, which a template cannot convert to text: use `String({of})`"
        )),
        (SiteKind::Extends { of }, [one]) if one.kind != "function" => {
            let what = told(one);
            Some(format!("`{of}` cannot be extended: it is {what}"))
        }
        (SiteKind::Extends { of }, [_]) => {
            Some(format!("`{of}` cannot be extended: it is not a class"))
        }
        (
            SiteKind::Constant {
                name,
                declared_in_line: line,
            },
            _,
        ) => Some(format!(
            "`{name}` is a constant of line {line}: declare it with `let` to change it"
        )),
        (SiteKind::Write { of, member }, _) => not_set(of, member, note, told),
        (SiteKind::Super, _) if note.name.as_deref() == Some("ReferenceError") => {
            Some("`super()` is called twice".to_owned())
        }
        (SiteKind::This, _) => Some("`this` is used before `super()` was called".to_owned()),
        (SiteKind::Private { of, name }, _) if note.inside => Some(format!(
            "`{of}` has no `{name}`: it is not an instance of the declaring class"
        )),
        _ => None,
    }
}

fn not_in(left: &str, right: &str, other: &Value, what: &str) -> Option<String> {
    let instead = match other.kind.as_str() {
        "string" => format!(": use `{right}.includes(…)`"),
        "object" | "array" | "function" => return None,
        _ => String::new(),
    };
    Some(format!(
        "cannot look for `{left}` in `{right}`, which is {what}{instead}"
    ))
}

fn mixed(operator: &str, left: (&str, &Value), right: (&str, &Value)) -> Option<String> {
    let both = [left, right];
    if let Some((text, _)) = both.iter().find(|(_, value)| value.kind == "symbol") {
        return Some(symbol(operator, text));
    }
    let is_bigint = |(_, value): &(&str, &Value)| value.kind == "bigint";
    let (bigint, other) = match (is_bigint(&left), is_bigint(&right)) {
        (true, false) => (left, right),
        (false, true) => (right, left),
        _ => return None,
    };
    // It is not known which primitive value an object is converted to.
    if !["number", "undefined", "null", "boolean", "string"].contains(&other.1.kind.as_str()) {
        return None;
    }
    let what = kind(other.1);
    let way = match other.1.kind.as_str() {
        "number" => format!(": use `BigInt({})` or `Number({})`", other.0, bigint.0),
        _ => String::new(),
    };
    Some(format!(
        "`{operator}` cannot mix `{}`, which is a bigint, with `{}`, which is {what}{way}",
        bigint.0, other.0
    ))
}

fn symbol(operator: &str, text: &str) -> String {
    format!("`{text}` is a symbol, which `{operator}` does not accept")
}

fn not_set(of: &str, member: &str, note: &Note, told: impl Fn(&Value) -> String) -> Option<String> {
    let value = note.value.as_ref()?;
    let why = match note.refused.as_str() {
        "plain" => {
            return Some(format!(
                "cannot set `{member}` of `{of}`, which is {}",
                told(value)
            ));
        }
        "frozen" => format!("`{of}` is frozen"),
        "constant" => "it is read-only".to_owned(),
        "computed" => "it has no setter".to_owned(),
        "closed" => format!("`{of}` is not extensible"),
        _ => return None,
    };
    Some(format!("cannot set `{member}` of `{of}`: {why}"))
}
