//! Folders of paths and addresses, compared as text. A text that a server could read in two ways is
//! in no folder.

/// Parts of the names of fields that hold paths or addresses.
const NAMES: [&str; 6] = ["path", "file", "folder", "dir", "uri", "url"];

/// Whether a field's name says that it holds a path or an address.
pub(super) fn is_named(field: &str) -> bool {
    let name = field.rsplit('/').next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// Returns the folder of a path, with a `/` at its end.
pub(super) fn of(path: &str) -> Option<String> {
    let end = path.rfind('/')? + 1;
    let folder = path.get(..end)?;
    (is_clear(folder) && contains(folder, path)).then(|| folder.to_owned())
}

/// Returns the innermost folder that contains a folder and a path.
pub(super) fn common(folder: &str, path: &str) -> Option<String> {
    let other = of(path)?;
    let mut shared = folder.to_owned();
    while !other.starts_with(&shared) {
        let inner = shared.strip_suffix('/')?;
        shared.truncate(inner.rfind('/')? + 1);
    }
    is_clear(&shared).then_some(shared)
}

/// Whether a path is below a folder.
pub(super) fn contains(folder: &str, path: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.split('/').all(is_step))
}

/// Whether a folder has one meaning, and is more than the root of everything. Parsers of addresses
/// read `https:/a` like `https://a`, so a folder whose first step contains a colon needs `://`.
pub(super) fn is_clear(folder: &str) -> bool {
    let after_scheme = match folder.split_once("://") {
        Some((_, rest)) => rest,
        None if folder.split('/').next().is_some_and(|it| it.contains(':')) => return false,
        None => folder,
    };
    let steps = after_scheme.strip_suffix('/').unwrap_or_default();
    let steps = match steps.len() == after_scheme.len() {
        true => "",
        false => steps.strip_prefix('/').unwrap_or(steps),
    };
    !steps.is_empty() && steps.split('/').all(is_step)
}

fn is_step(step: &str) -> bool {
    let is_unclear = |c: char| c.is_control() || matches!(c, '\\' | '%');
    !matches!(step, "" | "." | "..") && !step.contains(is_unclear)
}
