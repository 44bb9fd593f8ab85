//! Runs the blocks of the pages. Each page has its own home folder, with the shipped policies,
//! examples and tool files. The blocks of a page are run in order:
//!
//! - `console`: a shell runs each line that begins with `$ `; stdout and stderr together must equal
//!   the lines below it. `AIRLOCK_BLESS=1` rewrites them.
//! - `sh`: each line is run and must end with 0, or with the code in its comment
//!   `# exit code N`. A command that serves over HTTP is stopped once it listens.
//! - A block whose first line names a file (`// count.js`, `# airlock.toml`) is
//!   written to that file first.
//! - Any other `toml` block must be a valid configuration file, any other `js`
//!   block a script that `airlock check --demo` accepts, any other `cedar` block
//!   rules that `airlock policy check` accepts. A `json` block must be JSON, and its
//!   servers whose command is `airlock` must start.
//!
//! `RUN` stands for the id of any run, `sha256:…` for any digest, `ed25519:…` for any public key,
//! `… ms` for the duration of any run, and `[exit code N]` for an exit code other than 0.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tests::binary::{airlock, workspace};
use tests::command::{Home, detached, start};

use crate::pages::{self, Block, Page};

/// Programs of the examples that this machine may not have. The demo server replaces each of them.
const STAND_INS: [&str; 3] = ["npx", "uvx", "maps-server"];

#[test]
fn documented_commands_and_files_work() {
    let bless = std::env::var("AIRLOCK_BLESS").is_ok_and(|it| it == "1");
    let mut failures = Vec::new();
    for page in pages::runnable() {
        let home = home();
        let mut shown = page.text.clone();
        for block in page.blocks() {
            if let Err(why) = run(&home, &block, &mut shown) {
                failures.push(format!("{}:{}: {why}", page.path, block.line));
            }
        }
        if bless {
            fs::write(workspace().join(&page.path), &shown).unwrap();
        } else if shown != page.text {
            failures.push(difference(&page, &shown));
        }
    }
    let failures = failures.join("\n\n");
    assert!(failures.is_empty(), "{failures}");
}

fn difference(page: &Page, now: &str) -> String {
    let pairs = (1..).zip(page.text.lines().zip(now.lines()));
    let first = pairs.into_iter().find(|(_, (old, new))| old != new);
    let (line, (old, new)) = first.unwrap_or((0, ("", "the page is shorter or longer")));
    format!(
        "{}:{line}: the page shows\n  {old}\nbut the program prints\n  {new}\nAIRLOCK_BLESS=1 rewrites the page",
        page.path
    )
}

/// Returns a home with the shipped files, and with the replaced programs.
fn home() -> Home {
    let home = Home::new();
    for folder in ["policies", "examples", "tool_descriptions"] {
        copy(&home, folder);
    }
    let demo = format!("#!/bin/sh\nexec '{}' demo-server\n", airlock().display());
    for name in STAND_INS {
        home.write(&format!("bin/{name}"), &demo);
    }
    // `airlock doctor` prints where the program is.
    let program = format!("#!/bin/sh\nexec '{}' \"$@\"\n", airlock().display());
    home.write("bin/airlock", program);
    make_executable(&home.path().join("bin"));
    // Otherwise a TypeScript compiler of this machine could add findings.
    home.write(".config/airlock/config.toml", "tsc = false\n");
    home
}

fn copy(home: &Home, folder: &str) {
    for entry in fs::read_dir(workspace().join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{folder}/{}", path.file_name().unwrap().to_string_lossy());
        match path.is_dir() {
            true => copy(home, &name),
            false => drop(home.write(&name, fs::read(&path).unwrap())),
        }
    }
}

fn make_executable(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for entry in fs::read_dir(folder).unwrap() {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(entry.unwrap().path(), mode).unwrap();
    }
}

