//! Checks links between the project's documents. A link must lead to an existing file, and to an
//! existing heading if it names one.

use super::{File, Finding, Rule};

const DESIGNS: &str = "docs/design/";

/// Finds links to files or headings that do not exist.
pub(super) fn dead_links(file: &File, all: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, number) in prose_lines(&file.text) {
        for link in links(line).into_iter().filter(|link| is_internal(link)) {
            if let Some(what) = complaint(file, link, all) {
                findings.push(Finding::new(Rule::Link, file, number, what));
            }
        }
    }
    findings
}

/// Finds design documents that the architecture does not list.
pub(super) fn unlisted_designs(all: &[File]) -> Vec<Finding> {
    let Some(architecture) = all.iter().find(|file| file.path == "ARCHITECTURE.md") else {
        return Vec::new();
    };
    let is_unlisted =
        |file: &&File| is_design(&file.path) && !architecture.text.contains(&file.path);
    let found = |file| {
        Finding::new(
            Rule::DesignList,
            file,
            1,
            "ARCHITECTURE.md does not list this document",
        )
    };
    all.iter().filter(is_unlisted).map(found).collect()
}

/// Returns whether a path has the form `docs/design/NNNN-title.md`.
fn is_design(path: &str) -> bool {
    let name = path.strip_prefix(DESIGNS).unwrap_or_default();
    name.ends_with(".md") && name.chars().take_while(char::is_ascii_digit).count() == 4
}

/// Returns the lines outside fenced blocks, with their numbers.
fn prose_lines(text: &str) -> Vec<(&str, usize)> {
    let mut is_fenced = false;
    let mut lines = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            lines.push((line, number));
        }
    }
    lines
}

/// Returns the targets of `[text](target)`.
fn links(line: &str) -> Vec<&str> {
    let after = line.split("](").skip(1);
    after
        .filter_map(|rest| rest.split([')', ' ']).next())
        .collect()
}

fn is_internal(link: &str) -> bool {
    !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:")
}

fn complaint(from: &File, link: &str, all: &[File]) -> Option<String> {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let path = if path.is_empty() {
        from.path.clone()
    } else {
        resolve(&from.path, path)
    };
    let folder = format!("{}/", path.trim_end_matches('/'));
    let target = all.iter().find(|file| file.path == path);
    let Some(target) = target else {
        let is_folder = path.is_empty() || all.iter().any(|file| file.path.starts_with(&folder));
        return (!is_folder).then(|| format!("the link `{link}` leads to no file of the project"));
    };
    let is_dead = !heading.is_empty()
        && path.ends_with(".md")
        && !anchors(&target.text).contains(&heading.to_owned());
    is_dead.then(|| format!("the link `{link}` leads to no heading of {path}"))
}

/// Resolves `link` relative to the folder of `from`.
fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = match link.starts_with('/') {
        true => Vec::new(),
        false => from.split('/').collect(),
    };
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Returns the anchors of the headings: lower case, spaces to hyphens, punctuation dropped.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose_lines(text)
        .into_iter()
        .filter(|(line, _)| line.starts_with('#'));
    headings
        .map(|(line, _)| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-' || *c == '_');
    kept.flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn check(link: &str) -> usize {
        let from = file("docs/one.md", &format!("see [this]({link})"));
        let all = [
            file("docs/two.md", "# A Heading, here\n"),
            file("README.md", "# Top"),
            file("docs/one.md", ""),
        ];
        dead_links(&from, &all).len()
    }

    #[test]
    fn valid_links_pass() {
        for link in [
            "two.md",
            "../README.md",
            "../docs",
            "two.md#a-heading-here",
            "https://example.com/x",
        ] {
            assert_eq!(check(link), 0, "{link}");
        }
    }

    #[test]
    fn broken_links_are_found() {
        for link in ["three.md", "../two.md", "two.md#another", "#nowhere"] {
            assert_eq!(check(link), 1, "{link}");
        }
    }

    #[test]
    fn links_in_fenced_blocks_are_ignored() {
        let from = file("a.md", "```\n[x](gone.md)\n```\n");
        assert_eq!(dead_links(&from, &[]), []);
    }

    #[test]
    fn unlisted_design_document_is_found() {
        let all = [
            file("ARCHITECTURE.md", "docs/design/0001-a.md"),
            file("docs/design/0001-a.md", ""),
            file("docs/design/0002-b.md", ""),
        ];
        let unlisted: Vec<String> = unlisted_designs(&all)
            .into_iter()
            .map(|finding| finding.path)
            .collect();
        assert_eq!(unlisted, ["docs/design/0002-b.md"]);
    }
}
