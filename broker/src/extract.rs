//! Extraction: reads a value into JSON that matches a schema, with the host's model or a configured
//! program. The answer is validated here before a script gets any of it.

mod command;

use std::future::Future;
use std::pin::Pin;

use airlock_core::code::Code;
use airlock_core::json::{self, Bounds};
use airlock_core::limits::Limits;
use airlock_core::outcome::Reply;
use codegen::validate::Validator;
use serde_json::Value;

pub(crate) use command::ExtractorCommand;

use crate::client_bridge::AnswerDeadline;

/// Maximum number of findings reported to a script.
const FINDINGS_MAX: usize = 3;

/// The value to read, and the schema of the result.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtractionRequest {
    pub value: Value,
    pub schema: Value,
}

/// Why a call of `airlock.extract` is not made in a run without an extractor.
pub(crate) const NO_EXTRACTOR: &str = "extraction is not available: the host offers no sampling, and \
                                       no [extract] command is configured";

/// A pending answer: JSON text, or the reason why there is none. Dropping it withdraws the request.
pub type ExtractionFuture<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + 'a>>;

/// Reads values for scripts. An extractor sees the value, so each use is decided like a call of a
/// server's tool.
pub trait Extractor: Send + Sync {
    /// Extracts a value. An extractor that passes the request on pauses `time` until it gets an
    /// answer.
    fn extract(&self, wanted: ExtractionRequest, time: AnswerDeadline) -> ExtractionFuture<'_>;
}

/// Returns the reply to a call of `airlock.extract`.
pub(crate) async fn reply(
    extractor: Option<&dyn Extractor>,
    args: &Value,
    limits: &Limits,
    time: AnswerDeadline,
) -> Reply {
    let Some(extractor) = extractor else {
        return failed(NO_EXTRACTOR.into(), false);
    };
    let part = |key: &str| args.get(key).cloned().unwrap_or_default();
    let wanted = ExtractionRequest {
        value: part("value"),
        schema: part("schema"),
    };
    let schema = match Validator::compile(&wanted.schema) {
        Ok(schema) => schema,
        Err(bad) => return failed(format!("invalid schema: {bad}"), false),
    };
    let answer = extractor.extract(wanted, time).await;
    let fitting = answer.and_then(|text| fitting(&text, &schema, limits));
    match fitting {
        Ok(text) => Reply::Result {
            is_error: false,
            content: b"[]".to_vec(),
            structured_content: Some(text.into_bytes()),
        },
        Err(why) => failed(why, true),
    }
}

/// Returns the reply for an answer that did not arrive in time.
pub(crate) fn late() -> Reply {
    failed("no answer came in time".into(), true)
}

fn failed(message: String, left: bool) -> Reply {
    Reply::Failed {
        code: Code::ExtractFailed,
        message,
        left,
    }
}

/// Returns the JSON of an answer if it matches the schema.
fn fitting(text: &str, schema: &Validator, limits: &Limits) -> Result<String, String> {
    let bounds = Bounds {
        bytes_max: limits.result_bytes_max,
        depth_max: limits.json_depth_max,
        nodes_max: limits.json_nodes_max,
    };
    let text = bare(text);
    let value = json::parse_strict(text.as_bytes(), bounds)
        .map_err(|bad| format!("invalid answer: {bad}"))?;
    let findings = schema.errors("answer", &value);
    if findings.is_empty() {
        return Ok(text.to_owned());
    }
    let findings = findings.iter().take(FINDINGS_MAX).map(ToString::to_string);
    let findings: Vec<String> = findings.collect();
    Err(format!(
        "the answer does not fit the schema: {}",
        findings.join("; ")
    ))
}

/// Removes a code fence, which models often put around JSON.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"));
    inner
        .and_then(|it| it.strip_suffix("```"))
        .map_or(text, str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct CannedExtractor(Result<&'static str, &'static str>);

    impl Extractor for CannedExtractor {
        fn extract(&self, _: ExtractionRequest, _: AnswerDeadline) -> ExtractionFuture<'_> {
            let said = self.0.map(str::to_owned).map_err(str::to_owned);
            Box::pin(std::future::ready(said))
        }
    }

    fn time() -> AnswerDeadline {
        AnswerDeadline::new(std::time::Duration::from_secs(60))
    }

    async fn check(said: Result<&'static str, &'static str>, expected: Result<&str, &str>) {
        let schema = json!({
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        });
        let args = json!({"value": "…", "schema": schema});
        let says = CannedExtractor(said);
        match reply(Some(&says), &args, &Limits::default(), time()).await {
            Reply::Result {
                structured_content, ..
            } => {
                let text = String::from_utf8(structured_content.unwrap()).unwrap();
                assert_eq!(Ok(text.as_str()), expected, "{said:?}");
            }
            Reply::Failed { message, left, .. } => {
                let why = expected.unwrap_err();
                assert!(message.contains(why) && left, "{said:?}: {message}");
            }
            other => panic!("{said:?}: {other:?}"),
        }
    }

    #[tokio::test]
    async fn extracted_value_must_match_schema() {
        check(Ok(r#"{"name":"a"}"#), Ok(r#"{"name":"a"}"#)).await;
        check(Ok("```json\n{\"name\":\"a\"}\n```"), Ok(r#"{"name":"a"}"#)).await;
        check(Ok("```\n{\"name\":\"a\"}```\n"), Ok(r#"{"name":"a"}"#)).await;
        check(Ok(r#"{"name":7}"#), Err("answer.name")).await;
        check(Ok(r#"{"nam":"a"}"#), Err("does not fit the schema")).await;
        check(Ok("Sure! Here it is: {}"), Err("invalid answer")).await;
        check(Ok(r#"{"name":"a","name":"b"}"#), Err("duplicate key")).await;
        check(Ok(""), Err("invalid answer")).await;
        check(Err("the host said no"), Err("the host said no")).await;
    }

    #[tokio::test]
    async fn no_extractor_or_schema_sends_nothing() {
        let limits = Limits::default();
        let args = json!({"value": 1, "schema": {"type": "string"}});
        let nobody = reply(None, &args, &limits, time()).await;
        assert!(matches!(nobody, Reply::Failed { left: false, .. }));
        let args = json!({"value": 1, "schema": {"type": "sting"}});
        let says = CannedExtractor(Ok("1"));
        let refused = reply(Some(&says), &args, &limits, time()).await;
        assert!(
            matches!(refused, Reply::Failed { left: false, .. }),
            "{refused:?}"
        );
    }
}