/// Runs one block. `shown` is the page, in which the output of a session is replaced by the
/// program's output.
fn run(home: &Home, block: &Block<'_>, shown: &mut String) -> Result<(), String> {
    if let Some(name) = block.file_name() {
        home.write(name, block.text());
        return Ok(());
    }
    match block.language {
        "console" => {
            let now = session(home, block);
            *shown = shown.replacen(&fenced(&block.text()), &fenced(&now), 1);
            Ok(())
        }
        "sh" => block.lines.iter().try_for_each(|line| command(home, line)),
        "json" => host_configuration(home, block),
        "toml" => {
            home.write("block.toml", block.text());
            home.write("none.json", r#"{"tools": []}"#);
            let check = "airlock policy check policies --config block.toml --from none.json";
            command(home, check)
        }
        "js" | "ts" => {
            let name = format!("block.{}", block.language);
            home.write(&name, block.text());
            command(home, &format!("airlock check {name} --demo"))
        }
        "cedar" => {
            home.write("block/rules.cedar", block.text());
            command(home, "airlock policy check block --demo")
        }
        "rust" => holds_each_line("broker/examples/embed.rs", block),
        "text" => Ok(()),
        other => Err(format!("`{other}` blocks are not run by any test")),
    }
}

/// Checks a JSON block. If it is a host's configuration, each server that runs airlock must start.
fn host_configuration(home: &Home, block: &Block<'_>) -> Result<(), String> {
    let value: Value = serde_json::from_str(&block.text()).map_err(|error| error.to_string())?;
    let servers = value["mcpServers"].as_object().into_iter().flatten();
    let ours = servers.filter(|(_, server)| server["command"] == "airlock");
    for (_, server) in ours {
        let args = server["args"].as_array().into_iter().flatten();
        let args: Vec<&str> = args.filter_map(Value::as_str).collect();
        home.write("path/to/airlock.toml", "");
        command(
            home,
            &format!("airlock {}", args.join(" ").replace("/path", "path")),
        )?;
    }
    Ok(())
}

fn fenced(text: &str) -> String {
    format!("```console\n{text}```")
}

fn session(home: &Home, block: &Block<'_>) -> String {
    let commands = block.lines.iter().filter(|line| line.starts_with("$ "));
    let said = commands.map(|line| format!("{line}\n{}", run_line(home, &line[2..])));
    said.collect()
}

/// Runs one line in a shell and returns its output, with run-specific values replaced.
fn run_line(home: &Home, line: &str) -> String {
    let latest = run_ids(home).pop().unwrap_or_else(|| "RUN".to_owned());
    let mut shell = shell(
        home,
        &format!("exec 2>&1; {}", line.replace("RUN", &latest)),
    );
    let ended = start(&mut shell, "").wait();
    let mut text = ended.stdout;
    for run in run_ids(home) {
        text = text.replace(&run, "RUN");
    }
    text = text.replace(&home.path().display().to_string(), "~");
    let is_hex = |c: char| c.is_ascii_hexdigit();
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    text = without(&without(&text, "sha256:", is_hex), "ed25519:", is_base64);
    text = text.lines().map(without_times).collect();
    match ended.code {
        Some(0) => {}
        code => text.push_str(&format!("[exit code {}]\n", code.unwrap_or(-1))),
    }
    text
}

fn shell(home: &Home, line: &str) -> Command {
    let mut command = Command::new(detached());
    command.args(["sh", "-c", line]);
    home.dress(&mut command);
    let ours = airlock().parent().unwrap().display().to_string();
    let stand_ins = home.path().join("bin").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{stand_ins}:{ours}:{path}"));
    for name in ["GITHUB_TOKEN", "TRACKER_TOKEN", "AIRLOCK_HTTP_TOKEN"] {
        command.env(name, "a-token-of-the-examples");
    }
    command
}

fn run_ids(home: &Home) -> Vec<String> {
    let journals = home.journals();
    let stems = journals.iter().filter_map(|path| path.file_stem());
    stems.map(|it| it.to_string_lossy().into_owned()).collect()
}

/// Replaces the text that follows each occurrence of a prefix.
fn without(text: &str, prefix: &str, is_part: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(prefix);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(&is_part);
        format!("{text}{prefix}…{rest}")
    })
}

/// Patterns of run-specific values, and the text that the pages show instead. In a pattern, `0`
/// stands for a digit and `9` for a number.
const MASKS: [(&str, &str); 7] = [
    ("0000-00-00 00:00:00Z", "YYYY-MM-DD hh:mm:ssZ"),
    (
        "expires = 0000-00-00T00:00:00Z",
        "expires = YYYY-MM-DDThh:mm:ssZ",
    ),
    ("00:00:00Z  started", "hh:mm:ssZ  started"),
    ("+9 ms", "+… ms"),
    (", 9 ms", ", … ms"),
    ("up to 9 ms", "up to … ms"),
    ("seed 9", "seed …"),
];

fn without_times(line: &str) -> String {
    // Times of entries are aligned to the right.
    let line = match line.trim_start() {
        entry if matched(entry, "+9 ms").is_some() => format!("   {entry}"),
        _ => line.to_owned(),
    };
    let masked = MASKS
        .iter()
        .fold(line, |line, (mask, with)| masked(&line, mask, with));
    masked + "\n"
}

