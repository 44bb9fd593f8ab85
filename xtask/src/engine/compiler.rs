//! A C compiler for Wasm: clang or zig where one is installed, else zig from the
//! Python package index, into the target folder. What a machine has of its own
//! is taken as it is; what is fetched has its version here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

const ZIG: &str = "0.17.0";
/// How often the index is asked that did not answer, or broke off.
const TRIES: u32 = 3;
/// So long it is left alone in between, and twice as long after that.
const PAUSE: Duration = Duration::from_secs(2);

/// Without the first two, zig compiles for Wasm as for a machine without a library, and what it
/// makes takes up to twice as long.
const FLAGS: &str = "-fhosted -fbuiltin -fomit-frame-pointer";

/// Newest first; without a number it is whatever the machine calls so.
const CLANGS: [&str; 5] = ["", "-22", "-21", "-20", "-19"];

pub(super) struct Compiler {
    pub(super) cc: PathBuf,
    pub(super) ar: PathBuf,
    pub(super) flags: &'static str,
    /// What it is and which version.
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

/// Not every clang can compile for Wasm, and none can archive by itself.
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

/// Zig's names for what it is asked are not clang's: small scripts stand between.
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
    eprintln!("fetching ziglang {ZIG} into {}", folder.display());
    let mut outcome = fetch(&folder);
    for tried in 1..TRIES {
        if outcome.is_err() {
            std::thread::sleep(PAUSE * tried);
            outcome = fetch(&folder);
        }
    }
    outcome.map(|()| zig)
}

/// Into a folder beside it first: what breaks off leaves no half of a compiler behind.
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
        .context("no C compiler for Wasm is installed, and python3 could not be started to fetch one; install clang with llvm, or zig")?;
    ensure!(
        output.status.success(),
        "no C compiler for Wasm is installed, and ziglang {ZIG} could not be fetched; install clang with llvm, or zig\n{}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let _ = fs::remove_dir_all(folder);
    fs::rename(&unfinished, folder)?;
    Ok(())
}

/// The first line that a program says, when it is there.
fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = said.lines().next()?.trim().to_owned();
    output.status.success().then_some(line)
}
