//! The program that is packed: builds it, and finds out what it needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::archive::Entry;
use super::names::{HOST, Platform};
use crate::paths;

const SHELLS: [(&str, &str); 3] = [
    ("bash", "completions/airlock.bash"),
    ("zsh", "completions/_airlock"),
    ("fish", "completions/airlock.fish"),
];

/// The profile of packed programs.
const PROFILE: &str = "dist";

pub(super) struct Program {
    path: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) platform: &'static Platform,
}

/// Builds the release program of a platform. Paths of this machine are replaced in it, so that
/// builds in different folders give the same bytes.
pub(super) fn build(platform: &Platform) -> Result<PathBuf> {
    let target = platform.target;
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))?;
    let root = paths::root();
    let places = [
        (root.clone(), "airlock"),
        (PathBuf::from(home), "cargo"),
        (paths::target(), "target"),
    ];
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "build",
            "--profile",
            PROFILE,
            "--locked",
            "--bin",
            "airlock",
        ])
        .args(["--target", target])
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", remap_flags(&places))
        .env("CARGO_INCREMENTAL", "0")
        .current_dir(&root)
        .status()
        .context("cargo build")?;
    ensure!(
        status.success(),
        "the program was not built for {target}; `rustup target add {target}` and a linker for it \
         are needed"
    );
    let program = paths::target().join(target).join(PROFILE).join("airlock");
    let bytes = fs::read(&program).with_context(|| program.display().to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    // The image of the checker names sources of the project by their whole paths: they lie outside of
    // the guests' workspace.
    for (place, _) in places.iter().filter(|(place, _)| *place != root) {
        let place = place.display();
        ensure!(
            !text.contains(&place.to_string()),
            "{} contains the path {place}, so a build in another folder gives other bytes",
            program.display()
        );
    }
    Ok(program)
}

/// Returns the compiler's flags that replace these places, separated as Cargo expects it. The last
/// place that fits is replaced, and the target folder may lie in another one.
fn remap_flags(places: &[(PathBuf, &str)]) -> String {
    let flags = places
        .iter()
        .map(|(place, name)| format!("--remap-path-prefix={}={name}", place.display()));
    flags.collect::<Vec<_>>().join("\u{1f}")
}

impl Program {
    pub(super) fn read(path: &Path, platform: &'static Platform) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        let program = Self {
            path: path.to_owned(),
            bytes,
            platform,
        };
        if program.runs_here() {
            let engines = program.run(&["engines"])?;
            ensure!(
                engines.contains("boa") && engines.contains("quickjs"),
                "the program lacks an engine; run `cargo xtask engine quickjs` and build it again"
            );
        }
        Ok(program)
    }

    fn runs_here(&self) -> bool {
        self.platform.target == HOST
    }

    fn run(&self, words: &[&str]) -> Result<String> {
        let output = Command::new(&self.path).args(words).output();
        let output = output.with_context(|| self.path.display().to_string())?;
        ensure!(
            output.status.success(),
            "`airlock {}` failed: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Returns the completions and the manual pages. Only a program that runs on this machine can
    /// write them.
    pub(super) fn manual(&self) -> Result<Vec<Entry>> {
        if !self.runs_here() {
            println!("SKIP: completions and manual pages, because the program does not run here");
            return Ok(Vec::new());
        }
        let mut files = Vec::new();
        for (shell, name) in SHELLS {
            files.push(Entry::file(name, self.run(&["completions", shell])?));
        }
        files.push(Entry::file("man/airlock.1", self.run(&["man"])?));
        for command in self.commands(&[])? {
            let page = self.run(&["man", &command])?;
            files.push(Entry::file(&format!("man/airlock-{command}.1"), page));
            for inner in self.commands(&[&command])? {
                let page = self.run(&["man", &command, &inner])?;
                files.push(Entry::file(
                    &format!("man/airlock-{command}-{inner}.1"),
                    page,
                ));
            }
        }
        Ok(files)
    }

    /// Returns the commands that a help text lists.
    fn commands(&self, of: &[&str]) -> Result<Vec<String>> {
        let help = self.run(&[of, &["--help"]].concat())?;
        let list = help.split_once("Commands:\n").map_or("", |(_, list)| list);
        let lines = list.lines().take_while(|line| !line.is_empty());
        let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let names = names.filter_map(|line| line.split_whitespace().next());
        Ok(names
            .filter(|it| *it != "help")
            .map(str::to_owned)
            .collect())
    }

    /// Returns the oldest glibc 2.x that has all symbols of the program.
    pub(super) fn glibc_minor(&self) -> Option<u32> {
        const MARK: &[u8] = b"GLIBC_2.";
        let windows = self
            .bytes
            .windows(MARK.len() + 3)
            .filter(|it| it.starts_with(MARK));
        let numbers = windows.filter_map(|it| {
            let digits = it.get(MARK.len()..)?.iter();
            let digits: String = digits
                .take_while(|byte| byte.is_ascii_digit())
                .map(|byte| char::from(*byte))
                .collect();
            digits.parse().ok()
        });
        numbers.max()
    }

    /// Returns the shared libraries that the program loads, with the loader itself.
    pub(super) fn libraries(&self) -> Result<Vec<PathBuf>> {
        if !self.runs_here() {
            bail!(
                "the libraries of {} are not on this machine",
                self.platform.target
            );
        }
        let output = Command::new("ldd")
            .arg(&self.path)
            .output()
            .context("ldd")?;
        let text = String::from_utf8(output.stdout)?;
        // `libc.so.6 => /lib/…/libc.so.6 (0x…)`, or the loader without an arrow.
        let words = text.lines().flat_map(str::split_whitespace);
        Ok(words
            .filter(|it| it.starts_with('/'))
            .map(PathBuf::from)
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_folder_is_replaced_wherever_it_is() {
        let places = [
            ("/my projects/a", "airlock"),
            ("/elsewhere/target", "target"),
        ];
        let places = places.map(|(place, name)| (PathBuf::from(place), name));
        assert_eq!(
            remap_flags(&places),
            "--remap-path-prefix=/my projects/a=airlock\u{1f}\
             --remap-path-prefix=/elsewhere/target=target"
        );
    }
}
