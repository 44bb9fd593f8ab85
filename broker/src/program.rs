//! A program that is told one text on its stdin and says one on its stdout: one
//! process each time, killed with all that it started when nobody waits any more.

use std::process::Stdio;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command as Process;

use crate::process_group::ProcessGroup;

/// Gets no environment but what it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

impl Program {
    /// What it says, or why that counts as nothing.
    pub(crate) async fn converse(&self, text: String, bytes_max: u32) -> Result<Vec<u8>, String> {
        let mut group = self.start()?;
        let stdin = group.child.stdin.take();
        let stdout = group.child.stdout.take();
        let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
            return Err("it has no pipes".into());
        };
        let ask = async move {
            // Whoever does not read everything may answer all the same.
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
            return Err(format!("its output is longer than {bytes_max} bytes"));
        }
        let status = group
            .child
            .wait()
            .await
            .map_err(|error| error.to_string())?;
        if status.success() {
            Ok(said)
        } else {
            Err(format!("it ended with {status}"))
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
        ProcessGroup::spawn(&mut command).map_err(|error| format!("it cannot be started: {error}"))
    }
}
