//! Where the paths lead that calls name: the one room that looks at the file
//! system for the rules' sake.
//!
//! What was true when we looked may be false when the server opens the file:
//! whoever can change folders or links in between can lead it elsewhere. A rule
//! over roots is a fence around honest servers, not around the file system.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

use airlock_core::facts::OUTSIDE;
use airlock_core::flow::{NamedPath, ResolvedPath, Roots};
use airlock_core::id::ServerName;

use crate::config::Server;
use crate::upstream::Transport;

/// As many links as a kernel follows.
const LINKS_MAX: u32 = 40;
/// Decoding more than this finds nothing that a server would read.
const DECODINGS_MAX: u32 = 2;
/// No kernel opens a longer path. One that is longer counts as one that leads outside.
const PATH_BYTES_MAX: usize = 4_096;
/// Steps of paths that are looked up for the calls of one step. A path beyond counts as one that
/// leads outside: a script that names more of them than anybody looks at has hidden none.
const LOOKS_MAX: usize = 100_000;

/// The configured roots, and where each server's relative paths begin.
#[derive(Debug)]
pub(crate) struct Resolver {
    roots: Vec<(String, PathBuf)>,
    /// None for a server on another machine, whose files nobody here can look at.
    folders: HashMap<ServerName, Option<PathBuf>>,
    here: Option<PathBuf>,
}

impl Resolver {
    pub(crate) fn new(roots: &BTreeMap<String, PathBuf>, servers: &[Server]) -> Self {
        let here = std::env::current_dir().ok();
        let folder = |server: &Server| match &server.spec.transport {
            Transport::Stdio { cwd: Some(cwd), .. } => here.as_ref().map(|it| it.join(cwd)),
            Transport::Stdio { cwd: None, .. } => here.clone(),
            Transport::Http { .. } => None,
        };
        Self {
            roots: roots
                .iter()
                .map(|(name, path)| (name.clone(), path.clone()))
                .collect(),
            folders: servers
                .iter()
                .map(|server| (server.spec.name.clone(), folder(server)))
                .collect(),
            here,
        }
    }

    /// Paths of servers elsewhere are left out: nothing is known of them.
    pub(crate) fn resolve(&self, named: BTreeSet<NamedPath>) -> Vec<ResolvedPath> {
        if self.roots.is_empty() {
            return Vec::new();
        }
        let mut looks = Looks(LOOKS_MAX);
        named
            .into_iter()
            .filter_map(|path| {
                let folder = match self.folders.get(&path.server) {
                    Some(folder) => folder.as_deref()?,
                    // A tool of this process.
                    None => self.here.as_deref()?,
                };
                let roots = Roots(self.roots_of(&path.text, folder, &mut looks));
                Some(ResolvedPath { path, roots })
            })
            .collect()
    }

    /// In every way in which a server may read the text; what leads nowhere certain is outside.
    fn roots_of(&self, text: &str, folder: &Path, looks: &mut Looks) -> BTreeSet<String> {
        if text.len() > PATH_BYTES_MAX {
            return [OUTSIDE.to_owned()].into();
        }
        let mut roots = BTreeSet::new();
        for reading in readings(text) {
            let is_clear = !reading.is_empty()
                && !reading.contains('\0')
                // Some servers take it for a home folder, others for a name.
                && !reading.starts_with('~');
            if !is_clear {
                roots.insert(OUTSIDE.to_owned());
                continue;
            }
            let path = folder.join(reading);
            // A server may fold `a/..` away before it looks, or leave that to the kernel.
            for path in [folded(&path), path] {
                let real = looks.real(&path);
                let root = real.and_then(|real| self.innermost(&real));
                roots.insert(root.unwrap_or(OUTSIDE).to_owned());
            }
        }
        roots
    }

    fn innermost(&self, path: &Path) -> Option<&str> {
        self.roots
            .iter()
            .filter(|(_, root)| path.starts_with(root))
            .max_by_key(|(_, root)| root.components().count())
            .map(|(name, _)| name.as_str())
    }
}

/// The text, and what it becomes for whoever decodes it, turns backslashes, or takes it for an
/// address of a file.
fn readings(text: &str) -> BTreeSet<String> {
    let mut readings: BTreeSet<String> = [text.to_owned(), text.trim().to_owned()].into();
    let lower = text.trim().to_ascii_lowercase();
    if lower.starts_with("file:") {
        let rest = text.trim().get("file:".len()..).unwrap_or_default();
        let path = rest.strip_prefix("//").unwrap_or(rest);
        readings = [path.to_owned()].into();
    }
    for _ in 0..DECODINGS_MAX {
        let decoded: Vec<_> = readings
            .iter()
            .filter(|it| it.contains('%'))
            .map(|it| percent_decoded(it))
            .collect();
        readings.extend(decoded);
    }
    let turned: Vec<_> = readings
        .iter()
        .filter(|it| it.contains('\\'))
        .map(|it| it.replace('\\', "/"))
        .collect();
    readings.extend(turned);
    readings
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let code = (*byte == b'%')
            .then(|| std::str::from_utf8(after.get(..2)?).ok())
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(*byte));
        rest = after
            .get(if code.is_some() { 2 } else { 0 }..)
            .unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Without `.` and `..`, by the text alone.
