//! A script's call of a tool. Its arguments are parsed once into canonical bytes. The decision, the
//! question to a person, the digest, the journal and the server all use these bytes.

use std::fmt;
use std::sync::Arc;

use codegen::canonical;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::facts::Facts;
use crate::id::{CallId, CallRef, Digest, ToolId};
use crate::json::{self, BadJson, Bounds};
use crate::limits::Limits;

/// One call of a tool by a run, before any decision.
#[derive(Debug)]
pub struct Call {
    pub id: CallId,
    pub tool: ToolId,
    pub args: Args,
    pub site: Site,
    /// Facts for rules and labels. Absent if no policy and no label needs them.
    pub facts: Option<Arc<Facts>>,
    /// What earlier runs of the chain say about the call.
    pub history: CallHistory,
}

/// What earlier runs of a chain say about a call that they do not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallHistory {
    /// Earlier calls of the same tool that the script has not made again. The call may be one of
    /// them with other arguments, so a person must be asked.
    pub near: Vec<EarlierCall>,
    /// How often people have refused this call.
    pub refusals: u32,
}

/// A call of an earlier run of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierCall {
    pub at: CallRef,
    pub tool: ToolId,
    /// The arguments as they are recorded, after secrets are masked.
    pub args: Option<Args>,
    /// Whether the outcome of the call is unknown.
    pub is_unknown: bool,
}

/// The place in the script where the call was made: 1-based, 0 if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    pub line: u32,
    pub column: u32,
}

/// The arguments object in canonical form (RFC 8785), with its digest. Cheap to clone.
#[derive(Clone)]
pub struct Args(Arc<Inner>);

struct Inner {
    text: String,
    digest: Digest,
    value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadArgs {
    #[error("{}", bad_json(.0))]
    Json(#[from] BadJson),
    #[error("the arguments are {0}; expected one object")]
    NotAnObject(&'static str),
    #[error("{0}")]
    Inexact(#[from] canonical::Inexact),
}

fn bad_json(bad: &BadJson) -> String {
    match bad {
        BadJson::Inexact { .. } => format!("in the arguments, {bad}"),
        _ => format!("the arguments are {bad}"),
    }
}

impl BadArgs {
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Json(bad) if bad.is_limit())
    }
}

impl Args {
    pub fn parse(text: &[u8], limits: &Limits) -> Result<Self, BadArgs> {
        let bounds = Bounds {
            bytes_max: limits.args_bytes_max,
            depth_max: limits.json_depth_max,
            nodes_max: limits.json_nodes_max,
        };
        Self::from_value(json::parse_strict(text, bounds)?)
    }

    fn from_value(value: Value) -> Result<Self, BadArgs> {
        if !value.is_object() {
            return Err(BadArgs::NotAnObject(kind(&value)));
        }
        let bytes = canonical::exact(&value)?;
        Ok(Self(Arc::new(Inner {
            digest: Digest::sha256(&bytes),
            // Parse the bytes again, so that the value equals the bytes that are sent.
            value: json::parse(&bytes)?,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })))
    }

    /// Returns the canonical text, which is sent to the server unchanged.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.text.as_bytes()
    }

    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.digest
    }
}

impl PartialEq for Args {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Args {}

impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl Serialize for Args {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(json::embedded(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let limits = Limits {
            json_depth_max: 4,
            args_bytes_max: 100,
            ..Limits::default()
        };
        match (Args::parse(text.as_bytes(), &limits), expected) {
            (Ok(args), Ok(canonical)) => {
                assert_eq!(args.text(), canonical, "{text}");
                assert_eq!(args.digest(), Digest::sha256(canonical.as_bytes()));
            }
            (Err(bad), Err(why)) => assert!(bad.to_string().contains(why), "{text}: {bad}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn equal_arguments_canonicalise_to_same_bytes() {
        for text in [
            r#"{"b":1,"a":"x"}"#,
            r#"{ "a":"\u0078" , "b":1.0}"#,
            r#"{"a":"x","b":1e0}"#,
        ] {
            check(text, Ok(r#"{"a":"x","b":1}"#));
        }
        check(r#"{"n":-0}"#, Ok(r#"{"n":0}"#));
    }

    #[test]
    fn non_object_arguments_are_refused() {
        check("[1]", Err("an array; expected one object"));
        check("null", Err("null; expected one object"));
        check("", Err("not JSON"));
        check(
            r#"{"n":9007199254740993}"#,
            Err("in the arguments, the number 9007199254740993 cannot be represented exactly"),
        );
        check(r#"{"n":1,"n":2}"#, Err("duplicate key `n`"));
        check(r#"{"a":[[[[]]]]}"#, Err("deeper than 4"));
        check(
            &format!(r#"{{"a":"{}"}}"#, "x".repeat(100)),
            Err("108 bytes"),
        );
    }

    fn json() -> impl Strategy<Value = Value> {
        // serde_json reserves this key for internal use.
        let key = || prop_oneof![4 => "\\PC{0,4}", 1 => Just("$serde_json::private::RawValue".to_owned())];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(key(), inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_arguments_parse_to_themselves(value in json()) {
            let text = serde_json::json!({ "a": value }).to_string();
            if let Ok(args) = Args::parse(text.as_bytes(), &Limits::default()) {
                let again = Args::parse(args.bytes(), &Limits::default());
                prop_assert_eq!(again.as_ref(), Ok(&args));
                let journaled: Args = json::typed(args.bytes()).unwrap();
                prop_assert_eq!(journaled, args);
            }
        }

        #[test]
        fn arbitrary_guest_bytes_never_panic(bytes in "[\\[\\]{}\",:0-9eE.+\\\\ud-]{0,60}") {
            let _ = Args::parse(bytes.as_bytes(), &Limits::default());
        }
    }
}
