//! Runs an external program that gets one text on stdin and answers on stdout. Each exchange is one
//! process. The process is killed with all its children when the caller stops waiting for the
//! answer.

use std::process::Stdio;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command as Process;

use crate::process_group::ProcessGroup;

/// An external program. Its environment contains only `env`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExternalProgram {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

impl ExternalProgram {
    /// Runs the program and returns its output, or the reason why there is none.
    pub(crate) async fn converse(&self, text: String, bytes_max: u32) -> Result<Vec<u8>, String> {
        let mut group = self.start()?;
        let stdin = group.child.stdin.take();
        let stdout = group.child.stdout.take();
        let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
            return Err("the program has no pipes".into());
        };
        let ask = async move {
            // A program may answer without reading all of its input.
            let _ = stdin.write_all(text.as_bytes()).await;
        };
        let hear = async move {
            let mut said = Vec::new();
            let bounded = &mut stdout.take(u64::from(bytes_max) + 1);
            bounded.read_to_end(&mut said).await.map(|_| said)
        };
        let (said, ()) = futures_util::future::join(hear, ask).await;
        let said = said.map_err(|error| error.to_string())?;
        if said.len() > bytes_max as usize {
            return Err(format!(
                "the program's output is longer than {bytes_max} bytes"
            ));
        }
        let status = group
            .child
            .wait()
            .await
            .map_err(|error| error.to_string())?;
        if status.success() {
            Ok(said)
        } else {
            Err(format!("the program ended with {status}"))
        }
    }

    fn start(&self) -> Result<ProcessGroup, String> {
        let mut command = Process::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        ProcessGroup::spawn(&mut command)
            .map_err(|error| format!("the program cannot be started: {error}"))
    }
}
