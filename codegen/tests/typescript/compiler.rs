//! Installs the native TypeScript compiler: one npm package below the target folder, at an exact
//! version.
//!
//! If the compiler cannot be installed, the tests that need it print one `SKIP:` line and pass.
//! With `AIRLOCK_REQUIRE_TYPESCRIPT=1` they fail instead.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const VERSION: &str = "7.0.2";
const OPTIONS: [&str; 8] = [
    "--strict", "--noEmit", "--pretty", "false", "--target", "es2022", "--lib", "es2022",
];

#[derive(Debug)]
pub(crate) struct Compiler {
    pub(crate) program: PathBuf,
    work: PathBuf,
}

/// An error, with its line number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypeError {
    pub line: usize,
    /// Code such as `TS2322`.
    pub code: String,
    pub message: String,
}

/// Returns the installed compiler, or `None` after printing a `SKIP:` line with the reason.
pub(crate) fn installed() -> Option<&'static Compiler> {
    static COMPILER: OnceLock<Result<Compiler, String>> = OnceLock::new();
    match COMPILER.get_or_init(install) {
        Ok(compiler) => Some(compiler),
        Err(why) if std::env::var_os("AIRLOCK_REQUIRE_TYPESCRIPT").is_some() => {
            panic!("TypeScript: {why}")
        }
        Err(why) => {
            // Not through `eprintln!`: the test harness would capture the line.
            let _ = writeln!(std::io::stderr(), "SKIP: TypeScript: {why}");
            None
        }
    }
}

impl Compiler {
    /// Returns a folder for the files of one test.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.work.join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Compiles these texts, each as a separate module, and returns the errors of each text that
    /// has any.
    pub(crate) fn errors(
        &self,
        batch: &str,
        texts: &BTreeMap<String, String>,
    ) -> BTreeMap<String, Vec<TypeError>> {
        let folder = self.work.join(batch);
        fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(&self.program);
        command.args(OPTIONS).current_dir(&folder);
        for (name, text) in texts {
            let file = format!("{name}.ts");
            fs::write(folder.join(&file), format!("{text}export {{}}\n")).unwrap();
            command.arg(file);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let errors = parse(&said);
        let failed = errors.values().any(|it| !it.is_empty());
        assert_eq!(failed, !output.status.success(), "{said}");
        errors
    }
}

/// Parses lines such as `name.ts(3,14): error TS2322: Type …`; an indented line continues the line
/// before.
fn parse(said: &str) -> BTreeMap<String, Vec<TypeError>> {
    let mut errors: BTreeMap<String, Vec<TypeError>> = BTreeMap::new();
    for line in said.lines().filter(|it| !it.starts_with(' ')) {
        let (name, rest) = line.split_once(".ts(").expect(line);
        let (place, rest) = rest.split_once("): error ").expect(line);
        let (code, message) = rest.split_once(": ").expect(line);
        let line_number = place.split(',').next().unwrap().parse().unwrap();
        errors.entry(name.to_owned()).or_default().push(TypeError {
            line: line_number,
            code: code.to_owned(),
            message: message.to_owned(),
        });
    }
    errors
}

fn install() -> Result<Compiler, String> {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let package = format!("@typescript/typescript-{system}-{machine}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript");
    let stamp = folder.join("installed.txt");
    let wanted = format!("{package}@{VERSION}");
    if fs::read_to_string(&stamp).is_ok_and(|it| it == wanted) {
        return Ok(compiler(&folder, &package));
    }
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    fs::write(folder.join("package.json"), r#"{"private":true}"#)
        .map_err(|error| error.to_string())?;
    let output = Command::new("npm")
        .args([
            "install",
            "--save-exact",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
        ])
        .arg(&wanted)
        .current_dir(&folder)
        .output()
        .map_err(|error| format!("npm could not be started: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().find(|it| !it.trim().is_empty());
        return Err(format!(
            "{wanted} could not be installed: {}",
            last.unwrap_or("npm printed no error")
        ));
    }
    fs::write(stamp, wanted).map_err(|error| error.to_string())?;
    Ok(compiler(&folder, &package))
}

fn compiler(folder: &Path, package: &str) -> Compiler {
    Compiler {
        program: folder.join("node_modules").join(package).join("lib/tsc"),
        work: folder.join("work"),
    }
}
