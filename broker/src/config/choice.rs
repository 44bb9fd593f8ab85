//! Settings that are one of a few words, and what to write instead of a value, a name or a path that
//! is not valid.

use std::io::ErrorKind;
use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use codegen::closest::closest;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};

/// Maximum number of files that a message names.
const FILES_MAX: usize = 8;

/// A value that is one of a few words, in flags and files.
pub(crate) trait Choice: Copy + Send + Sync + 'static {
    const ALL: &'static [Self];

    fn name(self) -> &'static str;
}

pub(crate) fn names<T: Choice>() -> Vec<&'static str> {
    T::ALL.iter().map(|it| it.name()).collect()
}

/// Parses a value. An error is the reason.
pub(crate) fn parse<T: Choice>(text: &str) -> Result<T, String> {
    let named = T::ALL.iter().copied().find(|it| it.name() == text);
    named.ok_or_else(|| format!("invalid value `{text}`; expected {}", list(&names::<T>())))
}

/// Parses a flag.
pub(crate) fn parser<T: Choice>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names::<T>()).try_map(|text| parse::<T>(&text))
}

/// Parses a key of a file.
pub(crate) fn of_file<'de, D: Deserializer<'de>, T: Choice>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map(Some).map_err(D::Error::custom)
}

/// Lists words, such as `always, writes or never`.
pub(crate) fn list(words: &[&str]) -> String {
    match words {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

/// Returns the words of a list.
pub(super) fn listed(list: &str) -> Vec<&str> {
    list.split(", ").flat_map(|it| it.split(" or ")).collect()
}

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
    fn words_are_listed_and_read_back() {
        for words in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
            assert_eq!(listed(&list(words)), words);
        }
        assert_eq!(list(&["a", "b", "c"]), "a, b or c");
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
