//! Compiles the engine together with this guest's additions (`engine/engine.c`). The engine's
//! sources are those of `rquickjs-sys`, with the corrections in `engine/corrections.rs`. That
//! crate's own build of the sources is not linked, because all symbols are already defined here.

#[path = "engine/corrections.rs"]
mod corrections;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use corrections::{CORRECTED, Correction};

/// The crate that contains the engine's sources.
const ENGINE_CRATE: &str = "rquickjs-sys";

fn main() -> ExitCode {
    match compile() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("cargo::error={why}");
            ExitCode::FAILURE
        }
    }
}

fn compile() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=engine");
    println!("cargo::rerun-if-changed=Cargo.lock");
    let engine_crate = engine_crate()?;
    let sources = engine_crate.join("quickjs");
    let corrected = Path::new(&variable("OUT_DIR")?).join("corrected");
    correct(&sources, &corrected)?;
    let mut build = cc::Build::new();
    build
        .file("engine/engine.c")
        .file(corrected.join("libregexp.c"))
        .include("engine")
        .include(&corrected)
        .include(&sources)
        .define("_GNU_SOURCE", None)
        .flag(format!(
            "-ffile-prefix-map={}=/quickjs",
            corrected.display()
        ))
        .flag(format!("-ffile-prefix-map={}=/quickjs", sources.display()))
        .warnings(false);
    if variable("CARGO_CFG_TARGET_ARCH")? == "wasm32" {
        // Like the engine's own build.
        let libc = engine_crate.join("vendor/wasi-libc/include");
        build
            .flag(format!("-isystem{}", libc.display()))
            .define("EMSCRIPTEN", "1")
            .define("FE_DOWNWARD", "0")
            .define("FE_UPWARD", "0");
    }
    // The linker processes a crate's own libraries before those of its dependencies, and takes only
    // missing symbols from the latter.
    build
        .try_compile("airlock_engine")
        .map_err(|why| why.to_string())?;
    Ok(())
}

/// Writes the engine's files that need corrections, with the corrections.
fn correct(sources: &Path, corrected: &Path) -> Result<(), String> {
    fs::create_dir_all(corrected).map_err(|why| why.to_string())?;
    for (name, corrections) in CORRECTED {
        let mut text = fs::read_to_string(sources.join(name)).map_err(|why| why.to_string())?;
        for Correction { wrong, right } in corrections.iter().copied().flatten() {
            let times = text.matches(wrong).count();
            if times != 1 {
                return Err(format!(
                    "engine: {name} contains this text {times} times instead of once: {wrong}"
                ));
            }
            text = text.replacen(wrong, right, 1);
        }
        fs::write(corrected.join(name), text).map_err(|why| why.to_string())?;
    }
    Ok(())
}

/// Returns the folder where cargo has put the engine's crate.
fn engine_crate() -> Result<PathBuf, String> {
    // Only dependencies for this target have been fetched.
    let target = variable("TARGET")?;
    let output = Command::new(variable("CARGO")?)
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", &target])
        .output()
        .map_err(|why| format!("cargo metadata could not be started: {why}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let manifest = said
        .split("\"manifest_path\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(Path::new)
        .find(|manifest| is_of_engine(manifest));
    let folder = manifest.and_then(Path::parent);
    let folder =
        folder.filter(|folder| fs::exists(folder.join("quickjs/quickjs.c")).is_ok_and(|is| is));
    folder.map(Path::to_owned).ok_or_else(|| {
        let why = String::from_utf8_lossy(&output.stderr);
        format!(
            "the sources of {ENGINE_CRATE} were not found: {}",
            why.trim()
        )
    })
}

fn is_of_engine(manifest: &Path) -> bool {
    let folder = manifest.parent().and_then(Path::file_name);
    folder.is_some_and(|name| name.to_string_lossy().starts_with(ENGINE_CRATE))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|why| format!("{name}: {why}"))
}
