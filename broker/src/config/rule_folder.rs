//! Reads the rule files of a reviewed folder. Entries that could hide a rule file, or add one from
//! elsewhere, are errors, because a missing `forbid` rule would allow calls.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use airlock_core::policy::FILE_BYTES_MAX;
use airlock_core::problem::Problem;
use codegen::text::is_invisible;

use super::{choice, invalid};
use airlock_sandbox::units;

const FILES_MAX: usize = 1_000;
const DEPTH_MAX: usize = 4;
/// Maximum size of all files of a folder in bytes. Folders that people review are smaller.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Reads a file, or all files with this ending in a folder and its subfolders, sorted by name.
/// Returns the name and the text of each file. A name begins with the name of the folder, without
/// the path to the folder.
pub(crate) fn read(path: &Path, ending: &str) -> Result<Vec<(String, String)>, Problem> {
    let mut bytes = 0;
    let mut texts = Vec::new();
    for (name, path) in named(path, ending)? {
        let text = text(&path)?;
        bytes += text.len();
        if bytes > BYTES_MAX {
            let most = units::show_bytes(BYTES_MAX as u64);
            let why = format!("the files are larger than {most} in total");
            return Err(unusable(&path, why, "name a smaller folder"));
        }
        texts.push((name, text));
    }
    Ok(texts)
}

/// Checks that a file has no invisible characters, so that a reviewer sees everything in it.
pub(super) fn is_plain(name: &str, text: &str) -> Result<(), Problem> {
    let odd = |c: &char| is_invisible(*c) && *c != '\t';
    // A `\r` alone ends a comment, but editors do not show it as a line break.
    for (at, line) in text.replace("\r\n", "\n").split('\n').enumerate() {
        if let Some(c) = line.chars().find(odd) {
            let what = format!("invalid character in {name}:{}", at + 1);
            let why = format!(
                "the line has the invisible character U+{:04X}",
                u32::from(c)
            );
            return Err(invalid(what, why, "remove the character"));
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
    /// The real path of the folder, without links.
    root: &'a Path,
    ending: &'a str,
    found: Vec<(String, PathBuf)>,
}

impl Walk<'_> {
    /// Collects the files of a folder, except hidden files.
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
                    let why = format!("rules may be at most {DEPTH_MAX} folders deep");
                    let next = "move the folder up, or name it with a flag of its own";
                    return Err(unusable(&path, why, next));
                }
                self.collect(&path, &own_name, depth + 1)?;
            } else if own.to_lowercase().ends_with(self.ending) {
                self.file(&path, own_name)?;
            } else if kind.is_symlink() && path.is_dir() {
                let why = "this is a link to a folder, and its rules would not be read";
                return Err(unusable(&path, why, "replace the link by the folder"));
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: String) -> Result<(), Problem> {
        let is_text = path.file_name().is_some_and(|it| it.to_str().is_some());
        if !is_text || !name.ends_with(self.ending) {
            let why = format!("the name must end in `{}` and be UTF-8", self.ending);
            return Err(unusable(path, why, "rename the file"));
        }
        let real = path
            .canonicalize()
            .map_err(|error| unreadable(path, &error))?;
        if !real.starts_with(self.root) {
            let why = "the link leads out of the folder, so reviewers may not see the file";
            return Err(unusable(path, why, "replace the link by the file"));
        }
        if !real.is_file() {
            let why = "this is not a file";
            return Err(unusable(path, why, "rename or remove the entry"));
        }
        if self.found.len() >= FILES_MAX {
            let why = format!("the folder has more than {FILES_MAX} files");
            return Err(unusable(self.root, why, "name a smaller folder"));
        }
        self.found.push((name, path.to_owned()));
        Ok(())
    }
}

fn text(path: &Path) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    // The file may grow while it is read.
    file.take(FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path, &error))?;
    if bytes.len() > FILE_BYTES_MAX {
        let most = units::show_bytes(FILE_BYTES_MAX as u64);
        return Err(unusable(
            path,
            format!("the file is larger than {most}"),
            "split the file",
        ));
    }
    String::from_utf8(bytes).map_err(|bad| {
        let valid = bad.as_bytes().get(..bad.utf8_error().valid_up_to());
        let ends = valid.unwrap_or_default().iter().filter(|it| **it == b'\n');
        let why = format!("line {} is not UTF-8", ends.count() + 1);
        unusable(path, why, "save the file as UTF-8")
    })
}

fn unusable(path: &Path, why: impl Into<String>, next: &str) -> Problem {
    let what = format!("invalid policy file or folder {}", path.display());
    invalid(what, why, next)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    let what = format!("{} cannot be read", path.display());
    invalid(what, error.to_string(), choice::path(path, error))
}
