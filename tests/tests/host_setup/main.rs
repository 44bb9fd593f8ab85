//! Tests `airlock init` and `airlock doctor` with configuration files as users have them. In the
//! files, `HUSH` marks what must never be printed, and the programs of the servers are replaced by
//! the demo server.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::binary::{airlock, workspace};
use tests::command::{CommandOutput, Home, start};
use tests::serving::ServeProcess;

/// The programs that the files name.
const PROGRAMS: [&str; 3] = ["npx", "uvx", "docker"];
/// The folder of the project in a home.
const PROJECT: &str = "shop";

/// A configuration file, its place in the home, and the number of servers that move.
struct Case {
    file: &'static str,
    place: &'static str,
    moved: usize,
}

const fn case(file: &'static str, place: &'static str, moved: usize) -> Case {
    Case { file, place, moved }
}

const DESKTOP: &str = ".config/Claude/claude_desktop_config.json";
const CASES: [Case; 20] = [
    case("claude-desktop.json", DESKTOP, 2),
    case("claude-desktop-crlf.json", DESKTOP, 2),
    case("claude-desktop-minified.json", DESKTOP, 2),
    case("claude-desktop-bom.json", DESKTOP, 2),
    case("claude-code-user.json", ".claude.json", 2),
    case("claude-code-local.json", ".claude.json", 2),
    case("mcp-placeholders.json", "shop/.mcp.json", 2),
    case("mcp-docker.json", "shop/.mcp.json", 2),
    case("cursor-user.json", ".cursor/mcp.json", 3),
    case("cursor-one-line.json", ".cursor/mcp.json", 2),
    case("cursor-project.json", "shop/.cursor/mcp.json", 1),
    case("vscode-user.json", ".config/Code/User/mcp.json", 2),
    case("vscode-project.json", "shop/.vscode/mcp.json", 2),
    case("codex.toml", ".codex/config.toml", 1),
    case("codex-remote.toml", ".codex/config.toml", 2),
    case("codex-inline.toml", ".codex/config.toml", 1),
    case("gemini-user.json", ".gemini/settings.json", 2),
    case("gemini-project.json", "shop/.gemini/settings.json", 1),
    case("windsurf.json", ".codeium/windsurf/mcp_config.json", 2),
    case(
        "windsurf-disabled.json",
        ".codeium/windsurf/mcp_config.json",
        1,
    ),
];

/// A home with a project, the replaced programs, and a server over HTTP.
struct Machine {
    home: Home,
    server: ServeProcess,
}

