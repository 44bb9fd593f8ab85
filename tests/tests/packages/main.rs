//! Tests the packages that `cargo xtask dist` makes from the program: each is installed without a
//! network, and its program runs a script. `AIRLOCK_BIN` names another program to pack.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::process::getuid;
use tempfile::TempDir;
use tests::binary::{airlock, cargo, target_dir};
use tests::command::{CommandOutput, start};

const SCRIPT: [&str; 4] = ["run", "--quiet", "-e", "return 1 + 1"];

/// Packs the program into a folder.
fn pack(folder: &Path) -> PathBuf {
    let output = cargo()
        .args(["xtask", "dist", "--program"])
        .arg(airlock())
        .arg("--out")
        .arg(folder)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    folder.to_owned()
}

/// Returns the folder of the packages, which are made once.
fn dist() -> &'static Path {
    static DIST: OnceLock<PathBuf> = OnceLock::new();
    DIST.get_or_init(|| pack(&target_dir().unwrap().join("dist-tests")))
}

/// Returns the only package whose name has this beginning and this end.
fn package(begin: &str, end: &str) -> PathBuf {
    let entries = fs::read_dir(dist()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found = paths.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(begin) && name.ends_with(end)
    });
    let path = found.next().unwrap_or_else(|| panic!("no {begin}…{end}"));
    assert!(found.next().is_none(), "several {begin}…{end}");
    path
}

/// Runs a command in a folder, which is also its home.
fn run<S: AsRef<OsStr>>(folder: &Path, program: impl AsRef<OsStr>, args: &[S]) -> CommandOutput {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env("HOME", folder);
    for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "AIRLOCK_STATE_DIR"] {
        command.env_remove(name);
    }
    start(&mut command, "").wait()
}

fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    let command = command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let is_there = command.status().is_ok_and(|it| it.success());
    if !is_there {
        println!("SKIP: there is no {program}");
    }
    is_there
}

/// Installs both npm packages of the program with these options, which can name further packages.
fn npm_install(options: &[&str]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("package.json"), "{\"private\": true}").unwrap();
    let packages = [
        package("airlock-mcp-0", ".tgz"),
        package("airlock-mcp-linux", ".tgz"),
    ];
    let packages = packages.map(|it| it.display().to_string());
    let mut args = vec!["install", "--offline", "--no-audit", "--no-fund"];
    args.extend(options);
    args.extend(packages.iter().map(String::as_str));
    run(folder.path(), "npm", &args).expect_code(0);
    folder
}

#[test]
fn same_program_gives_the_same_packages() {
    let again = TempDir::new().unwrap();
    pack(&again.path().join("dist"));
    let sums = |folder: &Path| fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    assert_eq!(sums(&again.path().join("dist")), sums(dist()));
    let checked = run(dist(), "sha256sum", &["--check", "SHA256SUMS"]).expect_code(0);
    assert!(checked.stdout.lines().count() >= 6, "{checked}");
}

#[test]
fn archive_has_program_licences_completions_and_manual() {
    let folder = TempDir::new().unwrap();
    let archive = package("airlock-0", ".tar.gz").display().to_string();
    let words = ["--extract", "--strip-components=1", "--file", &archive];
    run(folder.path(), "tar", &words).expect_code(0);
    let size = |name: &str| {
        let meta = fs::metadata(folder.path().join(name));
        meta.unwrap_or_else(|error| panic!("{name}: {error}")).len()
    };
    for name in [
        "LICENSE",
        "completions/airlock.bash",
        "completions/_airlock",
        "man/airlock.1",
    ] {
        assert!(size(name) > 100, "{name}");
    }
    assert!(size("man/airlock-policy-check.1") > 100);
    assert!(size("THIRD-PARTY-LICENSES.txt") > 100_000);
    let licences = fs::read_to_string(folder.path().join("THIRD-PARTY-LICENSES.txt")).unwrap();
    // QuickJS lies in a folder of its crate, and Boa's sources are compiled with corrections.
    for name in ["Fabrice Bellard", "boa_engine 0.", "rquickjs-sys 0."] {
        assert!(licences.contains(name), "{name}");
    }
    // Only tests, macros and build scripts use these.
    for name in ["\nproptest 1.", "\nserde_derive 1.", "\ncc 1."] {
        assert!(!licences.contains(name), "{name}");
    }
    let ended = run(folder.path(), folder.path().join("airlock"), &SCRIPT).expect_code(0);
    assert_eq!(ended.stdout.trim(), "2", "{ended}");
}

#[test]
fn bill_of_materials_names_the_engines_crates() {
    let text = fs::read_to_string(dist().join("airlock.cdx.json")).unwrap();
    let sbom: serde_json::Value = serde_json::from_str(&text).unwrap();
    let components = sbom["components"].as_array().unwrap();
    for name in [
        "wasmtime",
        "cedar-policy",
        "tokio",
        "oxc_parser",
        "boa_engine",
    ] {
        let of_name = components.iter().find(|it| it["name"] == name);
        let component = of_name.unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(
            component["hashes"][0]["content"].as_str().unwrap().len(),
            64
        );
    }
}

