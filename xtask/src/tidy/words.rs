//! Finds words that the project's text must not contain: marks of unfinished work, paths of one
//! machine, hosts of package registries.

use super::{File, Finding, Rule};

/// The words are assembled here so that this file does not match itself.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("to", "do!("),
    concat!("db", "g!("),
    concat!("#[ig", "nore"),
];
const MACHINE_PATHS: &[&str] = &[concat!("/ro", "ot/"), concat!("/wo", "rk/")];
const HOME: &str = concat!("/ho", "me/");
const REGISTRY_HOSTS: &[&str] = &[
    concat!("registry.", "npmjs"),
    concat!("registry.", "yarnpkg"),
    concat!("py", "pi.org"),
    concat!("python", "hosted"),
    concat!("static.", "crates.io"),
    concat!("index.", "crates.io"),
    concat!("proxy.", "golang"),
];

pub(super) fn check(file: &File) -> Vec<Finding> {
    // Lock files are generated, and contain the address of the registry.
    if file.path.ends_with("Cargo.lock") {
        return Vec::new();
    }
    let lines = file.text.lines().zip(1..);
    lines
        .flat_map(|(line, number)| check_line(file, line, number))
        .collect()
}

fn check_line(file: &File, line: &str, number: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |rule, what: String| findings.push(Finding::new(rule, file, number, what));
    for word in UNFINISHED.iter().filter(|word| holds_word(line, word)) {
        find(
            Rule::Unfinished,
            format!("`{word}`: finish it, or open an issue"),
        );
    }
    for path in MACHINE_PATHS.iter().filter(|path| starts_path(line, path)) {
        find(
            Rule::MachinePath,
            format!("`{path}…` is a path of one machine"),
        );
    }
    if names_a_home(line) {
        find(
            Rule::MachinePath,
            format!("`{HOME}…` is a path of one machine"),
        );
    }
    for host in REGISTRY_HOSTS.iter().filter(|host| line.contains(**host)) {
        find(
            Rule::RegistryHost,
            format!("`{host}` is a registry; users configure their own registry"),
        );
    }
    findings
}

/// Returns whether a line contains `word` as a whole word. If `word` ends in a character that is
/// not a letter, letters may follow it.
fn holds_word(line: &str, word: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    line.match_indices(word).any(|(at, _)| {
        let (before, rest) = line.split_at(at);
        let after = rest.get(word.len()..).unwrap_or_default();
        let joined_before = is_letter(before.chars().last());
        let joined_after = is_letter(word.chars().last()) && is_letter(after.chars().next());
        !(joined_before || joined_after)
    })
}

/// Returns whether a line contains a path that begins with `path`.
fn starts_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().last());
        !before.is_some_and(|c| c.is_alphanumeric() || "._-}>*~$/)".contains(c))
    })
}

/// Returns whether a line contains the home folder of a named person. `<user>`, `$USER` and `…` are
/// placeholders, not names.
fn names_a_home(line: &str) -> bool {
    line.match_indices(HOME).any(|(at, _)| {
        let next = line
            .get(at + HOME.len()..)
            .and_then(|rest| rest.chars().next());
        next.is_some_and(char::is_alphanumeric)
            && starts_path(line.get(..at + HOME.len()).unwrap_or(line), HOME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> Vec<Rule> {
        let file = File {
            path: "notes.md".to_owned(),
            text: text.to_owned(),
        };
        check(&file)
            .into_iter()
            .map(|finding| finding.rule)
            .collect()
    }

    #[test]
    fn unfinished_work_is_found_as_whole_word() {
        let word = concat!("TO", "DO");
        assert_eq!(check_text(&format!("// {word}: later")), [Rule::Unfinished]);
        assert_eq!(check_text(&format!("MAS{word}NT")), []);
    }

    #[test]
    fn machine_path_is_found() {
        let path = concat!("/wo", "rk/");
        assert_eq!(check_text(&format!("see {path}notes")), [Rule::MachinePath]);
        assert_eq!(check_text(&format!("see bench{path}one.js")), []);
    }

    #[test]
    fn only_named_home_folder_is_found() {
        assert_eq!(check_text(&format!("{HOME}sam/notes")), [Rule::MachinePath]);
        assert_eq!(check_text(&format!("{HOME}<you>/notes")), []);
    }

    #[test]
    fn registry_host_is_found() {
        assert_eq!(
            check_text(concat!("https://py", "pi.org/simple")),
            [Rule::RegistryHost]
        );
    }
}
