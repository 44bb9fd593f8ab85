//! The Python wheel: a zip file with the program as a script, and a `RECORD` of its files.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use super::archive::{Entry, write_zip};
use super::names::{ABOUT, LICENCE, PACKAGE, PYTHON_PACKAGE, VERSION};
use super::program::Program;

/// A second name, because `uvx PACKAGE` starts the program with the name of the package.
const ALIAS: &str = "#!/bin/sh\nexec \"$(dirname \"$(readlink -f \"$0\")\")/airlock\" \"$@\"\n";

pub(super) fn wheel(out: &Path, program: &Program, documents: &[Entry]) -> Result<PathBuf> {
    let tag = format!("py3-none-{}", platform_tag(program)?);
    let (data, info) = (
        format!("{PYTHON_PACKAGE}-{VERSION}.data"),
        format!("{PYTHON_PACKAGE}-{VERSION}.dist-info"),
    );
    let metadata = format!(
        "Metadata-Version: 2.4\nName: {PACKAGE}\nVersion: {VERSION}\nSummary: {ABOUT}\n\
         License-Expression: {LICENCE}\nLicense-File: LICENSE\n\
         License-File: THIRD-PARTY-LICENSES.txt\nRequires-Python: >=3.8\n"
    );
    let wheel =
        format!("Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\nTag: {tag}\n");
    let mut entries = vec![
        Entry::program(&format!("{data}/scripts/airlock"), program.bytes.clone()),
        Entry::program(&format!("{data}/scripts/{PACKAGE}"), ALIAS),
        Entry::file(&format!("{info}/METADATA"), metadata),
        Entry::file(&format!("{info}/WHEEL"), wheel),
    ];
    let kept = ["LICENSE", "THIRD-PARTY-LICENSES.txt"];
    for document in documents.iter().filter(|it| kept.contains(&&*it.name)) {
        entries.push(document.renamed(format!("{info}/licenses/{}", document.name)));
    }
    let record = format!("{info}/RECORD");
    let lines = entries.iter().map(|it| {
        let digest = base64_url(&Sha256::digest(&it.bytes));
        format!("{},sha256={digest},{}\n", it.name, it.bytes.len())
    });
    let text: String = lines.chain([format!("{record},,\n")]).collect();
    entries.push(Entry::file(&record, text));
    let path = out.join(format!("{PYTHON_PACKAGE}-{VERSION}-{tag}.whl"));
    write_zip(&path, &entries)?;
    Ok(path)
}

fn platform_tag(program: &Program) -> Result<String> {
    let platform = program.platform;
    if !platform.is_linux() {
        return Ok(platform.wheel.to_owned());
    }
    let minor = program.glibc_minor();
    let minor = minor.context("the program names no version of glibc")?;
    Ok(format!("manylinux_2_{minor}_{}", platform.wheel))
}

/// Encodes bytes in base64 for URLs, without padding, as `RECORD` requires.
fn base64_url(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let signs = (0..=chunk.len()).map(|at| (bits >> (18 - 6 * at)) & 63);
        text.extend(signs.filter_map(|it| SIGNS.get(it as usize).map(|sign| char::from(*sign))));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_url_has_no_padding() {
        for (bytes, expected) in [
            (&b""[..], ""),
            (b"a", "YQ"),
            (b"ab", "YWI"),
            (b"abc", "YWJj"),
            (&[0xfb, 0xff, 0xfe], "-__-"),
        ] {
            assert_eq!(base64_url(bytes), expected);
        }
    }
}
