//! Finds a C compiler for Wasm: an installed clang or zig, or else zig from the Python package
//! index, which is downloaded into the target folder. An installed compiler may have any version;
//! the downloaded zig has a fixed version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

const ZIG: &str = "0.17.0";
/// Maximum number of attempts when the index does not answer or a download breaks off.
const TRIES: u32 = 3;
/// Pause after the first failed attempt; each further pause is twice as long.
const PAUSE: Duration = Duration::from_secs(2);

/// Without the first two flags, zig compiles for a freestanding target, and the guest can be half
/// as fast.
const FLAGS: &str = "-fhosted -fbuiltin -fomit-frame-pointer";

/// Suffixes of clang, tried in this order. The empty suffix is the machine's default clang.
const CLANGS: [&str; 5] = ["", "-22", "-21", "-20", "-19"];

pub(super) struct Compiler {
    pub(super) cc: PathBuf,
    pub(super) ar: PathBuf,
    pub(super) flags: &'static str,
    /// Name and version of the compiler.
    pub(super) label: String,
}

impl Compiler {
    pub(super) fn find(tools: &Path) -> Result<Self> {
        fs::create_dir_all(tools)?;
        if let Some(clang) = CLANGS.into_iter().find_map(clang) {
            return Ok(clang);
        }
        if let Some(version) = first_line("zig", &["version"]) {
            return zig(Path::new("zig"), &version, tools);
        }
        let zig_path = fetched(tools)?;
        zig(&zig_path, ZIG, tools)
    }
}

/// Finds a clang that can compile for Wasm, and its `llvm-ar`, which creates archives.
fn clang(suffix: &str) -> Option<Compiler> {
    let (cc, ar) = (format!("clang{suffix}"), format!("llvm-ar{suffix}"));
    let version = first_line(&cc, &["--version"])?;
    first_line(&ar, &["--version"])?;
    let mut child = Command::new(&cc)
        .args(["--target=wasm32-unknown-unknown", "-c", "-x", "c", "-"])
        .args(["-o", "/dev/null"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.wait().ok()?.success().then(|| Compiler {
        cc: cc.into(),
        ar: ar.into(),
        flags: FLAGS,
        label: version.replace(',', ""),
    })
}

/// Prepares zig. Small scripts translate clang's commands and targets, which have other names in
/// zig.
fn zig(zig: &Path, version: &str, tools: &Path) -> Result<Compiler> {
    let cc = format!(
        "#!/bin/sh\n\
         # Everything but the target, which zig spells in its own way.\n\
         n=$#\n\
         while [ \"$n\" -gt 0 ]; do\n\
         \x20 a=$1; shift; n=$((n-1))\n\
         \x20 case \"$a\" in --target=*) ;; *) set -- \"$@\" \"$a\" ;; esac\n\
         done\n\
         exec \"{0}\" cc -target wasm32-freestanding \"$@\"\n",
        zig.display()
    );
    let ar = format!("#!/bin/sh\nexec \"{}\" ar \"$@\"\n", zig.display());
    Ok(Compiler {
        cc: script(&tools.join("zig-cc"), &cc)?,
        ar: script(&tools.join("zig-ar"), &ar)?,
        flags: FLAGS,
        label: format!("zig {version}"),
    })
}

fn script(path: &Path, text: &str) -> Result<PathBuf> {
    fs::write(path, text)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(path.to_owned())
}

fn fetched(tools: &Path) -> Result<PathBuf> {
    let folder = tools.join(format!("ziglang-{ZIG}"));
    let zig = folder.join("ziglang/zig");
    if first_line(&zig.to_string_lossy(), &["version"]).is_some() {
        return Ok(zig);
    }
    eprintln!("downloading ziglang {ZIG} into {}", folder.display());
    let mut outcome = fetch(&folder);
    for tried in 1..TRIES {
        if outcome.is_err() {
            std::thread::sleep(PAUSE * tried);
            outcome = fetch(&folder);
        }
    }
    outcome.map(|()| zig)
}

/// Downloads zig into a temporary folder and then moves it, so that a failed download leaves no
/// partial compiler.
fn fetch(folder: &Path) -> Result<()> {
    let mut unfinished = folder.as_os_str().to_owned();
    unfinished.push(format!(".{}", std::process::id()));
    let unfinished = PathBuf::from(unfinished);
    let _ = fs::remove_dir_all(&unfinished);
    let package = format!("ziglang=={ZIG}");
    let output = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--timeout", "30", "--no-deps", "--target"])
        .arg(&unfinished)
        .arg(package)
        .output()
        .context("no C compiler for Wasm is installed, and python3 could not be started to download one; install clang with llvm, or zig")?;
    ensure!(
        output.status.success(),
        "no C compiler for Wasm is installed, and ziglang {ZIG} could not be downloaded; install clang with llvm, or zig\n{}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let _ = fs::remove_dir_all(folder);
    fs::rename(&unfinished, folder)?;
    Ok(())
}

/// Returns the first line of a program's output, if the program exists.
fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = said.lines().next()?.trim().to_owned();
    output.status.success().then_some(line)
}