fn folded(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                folded.pop();
            }
            Component::CurDir => {}
            other => folded.push(other),
        }
    }
    folded
}

/// How many more steps are looked up.
struct Looks(usize);

impl Looks {
    /// Where an absolute path leads, links followed, whether its end is there or not.
    fn real(&mut self, path: &Path) -> Option<PathBuf> {
        let mut real = PathBuf::new();
        let mut waiting: Vec<PathBuf> = pieces(path);
        let mut links = 0;
        while let Some(piece) = waiting.pop() {
            match piece.components().next()? {
                Component::ParentDir => {
                    real.pop();
                }
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir => real = piece,
                Component::Normal(name) => {
                    self.0 = self.0.checked_sub(1)?;
                    real.push(name);
                    // What cannot be looked at is no link that we could follow.
                    let Ok(target) = std::fs::read_link(&real) else {
                        continue;
                    };
                    links += 1;
                    if links > LINKS_MAX {
                        return None;
                    }
                    real.pop();
                    waiting.extend(pieces(&target));
                }
            }
        }
        Some(real)
    }
}

/// The last one first.
fn pieces(path: &Path) -> Vec<PathBuf> {
    let mut pieces: Vec<_> = path
        .components()
        .map(|it| PathBuf::from(it.as_os_str()))
        .collect();
    pieces.reverse();
    pieces
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::scratch::Scratch;

    fn check(resolver: &Resolver, text: &str, expected: &[&str]) {
        let path = NamedPath {
            server: ServerName::parse("fs").unwrap(),
            text: text.into(),
        };
        let found = resolver.resolve([path].into());
        let roots: Vec<_> = found
            .iter()
            .flat_map(|it| it.roots.0.iter().map(String::as_str))
            .collect();
        assert_eq!(roots, expected, "{text}");
    }

    #[test]
    fn a_path_is_told_by_the_root_that_it_really_leads_to() {
        let scratch = Scratch::new();
        let base = std::fs::canonicalize(scratch.path()).unwrap();
        let project = base.join("project");
        std::fs::create_dir_all(project.join("keys")).unwrap();
        std::fs::write(project.join("a.txt"), "").unwrap();
        symlink("/etc", project.join("etc")).unwrap();
        symlink("keys", project.join("k")).unwrap();
        symlink("loop", project.join("loop")).unwrap();
        symlink("/no/such/place", project.join("dangling")).unwrap();
        let resolver = Resolver {
            roots: vec![
                ("project".into(), project.clone()),
                ("keys".into(), project.join("keys")),
            ],
            folders: HashMap::new(),
            here: Some(project.clone()),
        };
        let inside = project.to_string_lossy().into_owned();
        for (text, expected) in [
            ("a.txt", &["project"][..]),
            ("./new/b.txt", &["project"]),
            (".", &["project"]),
            ("k/id", &["keys"]),
            ("keys/../a.txt", &["project"]),
            ("../x", &["outside"]),
            ("etc/passwd", &["outside"]),
            // The kernel leaves `/etc` upwards, a server that folds stays.
            ("etc/../a.txt", &["outside", "project"]),
            ("dangling", &["outside"]),
            ("loop", &["outside"]),
            ("/etc/passwd", &["outside"]),
            ("%2e%2e/x", &["outside", "project"]),
            ("%252e%252e/x", &["outside", "project"]),
            ("..\\x", &["outside", "project"]),
            ("~/x", &["outside"]),
            ("a\0b", &["outside"]),
            ("", &["outside"]),
            ("file:///etc/passwd", &["outside"]),
        ] {
            check(&resolver, text, expected);
        }
        check(&resolver, &format!("{inside}/a.txt"), &["project"]);
        check(&resolver, &format!("{inside}x/a.txt"), &["outside"]);
        check(&resolver, &format!("file://{inside}/a.txt"), &["project"]);
    }

    #[test]
    fn a_path_that_is_too_long_or_one_too_many_leads_outside() {
        let scratch = Scratch::new();
        let project = std::fs::canonicalize(scratch.path()).unwrap();
        let resolver = Resolver {
            roots: vec![("project".into(), project.clone())],
            folders: HashMap::new(),
            here: Some(project),
        };
        check(&resolver, &"a/".repeat(2_000), &["project"]);
        // Each step of these would copy all steps before it.
        check(&resolver, &"a/".repeat(2_000_000), &["outside"]);
        let path = |at: usize| NamedPath {
            server: ServerName::parse("fs").unwrap(),
            text: format!("{at}/{}", "a/".repeat(1_000)),
        };
        let found = resolver.resolve((0..1_000).map(path).collect());
        let outside = found.iter().filter(|it| it.roots.0.contains(OUTSIDE));
        assert!((900..1_000).contains(&outside.count()));
    }

    #[test]
    fn of_a_server_elsewhere_nothing_is_known() {
        let resolver = Resolver {
            roots: vec![("all".into(), "/".into())],
            folders: [(ServerName::parse("fs").unwrap(), None)].into(),
            here: Some("/".into()),
        };
        check(&resolver, "/etc/passwd", &[]);
    }
}
