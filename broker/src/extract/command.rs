//! A program that reads: `{"value", "schema"}` on its stdin, the JSON on its stdout.

use std::time::Duration;

use serde_json::json;

use super::{Extracting, Extraction, Extractor};
use crate::carrier::Time;
use crate::program::Program;

/// One process for each value.
#[derive(Debug)]
pub(crate) struct Command {
    program: Program,
    wall: Duration,
    bytes_max: u32,
}

impl Command {
    pub(crate) fn new(program: Program, wall: Duration, bytes_max: u32) -> Self {
        Self {
            program,
            wall,
            bytes_max,
        }
    }

    async fn ask(&self, wanted: &Extraction) -> Result<String, String> {
        let text = json!({"value": wanted.value, "schema": wanted.schema}).to_string();
        let said = self.program.converse(format!("{text}\n"), self.bytes_max);
        let said = tokio::time::timeout(self.wall, said)
            .await
            .unwrap_or_else(|_| Err(format!("it took longer than {} ms", self.wall.as_millis())))?;
        String::from_utf8(said).map_err(|_| "its output is not UTF-8".to_owned())
    }
}

impl Extractor for Command {
    fn extract(&self, wanted: Extraction, _: Time) -> Extracting<'_> {
        Box::pin(async move {
            let said = self.ask(&wanted).await;
            said.map_err(|why| format!("the configured command gave no answer: {why}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time() -> Time {
        Time::new(Duration::from_secs(60))
    }

    async fn check(script: &str, expected: Result<&str, &str>) {
        let program = Program {
            program: "sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
        };
        let command = Command::new(program, Duration::from_secs(60), 100);
        let wanted = Extraction {
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
    async fn a_program_is_told_value_and_schema_and_says_json() {
        let echo = Ok(r#"{"value":"Ada, 36","schema":{"type":"integer"}}"#);
        check("cat", echo).await;
        check("cat > /dev/null; echo 36", Ok("36")).await;
        check("echo 36; exit 3", Err("exit status: 3")).await;
        check("head -c 1000 /dev/zero", Err("longer than 100 bytes")).await;
        check("printf '\\377'", Err("not UTF-8")).await;
    }

    #[tokio::test]
    async fn a_program_that_is_slow_or_not_there_says_nothing() {
        let program = |name: &str, args: &[&str]| Program {
            program: name.into(),
            args: args.iter().map(|it| (*it).to_owned()).collect(),
            env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
        };
        let wanted = || Extraction {
            value: json!(1),
            schema: json!({}),
        };
        let slow = program("sleep", &["100"]);
        let slow = Command::new(slow, Duration::from_millis(20), 100);
        let why = slow.extract(wanted(), time()).await.unwrap_err();
        assert!(why.contains("longer than 20 ms"), "{why}");
        let absent = Command::new(program("/nowhere", &[]), Duration::from_secs(5), 100);
        let why = absent.extract(wanted(), time()).await.unwrap_err();
        assert!(why.contains("cannot be started"), "{why}");
    }
}
