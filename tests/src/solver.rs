//! Finds the solver cvc5, or installs it. If neither is possible, prints one `SKIP:` line.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::apt;

/// Returns the path of the solver, or `None` after printing a `SKIP:` line with the reason.
pub fn path() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        if let Some(there) = look() {
            return Some(there);
        }
        if let Err(why) = apt::install(&["cvc5"]) {
            // Not through `eprintln!`: the test harness would capture the line.
            let _ = writeln!(std::io::stderr(), "SKIP: no cvc5 on PATH: {why:#}");
        }
        look()
    });
    found.clone()
}

/// Returns a solver that can run. While another process installs the solver, its file exists before
/// its libraries do.
fn look() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path).map(|it| it.join("cvc5"));
    all.find(|it| it.is_file() && runs(it))
}

fn runs(program: &Path) -> bool {
    let mut asked = Command::new(program);
    asked.arg("--version").stdin(Stdio::null());
    asked.output().is_ok_and(|it| it.status.success())
}
