//! Reads and writes the folder of tool files. No other module reads or writes it. The folder is
//! read only if the command line or the configuration names it.

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
use codegen::tool_file::{self, ReadToolFile, ToolFileFault};
use codegen::validate::Severity;
use serde_json::Value;

use crate::config::choice;

const FILE_BYTES_MAX: u64 = 1024 * 1024;
const FILES_MAX: usize = 20_000;
/// Maximum size of all files of a folder in bytes.
const FOLDER_BYTES_MAX: usize = 64 * 1024 * 1024;
const BOUNDS: Bounds = Bounds {
    bytes_max: FILE_BYTES_MAX as u32,
    depth_max: 100,
    nodes_max: 20_000,
};
const CODE: &str = "config-invalid";
/// The JSON Schema of the format, which is in the folder for editors.
const FORMAT_NAME: &str = "format.schema.json";
const SUFFIX: &str = ".json";

/// A folder of tool files, with the paths `<folder>/<server>/<tool>.json`. If there is only one
/// server, its files may also be at `<folder>/<tool>.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFiles {
    folder: PathBuf,
    /// The names of all configured servers.
    servers: Vec<String>,
}

/// The content of the folder: the usable files, and the problems of the others.
#[derive(Debug, Default)]
pub struct LoadedToolFiles {
    by_server: BTreeMap<String, BTreeMap<String, LoadableToolFile>>,
    pub problems: Vec<Problem>,
}

/// One file that was read.
#[derive(Debug)]
pub struct LoadableToolFile {
    /// The name in messages: the folder as it was given, then server and file.
    pub name: String,
    pub read: ReadToolFile,
}

/// A value that differs if the folder has changed. It contains names, times and sizes, but not
/// contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FolderStamp(Vec<(PathBuf, Option<SystemTime>, u64)>);

/// The result of writing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    Created,
    Changed,
    Unchanged,
}

/// Reads the files of a folder within limits.
struct FolderReader<'a> {
    files: &'a ToolFiles,
    loaded: LoadedToolFiles,
    count: usize,
    bytes: usize,
}

