//! Where cvc5 is. It is installed when it is not there and can be; a test that
//! does without says so.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::apt;

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

fn look() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path).map(|it| it.join("cvc5"));
    all.find(|it| it.is_file())
}
