//! In-process tools: an async function of the embedding program, with a description like that of a
//! server's tool.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use airlock_core::outcome::{LostCause, Reply};
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A tool that runs in this process. It is polled on the thread of its run, between the steps of
/// the script. Work that blocks or computes for long belongs on another thread.
#[derive(Clone)]
pub struct InProcessTool {
    pub(crate) server: String,
    pub(crate) description: Value,
    call: Arc<Call>,
}

type Call = dyn Fn(Value) -> LocalBoxFuture<'static, Reply> + Send + Sync;

/// The reason why a tool failed. The script receives it as a `ToolError`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ToolFailure {
    pub message: String,
    pub structured_content: Option<Value>,
}

impl ToolFailure {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            structured_content: None,
        }
    }
}

impl InProcessTool {
    /// Creates a tool. `description` is an MCP tool with `name`, `description`, `inputSchema`,
    /// `outputSchema` and `annotations`. The function gets the arguments that were decided on.
    pub fn new<F, Fut>(server: impl Into<String>, description: Value, function: F) -> Self
    where
        F: Fn(Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ToolFailure>> + 'static,
    {
        Self::of(server, description, function, |value| value.to_string())
    }

    /// Creates a tool from a function that returns its value as JSON text. The text is passed on
    /// unchanged, which saves many milliseconds for values of several megabytes.
    pub fn of_text<F, Fut>(server: impl Into<String>, description: Value, function: F) -> Self
    where
        F: Fn(Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Box<RawValue>, ToolFailure>> + 'static,
    {
        Self::of(server, description, function, |text| {
            Box::<str>::from(text).into_string()
        })
    }

    fn of<T: 'static, F, Fut>(
        server: impl Into<String>,
        description: Value,
        function: F,
        text: fn(T) -> String,
    ) -> Self
    where
        F: Fn(Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, ToolFailure>> + 'static,
    {
        let call = move |args| {
            let outcome = AssertUnwindSafe(function(args)).catch_unwind();
            let judged = move |outcome: Result<T, ToolFailure>| reply(outcome.map(text));
            outcome
                .map(move |outcome| outcome.map_or_else(|_| panicked(), judged))
                .boxed_local()
        };
        Self {
            server: server.into(),
            description,
            call: Arc::new(call),
        }
    }

    pub(crate) fn call(&self, args: Value) -> LocalBoxFuture<'static, Reply> {
        (self.call)(args)
    }
}

impl fmt::Debug for InProcessTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self
            .description
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        write!(f, "InProcessTool({}.{name})", self.server)
    }
}

fn reply(outcome: Result<String, ToolFailure>) -> Reply {
    match outcome {
        Ok(text) => Reply::Result {
            is_error: false,
            content: b"[]".to_vec(),
            structured_content: Some(text.into_bytes()),
        },
        Err(failure) => Reply::Result {
            is_error: true,
            content: json!([{"type": "text", "text": failure.message}])
                .to_string()
                .into_bytes(),
            structured_content: failure
                .structured_content
                .map(|value| value.to_string().into_bytes()),
        },
    }
}

fn panicked() -> Reply {
    Reply::Lost {
        why: "the tool panicked".into(),
        cause: LostCause::Disconnected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tool: &InProcessTool, expected: &Reply) {
        assert_eq!(
            tool.call(json!({"a": 1})).now_or_never().as_ref(),
            Some(expected)
        );
    }

    #[test]
    fn value_failure_and_panic_give_distinct_replies() {
        let tool = InProcessTool::new("t", json!({"name": "x"}), async |args: Value| Ok(args));
        let value = Some(br#"{"a":1}"#.to_vec());
        check(
            &tool,
            &Reply::Result {
                is_error: false,
                content: b"[]".to_vec(),
                structured_content: value,
            },
        );
        let tool = InProcessTool::new("t", json!({}), async |_| Err(ToolFailure::new("no")));
        let content = br#"[{"type":"text","text":"no"}]"#.to_vec();
        check(
            &tool,
            &Reply::Result {
                is_error: true,
                content,
                structured_content: None,
            },
        );
        let tool = InProcessTool::new("t", json!({}), async |_| panic!("oh"));
        check(&tool, &panicked());
    }

    #[test]
    fn text_value_is_passed_through_unchanged() {
        let text = r#"{"n": 12345678901234567890123, "s":"\u0061"}"#;
        let tool = InProcessTool::of_text("t", json!({}), async move |_| {
            Ok(RawValue::from_string(text.to_owned()).unwrap())
        });
        let reply = Reply::Result {
            is_error: false,
            content: b"[]".to_vec(),
            structured_content: Some(text.as_bytes().to_vec()),
        };
        check(&tool, &reply);
    }
}
