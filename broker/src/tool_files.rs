//! The folder of tool files. The only module that reads or writes there. Such a
//! folder is read only where the command line or the configuration names it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use airlock_core::id::ServerName;
use airlock_core::json::{self, Bounds};
use airlock_core::problem::Problem;
use codegen::canonical::Digest;
use codegen::closest::closest;
use codegen::tool_file::{self, Fault, Read};
use codegen::validate::Severity;
use serde_json::Value;

const FILE_BYTES_MAX: u64 = 1024 * 1024;
const FILES_MAX: usize = 20_000;
/// Of all files of a folder.
const FOLDER_BYTES_MAX: usize = 64 * 1024 * 1024;
const BOUNDS: Bounds = Bounds {
    bytes_max: FILE_BYTES_MAX as u32,
    depth_max: 100,
    nodes_max: 20_000,
};
const CODE: &str = "config-invalid";
/// Stands in the folder itself, so that editors know the format.
const FORMAT_NAME: &str = "format.schema.json";

/// `<folder>/<server>/<tool>.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFiles(PathBuf);

/// What stands in the folder: the files that can be used, and what is wrong with the others.
#[derive(Debug, Default)]
pub struct Loaded {
    by_server: BTreeMap<String, BTreeMap<String, Loadable>>,
    pub problems: Vec<Problem>,
}

/// One file that was read.
#[derive(Debug)]
pub struct Loadable {
    /// As messages call it: the folder as it was given, then server and file.
    pub name: String,
    pub read: Read,
}

/// Tells whether anything in the folder has changed: names, times and sizes, not contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stamp(Vec<(PathBuf, Option<SystemTime>, u64)>);

/// What became of a file that was to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Created,
    Changed,
    Unchanged,
}

impl ToolFiles {
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads everything. A folder that cannot be read is an error; a file that cannot is a problem
    /// among others.
    pub fn load(&self) -> Result<Loaded, Problem> {
        let mut loaded = Loaded::default();
        let (mut count, mut bytes) = (0_usize, 0_usize);
        for (name, path) in entries(&self.0).map_err(|error| self.unreadable(&error))? {
            if !path.is_dir() {
                if name.ends_with(".json") && name != FORMAT_NAME {
                    let why = "files about tools stand in the folder of their server";
                    let next = "move it to SERVER/TOOL.json";
                    loaded
                        .problems
                        .push(unusable(&self.shown(&path), why, next));
                }
                continue;
            }
            if ServerName::parse(&name).is_err() {
                let why = "no server can have that name";
                let next = "name the folder as the configuration names the server";
                loaded
                    .problems
                    .push(unusable(&self.shown(&path), why, next));
                continue;
            }
            let files = entries(&path).map_err(|error| self.unreadable(&error))?;
            for (file, path) in files {
                if !file.ends_with(".json") {
                    continue;
                }
                count += 1;
                if count > FILES_MAX {
                    let why = format!("it holds more than {FILES_MAX} files");
                    return Err(unusable(&self.0.to_string_lossy(), &why, "split it"));
                }
                let text = read(&path);
                bytes += text.as_ref().map_or(0, String::len);
                if bytes > FOLDER_BYTES_MAX {
                    let why = "its files hold more than 64MiB together";
                    return Err(unusable(&self.0.to_string_lossy(), why, "split it"));
                }
                loaded.take(&name, &file, self.shown(&path), text);
            }
        }
        Ok(loaded)
    }

    pub(crate) fn stamp(&self) -> Stamp {
        let mut stamp = Vec::new();
        for (_, folder) in entries(&self.0).unwrap_or_default() {
            for (_, file) in entries(&folder).unwrap_or_default() {
                let about = fs::metadata(&file).ok();
                let changed = about.as_ref().and_then(|it| it.modified().ok());
                stamp.push((file, changed, about.map_or(0, |it| it.len())));
            }
        }
        Stamp(stamp)
    }

    /// Writes one file whole or not at all, in the one form that files have.
    pub fn write(&self, server: &str, tool: &str, value: &Value) -> Result<Written, Problem> {
        let folder = self.0.join(server);
        let path = folder.join(tool_file::file_name(tool));
        let text = tool_file::formatted(value);
        let before = fs::read_to_string(&path).ok();
        if before.as_deref() == Some(text.as_str()) {
            return Ok(Written::Unchanged);
        }
        let failed = |error: io::Error| {
            let what = format!("{} cannot be written", self.shown(&path));
            Problem::new(
                CODE,
                what,
                error.to_string(),
                "check the folder and its owner",
            )
        };
        fs::create_dir_all(&folder).map_err(failed)?;
        write_whole(&path, &text).map_err(failed)?;
        Ok(match before {
            Some(_) => Written::Changed,
            None => Written::Created,
        })
    }

    /// What a file is called in messages.
    #[must_use]
    pub fn shown_name(&self, server: &str, tool: &str) -> String {
        self.shown(&self.0.join(server).join(tool_file::file_name(tool)))
    }

    fn shown(&self, path: &Path) -> String {
        path.to_string_lossy().into_owned()
    }

    fn unreadable(&self, error: &io::Error) -> Problem {
        let what = format!("the folder {} cannot be read", self.0.display());
        let next = "name the folder that holds SERVER/TOOL.json";
        Problem::new(CODE, what, error.to_string(), next)
    }
}