#[test]
fn npm_packages_install_without_a_network_and_run() {
    if !has("npm") {
        return;
    }
    for options in [&[][..], &["--ignore-scripts"]] {
        let folder = npm_install(options);
        let words = [&["--offline", "airlock"][..], &SCRIPT].concat();
        let ended = run(folder.path(), "npx", &words).expect_code(0);
        assert_eq!(ended.stdout.trim(), "2", "{ended}");
    }
}

/// The client finds the program of the packages, which is not on PATH.
#[test]
fn npm_client_finds_the_program_and_offers_functions() {
    if !has("npm") {
        return;
    }
    let client = package("airlock-client-", ".tgz").display().to_string();
    let folder = npm_install(&[&client]);
    let program = "import { Airlock } from 'airlock-client';
const shop = { price: ({ item }) => item.length };
const airlock = await Airlock.start({ tools: { shop }, args: ['--allow', 'shop.*'] });
console.log((await airlock.run(\"return await shop.price({ item: 'tea' })\")).value);
await airlock.close();";
    let path = folder.path().join("shop.mjs");
    fs::write(&path, program).unwrap();
    let ended = run(folder.path(), "node", &[&path]).expect_code(0);
    assert_eq!(ended.stdout.trim(), "3", "{ended}");
}

#[test]
fn npm_launcher_passes_input_and_exit_code() {
    if !has("npm") {
        return;
    }
    let folder = npm_install(&[]);
    let launcher = folder.path().join("node_modules/.bin/airlock");
    let mut command = Command::new(&launcher);
    command
        .args(["run", "--quiet", "-"])
        .env("HOME", folder.path());
    let ended = start(&mut command, "return 'from stdin'")
        .wait()
        .expect_code(0);
    assert_eq!(ended.stdout.trim(), "from stdin", "{ended}");
    run(
        folder.path(),
        launcher,
        &["run", "-e", "throw new Error('no')"],
    )
    .expect_code(20);
}

#[test]
fn npm_launcher_names_the_missing_package() {
    if !has("npm") {
        return;
    }
    let folder = npm_install(&[]);
    let platform = package("airlock-mcp-linux", ".tgz");
    let platform = platform.file_name().unwrap().to_string_lossy().into_owned();
    let (name, _) = platform.rsplit_once('-').unwrap();
    fs::remove_dir_all(folder.path().join("node_modules").join(name)).unwrap();
    let launcher = folder.path().join("node_modules/.bin/airlock");
    let ended = run(folder.path(), launcher, &["--version"]).expect_code(1);
    assert!(
        ended
            .stderr
            .contains(&format!("the package {name} is not installed")),
        "{ended}"
    );
    assert!(ended.stderr.contains("npm install"), "{ended}");
}

/// Node itself can run with another C library than the program.
#[test]
fn npm_launcher_looks_for_the_loader_of_the_program() {
    if !has("npm") {
        return;
    }
    let folder = npm_install(&[]);
    let launcher = folder.path().join("node_modules/.bin/airlock");
    let run_with = |preload: &str| {
        let path = folder.path().join("preload.cjs");
        fs::write(&path, preload).unwrap();
        let words = ["--require", path.to_str().unwrap()];
        let words = [&words[..], &[launcher.to_str().unwrap(), "--version"]].concat();
        run(folder.path(), "node", &words)
    };
    let musl_node = "const report = process.report.getReport;
process.report.getReport = () => { const r = report.call(process.report); delete r.header.glibcVersionRuntime; return r; };";
    run_with(musl_node).expect_code(0);
    let no_loader = "const fs = require('node:fs'), exists = fs.existsSync;
fs.existsSync = (path) => !String(path).includes('/ld-linux') && exists(path);";
    let ended = run_with(no_loader).expect_code(1);
    assert!(ended.stderr.contains("the program needs glibc"), "{ended}");
    let platform = package("airlock-mcp-linux", ".tgz");
    let platform = platform.file_name().unwrap().to_string_lossy().into_owned();
    let (name, _) = platform.rsplit_once('-').unwrap();
    fs::remove_dir_all(folder.path().join("node_modules").join(name)).unwrap();
    let ended = run_with(musl_node).expect_code(1);
    assert!(ended.stderr.contains("is not installed"), "{ended}");
}

#[test]
fn wheel_installs_without_an_index_and_runs() {
    if !has("python3") {
        return;
    }
    let folder = TempDir::new().unwrap();
    run(folder.path(), "python3", &["-m", "venv", "venv"]).expect_code(0);
    let bin = folder.path().join("venv/bin");
    let wheel = package("airlock_mcp-", ".whl").display().to_string();
    run(
        folder.path(),
        bin.join("pip"),
        &["install", "--no-index", &wheel],
    )
    .expect_code(0);
    for name in ["airlock", "airlock-mcp"] {
        let ended = run(folder.path(), bin.join(name), &SCRIPT).expect_code(0);
        assert_eq!(ended.stdout.trim(), "2", "{ended}");
    }
    let listed = run(
        folder.path(),
        bin.join("pip"),
        &["show", "--files", "airlock-mcp"],
    );
    assert!(listed.expect_code(0).stdout.contains("licenses/LICENSE"));
}

#[test]
fn bundle_has_a_manifest_and_a_program_that_runs() {
    if !has("python3") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let bundle = package("airlock-0", ".mcpb").display().to_string();
    run(
        folder.path(),
        "python3",
        &["-m", "zipfile", "-e", &bundle, "."],
    )
    .expect_code(0);
    let text = fs::read_to_string(folder.path().join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest["server"]["type"], "binary");
    let program = folder
        .path()
        .join(manifest["server"]["entry_point"].as_str().unwrap());
    // This tool restores no modes.
    run(folder.path(), "chmod", &["+x", program.to_str().unwrap()]).expect_code(0);
    let ended = run(folder.path(), program, &SCRIPT).expect_code(0);
    assert_eq!(ended.stdout.trim(), "2", "{ended}");
}

/// Copies the files that the Dockerfile names into a folder, as an engine does: a folder that exists
/// keeps its owner and mode.
fn build_image(to: &Path) {
    let context = dist().join("container");
    let dockerfile = fs::read_to_string(context.join("Dockerfile")).unwrap();
    let copies = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("COPY "));
    for copy in copies {
        let (flags, places): (Vec<&str>, Vec<&str>) =
            copy.split(' ').partition(|it| it.starts_with("--"));
        let flag = |name: &str| {
            let value = flags.iter().find_map(|it| it.strip_prefix(name));
            value.unwrap_or_else(|| panic!("{copy}: no {name}"))
        };
        let mode = u32::from_str_radix(flag("--chmod="), 8).unwrap();
        let owner = match copy.contains("--chown=") {
            true => flag("--chown=")
                .split(':')
                .map(|it| it.parse().unwrap())
                .collect(),
            false => vec![0, 0],
        };
        let [from, into] = places[..] else {
            panic!("{copy}");
        };
        let into = to.join(into.trim_start_matches('/'));
        copy_folder(&context.join(from), &into, mode, (owner[0], owner[1]));
    }
}

fn copy_folder(from: &Path, into: &Path, mode: u32, owner: (u32, u32)) {
    for entry in fs::read_dir(from).unwrap() {
        let from = entry.unwrap().path();
        let into = into.join(from.file_name().unwrap());
        let exists = into.exists();
        match from.is_dir() {
            true if !exists => fs::create_dir(&into).unwrap(),
            true => {}
            false => drop(fs::copy(&from, &into).unwrap()),
        }
        if !exists {
            fs::set_permissions(&into, fs::Permissions::from_mode(mode)).unwrap();
            chown(&into, Some(owner.0), Some(owner.1)).unwrap();
        }
        if from.is_dir() {
            copy_folder(&from, &into, mode, owner);
        }
    }
}

/// The root of the image has nothing but the program and its libraries. It is mounted read-only, and
/// the program runs as the user of the image, with the image's own folder for the state.
#[test]
fn program_runs_in_the_containers_root() {
    if !getuid().is_root() {
        println!("SKIP: only root can change the root of a process");
        return;
    }
    let folder = TempDir::new().unwrap();
    let can_mount = run(folder.path(), "unshare", &["--mount", "true"]).code == Some(0);
    if !can_mount {
        println!("SKIP: this machine does not allow mounts");
        return;
    }
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    build_image(&root);
    for owned in ["state", "tmp"] {
        let meta = fs::metadata(root.join(owned)).unwrap();
        assert_eq!((meta.uid(), meta.mode() & 0o777), (65532, 0o700), "{owned}");
    }
    let mounts = "set -e; mount --bind \"$1\" \"$1\"; mount -o remount,bind,ro \"$1\"; \
                  mount --bind \"$2\" \"$1/state\"; root=$1; shift 2; \
                  exec chroot --userspec=65532:65532 \"$root\" /usr/bin/airlock \"$@\"";
    // A volume gets the content, the owner and the mode of the image's folder.
    let volume = folder.path().join("volume");
    fs::rename(root.join("state"), &volume).unwrap();
    fs::create_dir(root.join("state")).unwrap();
    let shown = [&root, &volume].map(|it| it.display().to_string());
    let state = ["--state-dir", "/state"];
    let start = ["--mount", "sh", "-c", mounts, "sh", &shown[0], &shown[1]];
    let words = [&start[..], &SCRIPT, &state].concat();
    let ended = run(folder.path(), "unshare", &words).expect_code(0);
    assert_eq!(ended.stdout.trim(), "2", "{ended}");
    let words = [&start[..], &SCRIPT, &["--state-dir", "/elsewhere"]].concat();
    let ended = run(folder.path(), "unshare", &words);
    assert_ne!(ended.code, Some(0), "wrote to a read-only root\n{ended}");
}