impl ToolFiles {
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        let servers = Vec::new();
        Self { folder, servers }
    }

    /// Sets the names of all configured servers.
    #[must_use]
    pub fn for_servers(self, servers: impl IntoIterator<Item = String>) -> Self {
        let servers = servers.into_iter().collect();
        Self { servers, ..self }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Reads all files. A folder that cannot be read is an error, and a file that cannot be read is
    /// one of the problems.
    pub fn load(&self) -> Result<LoadedToolFiles, Problem> {
        let mut reader = FolderReader {
            files: self,
            loaded: LoadedToolFiles::default(),
            count: 0,
            bytes: 0,
        };
        for (name, path) in self.entries(&self.folder)? {
            let is_folder = path.is_dir();
            if !is_folder && (!name.ends_with(SUFFIX) || name == FORMAT_NAME) {
                continue;
            }
            if !is_folder {
                match self.only_server() {
                    Some(server) => reader.take(server, &name, &path)?,
                    None => reader.loaded.problems.push(self.ambiguous(&path)),
                }
            } else if ServerName::parse(&name).is_err() {
                let why = "the folder's name is not a valid server name";
                let next = "rename the folder to the server's name in the configuration";
                let problem = unusable(&self.shown(&path), why, next);
                reader.loaded.problems.push(problem);
            } else {
                for (file, path) in self.entries(&path)? {
                    if file.ends_with(SUFFIX) {
                        reader.take(&name, &file, &path)?;
                    }
                }
            }
        }
        Ok(reader.loaded)
    }

    /// Returns the server of the files that are in no folder of a server.
    fn only_server(&self) -> Option<&str> {
        match &self.servers[..] {
            [server] => Some(server),
            _ => None,
        }
    }

    fn ambiguous(&self, path: &Path) -> Problem {
        let why = match &self.servers[..] {
            [] => "a tool file must be in the folder of its server".to_owned(),
            several => format!(
                "the file may be for any of the servers {}",
                several.join(", ")
            ),
        };
        let next = "move the file to SERVER/TOOL.json, with the server's name in the configuration";
        unusable(&self.shown(path), &why, next)
    }

    fn entries(&self, folder: &Path) -> Result<Vec<(String, PathBuf)>, Problem> {
        entries(folder).map_err(|error| self.unreadable(&error))
    }

    pub(crate) fn stamp(&self) -> FolderStamp {
        let mut stamp = Vec::new();
        let mut note = |file: PathBuf| {
            let about = fs::metadata(&file).ok();
            let changed = about.as_ref().and_then(|it| it.modified().ok());
            stamp.push((file, changed, about.map_or(0, |it| it.len())));
        };
        for (_, path) in entries(&self.folder).unwrap_or_default() {
            match entries(&path) {
                Ok(files) => files.into_iter().for_each(|(_, file)| note(file)),
                Err(_) => note(path),
            }
        }
        FolderStamp(stamp)
    }

    /// Writes one file atomically, in the one format that tool files have.
    pub fn write(&self, server: &str, tool: &str, value: &Value) -> Result<WriteOutcome, Problem> {
        let path = self.file(server, tool);
        let text = tool_file::formatted(value);
        let before = fs::read_to_string(&path).ok();
        if before.as_deref() == Some(text.as_str()) {
            return Ok(WriteOutcome::Unchanged);
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
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        write_whole(&path, &text).map_err(failed)?;
        Ok(match before {
            Some(_) => WriteOutcome::Changed,
            None => WriteOutcome::Created,
        })
    }

    /// Returns the name of a file in messages.
    #[must_use]
    pub fn shown_name(&self, server: &str, tool: &str) -> String {
        self.shown(&self.file(server, tool))
    }

    /// Returns the path of a tool's file, which need not exist.
    fn file(&self, server: &str, tool: &str) -> PathBuf {
        let name = tool_file::file_name(tool);
        let flat = self.folder.join(&name);
        match self.only_server() == Some(server) && flat.is_file() {
            true => flat,
            false => self.folder.join(server).join(name),
        }
    }

    fn shown(&self, path: &Path) -> String {
        path.to_string_lossy().into_owned()
    }

    fn unreadable(&self, error: &io::Error) -> Problem {
        let what = format!("the folder {} cannot be read", self.folder.display());
        let next = format!(
            "{}; `airlock descriptions pull` with your server flags writes tool files",
            choice::path(&self.folder, error)
        );
        Problem::new(CODE, what, error.to_string(), next)
    }
}

impl LoadedToolFiles {
    /// Returns the file for a tool.
    #[must_use]
    pub fn about(&self, server: &str, tool: &str) -> Option<&LoadableToolFile> {
        self.by_server.get(server)?.get(tool)
    }

    /// Returns all files of a server, by tool name.
    pub fn of_server(&self, server: &str) -> impl Iterator<Item = (&String, &LoadableToolFile)> {
        self.by_server.get(server).into_iter().flatten()
    }

    /// Returns the servers for which there are files.
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
                    let why = format!("the file is for the tool `{}`", read.file.name);
                    let next = format!("rename it to {right}");
                    return self.problems.push(unusable(&name, &why, &next));
                }
                let tool = read.file.name.clone();
                let files = self.by_server.entry(server.to_owned()).or_default();
                if let Some(other) = files.get(&tool) {
                    let why = format!("{} is also for the tool `{tool}`", other.name);
                    return self.problems.push(unusable(
                        &name,
                        &why,
                        "remove one of the two files",
                    ));
                }
                files.insert(tool, LoadableToolFile { name, read });
            }
            Err(faults) => {
                let faults = faults.iter().map(|fault| problem(&name, fault));
                self.problems.extend(faults);
            }
        }
    }
}

impl FolderReader<'_> {
    fn take(&mut self, server: &str, file: &str, path: &Path) -> Result<(), Problem> {
        let too_many = |why: &str| {
            let folder = self.files.folder.to_string_lossy();
            Err(unusable(&folder, why, "remove files"))
        };
        self.count += 1;
        if self.count > FILES_MAX {
            return too_many(&format!("the folder contains more than {FILES_MAX} files"));
        }
        let text = read(path);
        self.bytes += text.as_ref().map_or(0, String::len);
        if self.bytes > FOLDER_BYTES_MAX {
            return too_many("the files are larger than 64MiB in total");
        }
        let name = self.files.shown(path);
        self.loaded.take(server, file, name, text);
        Ok(())
    }
}

/// Converts a fault to a problem, with its position.
#[must_use]
pub fn problem(name: &str, fault: &ToolFileFault) -> Problem {
    let what = match fault.severity {
        Severity::Error => "is invalid",
        Severity::Warning => "is probably a mistake",
    };
    let next = "correct the file; `airlock descriptions check` checks all tool files";
    let what = format!("{name}:{} {what}", fault.line);
    Problem::new(CODE, what, fault.text.clone(), next)
}

