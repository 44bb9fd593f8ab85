//! Builds the guests and turns each into its image. The nested cargo has its own target folder, so
//! that debug and release builds of the broker share one image.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// Overrides the target folder of the nested build.
const TARGET_DIR_ENV: &str = "AIRLOCK_GUEST_TARGET_DIR";

/// Name of the file that marks a complete image.
const BUILT: &str = "built";

/// A guest whose image is built here.
struct Guest {
    /// The name of the image.
    name: &'static str,
    package: &'static str,
    /// The sources of the image in addition to [`COMMON_SOURCES`], relative to this crate's folder.
    sources: &'static [&'static str],
}

const GUESTS: [Guest; 2] = [
    Guest {
        name: "boa",
        package: "guest-boa",
        sources: &[
            "../boa/Cargo.toml",
            "../boa/src",
            "../engine",
            "../image-builder/runs",
            "../prelude",
        ],
    },
    Guest {
        name: "checker",
        package: "guest-checker",
        sources: &[
            "../../codegen/script/Cargo.toml",
            "../../codegen/script/src",
            "../../codegen/shared/Cargo.toml",
            "../../codegen/shared/src",
            "../checker/Cargo.toml",
            "../checker/src",
        ],
    },
];

/// Sources that every image depends on.
const COMMON_SOURCES: [&str; 11] = [
    "../.cargo/config.toml",
    "../Cargo.lock",
    "../Cargo.toml",
    "../wasmtime-config/Cargo.toml",
    "../wasmtime-config/src",
    "../common/Cargo.toml",
    "../common/src",
    "../image-builder/Cargo.toml",
    "../image-builder/src",
    "../protocol/Cargo.toml",
    "../protocol/src",
];

/// The outer workspace's manifest, and the only lines in it that affect the image.
const OUTER_MANIFEST: &str = "../../Cargo.toml";
const OUTER_LINES: [&str; 2] = ["edition =", "wasmtime ="];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            for line in why.lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let own = GUESTS.iter().flat_map(|guest| guest.sources);
    let common = COMMON_SOURCES.iter().chain(&[OUTER_MANIFEST, "build.rs"]);
    for source in own.chain(common) {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-env-changed={TARGET_DIR_ENV}");
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    let workspace = here.join("..");
    let target_dir = match env::var_os(TARGET_DIR_ENV) {
        Some(given) => PathBuf::from(given),
        None => target_root(&out)?.join("guest"),
    };
    have_wasm_target()?;

    // If several cargos run at once, they wait here; all but the first find the images complete.
    fs::create_dir_all(&target_dir).map_err(|why| format!("{}: {why}", target_dir.display()))?;
    let lock = fs::File::create(target_dir.join("image.lock")).map_err(|why| why.to_string())?;
    lock.lock().map_err(|why| why.to_string())?;

    let host = variable("TARGET")?;
    for guest in &GUESTS {
        // The same sources and compiler give the same image in any folder, so a return to earlier
        // sources builds nothing.
        let images = target_dir
            .join("images")
            .join(&host)
            .join(stamp(&here, guest)?);
        if !images.join(BUILT).exists() {
            build_image(guest, &workspace, &target_dir, &host, &images)?;
            fs::write(images.join(BUILT), "").map_err(|why| why.to_string())?;
        }
        let Guest { name, .. } = guest;
        for file in [format!("{name}.cwasm"), format!("{name}.sha256")] {
            fs::copy(images.join(&file), out.join(&file))
                .map_err(|why| format!("{file}: {why}"))?;
        }
        let digest = out.join(format!("{name}.sha256"));
        let digest = fs::read_to_string(digest).map_err(|why| why.to_string())?;
        println!(
            "cargo::rustc-env=GUEST_{}_SHA256={digest}",
            name.to_uppercase()
        );
    }
    Ok(())
}

fn build_image(
    guest: &Guest,
    workspace: &Path,
    target_dir: &Path,
    host: &str,
    images: &Path,
) -> Result<(), String> {
    let Guest { name, package, .. } = guest;
    let mut building = nested_cargo(workspace, target_dir)?;
    building.args(["rustc", "--locked", "--package", package, "--lib"]);
    building.args([
        "--crate-type",
        "cdylib",
        "--profile",
        "guest",
        "--target",
        WASM_TARGET,
    ]);
    building.arg("--config").arg(without_places(target_dir));
    // The shadow stack is placed before all other data, so its overflow is a trap. wasmtime-config
    // defines its size.
    building.args([
        "--",
        "-C",
        "link-arg=-zstack-size=4194304",
        "-C",
        "link-arg=--stack-first",
    ]);
    let mut builder = nested_cargo(workspace, target_dir)?;
    builder.args([
        "build",
        "--locked",
        "--package",
        "guest-image-builder",
        "--release",
    ]);
    // The last step of the guest's build is one long link on one core; the image builder is built
    // on the other cores meanwhile.
    let (guest, builder) = std::thread::scope(|scope| {
        let guest = scope.spawn(|| run(building, "building the guest"));
        let builder = run(builder, "building the image builder");
        (guest.join(), builder)
    });
    guest.unwrap_or_else(|_| Err("building the guest: its thread panicked".to_owned()))?;
    builder?;

    let wasm = target_dir
        .join(WASM_TARGET)
        .join(format!("guest/guest_{name}.wasm"));
    let builder = target_dir
        .join("release")
        .join(format!("guest-image-builder{}", env::consts::EXE_SUFFIX));
    fs::create_dir_all(images).map_err(|why| why.to_string())?;
    let mut image = Command::new(builder);
    image.arg(wasm).arg(host).arg(images).arg(name);
    run(image, "building the image")
}

