//! The npm packages: one with a launcher, one per platform with the program, and the client. No
//! script runs at installation, and nothing is downloaded: npm itself installs the package of the
//! platform.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::archive::{Entry, write_tar_gz};
use super::names::{ABOUT, CLIENT, LICENCE, PACKAGE, PLATFORMS, VERSION};
use super::program::Program;
use crate::paths;

const LAUNCHER: &str = "packaging/npm/launcher.cjs";
const CLIENT_FOLDER: &str = "clients/node";

/// Writes all packages.
pub(super) fn packages(out: &Path, program: &Program, documents: &[Entry]) -> Result<Vec<PathBuf>> {
    Ok(vec![
        launcher(out)?,
        platform(out, program, documents)?,
        client(out)?,
    ])
}

/// Packs the client, with names and versions in place of what stands for them.
fn client(out: &Path) -> Result<PathBuf> {
    let mut entries = vec![Entry::file(
        "LICENSE",
        fs::read(paths::root().join("LICENSE"))?,
    )];
    for file in fs::read_dir(paths::root().join(CLIENT_FOLDER))? {
        let file = file?;
        let text = fs::read_to_string(file.path())?
            .replace("@CLIENT@", CLIENT)
            .replace("@PACKAGE@", PACKAGE)
            .replace("@VERSION@", VERSION);
        entries.push(Entry::file(&file.file_name().to_string_lossy(), text));
    }
    write(out, CLIENT, &entries)
}

fn launcher(out: &Path) -> Result<PathBuf> {
    let optional: Map<String, Value> = PLATFORMS
        .iter()
        .map(|it| (it.npm_package(), VERSION.into()))
        .collect();
    let manifest = json!({
        "name": PACKAGE,
        "version": VERSION,
        "description": ABOUT,
        "license": LICENCE,
        "bin": {"airlock": "airlock.cjs", PACKAGE: "airlock.cjs"},
        "engines": {"node": ">=18"},
        "optionalDependencies": optional,
    });
    let source = fs::read_to_string(paths::root().join(LAUNCHER))?;
    let entries = [
        manifest_entry(&manifest)?,
        Entry::program("airlock.cjs", source.replace("@PACKAGE@", PACKAGE)),
        Entry::file("LICENSE", fs::read(paths::root().join("LICENSE"))?),
    ];
    write(out, PACKAGE, &entries)
}

fn platform(out: &Path, program: &Program, documents: &[Entry]) -> Result<PathBuf> {
    let platform = program.platform;
    let name = platform.npm_package();
    let mut manifest = json!({
        "name": name,
        "version": VERSION,
        "description": format!("The program of {PACKAGE} for {}-{}", platform.node.0, platform.node.1),
        "license": LICENCE,
        "os": [platform.node.0],
        "cpu": [platform.node.1],
        "preferUnplugged": true,
    });
    // npm refuses a package with this member on every other system.
    if let (true, Some(members)) = (platform.is_linux(), manifest.as_object_mut()) {
        members.insert("libc".into(), json!(["glibc"]));
    }
    let mut entries = vec![
        manifest_entry(&manifest)?,
        Entry::program("bin/airlock", program.bytes.clone()),
    ];
    let kept = ["LICENSE", "THIRD-PARTY-LICENSES.txt"];
    let licences = documents.iter().filter(|it| kept.contains(&&*it.name));
    entries.extend(licences.cloned());
    write(out, &name, &entries)
}

fn manifest_entry(manifest: &Value) -> Result<Entry> {
    let text = serde_json::to_string_pretty(manifest)? + "\n";
    Ok(Entry::file("package.json", text))
}

fn write(out: &Path, name: &str, entries: &[Entry]) -> Result<PathBuf> {
    let path = out.join(format!("{name}-{VERSION}.tgz"));
    write_tar_gz(&path, "package", entries)?;
    Ok(path)
}
