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
        // Files of a project start `airlock` from the PATH.
        let path = home.write(
            "bin/airlock",
            format!("#!/bin/sh\nexec '{}' \"$@\"\n", airlock().display()),
        );
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
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
        let checked = machine
            .run(&["doctor", "--start-project-servers"])
            .expect_code(0);
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
    let cursor = CASES
        .iter()
        .find(|it| it.file == "cursor-user.json")
        .unwrap();
    let (other, other_text) = machine.place(cursor);
    machine.run(&["init", "--write"]).expect_code(0);
    let changed = fs::read_to_string(&path).unwrap() + "\n";
    fs::write(&path, changed).unwrap();
    let undone = machine.run(&["init", "--undo"]).expect_code(30);
    assert!(undone.stdout.contains("kept"), "{undone}");
    let config = machine
        .home
        .path()
        .join(".config/airlock/hosts/claude-desktop/airlock.toml");
    assert!(config.exists(), "the host may still name it: {undone}");
    let hosts = machine.home.path().join(".config/airlock/hosts");
    assert!(!hosts.join("cursor").exists(), "{undone}");
    assert_eq!(fs::read(other).unwrap(), other_text);
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

/// Writes a file of Cursor's for the user, runs `init --write`, and returns the output.
fn write_cursor(machine: &Machine, servers: serde_json::Value) -> CommandOutput {
    let text = serde_json::json!({ "mcpServers": servers }).to_string();
    machine.home.write(".cursor/mcp.json", text);
    machine.run(&["init", "--write"]).expect_code(0)
}

