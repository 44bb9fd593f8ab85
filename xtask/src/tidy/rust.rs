//! What each Rust file keeps to: it says what it is for, it is short, its
//! names say something, and `unsafe` stays where it was agreed on.

use super::{File, Finding, Rule};

const LINES_MAX: usize = 500;
const VAGUE: &[&str] = &["manager", "handler", "helper", "helpers", "util", "utils"];
const NAMED_BY: &[&str] = &[
    "fn",
    "struct",
    "enum",
    "trait",
    "type",
    "mod",
    "union",
    "macro_rules!",
];

pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("//!") {
        let what = "the file does not begin with `//!` and what it is responsible for";
        findings.push(Finding::new(Rule::Header, file, 1, what));
    }
    let lines = file.text.lines().count();
    if lines > LINES_MAX {
        let what = format!("{lines} lines; think again above {LINES_MAX}");
        findings.push(Finding::new(Rule::Length, file, 1, what));
    }
    if let Some(word) = vague_word(file_stem(&file.path)) {
        findings.push(Finding::new(
            Rule::Name,
            file,
            1,
            format!("the file's name says `{word}`"),
        ));
    }
    for (line, number) in file.text.lines().zip(1..) {
        findings.extend(check_line(file, line, number));
    }
    findings
}

fn check_line(file: &File, line: &str, number: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    let code = line.split("//").next().unwrap_or_default();
    if let Some(name) = defined_name(code)
        && let Some(word) = vague_word(name)
    {
        findings.push(Finding::new(
            Rule::Name,
            file,
            number,
            format!("`{name}` says `{word}`"),
        ));
    }
    if is_unsafe(code) {
        findings.push(Finding::new(
            Rule::Unsafe,
            file,
            number,
            "`unsafe` is agreed on file by file",
        ));
    }
    findings
}

/// The name that this line of code defines, if it defines one.
fn defined_name(code: &str) -> Option<&str> {
    let mut words = code.split(|c: char| c.is_whitespace() || c == '(' || c == '<');
    words.by_ref().find(|word| NAMED_BY.contains(word))?;
    let name = words.find(|word| !word.is_empty())?;
    let end = name
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(name.len());
    name.get(..end).filter(|name| !name.is_empty())
}

fn file_stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.strip_suffix(".rs").unwrap_or(name)
}

/// The first vague word in a snake_case or CamelCase name.
fn vague_word(name: &str) -> Option<&'static str> {
    let mut spread = String::new();
    for c in name.chars() {
        if c.is_uppercase() {
            spread.push('_');
        }
        spread.extend(c.to_lowercase());
    }
    let has = |vague: &&&str| spread.split('_').any(|word| word == **vague);
    VAGUE.iter().find(has).copied()
}

/// `unsafe` as a keyword: of a block, an item or an attribute.
fn is_unsafe(code: &str) -> bool {
    const KEYWORD: &str = concat!("un", "safe");
    code.match_indices(KEYWORD).any(|(at, _)| {
        let before = code.get(..at).and_then(|text| text.chars().last());
        let after = code
            .get(at + KEYWORD.len()..)
            .unwrap_or_default()
            .trim_start();
        let items = ["{", "fn ", "impl ", "extern ", "trait ", "("];
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '`' || c == '"')
            && items.iter().any(|item| after.starts_with(item))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(path: &str, text: &str) -> Vec<Rule> {
        let file = File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        check(&file)
            .into_iter()
            .map(|finding| finding.rule)
            .collect()
    }

    #[test]
    fn a_file_without_a_header_is_found() {
        assert_eq!(check_text("a.rs", "fn main() {}"), [Rule::Header]);
        assert_eq!(check_text("a.rs", "//! Starts.\nfn main() {}"), []);
    }

    #[test]
    fn a_long_file_is_found() {
        let long = "//! Long.\n".repeat(LINES_MAX + 1);
        assert_eq!(check_text("a.rs", &long), [Rule::Length]);
    }

    #[test]
    fn a_vague_name_is_found_in_files_functions_and_types() {
        assert_eq!(
            check_text("src/string_utils.rs", "//! Strings."),
            [Rule::Name]
        );
        assert_eq!(
            check_text("a.rs", "//! A.\npub(crate) struct CallManager<T>(T);"),
            [Rule::Name]
        );
        assert_eq!(
            check_text("a.rs", "//! A.\n    async fn json_helper() {"),
            [Rule::Name]
        );
        assert_eq!(check_text("a.rs", "//! A.\nfn manages_utilities() {"), []);
    }

    #[test]
    fn a_vague_word_in_a_comment_is_no_name() {
        assert_eq!(check_text("a.rs", "//! A.\n// fn helper() was here"), []);
    }

    #[test]
    fn every_form_of_unsafe_is_found_and_the_lint_is_not() {
        let word = concat!("un", "safe");
        for code in [
            "{ read() }",
            "fn read()",
            "impl Send for A {}",
            "extern \"C\" {",
        ] {
            assert_eq!(
                check_text("a.rs", &format!("//! A.\n{word} {code}")),
                [Rule::Unsafe],
                "{code}"
            );
        }
        assert_eq!(
            check_text("a.rs", &format!("//! A.\n#[{word}(no_mangle)]")),
            [Rule::Unsafe]
        );
        assert_eq!(
            check_text("a.rs", &format!("//! A.\n#![deny({word}_code)]")),
            []
        );
    }
}
