//! Defines what counts as the value of a tool's result, in one place:
//!
//! 1. `structuredContent`, checked against the output schema; the X of
//!    `{result: X}` if the description declares nothing but this wrapper.
//! 2. Without `structuredContent` and without an output schema: a single text block that
//!    spells an object or an array is this JSON; any other single text block is a string;
//!    all other content is the content array, unchanged.
//! 3. Without `structuredContent`, but with an output schema: the JSON that a single text
//!    block spells (or, for a wrapper, the text), if the schema accepts it.

use codegen::unwrap;
use sandbox_protocol::Failure;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::catalog::{Tool, ValueCheck};
use crate::json::{self, BadJson, Bounds};
use crate::limits::Limits;

/// The two payloads of a result, as JSON text.
#[derive(Debug, Default)]
pub(super) struct CallResult {
    content: Vec<u8>,
    structured: Option<Vec<u8>>,
}

type Unusable = (CallResult, String);

impl CallResult {
    pub(super) fn within(
        limits: &Limits,
        content: Vec<u8>,
        structured: Option<Vec<u8>>,
    ) -> Result<Self, BadJson> {
        let content = if content.is_empty() {
            b"[]".to_vec()
        } else {
            content
        };
        for text in structured.iter().chain([&content]) {
            json::measure(text, bounds(limits))?;
            if !json::is_one_value(text) {
                let why = "the bytes are not one JSON value".into();
                return Err(BadJson::NotJson { why });
            }
        }
        Ok(Self {
            content,
            structured,
        })
    }

    pub(super) fn value(mut self, tool: &Tool, limits: &Limits) -> Result<Vec<u8>, Unusable> {
        let usable = |it: &&ValueCheck| it.unusable().is_none();
        match (
            self.structured.take(),
            tool.result_check.as_ref().filter(usable),
        ) {
            (Some(structured), output) => {
                let refused = output.and_then(|it| refused(it, &structured));
                match refused {
                    Some(why) => Err((structured, why)),
                    None => unwrapped(structured, tool),
                }
                .map_err(|(structured, why)| {
                    self.structured = Some(structured);
                    (self, why)
                })
            }
            (None, None) => Ok(match self.only_text() {
                Some(text) => text_value(text, limits),
                None => self.content,
            }),
            (None, Some(output)) => match self.spelled(tool, output, limits) {
                Some(value) => Ok(value),
                None => Err((
                    self,
                    "`structuredContent` is missing, which the output schema requires".into(),
                )),
            },
        }
    }

    /// Returns the JSON in a single text block, if the output schema accepts it.
    fn spelled(&self, tool: &Tool, output: &ValueCheck, limits: &Limits) -> Option<Vec<u8>> {
        let text = self.only_text()?;
        json::measure(text.as_bytes(), bounds(limits)).ok()?;
        let parsed = json::parse(text.as_bytes()).ok();
        let fits = |value: &Value| output.findings(value).is_empty();
        if parsed.as_ref().is_some_and(fits) {
            return unwrapped(text.into_bytes(), tool).ok();
        }
        let wrapped = |inner: Value| tool.unwrap && fits(&json!({ "result": inner }));
        if parsed.is_some_and(wrapped) {
            return Some(text.into_bytes());
        }
        let quoted = Value::String(text);
        wrapped(quoted.clone()).then(|| quoted.to_string().into_bytes())
    }

    /// Returns the text of the first text block that is not empty.
    pub(super) fn first_text(&self) -> Option<String> {
        self.blocks()
            .iter()
            .filter_map(|block| text_of(block))
            .find(|text| !text.is_empty())
    }

    fn only_text(&self) -> Option<String> {
        match self.blocks().as_slice() {
            [block] => text_of(block),
            _ => None,
        }
    }

    fn blocks(&self) -> Vec<&RawValue> {
        json::typed(&self.content).unwrap_or_default()
    }

    /// Attaches everything that the server sent to a failure.
    pub(super) fn attached_to(self, failure: Failure) -> Failure {
        let structured_content = self.structured.unwrap_or_default();
        Failure {
            content: self.content,
            structured_content,
            ..failure
        }
    }
}

fn bounds(limits: &Limits) -> Bounds {
    Bounds {
        bytes_max: limits.result_bytes_max,
        depth_max: limits.json_depth_max,
        nodes_max: limits.json_nodes_max,
    }
}

fn refused(output: &ValueCheck, structured: &[u8]) -> Option<String> {
    let findings = match json::parse(structured) {
        Ok(value) => output.findings(&value),
        Err(bad) => vec![bad.to_string()],
    };
    (!findings.is_empty()).then(|| findings.join("; "))
}

/// Removes the `{result: X}` wrapper. A result without the wrapper is an error, because the
/// description promises X to the script.
fn unwrapped(structured: Vec<u8>, tool: &Tool) -> Result<Vec<u8>, (Vec<u8>, String)> {
    if !tool.unwrap {
        return Ok(structured);
    }
    let inner = unwrap::inner_text(&structured).map(<[u8]>::to_vec);
    inner.ok_or_else(|| {
        let why = "expected an object with only `result`, as the output schema requires".into();
        (structured, why)
    })
}

fn text_value(text: String, limits: &Limits) -> Vec<u8> {
    let is_composite = text.trim_start().starts_with(['{', '[']);
    let is_within = || json::measure(text.as_bytes(), bounds(limits)).is_ok();
    if is_composite && is_within() && json::typed::<&RawValue>(text.as_bytes()).is_some() {
        return text.into_bytes();
    }
    Value::String(text).to_string().into_bytes()
}

fn text_of(block: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Block {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        text: String,
    }
    let block: Block = json::typed(block.get().as_bytes())?;
    (block.kind == "text").then_some(block.text)
}
