//! What to write instead of a value, a name or a path that is not valid.

use std::io::ErrorKind;
use std::path::Path;

use codegen::closest::closest;

/// Maximum number of files that a message names.
const FILES_MAX: usize = 8;

/// Returns the closest of the valid values, or all of them.
pub(crate) fn one_of(text: &str, valid: &[&str]) -> String {
    if let Some(meant) = closest(text, valid.iter().copied()) {
        return format!("did you mean `{meant}`?");
    }
    let valid: Vec<String> = valid.iter().map(|it| format!("`{it}`")).collect();
    format!("write {}", valid.join(" or "))
}

/// Returns advice for a path that cannot be read: the closest name in its folder, or the names that
/// exist there.
pub(crate) fn path(path: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => {}
        ErrorKind::IsADirectory => return "name a file in this folder".to_owned(),
        ErrorKind::PermissionDenied => return "check who may read it".to_owned(),
        _ => return "check the path".to_owned(),
    }
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return "check the path".to_owned(),
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return format!("the folder {} does not exist", folder.display());
    };
    let names = entries
        .flatten()
        .filter_map(|it| it.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|it| !it.starts_with('.')).collect();
    names.sort();
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some(meant) = closest(&wanted, names.iter().map(String::as_str)) {
        return format!("did you mean `{}`?", path.with_file_name(meant).display());
    }
    let there = match names.is_empty() {
        true => "the folder is empty".to_owned(),
        false => {
            let more = if names.len() > FILES_MAX { ", …" } else { "" };
            names.truncate(FILES_MAX);
            format!("the folder contains {}{more}", names.join(", "))
        }
    };
    format!("check the path; {there}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_value_is_proposed_and_others_are_listed() {
        assert_eq!(
            one_of("alway", &["always", "never"]),
            "did you mean `always`?"
        );
        assert_eq!(
            one_of("x", &["always", "never"]),
            "write `always` or `never`"
        );
    }

    #[test]
    fn missing_file_names_the_closest_or_those_that_exist() {
        let folder = crate::tempdir::TempDir::new();
        let file = folder.path().join("triage.js");
        std::fs::write(&file, "").unwrap();
        let missing = std::io::Error::from(ErrorKind::NotFound);
        let near = path(&folder.path().join("triag.js"), &missing);
        assert_eq!(near, format!("did you mean `{}`?", file.display()));
        let far = path(&folder.path().join("zzz"), &missing);
        assert_eq!(far, "check the path; the folder contains triage.js");
        let gone = path(&folder.path().join("no/zzz"), &missing);
        assert!(gone.starts_with("the folder ") && gone.ends_with("/no does not exist"));
    }
}
