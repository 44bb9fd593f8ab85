//! An extractor that runs a program, which reads `{"value", "schema"}` from stdin and writes the
//! JSON to stdout.

use std::time::Duration;

use serde_json::json;

use super::{ExtractionFuture, ExtractionRequest, Extractor};
use crate::client_bridge::AnswerDeadline;
use crate::program::ExternalProgram;

/// Starts one process per value.
#[derive(Debug)]
pub(crate) struct ExtractorCommand {
    program: ExternalProgram,
    wall: Duration,
    bytes_max: u32,
}

impl ExtractorCommand {
    pub(crate) fn new(program: ExternalProgram, wall: Duration, bytes_max: u32) -> Self {
        Self {
            program,
            wall,
            bytes_max,
        }
    }

    async fn ask(&self, wanted: &ExtractionRequest) -> Result<String, String> {
        let text = json!({"value": wanted.value, "schema": wanted.schema}).to_string();
        let said = self.program.converse(format!("{text}\n"), self.bytes_max);
        let said = tokio::time::timeout(self.wall, said)
            .await
            .unwrap_or_else(|_| {
                Err(format!(
                    "the program took longer than {} ms",
                    self.wall.as_millis()
                ))
            })?;
        String::from_utf8(said).map_err(|_| "the program's output is not UTF-8".to_owned())
    }
}

impl Extractor for ExtractorCommand {
    fn extract(&self, wanted: ExtractionRequest, _: AnswerDeadline) -> ExtractionFuture<'_> {
        Box::pin(async move {
            let said = self.ask(&wanted).await;
            said.map_err(|why| format!("the [extract] command failed: {why}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time() -> AnswerDeadline {
        AnswerDeadline::new(Duration::from_secs(60))
    }

    async fn check(script: &str, expected: Result<&str, &str>) {
        let program = ExternalProgram {
            program: "sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
        };
        let command = ExtractorCommand::new(program, Duration::from_secs(60), 100);
        let wanted = ExtractionRequest {
            value: json!("Ada, 36"),
            schema: json!({"type": "integer"}),
        };
        match (command.extract(wanted, time()).await, expected) {
            (Ok(said), Ok(text)) => assert_eq!(said.trim(), text, "{script}"),
            (Err(why), Err(word)) => assert!(why.contains(word), "{script}: {why}"),
            (said, _) => panic!("{script}: {said:?}"),
        }
    }

    #[tokio::test]
    async fn extractor_receives_value_and_schema_and_returns_json() {
        let echo = Ok(r#"{"value":"Ada, 36","schema":{"type":"integer"}}"#);
        check("cat", echo).await;
        check("cat > /dev/null; echo 36", Ok("36")).await;
        check("echo 36; exit 3", Err("exit status: 3")).await;
        check("head -c 1000 /dev/zero", Err("longer than 100 bytes")).await;
        check("printf '\\377'", Err("not UTF-8")).await;
    }

    #[tokio::test]
    async fn slow_or_missing_extractor_returns_nothing() {
        let program = |name: &str, args: &[&str]| ExternalProgram {
            program: name.into(),
            args: args.iter().map(|it| (*it).to_owned()).collect(),
            env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
        };
        let wanted = || ExtractionRequest {
            value: json!(1),
            schema: json!({}),
        };
        let slow = program("sleep", &["100"]);
        let slow = ExtractorCommand::new(slow, Duration::from_millis(20), 100);
        let why = slow.extract(wanted(), time()).await.unwrap_err();
        assert!(why.contains("longer than 20 ms"), "{why}");
        let absent = ExtractorCommand::new(program("/nowhere", &[]), Duration::from_secs(5), 100);
        let why = absent.extract(wanted(), time()).await.unwrap_err();
        assert!(why.contains("cannot be started"), "{why}");
    }
}
