//! `cargo xtask engine quickjs`: builds the image of the QuickJS guest. The engine is written in C,
//! so this step needs a C compiler for Wasm, unlike an ordinary build. The next build finds the
//! image and includes it. `--twice` builds the image again in another folder and requires identical
//! bytes.

mod compiler;
mod digests;
mod sources;
#[expect(unreachable_pub, reason = "another crate exports this file")]
#[path = "../../sandbox-guest/quickjs-image/src/stack.rs"]
mod stack;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::paths;
use compiler::Compiler;
use digests::DigestStatus;
use sources::Sources;

const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// File with the digests of accepted modules, one line each, with their sources and compilers.
const DIGESTS: &str = "sandbox-guest/quickjs/digests";

/// Name of the file that lists the sources of an image. The file is in the folder of the image.
const MADE_FROM: &str = "made-from";

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (accept, twice) = match words {
        ["quickjs"] => (false, false),
        ["quickjs", "--accept"] => (true, false),
        ["quickjs", "--twice"] => (false, true),
        ["quickjs", "--find"] => {
            let compiler = Compiler::find(&guest_target().join("engines/tools"))?;
            println!("{}", compiler.label);
            return Ok(());
        }
        _ => bail!("usage: cargo xtask engine quickjs [--accept | --twice | --find]"),
    };
    let guests = guest_target();
    let made = guests.join("engines/quickjs").join(host()?);
    fs::create_dir_all(&made)?;
    // An image counts as complete only once its last file is written.
    let _ = fs::remove_file(made.join(MADE_FROM));

    let sources = Sources::read()?;
    let compiler = Compiler::find(&guests.join("engines/tools"))?;
    let label = format!("{}, {}", compiler.label, rustc_version()?);
    eprintln!("building the image builder");
    let builder = build_image_builder(&guests)?;
    eprintln!("building the guest ({label})");
    let module = make(&guests.join("quickjs"), &made, &compiler, &builder)?;
    if twice {
        eprintln!("building the image again in another folder");
        make_again(&guests.join("again"), &module, &compiler, &builder)?;
    }
    println!(
        "quickjs.wasm  {} bytes  sha256:{}",
        module.len(),
        digests::digest(&module)
    );
    let path = paths::root().join(DIGESTS);
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let line = digests::line(&sources.stamp(), &module, &label);
    if accept {
        fs::write(&path, digests::with(&committed, &line)?)?;
        println!("accepted in {DIGESTS}");
    } else {
        compare_with_committed(&committed, &line, twice)?;
    }
    fs::write(made.join(MADE_FROM), sources.text())?;
    println!("built in {}; the next build includes it", made.display());
    Ok(())
}

/// Builds the image in the folder `made`, and returns the module from which it was made.
fn make(target: &Path, made: &Path, compiler: &Compiler, builder: &Path) -> Result<Vec<u8>> {
    let guest = build_guest(target, compiler)?;
    let mut image = Command::new(builder);
    image.arg(guest).arg(host()?).arg(made).arg("quickjs");
    finish(image, "building the image")?;
    Ok(fs::read(made.join("quickjs.wasm"))?)
}

/// Builds everything again in this empty folder, and requires the same bytes. Then removes the
/// folder.
fn make_again(folder: &Path, module: &[u8], compiler: &Compiler, builder: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(folder);
    let made = folder.join("made");
    fs::create_dir_all(&made)?;
    let again = make(&folder.join("built"), &made, compiler, builder)?;
    if let Some(place) = first_difference(module, &again) {
        bail!(
            "the builds in two folders differ from byte {place} on ({} and {} bytes); see {}",
            module.len(),
            again.len(),
            folder.display()
        );
    }
    println!("the builds in two folders have the same bytes");
    fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))
}

fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    let alike = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    (alike < one.len().max(other.len())).then_some(alike)
}

/// Checks that the module has the committed digest for its sources and compilers.
fn compare_with_committed(committed: &str, line: &str, must_be_committed: bool) -> Result<()> {
    match digests::judge(committed, line)? {
        DigestStatus::Same => {}
        DigestStatus::NewSources if must_be_committed => bail!(
            "{DIGESTS} has no digest for these sources; `cargo xtask engine quickjs --accept` writes it"
        ),
        DigestStatus::NewSources => eprintln!(
            "warning: no digest is committed for these sources; `cargo xtask engine quickjs --accept` writes it"
        ),
        DigestStatus::NewCompilers(label) => {
            eprintln!("warning: no digest is committed for {label}")
        }
        DigestStatus::Other { expected, found } => bail!(
            "the module has another digest than {DIGESTS} has for these sources and compilers\n  expected sha256:{expected}\n  found    sha256:{found}"
        ),
    }
    Ok(())
}

