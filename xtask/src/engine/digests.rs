//! The digests that are committed: a line for the sources and compilers that a
//! module was made of, `STAMP DIGEST COMPILERS`.

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// How a module stands to what is committed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Held {
    Same,
    NewSources,
    NewCompilers(String),
    Other { expected: String, found: String },
}

/// What is committed of a module.
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
    fn of(line: &'a str) -> Option<Self> {
        let (stamp, rest) = line.split_once(' ')?;
        let (digest, label) = rest.split_once(' ')?;
        Some(Self {
            stamp,
            digest,
            label,
        })
    }

    fn of_module(line: &'a str) -> Result<Self> {
        Self::of(line).context("a digest's line has three parts")
    }
}

pub(super) fn judge(committed: &str, line: &str) -> Result<Held> {
    let made = Line::of_module(line)?;
    let known = || committed.lines().filter_map(Line::of);
    let of_sources = || known().filter(|known| known.stamp == made.stamp);
    if of_sources().next().is_none() {
        return Ok(Held::NewSources);
    }
    let Some(known) = of_sources().find(|known| known.label == made.label) else {
        return Ok(Held::NewCompilers(made.label.to_owned()));
    };
    if known.digest == made.digest {
        return Ok(Held::Same);
    }
    Ok(Held::Other {
        expected: known.digest.to_owned(),
        found: made.digest.to_owned(),
    })
}

/// The lines with this one among them. Those of other sources go: nobody can make them any more.
pub(super) fn with(committed: &str, line: &str) -> Result<String> {
    let made = Line::of_module(line)?;
    let others = committed.lines().filter(|other| {
        Line::of(other).is_some_and(|other| other.stamp == made.stamp && other.label != made.label)
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
    fn other_sources_and_compilers_have_nothing_to_be_held_against() {
        let committed = "a 11 zig 1\na 22 clang 2\n";
        for (line, expected) in [
            ("a 11 zig 1", Held::Same),
            ("b 11 zig 1", Held::NewSources),
            ("a 11 zig 2", Held::NewCompilers("zig 2".to_owned())),
        ] {
            assert_eq!(judge(committed, line).unwrap(), expected, "{line}");
        }
        assert!(judge(committed, "a 11").is_err());
    }

    #[test]
    fn what_is_accepted_stands_beside_other_compilers_of_the_same_sources() {
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
