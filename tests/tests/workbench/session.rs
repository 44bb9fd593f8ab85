//! The session in `policies/README.md`: each of its commands is run where a
//! reviewer would run it, and says what stands there. With `AIRLOCK_BLESS=1` what
//! stands there is written anew.
//!
//! `RUN` stands for the id of the latest run, `sha256:…` for any digest, and
//! `[exit code N]` for an end that is not 0.

use std::path::{Path, PathBuf};
use std::process::Command;

use tests::binary::airlock;
use tests::command::{Home, start};

fn readme() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    root.join("policies/README.md")
}

/// A home with the shipped folder in it.
fn home() -> Home {
    let home = Home::new();
    for entry in std::fs::read_dir(readme().parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("policies/{}", path.file_name().unwrap().to_string_lossy());
        home.write(&name, std::fs::read(&path).unwrap());
    }
    home
}

/// What a shell says to one line, with what differs from run to run made equal.
fn said(home: &Home, line: &str) -> String {
    let run = home.journals().pop();
    let run = run.map(|it| it.file_stem().unwrap().to_string_lossy().into_owned());
    let run = run.unwrap_or_else(|| "RUN".to_owned());
    let mut command = Command::new(tests::command::detached());
    command.args(["sh", "-c", &line.replace("RUN", &run)]);
    home.dress(&mut command);
    let here = airlock().parent().unwrap().display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{here}:{path}"));
    let ended = start(&mut command, "").wait();
    let mut text = without_digests(&ended.stdout.replace(&run, "RUN"));
    match ended.code {
        Some(0) => {}
        code => text.push_str(&format!("[exit code {}]\n", code.unwrap_or(-1))),
    }
    text
}

fn without_digests(text: &str) -> String {
    let mut parts = text.split("sha256:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        format!("{text}sha256:…{rest}")
    })
}

#[test]
fn the_session_of_the_readme_is_what_a_reviewer_sees() {
    let text = std::fs::read_to_string(readme()).unwrap();
    let home = home();
    let (mut anew, mut commands, mut within) = (String::new(), Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            within = line == "```console";
        }
        match line.strip_prefix("$ ") {
            Some(command) if within => {
                anew.push_str(&format!("{line}\n{}", said(&home, command)));
                commands.push(command);
            }
            _ if within && line != "```console" => {}
            _ => anew.push_str(&format!("{line}\n")),
        }
    }
    if std::env::var("AIRLOCK_BLESS").is_ok_and(|it| it == "1") {
        std::fs::write(readme(), &anew).unwrap();
        return;
    }
    assert_eq!(text, anew, "AIRLOCK_BLESS=1 rewrites it");
    for command in ["check", "test", "explain", "replay", "can", "diff"] {
        let word = format!("airlock policy {command} ");
        assert!(commands.iter().any(|it| it.contains(&word)), "no {word}");
    }
}