#[test]
fn credential_in_an_argument_is_recognised_by_its_shape() {
    let machine = Machine::new();
    let args = ["-y", "server", "HUSHaQzXrTmWcYdBnLp", "--headless"];
    let written = write_cursor(
        &machine,
        serde_json::json!({"a": {"command": "npx", "args": args}}),
    );
    let found = "argument 3 of `a` may be a credential";
    assert!(written.stdout.contains(found), "{written}");
    let unknown = "airlock cannot read which servers are switched off in Cursor";
    assert!(written.stdout.contains(unknown), "{written}");
    let config = config_text(&machine);
    assert!(
        config.contains(r#"args = ["-y", "server", "${env:A_ARGUMENT}", "--headless"]"#),
        "{config}"
    );
}

#[test]
fn new_files_are_private_whatever_the_umask_is() {
    let machine = Machine::new();
    write_cursor(&machine, serde_json::json!({"a": {"command": "npx"}}));
    for (path, (mode, _)) in machine.files() {
        if path.starts_with(machine.home.path().join(".config/airlock")) {
            assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        }
    }
}

#[test]
fn server_never_gets_the_variable_of_another_server() {
    let machine = Machine::new();
    let path = machine.home.write(
        ".codex/config.toml",
        "[mcp_servers.a]\ncommand = \"npx\"\nenv = { ISSUE_TOKEN = \"HUSH-1\" }\n\
         [mcp_servers.b]\ncommand = \"npx\"\nenv_vars = [\"ISSUE_TOKEN\"]\n",
    );
    machine.run(&["init", "--write"]).expect_code(0);
    let config: toml::Value = toml::from_str(&config_text(&machine)).unwrap();
    let asked = |server: &str| config["servers"][server]["env"]["ISSUE_TOKEN"].clone();
    assert_eq!(asked("a").as_str(), Some("${env:A_ISSUE_TOKEN}"));
    assert_eq!(asked("b").as_str(), Some("${env:ISSUE_TOKEN}"));
    let host: toml::Value = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let entry = &host["mcp_servers"]["airlock"];
    assert_eq!(entry["env"]["A_ISSUE_TOKEN"].as_str(), Some("HUSH-1"));
    assert!(entry["env"].get("ISSUE_TOKEN").is_none(), "{entry}");
}

#[test]
fn file_that_two_hosts_share_through_a_link_is_changed_once() {
    let machine = Machine::new();
    let windsurf = machine.home.path().join(".codeium/windsurf");
    fs::create_dir_all(&windsurf).unwrap();
    let cursor = machine.home.path().join(".cursor/mcp.json");
    std::os::unix::fs::symlink(&cursor, windsurf.join("mcp_config.json")).unwrap();
    let written = write_cursor(&machine, serde_json::json!({"a": {"command": "npx"}}));
    let heading = "Cursor and Windsurf, ";
    assert!(written.stdout.contains(heading), "{written}");
    // Windsurf cannot show questions.
    assert!(config_text(&machine).contains("approver = \"web\""));
    machine.run(&["doctor"]).expect_code(0);
    machine.run(&["init", "--undo"]).expect_code(0);
    let text = fs::read_to_string(cursor).unwrap();
    assert_eq!(text, r#"{"mcpServers":{"a":{"command":"npx"}}}"#);
}

#[test]
fn server_that_a_list_of_the_host_disables_stays_disabled() {
    let machine = Machine::new();
    let servers = r#"{"on": {"command": "npx"}, "off": {"command": "npx"}}"#;
    let path = machine.home.write(
        ".gemini/settings.json",
        format!(r#"{{"mcp": {{"excluded": ["off"]}}, "mcpServers": {servers}}}"#),
    );
    let written = machine.run(&["init", "--write"]).expect_code(0);
    let said = "`off` stays: it is disabled by `mcp.excluded`";
    assert!(written.stdout.contains(said), "{written}");
    assert!(!config_text(&machine).contains("servers.off"));
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("\"off\": {\"command\""), "{text}");
}

#[test]
fn file_of_a_project_names_no_path_of_this_machine() {
    let machine = Machine::new();
    let servers = r#"{"mcpServers": {"a": {"command": "npx"}}}"#;
    let path = machine.home.write("shop/.mcp.json", servers);
    let written = machine.run(&["init", "--write"]).expect_code(0);
    let needs = "everybody who uses this file needs `airlock` on the PATH";
    assert!(written.stdout.contains(needs), "{written}");
    let text = fs::read_to_string(path).unwrap();
    assert!(!text.contains(&airlock().display().to_string()), "{text}");
    assert!(
        !text.contains(&machine.home.path().display().to_string()),
        "{text}"
    );
    machine.run(&["init", "--undo"]).expect_code(0);
    let chosen = ["init", "--write", "--command", "uvx airlock-mcp"];
    let written = machine.run(&chosen).expect_code(0);
    assert!(!written.stdout.contains("everybody"), "{written}");
    machine.run(&["doctor"]).expect_code(0);
}

/// An entry of a project can name a configuration that starts any program.
#[test]
fn doctor_starts_nothing_that_files_of_the_project_name() {
    let machine = Machine::new();
    let mark = machine.home.path().join("mark");
    let entry = r#"{"command": "airlock", "args": ["serve", "--config", "airlock.toml"]}"#;
    let servers = format!(r#"{{"mcpServers": {{"airlock": {entry}}}}}"#);
    machine.home.write("shop/.mcp.json", &servers);
    // A relative path in a file of the user names the project's file too.
    machine.home.write(".cursor/mcp.json", &servers);
    machine.home.write(
        "shop/airlock.toml",
        format!(
            "[servers.a]\ncommand = \"npx\"\nenv = {{ A = \"${{command:touch {}}}\" }}\n",
            mark.display()
        ),
    );
    let checked = machine.run(&["doctor"]).expect_code(0);
    assert!(
        checked.stdout.contains("--start-project-servers"),
        "{checked}"
    );
    assert!(!mark.exists(), "{checked}");
    let notes = checked.stdout.matches("not read, because").count();
    assert_eq!(notes, 2, "{checked}");
    machine.run(&["doctor", "--start-project-servers"]);
    assert!(mark.exists());
}

#[test]
fn doctor_reports_files_that_it_cannot_read() {
    let machine = Machine::new();
    machine.place(&CASES[0]);
    machine.run(&["init", "--write"]).expect_code(0);
    machine
        .home
        .write(".cursor/mcp.json", "{\"mcpServers\": HUSH}");
    let checked = machine.run(&["doctor"]).expect_code(30);
    for part in [
        "bad   file: the file is not valid JSON, line 1",
        "next: correct the file",
        "server github: lists",
    ] {
        assert!(checked.stdout.contains(part), "{part}\n{checked}");
    }
}

#[test]
fn doctor_writes_to_the_state_directory() {
    let machine = Machine::new();
    machine.place(&CASES[0]);
    machine.run(&["init", "--write"]).expect_code(0);
    let state = machine.home.path().join(".local/state/airlock");
    fs::remove_dir_all(&state).unwrap();
    fs::write(&state, "a file where the folder should be").unwrap();
    let checked = machine.run(&["doctor"]).expect_code(30);
    let bad = "bad   state directory: cannot write to the state directory";
    assert!(checked.stdout.contains(bad), "{checked}");
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
fn doctor_does_not_propose_init_for_a_file_of_other_people() {
    let machine = Machine::new();
    let entry = r#"{"command": "/nowhere/airlock", "args": ["serve"]}"#;
    let servers = format!(r#"{{"mcpServers": {{"airlock": {entry}}}}}"#);
    machine.home.write("shop/.mcp.json", servers);
    let checked = machine.run(&["doctor"]).expect_code(30);
    let next = "next: install airlock so that `airlock` is on the PATH, or correct `command`";
    assert!(checked.stdout.contains(next), "{checked}");
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
