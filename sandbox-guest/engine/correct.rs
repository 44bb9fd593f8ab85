//! Generates the sources of one crate of the engine: the sources of the registry, with the
//! corrections for this crate. The files in [`CORRECTIONS`] are patches for the engine's own
//! repository, so that each can be proposed there unchanged. A patch applies if the text that it
//! removes, with its context lines, occurs exactly once in the file, at any position. If a patch
//! does not apply, the build fails.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

const CORRECTIONS: &str = "../corrections";

/// Folders that a patch may change. Each folder of the engine's repository is a crate here.
const CORRECTED: [&str; 3] = ["core/ast/src/", "core/engine/src/", "core/parser/src/"];

/// The guests' workspace, whose lock file determines the version of the sources.
const WORKSPACE: &str = "../../Cargo.toml";

/// A platform that is never built for. The registry's crate is a dependency for this platform only,
/// so that cargo locks and fetches the crate, and never compiles it.
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
    // The name of a folder below `core` in the engine's repository, and of the crate made from it.
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let folder = here
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .ok_or("this crate has no folder")?;
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
                return Err(format!("{patch}: {file} is not in a corrected crate"));
            }
            if let Some(file) = hunk.file.strip_prefix(&prefix) {
                apply(&hunk, &out.join(file)).map_err(|why| {
                    format!(
                        "{}: {} of {}: {why}; update the patch for this version of the engine, \
                         or remove it if the engine contains the change",
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

/// A changed part of a file, before and after.
struct Hunk<'a> {
    file: &'a str,
    /// The position according to the patch.
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
            // The text before the first file describes the patch.
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
        return Err(format!("the text to change occurs {times} times"));
    }
    let text = text.replacen(&hunk.wrong, &hunk.right, 1);
    fs::write(file, text).map_err(|why| at(file, &why))
}

/// Removes the crate attributes at the beginning, which an included file must not have.
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

/// Returns the patches in the order of their numbers.
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

/// Returns the folder with the sources of the registry's crate; cargo fetches them if necessary.
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

/// Whether a manifest's folder is named after the crate and a version.
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
