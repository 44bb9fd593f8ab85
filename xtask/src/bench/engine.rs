//! An engine under measurement: the processes to start, and the parsing of their output.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::rows::{Mode, Row};

pub(super) struct Engine {
    pub(super) name: &'static str,
    /// Whether the engine is airlock. airlock has rows in several modes; a peer has each row in one
    /// mode.
    pub(super) is_ours: bool,
    /// Command that measures a row, given by the arguments `ROW WORK COUNT`, and prints
    /// `{"samples": […]}`.
    pub(super) meter: Vec<PathBuf>,
    /// Command that starts cold and prints the value of `1+1`.
    pub(super) cold: Vec<PathBuf>,
    /// Environment variable for all processes of the engine.
    pub(super) variable: Option<(&'static str, &'static str)>,
    /// Text for an additional figure of this engine, which is shown but not compared.
    pub(super) note: Option<&'static str>,
}

impl Engine {
    /// Returns the samples of one row in one mode.
    pub(super) fn samples(&self, row: Row, way: Mode, work: &Path, count: u32) -> Result<Vec<f64>> {
        if row == Row::Cold {
            return (0..count).map(|_| self.cold_start_ms()).collect();
        }
        let word = match way {
            Mode::Bare if self.is_ours => format!("{}-bare", row.word()),
            Mode::Full if self.is_ours => format!("{}-full", row.word()),
            Mode::Pump => format!("{}-pump", row.word()),
            _ => row.word().to_owned(),
        };
        let mut command = self.command(&self.meter)?;
        command.arg(&word).arg(work).arg(count.to_string());
        let output = command
            .stderr(Stdio::inherit())
            .output()
            .context("could not be started")?;
        ensure!(
            output.status.success(),
            "{} failed at `{word}`: {}",
            self.name,
            output.status
        );
        parse(&output.stdout).with_context(|| format!("output of {} at `{word}`", self.name))
    }

    fn cold_start_ms(&self) -> Result<f64> {
        let mut command = self.command(&self.cold)?;
        let start = Instant::now();
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .context("could not be started")?;
        let mut first = [0_u8; 1];
        let read = child.stdout.as_mut().map(|out| out.read(&mut first));
        let elapsed = start.elapsed();
        let status = child.wait()?;
        ensure!(
            matches!(read, Some(Ok(1))) && status.success(),
            "{} did not start: {status}",
            self.name
        );
        Ok(elapsed.as_secs_f64() * 1e3)
    }

    fn command(&self, words: &[PathBuf]) -> Result<Command> {
        let (program, arguments) = words.split_first().context("an engine without a program")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(self.variable)
            .stdin(Stdio::null());
        Ok(command)
    }
}

fn parse(stdout: &[u8]) -> Result<Vec<f64>> {
    let said: Value = serde_json::from_slice(stdout).context("expected one JSON object")?;
    let samples = said
        .get("samples")
        .and_then(Value::as_array)
        .context("`samples` is not an array")?;
    let numbers: Option<Vec<f64>> = samples.iter().map(Value::as_f64).collect();
    numbers
        .filter(|numbers| !numbers.is_empty())
        .context("`samples` contains other values than numbers")
}