fn masked(text: &str, mask: &str, with: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = matched(rest, mask);
        match length {
            Some(_) => out.push_str(with),
            None => out.push(first),
        }
        rest = &rest[length.unwrap_or(first.len_utf8())..];
    }
    out
}

/// Returns the length of the match of a pattern at the beginning of a text.
fn matched(text: &str, mask: &str) -> Option<usize> {
    let mut rest = text;
    for sign in mask.chars() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let length = match sign {
            '0' => digits.min(1),
            '9' => digits,
            _ if rest.starts_with(sign) => sign.len_utf8(),
            _ => 0,
        };
        rest = rest.get(length..).filter(|_| length > 0)?;
    }
    Some(text.len() - rest.len())
}

/// Runs one line of a `sh` block.
fn command(home: &Home, line: &str) -> Result<(), String> {
    let line = line.replace("cargo run --quiet -- ", "airlock ");
    if let Some(words) = line.strip_prefix("cargo ") {
        return cargo_command(words);
    }
    if line.contains("--http ") {
        return serving(home, &line);
    }
    let expected = match line.split_once("# exit code ") {
        Some((_, code)) => code.trim().parse().map_err(|_| line.clone())?,
        None => 0,
    };
    let ended = start(&mut shell(home, &line), "").wait();
    match ended.code {
        Some(code) if code == expected => Ok(()),
        _ => Err(format!("`{line}`\n{ended}")),
    }
}

/// Checks a cargo command: it must be one of the two that CI runs from the README, or one that
/// `cargo xtask` lists.
fn cargo_command(words: &str) -> Result<(), String> {
    let words: Vec<&str> = words
        .split('#')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let usage = fs::read_to_string(workspace().join("xtask/src/main.rs")).unwrap();
    let is_known = match words[..] {
        ["test", "--workspace"] | ["install", "--path", "broker"] => true,
        ["test", "-p", package, "--test", name] => {
            let folder = if package == "tests" { "tests" } else { package };
            let path = workspace().join(folder).join("tests").join(name);
            path.is_dir() || path.with_extension("rs").is_file()
        }
        ["xtask", "bench", word, ..] if !word.starts_with('-') => {
            usage.contains(&format!("  bench {word}"))
        }
        ["xtask", word, ..] => usage.contains(&format!("  {word} ")),
        _ => false,
    };
    is_known
        .then_some(())
        .ok_or_else(|| format!("unknown command `cargo {}`", words.join(" ")))
}

/// Starts a server on a free port, waits until it listens, and stops it.
fn serving(home: &Home, line: &str) -> Result<(), String> {
    let line = line
        .split('#')
        .next()
        .unwrap_or_default()
        .replace(":8080", ":0");
    let mut shell = shell(home, &format!("exec {line}"));
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = shell.spawn().map_err(|error| error.to_string())?;
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut heard = String::new();
    while !heard.contains("/mcp") && stderr.read_line(&mut heard).is_ok_and(|read| read > 0) {}
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .unwrap();
    let _ = kill_process(pid, Signal::TERM);
    let _ = stderr.read_to_string(&mut heard);
    let code = child.wait().map_err(|error| error.to_string())?.code();
    match heard.contains("/mcp") && code == Some(0) {
        true => Ok(()),
        false => Err(format!("`{line}` ended with exit code {code:?}\n{heard}")),
    }
}

fn holds_each_line(path: &str, block: &Block<'_>) -> Result<(), String> {
    let example = fs::read_to_string(workspace().join(path)).unwrap();
    let known: Vec<&str> = example.lines().map(str::trim).collect();
    let missing = block
        .lines
        .iter()
        .find(|line| !known.contains(&line.trim()));
    match missing {
        Some(line) => Err(format!("{path} has no line `{line}`")),
        None => Ok(()),
    }
}

/// The page about policies shows every `airlock policy` command.
#[test]
fn policies_page_runs_each_reviewer_command() {
    let page = pages::read("docs/policies.md");
    let sessions = page.blocks();
    let sessions = sessions.iter().filter(|block| block.language == "console");
    let lines: Vec<&str> = sessions.flat_map(|block| block.lines.clone()).collect();
    for command in ["check", "test", "explain", "replay", "can", "diff"] {
        let word = format!("airlock policy {command} ");
        let is_there = |line: &&str| line.starts_with("$ ") && line.contains(&word);
        assert!(lines.iter().any(is_there), "no {word}");
    }
}
