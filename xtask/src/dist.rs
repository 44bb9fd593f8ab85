//! `cargo xtask dist`: builds the program and makes from it everything that is installed: an archive,
//! the npm packages, the wheel, the bundle for Claude Desktop, and the root of the container image.
//!
//! All files are made from the bytes of one program. The same program gives the same files.

mod archive;
mod container;
mod crates;
mod mcpb;
mod names;
mod npm;
mod program;
mod wheel;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::paths;
use archive::Entry;
use names::{Platform, VERSION};
use program::Program;

struct Options {
    platform: &'static Platform,
    /// A program that is packed instead of a new build.
    program: Option<PathBuf>,
    out: PathBuf,
}

pub(crate) fn run(words: &[&str]) -> Result<()> {
    if words == ["--list"] {
        for platform in &names::PLATFORMS {
            println!("{}", platform.target);
        }
        return Ok(());
    }
    let options = Options::parse(words)?;
    let path = match &options.program {
        Some(path) => path.clone(),
        None => program::build(options.platform)?,
    };
    let program = Program::read(&path, options.platform)?;
    println!("packing {}, which has both engines", path.display());
    if options.out.exists() {
        let is_empty = fs::read_dir(&options.out)?.next().is_none();
        if !is_empty && !options.out.join("SHA256SUMS").is_file() {
            let out = options.out.display();
            bail!(
                "{out} has files and no SHA256SUMS, so it may not be a folder of packages; delete it, or give an empty or new folder to `--out`"
            );
        }
        fs::remove_dir_all(&options.out)?;
    }
    fs::create_dir_all(&options.out)?;
    let crates = crates::all(options.platform.target)?;
    let documents = documents(&program, &crates)?;
    let mut written = vec![archive::tar_gz(
        &options.out,
        &format!("airlock-{VERSION}-{}", options.platform.target),
        &documents,
    )?];
    written.push(crates::sbom(&options.out, &crates)?);
    written.extend(npm::packages(&options.out, &program, &documents)?);
    written.push(wheel::wheel(&options.out, &program, &documents)?);
    written.push(mcpb::bundle(&options.out, &program, &documents)?);
    if options.platform.is_linux() {
        container::root(&options.out, &program)?;
    }
    write_sums(&options.out, &written)?;
    for path in &written {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        println!("{:>9} kB  {name}", fs::metadata(path)?.len() / 1_000);
    }
    Ok(())
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut target = names::HOST.to_owned();
        let (mut program, mut out) = (None, paths::target().join("dist"));
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || {
                let value = words.next().copied();
                value.with_context(|| format!("`{word}` needs a value"))
            };
            match *word {
                "--target" => target = value()?.to_owned(),
                "--program" => program = Some(value()?.into()),
                "--out" => out = value()?.into(),
                other => bail!("unknown argument `{other}`"),
            }
        }
        let platform = names::PLATFORMS.iter().find(|it| it.target == target);
        let known: Vec<&str> = names::PLATFORMS.iter().map(|it| it.target).collect();
        let known = known.join(", ");
        let platform = platform
            .with_context(|| format!("no package for the target `{target}`; there are {known}"))?;
        Ok(Self {
            platform,
            program,
            out,
        })
    }
}

/// Returns the files of the archive: the program and its documents.
fn documents(program: &Program, crates: &[crates::Crate]) -> Result<Vec<Entry>> {
    let mut files = vec![Entry::program("airlock", program.bytes.clone())];
    for name in ["LICENSE", "README.md", "SECURITY.md", "CHANGELOG.md"] {
        let bytes = fs::read(paths::root().join(name)).with_context(|| name.to_owned())?;
        files.push(Entry::file(name, bytes));
    }
    files.push(Entry::file(
        "THIRD-PARTY-LICENSES.txt",
        crates::licences(crates)?,
    ));
    files.extend(program.manual()?);
    Ok(files)
}

fn write_sums(out: &Path, files: &[PathBuf]) -> Result<()> {
    let mut lines = BTreeMap::new();
    for path in files {
        let digest = hex(&Sha256::digest(fs::read(path)?));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        lines.insert(name.clone().into_owned(), format!("{digest}  {name}\n"));
    }
    let lines: String = lines.into_values().collect();
    fs::write(out.join("SHA256SUMS"), lines)?;
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
