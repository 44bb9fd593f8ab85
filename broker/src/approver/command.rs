//! Asks a program for approval. Each question starts one process, which reads the question from
//! stdin and writes the answer to stdout. Any other output counts as no answer.

use airlock_core::decide::{Answer, Question};

use super::wire::{self, ANSWER_BYTES_MAX};
use super::{AnswerFuture, Approver, nonce};
use crate::program::ExternalProgram;

/// Starts the program with only the given environment variables. The program and all its children
/// are killed if the question is withdrawn.
#[derive(Debug)]
pub struct ApproverCommand(ExternalProgram);

impl ApproverCommand {
    #[must_use]
    pub fn new(program: String, args: Vec<String>, env: Vec<(String, String)>) -> Self {
        Self(ExternalProgram { program, args, env })
    }

    async fn converse(&self, question: &Question) -> Result<Answer, String> {
        let nonce = nonce().map_err(|error| error.to_string())?;
        let text = format!("{}\n", wire::question(question, &nonce));
        let said = self.0.converse(text, ANSWER_BYTES_MAX).await?;
        wire::answer(&said, &nonce, question, &self.who()).map_err(|no| no.to_string())
    }
}

impl Approver for ApproverCommand {
    fn ask(&self, question: Question) -> AnswerFuture<'_> {
        Box::pin(async move {
            let answer = self.converse(&question).await;
            answer.unwrap_or_else(|why| Answer::Invalid {
                why: format!("the approver `{}`: {why}", self.0.program),
            })
        })
    }

    fn who(&self) -> String {
        format!("command {}", self.0.program)
    }

    fn place(&self) -> Option<String> {
        Some("by the approval program that is configured on this machine".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::tests::asked;
    use super::*;

    /// Runs a shell script as approver; `$NONCE` is the question's nonce.
    async fn check(script: &str, expected: Result<Answer, &str>) {
        let find =
            r#"q=$(cat); NONCE=$(printf %s "$q" | sed 's/.*"nonce":"\([0-9a-f]*\)".*/\1/');"#;
        let args = vec!["-c".into(), format!("{find} {script}")];
        let path = std::env::var("PATH").unwrap();
        let command = ApproverCommand::new("sh".into(), args, vec![("PATH".into(), path)]);
        let found = command.ask(asked(r#"{"project":"OPS","title":"a"}"#)).await;
        match expected {
            Ok(answer) => assert_eq!(found, answer, "{script}"),
            Err(word) => {
                let Answer::Invalid { why } = &found else {
                    panic!("{script}: {found:?}")
                };
                assert!(why.contains(word), "{script}: {why}");
            }
        }
    }

    #[tokio::test]
    async fn program_answer_requires_nonce_and_clean_exit() {
        let yes = r#"printf '{"nonce":"%s","answer":"allow-once"}' "$NONCE""#;
        check(yes, Ok(Answer::AllowOnce)).await;
        check(&format!("{yes}; exit 3"), Err("exit status: 3")).await;
        check(&format!("{yes}; {yes}"), Err("not JSON")).await;
        let no = r#"printf '{"nonce":"%s","answer":"refuse"}' "$NONCE""#;
        check(no, Ok(Answer::Refuse)).await;
        let old = r#"printf '{"nonce":"00","answer":"allow-once"}'"#;
        check(old, Err("nonce")).await;
        check("true", Err("not JSON")).await;
        check("head -c 100000 /dev/zero", Err("longer than")).await;
    }

    #[tokio::test]
    async fn missing_program_allows_nothing() {
        let command = ApproverCommand::new("/nowhere/approve".into(), Vec::new(), Vec::new());
        let found = command.ask(asked("{}")).await;
        let Answer::Invalid { why } = found else {
            panic!("{found:?}")
        };
        assert!(why.contains("cannot be started"), "{why}");
    }
}
