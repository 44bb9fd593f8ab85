//! The committed digests: a line `STAMP DIGEST COMPILERS` for each module, where the stamp
//! identifies the sources.

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The result of comparing a module with the committed digests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DigestStatus {
    Same,
    NewSources,
    NewCompilers(String),
    Other { expected: String, found: String },
}

/// Returns the line to commit for a module.
pub(super) fn line(stamp: &str, module: &[u8], label: &str) -> String {
    format!("{stamp} {} {label}", digest(module))
}

pub(super) fn digest(module: &[u8]) -> String {
    let digest = Sha256::digest(module);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Line<'a> {
    stamp: &'a str,
    digest: &'a str,
    label: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (stamp, rest) = line.split_once(' ')?;
        let (digest, label) = rest.split_once(' ')?;
        Some(Self {
            stamp,
            digest,
            label,
        })
    }

    fn of_module(line: &'a str) -> Result<Self> {
        Self::parse(line).context("expected a line `STAMP DIGEST COMPILERS`")
    }
}

pub(super) fn judge(committed: &str, line: &str) -> Result<DigestStatus> {
    let made = Line::of_module(line)?;
    let known = || committed.lines().filter_map(Line::parse);
    let of_sources = || known().filter(|known| known.stamp == made.stamp);
    if of_sources().next().is_none() {
        return Ok(DigestStatus::NewSources);
    }
    let Some(known) = of_sources().find(|known| known.label == made.label) else {
        return Ok(DigestStatus::NewCompilers(made.label.to_owned()));
    };
    if known.digest == made.digest {
        return Ok(DigestStatus::Same);
    }
    Ok(DigestStatus::Other {
        expected: known.digest.to_owned(),
        found: made.digest.to_owned(),
    })
}

/// Returns the committed lines with this line added. Lines of other sources are removed, because
/// their modules can no longer be built.
pub(super) fn with(committed: &str, line: &str) -> Result<String> {
    let made = Line::of_module(line)?;
    let others = committed.lines().filter(|other| {
        Line::parse(other)
            .is_some_and(|other| other.stamp == made.stamp && other.label != made.label)
    });
    let mut all: Vec<String> = others
        .chain([line])
        .map(|line| format!("{line}\n"))
        .collect();
    all.sort();
    Ok(all.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_sources_or_compilers_have_no_digest() {
        let committed = "a 11 zig 1\na 22 clang 2\n";
        for (line, expected) in [
            ("a 11 zig 1", DigestStatus::Same),
            ("b 11 zig 1", DigestStatus::NewSources),
            ("a 11 zig 2", DigestStatus::NewCompilers("zig 2".to_owned())),
        ] {
            assert_eq!(judge(committed, line).unwrap(), expected, "{line}");
        }
        assert!(judge(committed, "a 11").is_err());
    }

    #[test]
    fn accepted_digest_is_added_beside_others() {
        let first = with("", "a 11 zig 1").unwrap();
        let both = with(&first, "a 22 clang 2").unwrap();
        assert_eq!(both, "a 11 zig 1\na 22 clang 2\n");
        assert_eq!(
            with(&both, "a 33 zig 1").unwrap(),
            "a 22 clang 2\na 33 zig 1\n"
        );
        assert_eq!(with(&both, "b 44 zig 1").unwrap(), "b 44 zig 1\n");
    }
}
