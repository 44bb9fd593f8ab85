//! `cargo xtask engine quickjs`: makes the image of the second guest. Its engine
//! is C, so this needs a C compiler for Wasm, which the build itself must not;
//! what is made here the next build finds and carries. `--twice` makes it again
//! in another folder and wants the same bytes.

mod compiler;
mod digests;
mod sources;
#[expect(unreachable_pub, reason = "the crate that it belongs to exports it")]
#[path = "../../sandbox-guest/quickjs-image/src/stack.rs"]
mod stack;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::paths;
use compiler::Compiler;
use digests::Held;
use sources::Sources;

const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// What modules were made of which sources, by which compilers, one line each.
const DIGESTS: &str = "sandbox-guest/quickjs/digests";

/// Stands beside an image: what it was made from.
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
    // What is there is not whole until its last file is written.
    let _ = fs::remove_file(made.join(MADE_FROM));

    let sources = Sources::read()?;
    let compiler = Compiler::find(&guests.join("engines/tools"))?;
    let label = format!("{}, {}", compiler.label, rustc_version()?);
    eprintln!("building the factory");
    let factory = build_factory(&guests)?;
    eprintln!("building the guest ({label})");
    let module = make(&guests.join("quickjs"), &made, &compiler, &factory)?;
    if twice {
        eprintln!("building it again in another folder");
        make_again(&guests.join("again"), &module, &compiler, &factory)?;
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
        hold_against_committed(&committed, &line, twice)?;
    }
    fs::write(made.join(MADE_FROM), sources.text())?;
    println!("made in {}; the next build carries it", made.display());
    Ok(())
}

/// The image's module, with all that belongs to it in `made`.
fn make(target: &Path, made: &Path, compiler: &Compiler, factory: &Path) -> Result<Vec<u8>> {
    let guest = build_guest(target, compiler)?;
    let mut press = Command::new(factory);
    press.arg(guest).arg(host()?).arg(made).arg("quickjs");
    finish(press, "pressing the guest into an image")?;
    Ok(fs::read(made.join("quickjs.wasm"))?)
}

/// Makes all of it from nothing in this folder, which is gone afterwards, and wants the bytes
/// that are there.
fn make_again(folder: &Path, module: &[u8], compiler: &Compiler, factory: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(folder);
    let made = folder.join("made");
    fs::create_dir_all(&made)?;
    let again = make(&folder.join("built"), &made, compiler, factory)?;
    if let Some(place) = first_difference(module, &again) {
        bail!(
            "two builds in two folders differ from byte {place} on ({} and {} bytes); see {}",
            module.len(),
            again.len(),
            folder.display()
        );
    }
    println!("two builds in two folders made the same bytes");
    fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))
}

fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    let alike = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    (alike < one.len().max(other.len())).then_some(alike)
}

/// The same sources and compilers make the same bytes, wherever they lie.
fn hold_against_committed(committed: &str, line: &str, is_wanted: bool) -> Result<()> {
    match digests::judge(committed, line)? {
        Held::Same => {}
        Held::NewSources if is_wanted => bail!(
            "{DIGESTS} has no digest for these sources; `cargo xtask engine quickjs --accept` writes it"
        ),
        Held::NewSources => eprintln!(
            "warning: no digest is committed for these sources; `cargo xtask engine quickjs --accept` writes it"
        ),
        Held::NewCompilers(label) => eprintln!("warning: no digest is committed for {label}"),
        Held::Other { expected, found } => bail!(
            "the module is not the one that {DIGESTS} has for these sources and compilers\n  expected sha256:{expected}\n  found    sha256:{found}"
        ),
    }
    Ok(())
}

fn build_guest(target: &Path, compiler: &Compiler) -> Result<PathBuf> {
    have_wasm_target()?;
    let mut cargo = nested_cargo("sandbox-guest/quickjs", target);
    cargo.args(["rustc", "--locked", "--lib", "--profile", "guest"]);
    cargo.args(["--target", WASM_TARGET, "--"]);
    // As with the first guest: the shadow stack lies below everything else.
    let stack = format!("link-arg=-zstack-size={}", stack::SHADOW_STACK_BYTES);
    cargo.args(["-C", &stack]);
    cargo.args(["-C", "link-arg=--stack-first"]);
    // No path of this machine goes into the module.
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

fn build_factory(guests: &Path) -> Result<PathBuf> {
    let mut cargo = nested_cargo("sandbox-guest", guests);
    cargo.args([
        "build",
        "--locked",
        "--release",
        "--package",
        "guest-factory",
    ]);
    finish(cargo, "building the factory")?;
    let name = format!("guest-factory{}", std::env::consts::EXE_SUFFIX);
    Ok(guests.join("release").join(name))
}

/// Cargo in another workspace, without what the outer cargo told this program.
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

/// Where guests are built, as their build scripts have it.
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
    if Path::new(said(rustc)?.trim()).is_dir() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", WASM_TARGET]);
    finish(rustup, "adding the Wasm target")
}

fn host() -> Result<String> {
    let mut rustc = Command::new("rustc");
    rustc.arg("-vV");
    let said = said(rustc)?;
    let line = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc names no host")?.to_owned())
}

fn rustc_version() -> Result<String> {
    let mut rustc = Command::new("rustc");
    rustc.arg("-V");
    let said = said(rustc)?;
    Ok(said
        .split(" (")
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned())
}

fn said(mut command: Command) -> Result<String> {
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