/// Returns the problem of a file for a tool that the server does not offer.
#[must_use]
pub fn stranger(name: &str, server: &str, tool: &str, offered: &[String]) -> Problem {
    let near = closest(tool, offered.iter().map(String::as_str));
    let next = near.map_or_else(
        || "remove the file, or check whether the server has changed".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    let what = format!("{name} matches no tool");
    Problem::new(
        CODE,
        what,
        format!("the server `{server}` has no tool `{tool}`"),
        next,
    )
}

fn unusable(name: &str, why: &str, next: &str) -> Problem {
    Problem::new(CODE, format!("{name} cannot be used"), why, next)
}

/// Returns the visible entries of a folder, sorted by name.
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
        return Err("not a file".into());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err("the file is larger than 1MiB".into());
    }
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8".into())
}

/// Writes to a temporary name first, so that a reader sees either the old file or the new one.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let digest = Digest::sha256(text.as_bytes()).to_string();
    let mark = digest.get(7..15).unwrap_or_default();
    let beside = path.with_file_name(format!(".{mark}-{}.new", std::process::id()));
    fs::write(&beside, text)?;
    fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir::TempDir;
    use serde_json::json;

    fn check(place: &str, text: &str, expected: &str) {
        let scratch = TempDir::new();
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
    fn tool_file_errors_name_their_place() {
        check(
            "s/t.json",
            "{\n \"name\": \"t\",\n \"nmae\": 1}",
            "t.json:3",
        );
        check("s/t.json", "{\"name\": \"u\"}", "rename it to u.json");
        check(
            "s/t.json",
            "{\"name\": \"t\", \"name\": \"t\"}",
            "duplicate key",
        );
        check("s/t.json", "{", "not JSON");
        check("s/t.json", &"[".repeat(500), "nested deeper");
        check("t.json", "{}", "must be in the folder of its server");
        check(
            "9/t.json",
            "{}",
            "the folder's name is not a valid server name",
        );
        check("s/notes.md", "x", "");
        check("s/.t.json", "{", "");
        check(FORMAT_NAME, "{}", "");
    }

    #[test]
    fn file_without_a_server_folder_is_for_the_only_server() {
        let scratch = TempDir::new();
        let flat = scratch.path().join("t.json");
        fs::write(&flat, r#"{"name": "t", "tags": ["x"]}"#).unwrap();
        let files = |servers: &[&str]| {
            let servers = servers.iter().map(|it| (*it).to_owned());
            ToolFiles::new(scratch.path().into()).for_servers(servers)
        };
        let one = files(&["s"]);
        let loaded = one.load().unwrap();
        assert!(loaded.problems.is_empty() && loaded.about("s", "t").is_some());
        let stamp = one.stamp();
        let value = json!({"name": "t", "tags": ["x", "y"]});
        assert_eq!(one.write("s", "t", &value), Ok(WriteOutcome::Changed));
        assert_eq!(one.shown_name("s", "t"), flat.display().to_string());
        assert_ne!(one.stamp(), stamp);
        let two = files(&["a", "b"]).load().unwrap();
        let [problem] = &two.problems[..] else {
            panic!("{two:?}");
        };
        assert!(
            problem.why.ends_with("any of the servers a, b"),
            "{problem}"
        );
        assert!(problem.next.contains("SERVER/TOOL.json"), "{problem}");

        fs::create_dir(scratch.path().join("s")).unwrap();
        fs::write(scratch.path().join("s/t.json"), r#"{"name": "t"}"#).unwrap();
        let twice = one.load().unwrap();
        let [problem] = &twice.problems[..] else {
            panic!("{twice:?}");
        };
        assert!(
            problem.why.contains("is also for the tool `t`"),
            "{problem}"
        );
    }

    #[test]
    fn written_tool_file_reads_back_and_is_not_rewritten() {
        let scratch = TempDir::new();
        let files = ToolFiles::new(scratch.path().join("deep/er"));
        assert!(files.load().is_err());
        let value = json!({"name": "a/b", "tags": ["x"]});
        assert_eq!(files.write("s", "a/b", &value), Ok(WriteOutcome::Created));
        let stamp = files.stamp();
        assert_eq!(files.write("s", "a/b", &value), Ok(WriteOutcome::Unchanged));
        assert_eq!(files.stamp(), stamp);
        assert!(files.load().unwrap().about("s", "a/b").is_some());
        let value = json!({"name": "a/b", "tags": ["x", "y"]});
        assert_eq!(files.write("s", "a/b", &value), Ok(WriteOutcome::Changed));
        assert_ne!(files.stamp(), stamp);
    }
}
