//! The files of a folder that reviewers answer for. Whatever could keep a file
//! with rules from being read, or bring one in from elsewhere, is an error: a
//! `forbid` that is left out allows.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use airlock_core::policy::FILE_BYTES_MAX;
use airlock_core::problem::Problem;
use codegen::text::is_invisible;

use super::{invalid, units};

const FILES_MAX: usize = 1_000;
const DEPTH_MAX: usize = 4;
/// Of all files of a folder: more than anybody reviews.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The files with an ending in a folder and the folders in it, or the file itself, in the order
/// of their names: how each is called in messages (with its folder's own name, not with the way
/// to it), and its text.
pub(crate) fn read(path: &Path, ending: &str) -> Result<Vec<(String, String)>, Problem> {
    let mut bytes = 0;
    let mut texts = Vec::new();
    for (name, path) in named(path, ending)? {
        let text = text(&path)?;
        bytes += text.len();
        if bytes > BYTES_MAX {
            let most = units::show_bytes(BYTES_MAX as u64);
            let why = format!("its files hold more than {most} together");
            return Err(unusable(&path, why, "name a smaller folder"));
        }
        texts.push((name, text));
    }
    Ok(texts)
}

/// What a reviewer sees of a file is what it says.
pub(super) fn is_plain(name: &str, text: &str) -> Result<(), Problem> {
    let odd = |c: &char| is_invisible(*c) && *c != '\t';
    // A `\r` by itself ends a comment, and no line that anybody sees.
    for (at, line) in text.replace("\r\n", "\n").split('\n').enumerate() {
        if let Some(c) = line.chars().find(odd) {
            let what = format!("{name}:{} cannot be used", at + 1);
            let why = format!("it contains the invisible character U+{:04X}", u32::from(c));
            return Err(invalid(what, why, "leave the character out"));
        }
    }
    Ok(())
}

fn named(path: &Path, ending: &str) -> Result<Vec<(String, PathBuf)>, Problem> {
    let root = path
        .canonicalize()
        .map_err(|error| unreadable(path, &error))?;
    let own = root.file_name().unwrap_or(path.as_os_str());
    let own = own.to_string_lossy().into_owned();
    if root.is_file() {
        return Ok(vec![(own, path.to_owned())]);
    }
    let ending = format!(".{ending}");
    let mut walk = Walk {
        root: &root,
        ending: &ending,
        found: Vec::new(),
    };
    walk.collect(path, &own, 0)?;
    walk.found.sort();
    Ok(walk.found)
}

struct Walk<'a> {
    /// Without links.
    root: &'a Path,
    ending: &'a str,
    found: Vec<(String, PathBuf)>,
}

impl Walk<'_> {
    /// What is hidden is left out.
    fn collect(&mut self, folder: &Path, name: &str, depth: usize) -> Result<(), Problem> {
        let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(folder, &error))?;
            let path = entry.path();
            let own = entry.file_name().to_string_lossy().into_owned();
            if own.starts_with('.') {
                continue;
            }
            let kind = entry
                .file_type()
                .map_err(|error| unreadable(&path, &error))?;
            let own_name = format!("{name}/{own}");
            if kind.is_dir() {
                if depth == DEPTH_MAX {
                    let why = format!("rules are read from {DEPTH_MAX} folders deep at most");
                    return Err(unusable(&path, why, "move it up, or name it by itself"));
                }
                self.collect(&path, &own_name, depth + 1)?;
            } else if own.to_lowercase().ends_with(self.ending) {
                self.file(&path, own_name)?;
            } else if kind.is_symlink() && path.is_dir() {
                let why = "it is a link to a folder, and rules in it would not be read";
                return Err(unusable(&path, why, "put the folder itself here"));
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: String) -> Result<(), Problem> {
        let is_text = path.file_name().is_some_and(|it| it.to_str().is_some());
        if !is_text || !name.ends_with(self.ending) {
            let why = format!("its name has to end in `{}`, and to be UTF-8", self.ending);
            return Err(unusable(path, why, "rename it"));
        }
        let real = path
            .canonicalize()
            .map_err(|error| unreadable(path, &error))?;
        if !real.starts_with(self.root) {
            let why = "it is a link that leads out of the folder, past those who review it";
            return Err(unusable(path, why, "put the file itself here"));
        }
        if !real.is_file() {
            return Err(unusable(path, "it is not a file", "rename or remove it"));
        }
        if self.found.len() >= FILES_MAX {
            let why = format!("there are more than {FILES_MAX} files");
            return Err(unusable(self.root, why, "name a smaller folder"));
        }
        self.found.push((name, path.to_owned()));
        Ok(())
    }
}

fn text(path: &Path) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    // It may grow while it is read.
    file.take(FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path, &error))?;
    if bytes.len() > FILE_BYTES_MAX {
        let most = units::show_bytes(FILE_BYTES_MAX as u64);
        return Err(unusable(
            path,
            format!("it is larger than {most}"),
            "split it",
        ));
    }
    String::from_utf8(bytes).map_err(|bad| {
        let valid = bad.as_bytes().get(..bad.utf8_error().valid_up_to());
        let ends = valid.unwrap_or_default().iter().filter(|it| **it == b'\n');
        let why = format!("line {} is not UTF-8", ends.count() + 1);
        unusable(path, why, "save it as UTF-8")
    })
}

fn unusable(path: &Path, why: impl Into<String>, next: &str) -> Problem {
    invalid(format!("{} cannot be used", path.display()), why, next)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    let what = format!("{} cannot be read", path.display());
    invalid(what, error.to_string(), "check the path")
}
