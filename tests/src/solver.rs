//! Where cvc5 is. It is installed when it is not there and can be; a test that
//! does without says so.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::apt;

/// The solver, or a word about what is not tested.
pub fn path() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        if let Some(there) = look() {
            return Some(there);
        }
        if let Err(why) = apt::install(&["cvc5"]) {
            // Not through `eprintln!`: the harness would keep the line to itself.
            let _ = writeln!(std::io::stderr(), "SKIP: there is no cvc5 on PATH: {why:#}");
        }
        look()
    });
    found.clone()
}

/// One that runs: while somebody else installs it, its file is there before its libraries are.
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
