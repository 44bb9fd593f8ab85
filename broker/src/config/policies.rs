//! Which policy files there are, and which groups their rules may name. Reads
//! the folders; what the rules say is the core's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use airlock_core::policy::{FILE_BYTES_MAX, PolicyFile};
use airlock_core::problem::Problem;
use airlock_core::rules::Pattern;

use super::file::Located;
use super::{invalid, invalid_at, units};

const EXTENSION: &str = "cedar";
const FILES_MAX: usize = 1_000;
const DEPTH_MAX: usize = 4;

/// What flags and files say about policies.
#[derive(Debug, Clone, Default)]
pub struct PolicyConfig {
    pub files: Vec<PolicyFile>,
    /// A folder that may permit is named, if only an empty one: what no rule permits is denied.
    pub needs_permit: bool,
    /// Names for several tools, as rules write them: `Action::"group:NAME"`.
    pub groups: BTreeMap<String, Vec<Pattern>>,
}

/// A folder or a file of rules, and whether it may only tighten.
#[derive(Debug, Clone)]
pub(crate) struct PolicyPath {
    pub(crate) path: PathBuf,
    pub(crate) tightens: bool,
}

/// Groups as a configuration file has them.
pub(super) type Groups = Vec<(String, Vec<Located>)>;

impl PolicyConfig {
    pub(super) fn gather(paths: &[PolicyPath], groups: Groups) -> Result<Self, Problem> {
        let mut config = Self::default();
        for PolicyPath { path, tightens } in paths {
            config.needs_permit |= !tightens;
            let found = read(path, *tightens)?;
            config.files.extend(found);
        }
        for (name, patterns) in groups {
            let patterns = patterns
                .iter()
                .map(pattern)
                .collect::<Result<Vec<_>, _>>()?;
            config.groups.entry(name).or_default().extend(patterns);
        }
        Ok(config)
    }

    /// Whether anything decides besides patterns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.needs_permit
    }
}

fn pattern(at: &Located) -> Result<Pattern, Problem> {
    Pattern::parse(&at.text).map_err(|bad| {
        let what = format!("the pattern '{}' ({}) cannot be read", at.text, at.origin);
        let next = "write SERVER.TOOL, with * for any characters";
        invalid_at(&at.origin, what, bad.to_string(), next)
    })
}

/// All `.cedar` files of a folder and the folders in it, in the order of their names.
pub(crate) fn read(path: &Path, tightens: bool) -> Result<Vec<PolicyFile>, Problem> {
    let mut files = Vec::new();
    for (name, path) in named(path, EXTENSION)? {
        let text = text(&path)?;
        files.push(PolicyFile {
            name,
            text,
            tightens,
        });
    }
    Ok(files)
}

/// The files with an ending in a folder, or the file itself: how each is called in messages
/// (with its folder's own name, not with the way to it), and where it is.
pub(crate) fn named(path: &Path, ending: &str) -> Result<Vec<(String, PathBuf)>, Problem> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    let own = path
        .canonicalize()
        .map_err(|error| unreadable(path, &error))?;
    let own = own
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned();
    if metadata.is_file() {
        return Ok(vec![(own, path.to_owned())]);
    }
    let mut found = Vec::new();
    collect(path, &own, &format!(".{ending}"), 0, &mut found)?;
    found.sort();
    if found.len() > FILES_MAX {
        let why = format!("it holds {} files; {FILES_MAX} are allowed", found.len());
        return Err(invalid(
            format!("{} cannot be used", path.display()),
            why,
            "name a smaller folder",
        ));
    }
    Ok(found)
}

/// What is hidden is left out, and so is what lies deeper than anybody looks.
fn collect(
    folder: &Path,
    name: &str,
    ending: &str,
    depth: usize,
    found: &mut Vec<(String, PathBuf)>,
) -> Result<(), Problem> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(folder, &error))?;
        let path = entry.path();
        let Some(own) = entry.file_name().to_str().map(str::to_owned) else {
            continue;
        };
        let own_name = format!("{name}/{own}");
        if own.starts_with('.') {
            continue;
        }
        if path.is_dir() && depth < DEPTH_MAX {
            collect(&path, &own_name, ending, depth + 1, found)?;
        } else if own.ends_with(ending) && path.is_file() {
            found.push((own_name, path));
        }
    }
    Ok(())
}

pub(crate) fn text(path: &Path) -> Result<String, Problem> {
    let length = fs::metadata(path)
        .map_err(|error| unreadable(path, &error))?
        .len();
    if length > FILE_BYTES_MAX as u64 {
        let why = format!(
            "it is larger than {}",
            units::show_bytes(FILE_BYTES_MAX as u64)
        );
        return Err(invalid(
            format!("{} cannot be read", path.display()),
            why,
            "split it",
        ));
    }
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
    String::from_utf8(bytes).map_err(|_| {
        let what = format!("{} cannot be read", path.display());
        invalid(what, "it is not UTF-8", "save it as UTF-8")
    })
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    let what = format!("{} cannot be read", path.display());
    invalid(what, error.to_string(), "check the path")
}