fn build_guest(target: &Path, compiler: &Compiler) -> Result<PathBuf> {
    have_wasm_target()?;
    let mut cargo = nested_cargo("sandbox-guest/quickjs", target);
    cargo.args(["rustc", "--locked", "--lib", "--profile", "guest"]);
    cargo.args(["--target", WASM_TARGET, "--"]);
    // Places the shadow stack at the beginning of the memory, as in the Boa guest.
    let stack = format!("link-arg=-zstack-size={}", stack::SHADOW_STACK_BYTES);
    cargo.args(["-C", &stack]);
    cargo.args(["-C", "link-arg=--stack-first"]);
    // Replaces the paths of this machine in the module's debug information and messages.
    let places = [
        (cargo_home(), "/cargo"),
        (Some(target.to_owned()), "/target"),
        (Some(paths::root()), "/airlock"),
    ];
    let (mut rust, mut c) = (Vec::new(), compiler.flags.to_owned());
    for (place, instead) in places {
        let Some(place) = place else { continue };
        rust.push(format!("--remap-path-prefix={}={instead}", place.display()));
        c.push_str(&format!(" -ffile-prefix-map={}={instead}", place.display()));
    }
    let triple = WASM_TARGET.replace('-', "_");
    cargo
        .env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"))
        .env(format!("CC_{triple}"), &compiler.cc)
        .env(format!("AR_{triple}"), &compiler.ar)
        .env(format!("CFLAGS_{triple}"), c);
    finish(cargo, "building the guest")?;
    Ok(target.join(WASM_TARGET).join("guest/guest_quickjs.wasm"))
}

fn build_image_builder(guests: &Path) -> Result<PathBuf> {
    let mut cargo = nested_cargo("sandbox-guest", guests);
    cargo.args([
        "build",
        "--locked",
        "--release",
        "--package",
        "guest-image-builder",
    ]);
    finish(cargo, "building the image builder")?;
    let name = format!("guest-image-builder{}", std::env::consts::EXE_SUFFIX);
    Ok(guests.join("release").join(name))
}

/// Returns a command for cargo in another workspace, without the environment variables that the
/// outer cargo set for this program.
pub(crate) fn nested_cargo(workspace: &str, target: &Path) -> Command {
    const KEPT: [&str; 6] = [
        "CARGO_HOME",
        "CARGO_TERM_",
        "CARGO_NET_",
        "CARGO_HTTP_",
        "CARGO_REGISTRIES_",
        "CARGO_SOURCE_",
    ];
    let mut command = Command::new("cargo");
    command.current_dir(paths::root().join(workspace));
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        let is_kept = KEPT.iter().any(|kept| name.starts_with(kept));
        if (name.starts_with("CARGO") || name.starts_with("RUSTFLAGS")) && !is_kept {
            command.env_remove(name);
        }
    }
    command.env("CARGO_TARGET_DIR", target);
    command
}

/// Returns the folder in which guests are built, as their build scripts expect it.
pub(crate) fn guest_target() -> PathBuf {
    match std::env::var_os("AIRLOCK_GUEST_TARGET_DIR") {
        Some(folder) => paths::root().join(folder),
        None => paths::target().join("guest"),
    }
}

fn cargo_home() -> Option<PathBuf> {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
}

fn have_wasm_target() -> Result<()> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", WASM_TARGET]);
    if Path::new(output_text(rustc)?.trim()).is_dir() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", WASM_TARGET]);
    finish(rustup, "adding the Wasm target")
}

fn host() -> Result<String> {
    let mut rustc = Command::new("rustc");
    rustc.arg("-vV");
    let said = output_text(rustc)?;
    let line = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc printed no host")?.to_owned())
}

fn rustc_version() -> Result<String> {
    let mut rustc = Command::new("rustc");
    rustc.arg("-V");
    let said = output_text(rustc)?;
    Ok(said
        .split(" (")
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned())
}

fn output_text(mut command: Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .current_dir(paths::root())
        .output()
        .with_context(|| format!("{name} could not be started"))?;
    ensure!(output.status.success(), "{name} failed");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn finish(mut command: Command, doing: &str) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .with_context(|| format!("{doing}: {name} could not be started"))?;
    ensure!(status.success(), "{doing} failed");
    Ok(())
}

#[cfg(test)]
mod tests;
