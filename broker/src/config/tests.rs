//! Several sources together.

use super::*;
use crate::scratch::Scratch;
use crate::upstream::Transport;

fn home(scratch: &Scratch) -> Environment {
    let path = scratch.path().to_str().unwrap();
    Environment::from([
        ("HOME", path),
        ("TOKEN", "t0ken-1"),
        ("PATH", "/usr/bin:/bin"),
    ])
}

#[test]
fn without_anything_there_are_defaults_and_a_place_for_the_journal() {
    let scratch = Scratch::new();
    let config = Config::load(Flags::default(), &home(&scratch)).unwrap();
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.fsync, Fsync::Writes);
    assert_eq!(
        config.state_dir,
        scratch.path().join(".local/state/airlock")
    );
    assert!(config.servers.is_empty() && config.rules.is_empty() && config.warnings.is_empty());
}

#[test]
fn rules_add_up_and_a_later_limit_wins() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path().join(".config/airlock")).unwrap();
    scratch.file(
        ".config/airlock/config.toml",
        "[rules]\ndeny = ['*.delete*']\n[limits]\ntimeout = '5s'\ncalls = 7",
    );
    let flags = Flags {
        config: Some(scratch.file(
            "airlock.toml",
            "[rules]\nask = ['fs.*']\n[limits]\ntimeout = '6s'",
        )),
        allow: vec!["fs.read".into()],
        limits: vec![("timeout".into(), "7s".into())],
        ..Flags::default()
    };
    let config = Config::load(flags, &home(&scratch)).unwrap();
    let rules: Vec<_> = config.rules.iter().map(ToString::to_string).collect();
    assert_eq!(
        rules,
        [
            "deny '*.delete*' (config.toml:2)",
            "ask 'fs.*' (airlock.toml:2)",
            "--allow 'fs.read'"
        ]
    );
    assert_eq!(
        (config.limits.run_wall_ms_max, config.limits.calls_max),
        (7_000, 7)
    );
}

#[test]
fn a_file_of_the_working_folder_is_not_read_unless_it_is_named() {
    let scratch = Scratch::new();
    scratch.file("airlock.toml", "this is not even toml");
    assert!(Config::load(Flags::default(), &home(&scratch)).is_ok());
}

#[test]
fn a_credential_is_known_as_a_secret_and_never_in_a_debug_text() {
    let scratch = Scratch::new();
    let text = r#"{"mcpServers": {"a": {"url": "https://h/", "headers": {"Authorization": "Bearer ${env:TOKEN}"}}}}"#;
    let flags = Flags {
        mcp_configs: vec![scratch.file("mcp.json", text)],
        ..Flags::default()
    };
    let config = Config::load(flags, &home(&scratch)).unwrap();
    assert_eq!(
        config.secrets.strike("it said t0ken-1").as_deref(),
        Some("it said ***")
    );
    assert!(!format!("{config:?}").contains("t0ken-1"));
}

#[test]
fn the_same_mistake_in_a_file_is_a_wrong_configuration() {
    let scratch = Scratch::new();
    for (text, what) in [
        (
            "[rules]\nallow = ['no dot']",
            "the rule 'no dot' (x.toml:2) cannot be read",
        ),
        ("fsync = 'sometimes'", "`fsync` (x.toml:1) cannot be used"),
        (
            "unknown_keys = 'forgive'",
            "`unknown_keys` (x.toml:1) cannot be used",
        ),
        ("engine = 'v8'", "`engine` (x.toml:1) cannot be used"),
    ] {
        let flags = Flags {
            config: Some(scratch.file("x.toml", text)),
            ..Flags::default()
        };
        let problem = Config::load(flags, &home(&scratch)).unwrap_err();
        assert_eq!(
            (problem.what.as_str(), &*problem.code),
            (what, "config-invalid")
        );
    }
}

