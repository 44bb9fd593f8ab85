//! Tests `airlock servers`, the completions and the manual pages. Twelve servers in all states are
//! compared with golden files in `servers/`; with `AIRLOCK_BLESS=1` the goldens are rewritten.

use std::fs;
use std::path::{Path, PathBuf};

use tests::binary::airlock;
use tests::command::{Home, program};
use tests::login_server::LoginServer;

use super::logins::{FILE_KEY, log_in_to};

const DIES: &str = "dies=sh -c 'echo first >&2; echo no license >&2; exit 3'";

#[test]
fn every_server_is_shown_with_its_state() {
    let home = Home::new();
    let ended = home
        .run(["servers", "--demo", "--server", DIES])
        .expect_code(30);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let demo = lines.iter().find(|it| it.starts_with("demo")).unwrap();
    for part in ["connected", "2026-07-28", "10 tools"] {
        assert!(demo.contains(part), "{part}\n{ended}");
    }
    assert!(
        lines.iter().any(|it| it.starts_with("dies  unavailable")),
        "{ended}"
    );
    for part in [
        "no license",
        "next: `airlock servers --stderr`",
        "lines; add --stderr",
    ] {
        assert!(ended.stdout.contains(part), "{part}\n{ended}");
    }
    assert!(!ended.stdout.contains("stderr: first"), "{ended}");
    let may_fail = ["servers", "--demo", "--server", DIES, "--skip-unreachable"];
    home.run(may_fail).expect_code(0);
}

/// Returns a home with twelve servers in all states, and the servers with a login, which run until
/// they are dropped.
fn twelve_servers() -> (Home, Vec<LoginServer>) {
    const SECRET: &str = "secret-of-the-client";
    const NAMES: [&str; 7] = [
        "renews",
        "not_renewed",
        "without_person",
        "logged_out",
        "ended",
        "damaged",
        "header",
    ];
    let home = Home::new();
    let servers = NAMES.map(|_| LoginServer::start());
    let [_, short, client, _, ended, ..] = &servers;
    short.give_short_tokens(3_600);
    client.accept_client(SECRET);
    let mut config = format!(
        "[servers.on_demand]\ncommand = {airlock:?}\nargs = [\"demo-server\"]\nstart = \"on-demand\"\n\
         [servers.older]\ncommand = {fixture:?}\nargs = []\n\
         [servers.missing]\ncommand = \"no-such-program\"\n\
         [servers.dies]\ncommand = \"sh -c 'echo first >&2; echo no license >&2; exit 3'\"\n\
         [servers.hangs]\ncommand = \"sleep 600\"\nconnect_timeout = \"500ms\"\n",
        airlock = airlock(),
        fixture = program("fixture-server"),
    );
    for (name, server) in NAMES.iter().zip(&servers) {
        config += &server.config_of(name, "127.0.0.1");
        config += &match *name {
            "header" => "headers = { Authorization = \"Bearer of-another-year\" }\n".to_owned(),
            "without_person" => format!(
                "oauth = {{ client_id = \"c\", client_secret = \"{SECRET}\", issuer = \"{}\", \
                 grant = \"client_credentials\" }}\n",
                server.issuer()
            ),
            _ => String::new(),
        };
    }
    home.write("airlock.toml", config + FILE_KEY);
    let logins = || logins_of(&home);
    for (name, server) in NAMES.iter().zip(&servers) {
        let before = logins();
        if ["renews", "not_renewed", "ended", "damaged"].contains(name) {
            log_in_to(name, &home, server, &["--scope", "read"]);
        }
        if *name == "damaged" {
            let new = logins().into_iter().find(|it| !before.contains(it));
            let path = new.expect("a new login");
            let text = fs::read_to_string(&path).expect("a login");
            let (header, _) = text.split_once('\n').expect("a header");
            fs::write(&path, format!("{header}\nAAAA\n")).expect("a damaged login");
        }
    }
    ended.expire_login();
    (home, servers.into())
}

/// Returns the files of the stored logins.
fn logins_of(home: &Home) -> Vec<PathBuf> {
    let folder = fs::read_dir(home.path().join(".local/state/airlock/logins"));
    let files = folder.into_iter().flatten().flatten().map(|it| it.path());
    let is_login = |path: &PathBuf| path.extension().is_some_and(|it| it == "login");
    files.filter(is_login).collect()
}

/// Replaces what differs between two runs: ports, folders, times, and names of files.
fn masked(text: &str, home: &Home) -> String {
    let tests = program("");
    let mut masked = text
        .replace(&home.path().display().to_string(), "HOME")
        .replace(&tests.display().to_string(), "PROGRAMS/");
    for (before, after) in [
        ("127.0.0.1:", "PORT"),
        ("\"expires_at_ms\": ", "TIME"),
        ("login: in ", "N"),
        ("/logins/", "ID"),
    ] {
        let mut parts = masked.split(before);
        let first = parts.next().unwrap_or_default().to_owned();
        masked = parts.fold(first, |text, part| {
            let rest = part.trim_start_matches(|it: char| it.is_ascii_hexdigit());
            let with = if rest.len() < part.len() { after } else { "" };
            text + before + with + rest
        });
    }
    masked
}

