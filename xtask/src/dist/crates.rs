//! The crates that are compiled into the program and its guests: their licences, and the bill of
//! materials.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::names::{LICENCE, VERSION};
use crate::paths;

const GUEST_TARGET: &str = "wasm32-unknown-unknown";
/// The workspaces of the guests, whose crates also end in the program.
const GUESTS: [&str; 2] = [
    "sandbox-guest/Cargo.toml",
    "sandbox-guest/quickjs/Cargo.toml",
];

#[derive(Debug)]
pub(super) struct Crate {
    name: String,
    version: String,
    licence: String,
    folder: PathBuf,
    checksum: Option<String>,
}

/// Returns all crates from registries, sorted by name and version.
pub(super) fn all(target: &str) -> Result<Vec<Crate>> {
    let mut crates = BTreeMap::new();
    let guests = GUESTS.iter().map(|manifest| (*manifest, GUEST_TARGET));
    for (manifest, target) in [("Cargo.toml", target)].into_iter().chain(guests) {
        let checksums = checksums(&paths::root().join(manifest).with_file_name("Cargo.lock"))?;
        for package in packages(manifest, target)? {
            let text = |key: &str| {
                package
                    .get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            // Packages without a source belong to this project.
            if package.get("source").is_none_or(Value::is_null) {
                continue;
            }
            let (name, version) = (text("name"), text("version"));
            let folder = PathBuf::from(text("manifest_path"));
            let checksum = checksums.get(&(name.clone(), version.clone())).cloned();
            crates.insert(
                (name.clone(), version.clone()),
                Crate {
                    licence: text("license"),
                    folder: folder.parent().unwrap_or(Path::new("")).to_owned(),
                    name,
                    version,
                    checksum,
                },
            );
        }
    }
    Ok(crates.into_values().collect())
}

fn packages(manifest: &str, target: &str) -> Result<Vec<Value>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
            target,
            "--manifest-path",
        ])
        .arg(paths::root().join(manifest))
        .output()
        .context("cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata for {manifest}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    Ok(packages.cloned().unwrap_or_default())
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

fn licence_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        let is_licence = [
            "LICENSE",
            "LICENCE",
            "COPYING",
            "NOTICE",
            "COPYRIGHT",
            "UNLICENSE",
        ];
        if path.is_file() && is_licence.iter().any(|it| name.starts_with(it)) {
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
