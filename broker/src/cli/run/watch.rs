//! `airlock run --watch`: runs the script again whenever a file that it consists of changes.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{RunOptions, Signals, run_once};
use crate::broker::Cancel;
use crate::cli::options::usage;
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print_json, runtime};
use crate::config::Environment;
use crate::render::escape;

/// Interval between two looks at the files. A person does not notice the delay.
const INTERVAL: Duration = Duration::from_millis(200);

/// What tells whether a file was written since: device, inode, size and time. `None` if it is not
/// there.
type FileState = Option<(u64, u64, u64, i64, i64)>;

/// Runs until a signal arrives. A problem of one run does not end the watch.
pub(super) fn run(
    options: &RunOptions,
    environment: &Environment,
    screen: &Screen,
    cancel: &Cancel,
) -> Outcome {
    let files = files(options).ok_or_else(|| {
        usage(
            "`--watch` has no file to watch",
            "the script does not come from a file",
            "save the script in a file and run `airlock run FILE --watch`",
        )
    })?;
    let runtime = runtime()?;
    let signals = Signals::cancel(cancel, screen, None);
    loop {
        let before = states(&files);
        let ended = run_once(options, environment, screen, cancel, Some(&signals));
        if let Err(problem) = ended {
            if options.json {
                print_json(&serde_json::json!({ "problem": problem }))?;
            }
            screen.problem(&problem);
        }
        signals.started();
        screen.remark(&format!("watching {}; Ctrl-C ends\n", listed(&files)));
        let changed = runtime.block_on(cancel.or(async {
            while states(&files) == before {
                tokio::time::sleep(INTERVAL).await;
            }
        }));
        if changed.is_none() {
            return Ok(exit::CANCELLED);
        }
    }
}

/// Returns the files that the script and its input are read from.
fn files(options: &RunOptions) -> Option<Vec<PathBuf>> {
    let script = options.script.clone();
    let script = script.filter(|path| path.as_os_str() != "-")?;
    let input = options.input.as_deref().and_then(|it| it.strip_prefix('@'));
    let input = input.filter(|path| *path != "-").map(PathBuf::from);
    Some(std::iter::once(script).chain(input).collect())
}

fn listed(files: &[PathBuf]) -> String {
    let names = files.iter().map(|it| it.display().to_string());
    let names: Vec<String> = names.collect();
    escape::line(&names.join(" and ")).into_owned()
}

fn states(files: &[PathBuf]) -> Vec<FileState> {
    files.iter().map(|file| state(file).ok()).collect()
}

fn state(file: &Path) -> io::Result<(u64, u64, u64, i64, i64)> {
    let is = std::fs::metadata(file)?;
    Ok((is.dev(), is.ino(), is.size(), is.mtime(), is.mtime_nsec()))
}