/// Returns flags that keep this machine's paths out of the image, because the engine's generated
/// sources are in the target folder.
fn without_places(target_dir: &Path) -> String {
    let cargo_home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let places = [
        (cargo_home, "/cargo"),
        (Some(target_dir.to_owned()), "/guest"),
    ];
    let flags = places.into_iter().filter_map(|(place, instead)| {
        let place = place?.display().to_string();
        Some(format!(
            "{:?}",
            format!("--remap-path-prefix={place}={instead}")
        ))
    });
    let flags = flags.collect::<Vec<_>>().join(", ");
    format!("target.{WASM_TARGET}.rustflags = [{flags}]")
}

/// Returns a hash of everything that the image depends on, including the compiler.
fn stamp(here: &Path, guest: &Guest) -> Result<String, String> {
    let mut hasher = DefaultHasher::new();
    let compiler = Command::new(variable("RUSTC")?)
        .arg("-vV")
        .output()
        .map_err(|why| format!("rustc: {why}"))?;
    compiler.stdout.hash(&mut hasher);
    guest.name.hash(&mut hasher);
    for source in COMMON_SOURCES
        .iter()
        .chain(guest.sources)
        .chain(&["build.rs"])
    {
        source.hash(&mut hasher);
        hash_file_or_folder(&here.join(source), &mut hasher)?;
    }
    let manifest = fs::read_to_string(here.join(OUTER_MANIFEST))
        .map_err(|why| format!("{OUTER_MANIFEST}: {why}"))?;
    let reaches = |line: &&str| OUTER_LINES.iter().any(|start| line.starts_with(start));
    manifest
        .lines()
        .filter(reaches)
        .collect::<Vec<_>>()
        .hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

fn hash_file_or_folder(path: &Path, hasher: &mut DefaultHasher) -> Result<(), String> {
    let why = |why: io::Error| format!("{}: {why}", path.display());
    path.file_name().hash(hasher);
    if !path.is_dir() {
        fs::read(path).map_err(why)?.hash(hasher);
        return Ok(());
    }
    let mut entries = fs::read_dir(path)
        .map_err(why)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(why)?;
    entries.sort();
    entries
        .iter()
        .try_for_each(|entry| hash_file_or_folder(entry, hasher))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|why| format!("{name}: {why}"))
}

/// Returns the target folder of the outer build: the closest parent folder that cargo marked as
/// one.
fn target_root(out: &Path) -> Result<PathBuf, String> {
    out.ancestors()
        .find(|dir| dir.join("CACHEDIR.TAG").exists())
        .or_else(|| out.ancestors().nth(4))
        .map(Path::to_owned)
        .ok_or_else(|| format!("no target folder above {}", out.display()))
}

/// Returns cargo for the guests' workspace, without the environment variables that the outer cargo
/// set for this script.
fn nested_cargo(workspace: &Path, target_dir: &Path) -> Result<Command, String> {
    let mut command = Command::new(variable("CARGO")?);
    command
        .current_dir(workspace)
        .env("CARGO_TARGET_DIR", target_dir);
    for (name, _) in env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        let ours = [
            "CARGO_HOME",
            "CARGO_TARGET_DIR",
            "CARGO_MAKEFLAGS",
            "CARGO_TERM_COLOR",
        ]
        .contains(&name)
            || name.starts_with("CARGO_NET_")
            || name.starts_with("CARGO_HTTP_")
            || name.starts_with("CARGO_REGISTRIES_")
            || name.starts_with("CARGO_SOURCE_");
        let outer = name.starts_with("CARGO_")
            || name.starts_with("DEP_")
            || [
                "RUSTFLAGS",
                "RUSTC",
                "RUSTC_WRAPPER",
                "RUSTC_WORKSPACE_WRAPPER",
                "RUSTDOC",
            ]
            .contains(&name)
            || [
                "TARGET",
                "HOST",
                "OUT_DIR",
                "NUM_JOBS",
                "OPT_LEVEL",
                "DEBUG",
                "PROFILE",
            ]
            .contains(&name);
        if outer && !ours {
            command.env_remove(name);
        }
    }
    Ok(command)
}

fn run(mut command: Command, doing: &str) -> Result<(), String> {
    let output = command.output().map_err(|why| format!("{doing}: {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{doing} failed\n{}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Installs the Wasm target if the toolchain lacks it.
fn have_wasm_target() -> Result<(), String> {
    let found = Command::new(variable("RUSTC")?)
        .args(["--print", "target-libdir", "--target", WASM_TARGET])
        .output()
        .map_err(|why| format!("rustc: {why}"))?;
    let library = String::from_utf8_lossy(&found.stdout);
    if Path::new(library.trim()).is_dir() {
        return Ok(());
    }
    let added = Command::new("rustup")
        .args(["target", "add", WASM_TARGET])
        .output();
    let why = match added {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr)
            .trim()
            .replace('\n', "; "),
        Err(why) if why.kind() == io::ErrorKind::NotFound => "rustup is not installed".to_owned(),
        Err(why) => why.to_string(),
    };
    Err(format!(
        "the guest needs the target {WASM_TARGET}; get it with `rustup target add {WASM_TARGET}` ({why})"
    ))
}
