//! Having a value read into JSON that fits a schema: by the host's model, or by a
//! program that the configuration names. What comes back is held against the
//! schema here, before a script sees any of it.

mod command;

use std::future::Future;
use std::pin::Pin;

use airlock_core::code::Code;
use airlock_core::json::{self, Bounds};
use airlock_core::limits::Limits;
use airlock_core::outcome::Reply;
use codegen::validate::Validator;
use serde_json::Value;

pub(crate) use command::Command;

use crate::carrier::Time;

/// Findings that a script is told.
const FINDINGS_MAX: usize = 3;

/// What is to be read, and what should come out.
#[derive(Debug, Clone, PartialEq)]
pub struct Extraction {
    pub value: Value,
    pub schema: Value,
}

/// An answer that is on its way: JSON text, or why there is none. Dropping it withdraws the
/// question.
pub type Extracting<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + 'a>>;

/// Who reads a value for a script. Whoever it is gets to see the value, and so each use is
/// decided like a call of a server's tool.
pub trait Extractor: Send + Sync {
    /// Whoever goes away with it lets the time stand still meanwhile.
    fn extract(&self, wanted: Extraction, time: Time) -> Extracting<'_>;
}

/// The reply to a call of `airlock.extract`.
pub(crate) async fn reply(
    extractor: Option<&dyn Extractor>,
    args: &Value,
    limits: &Limits,
    time: Time,
) -> Reply {
    let Some(extractor) = extractor else {
        let message = "no one can read values here: the host offers no sampling, and no [extract] \
                       command is configured";
        return failed(message.into(), false);
    };
    let part = |key: &str| args.get(key).cloned().unwrap_or_default();
    let wanted = Extraction {
        value: part("value"),
        schema: part("schema"),
    };
    let schema = match Validator::compile(&wanted.schema) {
        Ok(schema) => schema,
        Err(bad) => return failed(format!("the schema cannot be used: {bad}"), false),
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

/// The limits' word when nobody has answered in time.
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

/// The JSON of an answer, when the schema accepts it.
fn fitting(text: &str, schema: &Validator, limits: &Limits) -> Result<String, String> {
    let bounds = Bounds {
        bytes_max: limits.result_bytes_max,
        depth_max: limits.json_depth_max,
        nodes_max: limits.json_nodes_max,
    };
    let text = bare(text);
    let value = json::parse_strict(text.as_bytes(), bounds)
        .map_err(|bad| format!("the answer is not usable: it is {bad}"))?;
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

/// Models like to put JSON between fences.
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

    struct Says(Result<&'static str, &'static str>);

    impl Extractor for Says {
        fn extract(&self, _: Extraction, _: Time) -> Extracting<'_> {
            let said = self.0.map(str::to_owned).map_err(str::to_owned);
            Box::pin(std::future::ready(said))
        }
    }

    fn time() -> Time {
        Time::new(std::time::Duration::from_secs(60))
    }

    async fn check(said: Result<&'static str, &'static str>, expected: Result<&str, &str>) {
        let schema = json!({
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        });
        let args = json!({"value": "…", "schema": schema});
        let says = Says(said);
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
    async fn only_an_answer_that_fits_the_schema_is_a_value() {
        check(Ok(r#"{"name":"a"}"#), Ok(r#"{"name":"a"}"#)).await;
        check(Ok("```json\n{\"name\":\"a\"}\n```"), Ok(r#"{"name":"a"}"#)).await;
        check(Ok("```\n{\"name\":\"a\"}```\n"), Ok(r#"{"name":"a"}"#)).await;
        check(Ok(r#"{"name":7}"#), Err("answer.name")).await;
        check(Ok(r#"{"nam":"a"}"#), Err("does not fit the schema")).await;
        check(Ok("Sure! Here it is: {}"), Err("not usable")).await;
        check(Ok(r#"{"name":"a","name":"b"}"#), Err("duplicate key")).await;
        check(Ok(""), Err("not usable")).await;
        check(Err("the host said no"), Err("the host said no")).await;
    }

    #[tokio::test]
    async fn without_a_reader_or_a_schema_nothing_leaves() {
        let limits = Limits::default();
        let args = json!({"value": 1, "schema": {"type": "string"}});
        let nobody = reply(None, &args, &limits, time()).await;
        assert!(matches!(nobody, Reply::Failed { left: false, .. }));
        let args = json!({"value": 1, "schema": {"type": "sting"}});
        let says = Says(Ok("1"));
        let refused = reply(Some(&says), &args, &limits, time()).await;
        assert!(
            matches!(refused, Reply::Failed { left: false, .. }),
            "{refused:?}"
        );
    }
}
