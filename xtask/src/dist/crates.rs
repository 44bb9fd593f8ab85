//! The crates that are compiled into the program and its guests: their licences, and the bill of
//! materials.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::names::{LICENCE, VERSION};
use crate::paths;

const GUEST_TARGET: &str = "wasm32-unknown-unknown";
const BROKER: (&str, &str) = ("Cargo.toml", "airlock");
/// The guests, which are compiled into the program: their workspaces and packages.
const GUESTS: [(&str, &str); 3] = [
    ("sandbox-guest/Cargo.toml", "guest-boa"),
    ("sandbox-guest/Cargo.toml", "guest-checker"),
    ("sandbox-guest/quickjs/Cargo.toml", "guest-quickjs"),
];
/// Crates whose sources are compiled as parts of the guests' own crates, with corrections. They are
/// dependencies for a platform without builds only (`sandbox-guest/engine/correct.rs`).
const CORRECTED: [&str; 3] = ["boa_ast", "boa_engine", "boa_parser"];
const NOWHERE: &str = "x86_64-unknown-none";
/// Folders of a crate whose licences are those of its tests.
const TEST_FOLDERS: [&str; 5] = ["tests", "test", "test_data", "benches", "examples"];

#[derive(Debug)]
pub(super) struct Crate {
    name: String,
    version: String,
    licence: String,
    folder: PathBuf,
    checksum: Option<String>,
}

/// Returns all crates from registries that are compiled into the program, sorted by name and
/// version.
pub(super) fn all(target: &str) -> Result<Vec<Crate>> {
    let mut crates = BTreeMap::new();
    let guests = GUESTS.iter().map(|guest| (*guest, GUEST_TARGET));
    for ((manifest, package), target) in [(BROKER, target)].into_iter().chain(guests) {
        let compiled = compiled(manifest, package, target)?;
        let is_compiled =
            |name: &str, version: &str| compiled.contains(&(name.to_owned(), version.to_owned()));
        add(&mut crates, manifest, target, is_compiled)?;
    }
    let (manifest, _) = GUESTS[0];
    add(&mut crates, manifest, NOWHERE, |name, _| {
        CORRECTED.contains(&name)
    })?;
    Ok(crates.into_values().collect())
}

/// Adds the chosen crates of a workspace.
fn add(
    crates: &mut BTreeMap<(String, String), Crate>,
    manifest: &str,
    target: &str,
    is_chosen: impl Fn(&str, &str) -> bool,
) -> Result<()> {
    let checksums = checksums(&paths::root().join(manifest).with_file_name("Cargo.lock"))?;
    for package in packages(manifest, target)? {
        let text = |key: &str| {
            let text = package.get(key).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let (name, version) = (text("name"), text("version"));
        // Packages without a source belong to this project.
        let is_ours = package.get("source").is_none_or(Value::is_null);
        if is_ours || !is_chosen(&name, &version) {
            continue;
        }
        let folder = PathBuf::from(text("manifest_path"));
        let key = (name.clone(), version.clone());
        let it = Crate {
            licence: text("license"),
            folder: folder.parent().unwrap_or(Path::new("")).to_owned(),
            checksum: checksums.get(&key).cloned(),
            name,
            version,
        };
        crates.insert(key, it);
    }
    Ok(())
}

/// Returns the names and versions of the crates that are compiled into a package for a target. Not
/// among them are crates that only tests, build scripts and macros use.
fn compiled(manifest: &str, package: &str, target: &str) -> Result<BTreeSet<(String, String)>> {
    let tree = cargo(
        manifest,
        &[
            "tree",
            "--package",
            package,
            "--edges=normal,no-proc-macro",
            "--prefix=none",
            "--format={p}",
            "--target",
            target,
        ],
    )?;
    Ok(parse_tree(&String::from_utf8(tree)?))
}

/// Parses lines such as `serde v1.0.0 (*)`.
fn parse_tree(tree: &str) -> BTreeSet<(String, String)> {
    let named = tree.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some((name.to_owned(), version.to_owned()))
    });
    named.collect()
}

fn packages(manifest: &str, target: &str) -> Result<Vec<Value>> {
    let words = [
        "metadata",
        "--format-version=1",
        "--filter-platform",
        target,
    ];
    let metadata: Value = serde_json::from_slice(&cargo(manifest, &words)?)?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    Ok(packages.cloned().unwrap_or_default())
}

