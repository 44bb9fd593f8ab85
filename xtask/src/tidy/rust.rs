//! Checks that each Rust file has a `//!` header, and that `unsafe` occurs only in files that the
//! list of exceptions names.

use super::{File, Finding, Rule};

pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("//!") {
        let what = "the file does not begin with a `//!` comment about its responsibility";
        findings.push(Finding::new(Rule::Header, file, 1, what));
    }
    for (line, number) in file.text.lines().zip(1..) {
        findings.extend(check_line(file, line, number));
    }
    findings
}

fn check_line(file: &File, line: &str, number: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    let code = line.split("//").next().unwrap_or_default();
    if is_unsafe(code) {
        findings.push(Finding::new(
            Rule::Unsafe,
            file,
            number,
            "`unsafe` needs an exception for this file",
        ));
    }
    findings
}

/// Returns whether `unsafe` occurs as the keyword of a block, an item or an attribute.
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
    fn missing_header_is_found() {
        assert_eq!(check_text("a.rs", "fn main() {}"), [Rule::Header]);
        assert_eq!(check_text("a.rs", "//! Starts.\nfn main() {}"), []);
    }

    #[test]
    fn every_unsafe_form_is_found() {
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