#[test]
fn twelve_servers_in_all_states_are_shown_as_text_and_json() {
    let (home, _servers) = twelve_servers();
    for (flags, name) in [
        (&[][..], "all-states.txt"),
        (&["--json"], "all-states.json"),
    ] {
        let args = ["servers", "--config", "airlock.toml"];
        let shown = home.run(args.iter().chain(flags)).expect_code(30);
        let shown = match flags.is_empty() {
            true => shown.stdout,
            false => format!("{:#}\n", shown.json()),
        };
        let shown = masked(&shown, &home);
        let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/cli/servers")
            .join(name);
        if std::env::var("AIRLOCK_BLESS").is_ok_and(|it| it == "1") {
            fs::write(&golden, shown).expect("a golden that can be written");
            continue;
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(
            shown, expected,
            "{name} differs; AIRLOCK_BLESS=1 rewrites the file"
        );
    }
}

#[test]
fn whole_stderr_is_printed_on_demand() {
    let home = Home::new();
    let args = ["servers", "dies", "--demo", "--server", DIES, "--stderr"];
    let ended = home.run(args).expect_code(30);
    // The server is started twice, because it may have ended at the message of the newer era.
    for part in ["  stderr: first", "  stderr: no license"] {
        assert_eq!(ended.stdout.matches(part).count(), 1, "{part}\n{ended}");
    }
    assert!(!ended.stdout.contains("demo"), "{ended}");
    // The advice names no command that prints the same again.
    assert!(!ended.stdout.contains("servers --stderr"), "{ended}");
    assert!(
        ended.stdout.contains("next: the lines below show"),
        "{ended}"
    );
}

#[test]
fn json_has_a_member_for_each_column() {
    let home = Home::new();
    let args = ["servers", "--demo", "--server", DIES, "--json", "--stderr"];
    let shown = home.run(args).expect_code(30).json();
    let servers = shown["servers"].as_array().unwrap();
    let named = |name: &str| servers.iter().find(|it| it["name"] == name).unwrap();
    let demo = named("demo");
    assert_eq!(demo["state"], "connected", "{shown:#}");
    assert_eq!(
        (&demo["era"], &demo["tools"]),
        (&"2026-07-28".into(), &10.into()),
        "{shown:#}"
    );
    let mut names: Vec<&str> = demo.as_object().unwrap().keys().map(|it| &**it).collect();
    names.sort_unstable();
    let expected = [
        "era",
        "left_out",
        "login",
        "name",
        "on_demand",
        "server_info",
        "state",
        "stderr",
        "target",
        "tools",
        "version",
    ];
    assert_eq!(names, expected, "{shown:#}");
    let dies = named("dies");
    assert_eq!(dies["state"], "unavailable", "{shown:#}");
    // The server was started once for each era of the protocol.
    let stderr = dies["stderr"].as_str().unwrap();
    assert!(stderr.starts_with("first\nno license\n"), "{shown:#}");
    assert!(
        dies["why"].as_str().unwrap().contains("no license"),
        "{shown:#}"
    );
}

#[test]
fn credentials_of_a_server_are_masked() {
    let home = Home::new();
    let script = "sh -c 'echo \"token $KEY\" >&2; exit 1'";
    let config = format!(
        "[servers.shop]\ncommand = \"\"\"{script}\"\"\"\n\
         [servers.shop.env]\nKEY = \"sk-live-0123456789abcdef\"\n"
    );
    home.write("airlock.toml", config);
    let ended = home
        .run(["servers", "--config", "airlock.toml", "--stderr"])
        .expect_code(30);
    assert!(ended.stdout.contains("token "), "{ended}");
    assert!(!format!("{ended}").contains("0123456789abcdef"), "{ended}");
}

#[test]
fn completions_and_manual_name_every_command() {
    let home = Home::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = home.run(["completions", shell]).expect_code(0).stdout;
        for part in ["servers", "declassify", "skip-unreachable"] {
            assert!(text.contains(part), "{shell}: {part}");
        }
    }
    let text = home.run(["man"]).expect_code(0).stdout;
    assert!(
        text.contains(".TH airlock 1") && text.contains("airlock\\-run"),
        "{text:.300}"
    );
    let text = home.run(["man", "policy", "check"]).expect_code(0).stdout;
    for part in [".TH airlock-policy-check 1", "\\-\\-except"] {
        assert!(text.contains(part), "{part}: {text:.300}");
    }
}