impl Loaded {
    /// The file about a tool.
    #[must_use]
    pub fn about(&self, server: &str, tool: &str) -> Option<&Loadable> {
        self.by_server.get(server)?.get(tool)
    }

    /// All files of a server, by the names of the tools.
    pub fn of_server(&self, server: &str) -> impl Iterator<Item = (&String, &Loadable)> {
        self.by_server.get(server).into_iter().flatten()
    }

    /// The servers that there are files about.
    pub fn servers(&self) -> impl Iterator<Item = &String> {
        self.by_server.keys()
    }

    fn take(&mut self, server: &str, file: &str, name: String, text: Result<String, String>) {
        let text = match text {
            Ok(text) => text,
            Err(why) => return self.problems.push(unusable(&name, &why, "check the file")),
        };
        let value = match json::parse_strict(text.as_bytes(), BOUNDS) {
            Ok(value) => value,
            Err(bad) => {
                let why = bad.to_string();
                return self
                    .problems
                    .push(unusable(&name, &why, "correct the file"));
            }
        };
        match tool_file::read(&text, value) {
            Ok(read) => {
                let right = tool_file::file_name(&read.file.name);
                if right != file {
                    let why = format!("it is about the tool `{}`", read.file.name);
                    let next = format!("name it {right}");
                    return self.problems.push(unusable(&name, &why, &next));
                }
                let tool = read.file.name.clone();
                let files = self.by_server.entry(server.to_owned()).or_default();
                files.insert(tool, Loadable { name, read });
            }
            Err(faults) => {
                let faults = faults.iter().map(|fault| problem(&name, fault));
                self.problems.extend(faults);
            }
        }
    }
}

/// A fault as a message, with its place.
#[must_use]
pub fn problem(name: &str, fault: &Fault) -> Problem {
    let what = match fault.severity {
        Severity::Error => "cannot be used as it is",
        Severity::Warning => "deserves a look",
    };
    let next = "correct the file; `airlock descriptions check` looks at all of them";
    let what = format!("{name}:{} {what}", fault.line);
    Problem::new(CODE, what, fault.text.clone(), next)
}

/// A file about a tool that its server does not offer.
#[must_use]
pub fn stranger(name: &str, server: &str, tool: &str, offered: &[String]) -> Problem {
    let near = closest(tool, offered.iter().map(String::as_str));
    let next = near.map_or_else(
        || "remove it, or look whether the server has changed".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    let what = format!("{name} is about no tool");
    Problem::new(
        CODE,
        what,
        format!("the server `{server}` offers no `{tool}`"),
        next,
    )
}

fn unusable(name: &str, why: &str, next: &str) -> Problem {
    Problem::new(CODE, format!("{name} cannot be used"), why, next)
}

/// Visible entries of a folder, sorted by name.
fn entries(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, String> {
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    if !file.metadata().is_ok_and(|it| it.is_file()) {
        return Err("it is not a file".into());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err("it is larger than 1MiB".into());
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".into())
}

/// Under another name first: a reader sees the old file or the new one.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let digest = Digest::of(text.as_bytes()).to_string();
    let mark = digest.get(7..15).unwrap_or_default();
    let beside = path.with_file_name(format!(".{mark}-{}.new", std::process::id()));
    fs::write(&beside, text)?;
    fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use serde_json::json;

    fn check(place: &str, text: &str, expected: &str) {
        let scratch = Scratch::new();
        let path = scratch.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let loaded = ToolFiles::new(scratch.path().into()).load().unwrap();
        let problems: String = loaded.problems.iter().map(ToString::to_string).collect();
        if expected.is_empty() {
            assert_eq!(problems, "");
        } else {
            assert!(problems.contains(expected), "{place}: {problems}");
        }
        assert!(loaded.about("s", "t").is_none());
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_place() {
        check(
            "s/t.json",
            "{\n \"name\": \"t\",\n \"nmae\": 1}",
            "t.json:3",
        );
        check("s/t.json", "{\"name\": \"u\"}", "name it u.json");
        check(
            "s/t.json",
            "{\"name\": \"t\", \"name\": \"t\"}",
            "duplicate key",
        );
        check("s/t.json", "{", "not JSON");
        check("s/t.json", &"[".repeat(500), "nested deeper");
        check("t.json", "{}", "folder of their server");
        check("9/t.json", "{}", "no server can have that name");
        check("s/notes.md", "x", "");
        check("s/.t.json", "{", "");
        check(FORMAT_NAME, "{}", "");
    }

    #[test]
    fn what_was_written_is_read_back_and_not_written_again() {
        let scratch = Scratch::new();
        let files = ToolFiles::new(scratch.path().join("deep/er"));
        assert!(files.load().is_err());
        let value = json!({"name": "a/b", "tags": ["x"]});
        assert_eq!(files.write("s", "a/b", &value), Ok(Written::Created));
        let stamp = files.stamp();
        assert_eq!(files.write("s", "a/b", &value), Ok(Written::Unchanged));
        assert_eq!(files.stamp(), stamp);
        assert!(files.load().unwrap().about("s", "a/b").is_some());
        let value = json!({"name": "a/b", "tags": ["x", "y"]});
        assert_eq!(files.write("s", "a/b", &value), Ok(Written::Changed));
        assert_ne!(files.stamp(), stamp);
    }
}
