//! Reads the documents and their fenced blocks.

use std::fs;
use std::path::Path;

use tests::binary::workspace;

/// A document, by its path from the root of the project.
pub(crate) struct Page {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A fenced block of a page.
pub(crate) struct Block<'a> {
    pub(crate) language: &'a str,
    pub(crate) lines: Vec<&'a str>,
    /// Line number of the opening fence, from 1.
    pub(crate) line: usize,
}

/// Returns the pages whose blocks are run: the README, the folders `docs` and `docs/hosts`, and the
/// README of the policies.
pub(crate) fn runnable() -> Vec<Page> {
    let mut paths = vec!["README.md".to_owned(), "policies/README.md".to_owned()];
    paths.extend(in_folder("docs"));
    paths.extend(in_folder("docs/hosts"));
    paths.into_iter().map(read).collect()
}

/// Returns all documents, including the design documents.
pub(crate) fn all() -> Vec<Page> {
    let folders = [
        "",
        "docs",
        "docs/design",
        "docs/hosts",
        "policies",
        "tests/hostile",
    ];
    let paths = folders.into_iter().flat_map(in_folder);
    paths.map(read).collect()
}

pub(crate) fn read(path: impl Into<String>) -> Page {
    let path = path.into();
    let text = fs::read_to_string(workspace().join(&path)).unwrap();
    Page { path, text }
}

pub(crate) fn in_folder(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(workspace().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut paths: Vec<String> = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| Path::new(folder).join(name).display().to_string())
        .collect();
    paths.sort();
    paths
}

impl Page {
    pub(crate) fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks: Vec<Block<'_>> = Vec::new();
        let mut is_open = false;
        for (number, line) in (1..).zip(self.text.lines()) {
            match line.strip_prefix("```") {
                Some(_) if is_open => is_open = false,
                Some(language) => {
                    is_open = true;
                    blocks.push(Block {
                        language,
                        lines: Vec::new(),
                        line: number,
                    });
                }
                None if is_open => blocks.last_mut().unwrap().lines.push(line),
                None => {}
            }
        }
        assert!(!is_open, "{}: a block is not closed", self.path);
        blocks
    }
}

impl Block<'_> {
    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Returns the file that the first line names: `// count.js` or `# airlock.toml`.
    pub(crate) fn file_name(&self) -> Option<&str> {
        let first = self.lines.first()?;
        let name = first.strip_prefix("// ").or(first.strip_prefix("# "))?;
        let is_name = name.contains('.') && !name.contains(' ') && !name.ends_with('.');
        is_name.then_some(name)
    }
}
