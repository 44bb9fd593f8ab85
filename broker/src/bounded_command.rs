//! Runs a short program with bounds on its time and output.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const OUTPUT_BYTES_MAX: u64 = 64 * 1024;

pub(crate) struct BoundedOutput {
    pub(crate) is_success: bool,
    /// How the process ended, for messages.
    pub(crate) status: String,
    pub(crate) text: String,
    pub(crate) stderr: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BoundedError {
    #[error("cannot be started: {0}")]
    NotStarted(std::io::Error),
    #[error("took too long")]
    TimedOut,
    #[error("printed more than 64 KiB")]
    TooLong,
    #[error("printed something that is not UTF-8")]
    NotText,
    #[error("failed: {0}")]
    Failed(std::io::Error),
}

/// How a program is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoundedRun<'a> {
    pub(crate) input: &'a [u8],
    /// Whether stderr is read, for messages.
    pub(crate) reads_stderr: bool,
    /// Maximum time.
    pub(crate) wall: Duration,
}

/// Runs the program, and ends it after its time.
pub(crate) fn output(
    mut command: Command,
    run: BoundedRun<'_>,
) -> Result<BoundedOutput, BoundedError> {
    let until = Instant::now() + run.wall;
    let pipe = |is_used: bool| match is_used {
        true => Stdio::piped(),
        false => Stdio::null(),
    };
    command
        .stdin(pipe(!run.input.is_empty()))
        .stdout(Stdio::piped())
        .stderr(pipe(run.reads_stderr));
    let mut child = command.spawn().map_err(BoundedError::NotStarted)?;
    let outcome = exchange(&mut child, run.input, until);
    if outcome.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(BoundedError::Failed)?;
    let (text, stderr) = outcome?;
    Ok(BoundedOutput {
        is_success: status.success(),
        status: status.to_string(),
        text,
        stderr,
    })
}

fn exchange(
    child: &mut Child,
    input: &[u8],
    until: Instant,
) -> Result<(String, String), BoundedError> {
    if let Some(mut stdin) = child.stdin.take() {
        // The input is shorter than a pipe holds, so this does not wait for the program.
        let written = stdin.write_all(input);
        written.map_err(BoundedError::Failed)?;
    }
    let stdout = child.stdout.take().map(reader);
    let stderr = child.stderr.take().map(reader);
    let text = received(stdout, until)?;
    let errors = received(stderr, until)?;
    Ok((text, errors))
}

fn reader(pipe: impl std::io::Read + Send + 'static) -> mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
        // After a timeout, nothing receives the output.
        let _ = sender.send(read.map(|_| bytes));
    });
    receiver
}

fn received(
    from: Option<mpsc::Receiver<std::io::Result<Vec<u8>>>>,
    until: Instant,
) -> Result<String, BoundedError> {
    let Some(from) = from else {
        return Ok(String::new());
    };
    let left = until.saturating_duration_since(Instant::now());
    let read = from.recv_timeout(left);
    let bytes = read.map_err(|_| BoundedError::TimedOut)?;
    let bytes = bytes.map_err(BoundedError::Failed)?;
    if bytes.len() as u64 > OUTPUT_BYTES_MAX {
        return Err(BoundedError::TooLong);
    }
    String::from_utf8(bytes).map_err(|_| BoundedError::NotText)
}