impl Machine {
    fn new() -> Self {
        let home = Home::new();
        let demo = format!("#!/bin/sh\nexec '{}' demo-server\n", airlock().display());
        for name in PROGRAMS {
            let path = home.write(&format!("bin/{name}"), &demo);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir(home.path().join(PROJECT)).unwrap();
        let server = ServeProcess::start(["--demo"]);
        Self { home, server }
    }

    /// Writes a file of the cases, and returns its path and bytes.
    fn place(&self, case: &Case) -> (PathBuf, Vec<u8>) {
        let file = workspace()
            .join("tests/tests/host_setup/files")
            .join(case.file);
        let project = self.project().display().to_string();
        let text = fs::read_to_string(file).unwrap();
        let text = text.replace("@HTTP@", &self.server.url());
        let text = text.replace("@PROJECT@", &project);
        let path = self.home.write(case.place, &text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        (path, text.into_bytes())
    }

    fn project(&self) -> PathBuf {
        self.home.path().join(PROJECT).canonicalize().unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.home.airlock(words);
        let bin = self.home.path().join("bin").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{bin}:{path}"));
        for name in ["FIGMA_OAUTH_TOKEN", "ISSUE_TOKEN"] {
            command.env(name, "HUSH-of-the-environment");
        }
        command.current_dir(self.project());
        command
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        let ended = start(&mut self.command(words), "").wait();
        let printed = format!("{}{}", ended.stdout, ended.stderr);
        assert!(
            !printed.contains("HUSH"),
            "{words:?} printed a secret\n{ended}"
        );
        ended
    }

    /// Returns all files of the home and the project outside of the state directory.
    fn files(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut files = BTreeMap::new();
        collect(self.home.path(), &mut files);
        files.retain(|path, _| !path.components().any(|it| it.as_os_str() == ".local"));
        files
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false => {
                let mode = fs::metadata(&path).unwrap().permissions().mode();
                files.insert(path.clone(), (mode, fs::read(&path).unwrap()));
            }
        }
    }
}

#[test]
fn every_file_is_put_behind_airlock_checked_and_restored() {
    for case in &CASES {
        let machine = Machine::new();
        let (path, text) = machine.place(case);
        let before = machine.files();
        let shown = machine.run(&["init"]).expect_code(0);
        assert_eq!(
            machine.files(),
            before,
            "{}: changed without --write",
            case.file
        );
        let count = format!(": {} server", case.moved);
        assert!(shown.stdout.contains(&count), "{}\n{shown}", case.file);
        let is_in_project = path.starts_with(machine.project());
        let asks = shown.stdout.contains("--start-project-servers");
        assert_eq!(asks, is_in_project, "{}\n{shown}", case.file);
        machine
            .run(&["init", "--write", "--start-project-servers"])
            .expect_code(0);
        assert_ne!(fs::read(&path).unwrap(), text, "{}", case.file);
        let checked = machine.run(&["doctor"]).expect_code(0);
        let listed = checked.stdout.matches(" lists ").count();
        assert_eq!(listed, case.moved, "{}\n{checked}", case.file);
        let config = config_text(&machine);
        assert!(!config.contains("HUSH"), "{}\n{config}", case.file);
        // The tools of a server with a relative `cwd` are not known before the folder exists.
        let is_known = config.contains("../") || !config.contains("reads = []");
        assert!(is_known, "{config}");
        let undone = machine.run(&["init", "--undo"]).expect_code(0);
        assert!(undone.stdout.contains("restored"), "{undone}");
        assert_eq!(machine.files(), before, "{}: not restored", case.file);
        machine
            .run(&["init", "--undo"])
            .expect_code(0)
            .expect_stdout("nothing to take back");
    }
}

fn config_text(machine: &Machine) -> String {
    let files = machine.files().into_iter();
    let mut texts = files.filter(|(path, _)| path.ends_with("airlock.toml"));
    let (_, (_, text)) = texts.next().expect("a configuration");
    assert_eq!(texts.count(), 0);
    String::from_utf8(text).unwrap()
}

#[test]
fn all_hosts_of_one_machine_are_changed_together() {
    let machine = Machine::new();
    let mut places = Vec::new();
    for case in &CASES {
        if !places.contains(&case.place) {
            places.push(case.place);
            machine.place(case);
        }
    }
    let before = machine.files();
    let written = machine
        .run(&["init", "--write", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(
        written["hosts"].as_array().unwrap().len(),
        places.len(),
        "{written:#}"
    );
    machine.run(&["doctor"]).expect_code(0);
    let again = machine.run(&["init", "--write"]).expect_code(0);
    assert!(again.stdout.contains("already uses airlock"), "{again}");
    machine.run(&["init", "--undo"]).expect_code(0);
    assert_eq!(machine.files(), before);
}

#[test]
fn both_places_of_one_file_are_changed_and_restored() {
    let machine = Machine::new();
    let project = machine.project().display().to_string();
    let servers = serde_json::json!({"a": {"command": "npx", "args": ["a"]}});
    let file = serde_json::json!({
        "mcpServers": servers,
        "projects": {project: {"mcpServers": servers}},
    });
    machine.home.write(".claude.json", file.to_string());
    let before = machine.files();
    machine.run(&["init", "--write"]).expect_code(0);
    let checked = machine.run(&["doctor"]).expect_code(0);
    assert_eq!(
        checked.stdout.matches("server a: lists").count(),
        2,
        "{checked}"
    );
    machine.run(&["init", "--undo"]).expect_code(0);
    assert_eq!(machine.files(), before);
}

#[test]
fn host_runs_the_tools_through_the_new_entry() {
    let machine = Machine::new();
    let (path, _) = machine.place(&CASES[0]);
    machine.run(&["init", "--write"]).expect_code(0);
    let file: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let entry = &file["mcpServers"]["airlock"];
    assert_eq!(entry["command"], airlock().display().to_string(), "{entry}");
    let config = entry["args"][2].as_str().unwrap();
    let token = entry["env"]["GITHUB_PERSONAL_ACCESS_TOKEN"]
        .as_str()
        .unwrap();
    let script = "return (await github.logs_query({ level: 'error', limit: 3 })).entries.length";
    let mut command = machine.command(&["run", "-e", script, "--config", config, "--no-ask"]);
    command.env("GITHUB_PERSONAL_ACCESS_TOKEN", token);
    let ended = start(&mut command, "").wait().expect_code(0);
    assert_eq!(ended.stdout.trim(), "3", "{ended}");
}

#[test]
fn file_that_was_changed_afterwards_is_kept() {
    let machine = Machine::new();
    let (path, text) = machine.place(&CASES[0]);
    machine.run(&["init", "--write"]).expect_code(0);
    fs::write(&path, "{\"mcpServers\": {}}").unwrap();
    let undone = machine.run(&["init", "--undo"]).expect_code(30);
    assert!(undone.stdout.contains("kept"), "{undone}");
    let config = machine
        .home
        .path()
        .join(".config/airlock/hosts/claude-desktop/airlock.toml");
    assert!(config.exists(), "the host may still name it: {undone}");
    let copy = path.with_extension("json.before-airlock");
    assert_eq!(fs::read(&copy).unwrap(), text);
    fs::rename(copy, &path).unwrap();
    machine.run(&["init", "--undo"]).expect_code(0);
}

#[test]
fn link_to_a_file_stays_a_link() {
    let machine = Machine::new();
    let (path, text) = machine.place(&CASES[0]);
    let real = machine.home.path().join("dotfiles.json");
    fs::rename(&path, &real).unwrap();
    std::os::unix::fs::symlink(&real, &path).unwrap();
    machine.run(&["init", "--write"]).expect_code(0);
    assert!(path.is_symlink());
    assert_ne!(fs::read(&real).unwrap(), text);
    machine.run(&["init", "--undo"]).expect_code(0);
    assert!(path.is_symlink());
    assert_eq!(fs::read(&real).unwrap(), text);
}

#[test]
fn invalid_file_is_left_as_it_is_without_quoting_it() {
    let machine = Machine::new();
    let path = machine
        .home
        .write(DESKTOP, "{\"mcpServers\": {\"a\": HUSH}}");
    let before = fs::read(&path).unwrap();
    for words in [&["init"][..], &["init", "--write"]] {
        let ended = machine.run(words).expect_code(30);
        assert!(ended.stdout.contains("not valid JSON, line 1"), "{ended}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn doctor_names_each_fault_and_what_to_do() {
    let machine = Machine::new();
    let nothing = machine.run(&["doctor"]).expect_code(2);
    assert!(nothing.stderr.contains("run `airlock init`"), "{nothing}");
    let (path, _) = machine.place(&CASES[0]);
    machine
        .run(&["init", "--write", "--no-connect"])
        .expect_code(0);
    let text = fs::read_to_string(&path).unwrap();
    let program = airlock().display().to_string();
    fs::write(&path, text.replace(&program, "/nowhere/airlock")).unwrap();
    let config = machine
        .home
        .path()
        .join(".config/airlock/hosts/claude-desktop/airlock.toml");
    let rules = fs::read_to_string(&config).unwrap();
    let broken = rules
        .replace("approver = \"web\"", "")
        .replace("\"npx\"", "\"gone\"");
    fs::write(&config, broken).unwrap();
    let state = machine.home.path().join(".local/state/airlock");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    let ended = machine.run(&["doctor"]).expect_code(30);
    for part in [
        "bad   entry: there is no program `/nowhere/airlock`",
        "bad   server github:",
        "bad   approver: Claude Desktop cannot show questions",
        "next: write approver = \"web\" into airlock.toml",
        "bad   state directory:",
        "chmod go-w",
    ] {
        assert!(ended.stdout.contains(part), "{part}\n{ended}");
    }
}

#[test]
fn tools_that_a_host_never_calls_are_denied() {
    let machine = Machine::new();
    let case = CASES.iter().find(|it| it.file == "windsurf.json").unwrap();
    machine.place(case);
    machine
        .run(&["init", "--write", "--no-connect"])
        .expect_code(0);
    let config = config_text(&machine);
    assert!(config.contains("\"memory.delete_entities\""), "{config}");
}
