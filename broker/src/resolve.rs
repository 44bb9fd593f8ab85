//! Resolves the paths in calls. No other module reads the file system for the rules.
//!
//! A path may lead elsewhere by the time the server opens the file, if folders or links change in
//! between. A rule about roots therefore protects against mistakes of honest servers. It does not
//! protect the file system against a hostile server.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Component, Path, PathBuf};

use airlock_core::facts::OUTSIDE;
use airlock_core::flow::{NamedPath, ResolvedPath, Roots};
use airlock_core::id::ServerName;

use crate::config::{FlowConfig, ServerConfig};
use crate::upstream::Transport;

/// Maximum number of links to follow, as in the kernel.
const LINKS_MAX: u32 = 40;
/// Maximum number of times that a text is decoded. Servers do not decode more often.
const DECODINGS_MAX: u32 = 2;
/// Maximum length of a path in bytes, as in the kernel. A longer path counts as leading outside.
const PATH_BYTES_MAX: usize = 4_096;
/// Maximum number of path components that are looked up for the calls of one step. Further paths
/// count as leading outside, so a script cannot hide a path among very many.
const LOOKS_MAX: usize = 100_000;

/// The configured roots, and the folders at which relative paths begin.
///
/// Only the configuration can say where the relative paths of a server begin (`path_base`). The
/// working folder does not: some servers use the first folder that they are allowed to read.
#[derive(Debug)]
pub(crate) struct PathResolver {
    roots: Vec<(String, PathBuf)>,
    bases: BTreeMap<String, PathBuf>,
    /// The servers on other machines, whose files cannot be inspected.
    remote: HashSet<ServerName>,
}

impl PathResolver {
    /// Whether paths of a server lead to the same roots with another configuration.
    pub(crate) fn is_like(&self, other: &Self, server: &ServerName) -> bool {
        self.roots == other.roots
            && self.bases.get(&*server.0) == other.bases.get(&*server.0)
            && self.remote.contains(server) == other.remote.contains(server)
    }

    pub(crate) fn new(flow: &FlowConfig, servers: &[ServerConfig]) -> Self {
        let is_remote = |it: &&ServerConfig| matches!(it.spec.transport, Transport::Http { .. });
        let remote = servers.iter().filter(is_remote);
        Self {
            roots: flow.roots.clone().into_iter().collect(),
            bases: flow.path_bases.clone(),
            remote: remote.map(|it| it.spec.name.clone()).collect(),
        }
    }

    /// Whether a path counts as outside only because the configuration does not say where relative
    /// paths of the server begin.
    pub(crate) fn lacks_base(&self, path: &NamedPath) -> bool {
        let is_relative = readings(&path.text)
            .iter()
            .any(|it| Path::new(it).is_relative());
        !self.roots.is_empty()
            && is_relative
            && !self.remote.contains(&path.server)
            && !self.bases.contains_key(&*path.server.0)
    }

    /// Resolves paths. Paths of servers on other machines are omitted, because nothing is known
    /// about them.
    pub(crate) fn resolve(&self, named: BTreeSet<NamedPath>) -> Vec<ResolvedPath> {
        if self.roots.is_empty() {
            return Vec::new();
        }
        let mut looks = LookupBudget(LOOKS_MAX);
        named
            .into_iter()
            .filter(|path| !self.remote.contains(&path.server))
            .map(|path| {
                let base = self.bases.get(&*path.server.0);
                let roots = Roots(self.roots_of(&path.text, base, &mut looks));
                ResolvedPath { path, roots }
            })
            .collect()
    }

    /// Returns the roots that a path leads to, for every way in which a server may read the text. A
    /// path without a certain target counts as outside.
    fn roots_of(
        &self,
        text: &str,
        base: Option<&PathBuf>,
        looks: &mut LookupBudget,
    ) -> BTreeSet<String> {
        if text.len() > PATH_BYTES_MAX {
            return [OUTSIDE.to_owned()].into();
        }
        let mut roots = BTreeSet::new();
        for reading in readings(text) {
            let is_clear = !reading.is_empty()
                && !reading.contains('\0')
                // Some servers expand `~` to a home folder, and others treat it as a name.
                && !reading.starts_with('~');
            let path = match base {
                Some(base) => Some(base.join(&reading)),
                None => Some(PathBuf::from(&reading)).filter(|path| path.is_absolute()),
            };
            let Some(path) = path.filter(|_| is_clear) else {
                roots.insert(OUTSIDE.to_owned());
                continue;
            };
            // A server may remove `a/..` before it opens the path, or leave that to the kernel.
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

/// Returns the text, and the other forms in which a server may read it: percent-decoded, with
/// backslashes replaced, or without `file:`.
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

/// Removes `.` and `..` from a path without following links.
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

/// The number of lookups that are left.
struct LookupBudget(usize);

impl LookupBudget {
    /// Resolves an absolute path and follows its links. The end of the path need not exist.
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
                    // An entry that cannot be read as a link is treated as no link.
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

/// Returns the components of a path, last one first.
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
    use crate::tempdir::TempDir;

    fn check(resolver: &PathResolver, text: &str, expected: &[&str]) {
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
    fn path_is_reported_by_its_real_root() {
        let scratch = TempDir::new();
        let base = std::fs::canonicalize(scratch.path()).unwrap();
        let project = base.join("project");
        std::fs::create_dir_all(project.join("keys")).unwrap();
        std::fs::write(project.join("a.txt"), "").unwrap();
        symlink("/etc", project.join("etc")).unwrap();
        symlink("keys", project.join("k")).unwrap();
        symlink("loop", project.join("loop")).unwrap();
        symlink("/no/such/place", project.join("dangling")).unwrap();
        let resolver = PathResolver {
            roots: vec![
                ("project".into(), project.clone()),
                ("keys".into(), project.join("keys")),
            ],
            bases: [("fs".to_owned(), project.clone())].into(),
            remote: HashSet::new(),
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
            // The kernel goes up from the target of the link. A server that removes `..` from the
            // text first does not follow the link.
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
        let scratch = TempDir::new();
        let project = std::fs::canonicalize(scratch.path()).unwrap();
        let resolver = PathResolver {
            roots: vec![("project".into(), project.clone())],
            bases: [("fs".to_owned(), project)].into(),
            remote: HashSet::new(),
        };
        check(&resolver, &"a/".repeat(2_000), &["project"]);
        // Copying the path so far for each component would make these paths very slow.
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
    fn path_of_remote_server_is_unresolved() {
        let resolver = PathResolver {
            roots: vec![("all".into(), "/".into())],
            bases: [("fs".to_owned(), "/".into())].into(),
            remote: [ServerName::parse("fs").unwrap()].into(),
        };
        check(&resolver, "/etc/passwd", &[]);
    }

    #[test]
    fn relative_path_without_base_leads_outside() {
        let resolver = PathResolver {
            roots: vec![("all".into(), "/".into())],
            bases: [("other".to_owned(), "/".into())].into(),
            remote: HashSet::new(),
        };
        for text in ["a.txt", ".", "../a", "file:a.txt"] {
            check(&resolver, text, &["outside"]);
        }
        check(&resolver, "/a", &["all"]);
    }
}