/// Runs a command of Cargo for a workspace, and returns its output.
fn cargo(manifest: &str, words: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(words)
        .args(["--locked", "--manifest-path"])
        .arg(paths::root().join(manifest))
        .output()
        .context("cargo")?;
    ensure!(
        output.status.success(),
        "cargo {} for {manifest}: {}",
        words.first().unwrap_or(&""),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}

/// Returns the checksums in a lock file, by name and version.
fn checksums(lock: &Path) -> Result<BTreeMap<(String, String), String>> {
    let text = fs::read_to_string(lock).with_context(|| lock.display().to_string())?;
    let field = |table: &str, key: &str| {
        let start = format!("{key} = \"");
        let line = table.lines().find_map(|line| line.strip_prefix(&start))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let tables = text.split("[[package]]");
    let found = tables.filter_map(|table| {
        let key = (field(table, "name")?, field(table, "version")?);
        Some((key, field(table, "checksum")?))
    });
    Ok(found.collect())
}

/// Returns the texts of all licences. Crates with the same text share it.
pub(super) fn licences(crates: &[Crate]) -> Result<String> {
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for it in crates {
        let name = format!("{} {} ({})", it.name, it.version, it.licence);
        let mut texts = Vec::new();
        for path in licence_files(&it.folder)? {
            texts.push(
                String::from_utf8_lossy(&fs::read(path)?)
                    .trim()
                    .replace('\r', ""),
            );
        }
        if texts.is_empty() {
            texts.push(format!(
                "No licence file in the package; its manifest says {}.",
                it.licence
            ));
        }
        for text in texts {
            by_text.entry(text).or_default().push(name.clone());
        }
    }
    let mut groups: Vec<(Vec<String>, String)> = by_text
        .into_iter()
        .map(|(text, names)| (names, text))
        .collect();
    groups.sort();
    let mut all = String::from("airlock contains these packages.\n");
    for (names, text) in groups {
        all.push_str(&format!(
            "\n{}\n{}\n\n{text}\n",
            "=".repeat(78),
            names.join("\n")
        ));
    }
    Ok(all)
}

/// Returns the licences of a crate and of the sources in its folders, such as those of QuickJS.
fn licence_files(folder: &Path) -> Result<Vec<PathBuf>> {
    const BEGINNINGS: [&str; 6] = [
        "LICENSE",
        "LICENCE",
        "COPYING",
        "NOTICE",
        "COPYRIGHT",
        "UNLICENSE",
    ];
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !TEST_FOLDERS.contains(&&*name) {
                files.extend(licence_files(&path)?);
            }
            continue;
        }
        let is_source = path
            .extension()
            .is_some_and(|it| it == "rs" || it == "c" || it == "h");
        let name = name.to_uppercase();
        if BEGINNINGS.iter().any(|it| name.starts_with(it)) && !is_source {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Writes the bill of materials in the CycloneDX format.
pub(super) fn sbom(out: &Path, crates: &[Crate]) -> Result<PathBuf> {
    let components = crates.iter().map(|it| {
        let purl = format!("pkg:cargo/{}@{}", it.name, it.version);
        let hashes = it.checksum.iter();
        let hashes = hashes.map(|digest| json!({"alg": "SHA-256", "content": digest}));
        let licences = match it.licence.is_empty() {
            true => json!([]),
            false => json!([{ "expression": it.licence.replace('/', " OR ") }]),
        };
        json!({
            "type": "library",
            "bom-ref": purl,
            "name": it.name,
            "version": it.version,
            "purl": purl,
            "licenses": licences,
            "hashes": hashes.collect::<Vec<_>>(),
        })
    });
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "name": "airlock",
            "version": VERSION,
            "licenses": [{ "expression": LICENCE }],
        }},
        "components": components.collect::<Vec<_>>(),
    });
    let path = out.join("airlock.cdx.json");
    fs::write(&path, serde_json::to_string_pretty(&document)? + "\n")?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_names_each_crate_and_version() {
        let tree = "airlock v0.1.0 (/srv/airlock)\nserde v1.0.2\nserde v1.0.2 (*)\n\n";
        let expected = [("airlock", "0.1.0"), ("serde", "1.0.2")];
        let expected = expected.map(|(name, version)| (name.to_owned(), version.to_owned()));
        assert_eq!(parse_tree(tree), BTreeSet::from(expected));
    }

    #[test]
    fn licences_below_a_crate_are_found_and_those_of_tests_are_not() {
        let folder = std::env::temp_dir().join(format!("airlock-licences-{}", std::process::id()));
        for name in [
            "LICENSE-MIT",
            "engine/LICENSE",
            "tests/LICENSE",
            "src/license.rs",
        ] {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        }
        let found = licence_files(&folder).unwrap();
        let expected = ["LICENSE-MIT", "engine/LICENSE"];
        assert_eq!(found, expected.map(|it| folder.join(it)));
        fs::remove_dir_all(folder).unwrap();
    }
}