#[test]
fn what_contradicts_itself_or_cannot_be_read_is_a_problem() {
    let scratch = Scratch::new();
    let twice = vec!["fs=a".to_owned(), "fs=b".to_owned()];
    for (flags, what) in [
        (
            Flags {
                servers: twice,
                ..Flags::default()
            },
            "the server `fs` is configured twice",
        ),
        (
            Flags {
                config: Some("/nowhere/x.toml".into()),
                ..Flags::default()
            },
            "/nowhere/x.toml cannot be read",
        ),
        (
            Flags {
                allow: vec!["no dot".into()],
                ..Flags::default()
            },
            "the rule 'no dot' (--allow) cannot be read",
        ),
        (
            Flags {
                fsync: Some("sometimes".into()),
                ..Flags::default()
            },
            "`fsync` (--fsync) cannot be used",
        ),
        (
            Flags {
                limits: vec![("time".into(), "1".into())],
                ..Flags::default()
            },
            "a limit from the command line cannot be used",
        ),
    ] {
        // Flags are usage; a file that is named by one is still a file.
        let code = match flags.config {
            Some(_) => "config-invalid",
            None => "usage",
        };
        let problem = Config::load(flags, &home(&scratch)).unwrap_err();
        assert_eq!((problem.what.as_str(), &*problem.code), (what, code));
    }
    assert_eq!(
        Config::load(Flags::default(), &Environment::default())
            .unwrap_err()
            .what,
        "there is no folder for the journal"
    );
}

#[test]
fn a_flag_names_the_engine_before_a_file_and_a_file_before_the_environment() {
    let scratch = Scratch::new();
    let home = scratch.path().to_str().unwrap().to_owned();
    let engine = |file: &str, flag: Option<&str>, variable: &str| {
        let environment =
            Environment::from([("HOME", home.as_str()), ("AIRLOCK_ENGINE", variable)]);
        let flags = Flags {
            config: Some(scratch.file("engine.toml", file)),
            engine: flag.map(str::to_owned),
            ..Flags::default()
        };
        Config::load(flags, &environment).map(|config| config.engine.name())
    };
    assert_eq!(engine("", None, ""), Ok("boa"));
    assert_eq!(engine("", None, "quickjs"), Ok("quickjs"));
    assert_eq!(engine("engine = 'boa'", None, "quickjs"), Ok("boa"));
    assert_eq!(engine("engine = 'boa'", Some("quickjs"), ""), Ok("quickjs"));
    let problem = engine("", Some("v8"), "").unwrap_err();
    assert_eq!(problem.code, "usage");
    assert!(
        problem.why.contains("neither boa nor quickjs"),
        "{problem:?}"
    );
    assert_eq!(engine("", None, "v8").unwrap_err().code, "config-invalid");
}

#[test]
fn what_a_file_names_lies_beside_it() {
    let scratch = Scratch::new();
    let project = scratch.path().join("project");
    std::fs::create_dir_all(project.join("sources")).unwrap();
    let text = "state_dir = 'state'\ndescriptions = 'words'\nlock = 'airlock.lock'\n\
                embeddings = 'model'\n\
                [roots]\nsources = 'sources'\n\
                [servers.a]\ncommand = 'a'\ncwd = 'sources'\n\
                [servers.b]\ncommand = 'b'\ncwd = '/srv'";
    let labels = "[roots]\nproject = '.'";
    let flags = Flags {
        config: Some(scratch.file("project/airlock.toml", text)),
        labels: vec![scratch.file("project/labels.toml", labels)],
        ..Flags::default()
    };
    let config = Config::load(flags, &home(&scratch)).unwrap();
    assert_eq!(config.state_dir, project.join("state"));
    assert_eq!(config.descriptions, Some(project.join("words")));
    assert_eq!(config.lock, Some(project.join("airlock.lock")));
    assert_eq!(config.embeddings, Some(project.join("model")));
    let real = project.canonicalize().unwrap();
    assert_eq!(config.flow.roots["sources"], real.join("sources"));
    assert_eq!(config.flow.roots["project"], real);
    let cwds = config.servers.iter().map(|it| match &it.spec.transport {
        Transport::Stdio { cwd, .. } => cwd.clone().unwrap(),
        Transport::Http { .. } => panic!("no address is configured"),
    });
    let cwds: Vec<_> = cwds.collect();
    assert_eq!(cwds, [project.join("sources"), "/srv".into()]);
}
