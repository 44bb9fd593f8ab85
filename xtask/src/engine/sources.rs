//! Lists the source files of the QuickJS guest.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;

use anyhow::{Context, Result};

use crate::paths;

/// Files and folders, relative to the project's root.
const ALL: [&str; 16] = [
    "sandbox-guest/wasmtime-config/Cargo.toml",
    "sandbox-guest/wasmtime-config/src",
    "sandbox-guest/common/src",
    "sandbox-guest/image-builder/Cargo.toml",
    "sandbox-guest/image-builder/runs",
    "sandbox-guest/image-builder/src",
    "sandbox-guest/prelude",
    "sandbox-guest/protocol/src",
    "sandbox-guest/quickjs-image/src/stack.rs",
    "sandbox-guest/quickjs/Cargo.lock",
    "sandbox-guest/quickjs/Cargo.toml",
    "sandbox-guest/quickjs/build.rs",
    "sandbox-guest/quickjs/common",
    "sandbox-guest/quickjs/engine",
    "sandbox-guest/quickjs/protocol",
    "sandbox-guest/quickjs/src",
];

/// One line per file, with the file's hash and path. A build that finds an image reads these lines,
/// hashes the files in the same way, and ignores the image if a line differs.
pub(super) struct Sources(String);

impl Sources {
    pub(super) fn read() -> Result<Self> {
        let mut text = String::new();
        for path in ALL {
            add(path, &mut text)?;
        }
        Ok(Self(text))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Returns one hash over all files.
    pub(super) fn stamp(&self) -> String {
        hash(self.0.as_bytes())
    }
}

fn add(path: &str, text: &mut String) -> Result<()> {
    let full = paths::root().join(path);
    if !full.is_dir() {
        let bytes = fs::read(&full).with_context(|| format!("{path} cannot be read"))?;
        text.push_str(&format!("{} {path}\n", hash(&bytes)));
        return Ok(());
    }
    for name in names(&full)? {
        add(&format!("{path}/{name}"), text)?;
    }
    Ok(())
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn hash(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
