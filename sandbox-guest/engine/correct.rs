//! Makes the sources of one crate of the engine: what its registry carries, with the
//! corrections that concern it. What stands in [`CORRECTIONS`] are patches of the engine's own
//! repository, so that each can be proposed there as it is. A patch fits where the text that it
//! takes away, with the lines around it, stands exactly once; where it stands in the file does
//! not matter. One that does not fit ends the build.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

const CORRECTIONS: &str = "../corrections";

/// What a patch may change: these folders of the engine's repository are crates here.
const CORRECTED: [&str; 3] = ["core/ast/src/", "core/engine/src/", "core/parser/src/"];

/// The guests' workspace, whose lock file says which sources are taken.
const WORKSPACE: &str = "../../Cargo.toml";

/// Nothing is built for this platform. The registry's crate is a dependency there alone, so that
/// it is locked and fetched like every other, and never compiled.
const NOWHERE: &str = "x86_64-unknown-none";

fn main() -> ExitCode {
    match correct() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            for line in why.lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn correct() -> Result<(), String> {
    for source in ["../correct.rs", CORRECTIONS, "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={source}");
    }
    // The folder below `core` in the engine's repository, and the crate that comes from it.
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let folder = here
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .ok_or("this crate lies in no folder")?;
    let sources = sources(&here, &format!("boa_{folder}"))?;
    let out = PathBuf::from(variable("OUT_DIR")?).join("src");
    if out.exists() {
        fs::remove_dir_all(&out).map_err(|why| at(&out, &why))?;
    }
    copy(&sources, &out)?;
    let prefix = format!("core/{folder}/src/");
    for patch in patches(&here)? {
        let text = fs::read_to_string(&patch).map_err(|why| at(&patch, &why))?;
        for hunk in hunks(&text) {
            if !CORRECTED.iter().any(|of| hunk.file.starts_with(of)) {
                let (patch, file) = (patch.display(), hunk.file);
                return Err(format!("{patch}: {file} is of no crate that is corrected"));
            }
            if let Some(file) = hunk.file.strip_prefix(&prefix) {
                apply(&hunk, &out.join(file)).map_err(|why| {
                    format!(
                        "{}: {} of {}: {why}; make the patch anew for this version of the engine, \
                         or take it out if the engine has what it does",
                        patch.display(),
                        hunk.place,
                        hunk.file,
                    )
                })?;
            }
        }
    }
    includable(&out.join("lib.rs"))
}

/// A piece of a file, as it is and as it should be.
struct Hunk<'a> {
    file: &'a str,
    /// Where the patch says that it is.
    place: &'a str,
    wrong: String,
    right: String,
}

fn hunks(patch: &str) -> Vec<Hunk<'_>> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    let mut file = "";
    for line in patch.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            file = name;
        } else if line.starts_with("--- a/") || line.starts_with("diff ") || file.is_empty() {
            // What stands before the first file says what the patch is about.
        } else if line.starts_with("@@ ") {
            let (wrong, right) = (String::new(), String::new());
            hunks.push(Hunk {
                file,
                place: line,
                wrong,
                right,
            });
        } else if let Some(hunk) = hunks.last_mut() {
            let (kind, rest) = line.split_at(line.len().min(1));
            for (side, other) in [(&mut hunk.wrong, "+"), (&mut hunk.right, "-")] {
                if kind != other {
                    side.push_str(rest);
                    side.push('\n');
                }
            }
        }
    }
    hunks
}

fn apply(hunk: &Hunk<'_>, file: &Path) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|why| at(file, &why))?;
    let times = text.matches(&hunk.wrong).count();
    if times != 1 {
        return Err(format!("what it changes stands there {times} times"));
    }
    let text = text.replacen(&hunk.wrong, &hunk.right, 1);
    fs::write(file, text).map_err(|why| at(file, &why))
}

/// What is included may have no attributes of a crate at its beginning.
fn includable(root: &Path) -> Result<(), String> {
    let text = fs::read_to_string(root).map_err(|why| at(root, &why))?;
    let mut kept = String::new();
    let mut attribute = false;
    for line in text.lines() {
        attribute |= line.starts_with("#![");
        if !attribute && !line.starts_with("//!") {
            kept.push_str(line);
            kept.push('\n');
        }
        let ends = line.contains(")]") && !line.starts_with(' ');
        attribute &= !ends;
    }
    fs::write(root, kept).map_err(|why| at(root, &why))
}

/// The patches by their numbers.
fn patches(here: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = here.join(CORRECTIONS);
    let mut patches = entries(&folder).map_err(|why| at(&folder, &why))?;
    patches.retain(|path| path.extension().is_some_and(|ending| ending == "patch"));
    patches.sort();
    Ok(patches)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|why| at(to, &why))?;
    for entry in entries(from).map_err(|why| at(from, &why))? {
        let Some(name) = entry.file_name() else {
            continue;
        };
        let copied = to.join(name);
        if entry.is_dir() {
            copy(&entry, &copied)?;
        } else {
            let text = fs::read(&entry).map_err(|why| at(&entry, &why))?;
            fs::write(&copied, text).map_err(|why| at(&copied, &why))?;
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect()
}

/// Where cargo has put the sources of the registry's crate, which it fetches when they are
/// missing.
fn sources(here: &Path, name: &str) -> Result<PathBuf, String> {
    let output = Command::new(variable("CARGO")?)
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", NOWHERE, "--manifest-path"])
        .arg(here.join(WORKSPACE))
        .output()
        .map_err(|why| format!("cargo metadata could not be started: {why}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let manifest = said
        .split("\"manifest_path\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(|manifest| PathBuf::from(manifest.replace("\\\\", "\\")))
        .find(|manifest| is_of(manifest, name));
    manifest
        .and_then(|manifest| Some(manifest.parent()?.join("src")))
        .ok_or_else(|| {
            let why = String::from_utf8_lossy(&output.stderr);
            format!("the sources of {name} were not found: {}", why.trim())
        })
}

/// Whether a crate's manifest lies in a folder that is named after the crate and its version.
fn is_of(manifest: &Path, name: &str) -> bool {
    let folder = manifest.parent().and_then(Path::file_name);
    let version = folder
        .and_then(|folder| folder.to_str())
        .and_then(|folder| folder.strip_prefix(name)?.strip_prefix('-'));
    version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
}

fn at(path: &Path, why: &io::Error) -> String {
    format!("{}: {why}", path.display())
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|why| format!("{name}: {why}"))
}
