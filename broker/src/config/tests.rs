//! Tests of several configuration sources together.

use super::*;
use crate::tempdir::TempDir;
use crate::upstream::Transport;

fn home(scratch: &TempDir) -> Environment {
    let path = scratch.path().to_str().unwrap();
    Environment::from([
        ("HOME", path),
        ("TOKEN", "t0ken-1"),
        ("PATH", "/usr/bin:/bin"),
    ])
}

#[test]
fn defaults_apply_and_journal_has_a_place() {
    let scratch = TempDir::new();
    let config = Config::load(Flags::default(), &home(&scratch)).unwrap();
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.settings.broker.fsync, None);
    assert_eq!(
        config.state_dir,
        scratch.path().join(".local/state/airlock")
    );
    assert!(config.servers.is_empty() && config.rules.is_empty() && config.warnings.is_empty());
}

#[test]
fn rules_add_up_and_last_limit_wins() {
    let scratch = TempDir::new();
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
fn config_file_in_working_directory_is_read_only_if_named() {
    let scratch = TempDir::new();
    scratch.file("airlock.toml", "this is not even toml");
    assert!(Config::load(Flags::default(), &home(&scratch)).is_ok());
}

#[test]
fn credential_is_a_secret_and_hidden_in_debug_output() {
    let scratch = TempDir::new();
    let text = r#"{"mcpServers": {"a": {"url": "https://h/", "headers": {"Authorization": "Bearer ${env:TOKEN}"}}}}"#;
    let flags = Flags {
        mcp_configs: vec![scratch.file("mcp.json", text)],
        ..Flags::default()
    };
    let config = Config::load(flags, &home(&scratch)).unwrap();
    assert_eq!(
        config.secrets.redact("it said t0ken-1").as_deref(),
        Some("it said ***")
    );
    assert!(!format!("{config:?}").contains("t0ken-1"));
}

#[test]
fn file_error_is_a_config_problem() {
    let scratch = TempDir::new();
    for (text, what) in [
        (
            "[rules]\nallow = ['no dot']",
            "invalid rule 'no dot' (x.toml:2)",
        ),
        (
            "fsync = 'sometimes'",
            "invalid value for `fsync` (x.toml:1)",
        ),
        (
            "unknown_keys = 'forgive'",
            "invalid value for `unknown_keys` (x.toml:1)",
        ),
        ("\"fsync\" = 'bad'", "invalid value for `fsync` (x.toml:1)"),
        ("engine = 'v8'", "invalid value for `engine` (x.toml:1)"),
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
fn invalid_tsc_names_the_valid_values() {
    let scratch = TempDir::new();
    let flags = Flags {
        config: Some(scratch.file("x.toml", "tsc = 3")),
        ..Flags::default()
    };
    let problem = Config::load(flags, &home(&scratch)).unwrap_err();
    assert!(
        problem.why.contains("expected a path, true or false"),
        "{}",
        problem.why
    );
}

#[test]
fn contradictory_or_unreadable_config_is_a_problem() {
    let scratch = TempDir::new();
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
            "invalid rule 'no dot' (--allow)",
        ),
        (
            Flags {
                limits: vec![("time".into(), "1".into())],
                ..Flags::default()
            },
            "invalid limit from the command line",
        ),
    ] {
        // An error in a flag is a usage error. An error in a file is not, even if a flag names the
        // file.
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
fn all_sources_together_have_a_maximum_number_of_servers() {
    let scratch = TempDir::new();
    let servers: String = (0..SERVERS_MAX - 1)
        .map(|it| format!("[servers.a{it}]\ncommand = \"a\"\n"))
        .collect();
    let of_host = r#"{"mcpServers": {"b": {"url": "https://h/"}}}"#;
    let flags = Flags {
        config: Some(scratch.file("airlock.toml", &servers)),
        mcp_configs: vec![scratch.file("mcp.json", of_host)],
        ..Flags::default()
    };
    let config = Config::load(flags.clone(), &home(&scratch)).unwrap();
    assert_eq!(config.servers.len(), SERVERS_MAX);
    let flags = Flags {
        servers: vec!["c=https://h/".into()],
        ..flags
    };
    let refused = Config::load(flags, &home(&scratch)).unwrap_err();
    assert_eq!(
        refused.why,
        "251 servers are configured; the maximum is 250"
    );
}

#[test]
fn engine_from_flag_then_file_then_environment() {
    let scratch = TempDir::new();
    let home = scratch.path().to_str().unwrap().to_owned();
    let engine = |file: &str, flag: Option<JsEngine>, variable: &str| {
        let environment =
            Environment::from([("HOME", home.as_str()), ("AIRLOCK_ENGINE", variable)]);
        let flags = Flags {
            config: Some(scratch.file("engine.toml", file)),
            settings: Settings {
                engine: EngineSettings { engine: flag },
                ..Settings::default()
            },
            ..Flags::default()
        };
        let engine = |config: Config| config.settings.engine.engine.unwrap_or_default();
        Config::load(flags, &environment).map(|config| engine(config).name())
    };
    assert_eq!(engine("", None, ""), Ok("boa"));
    assert_eq!(engine("", None, "quickjs"), Ok("quickjs"));
    assert_eq!(engine("engine = 'boa'", None, "quickjs"), Ok("boa"));
    assert_eq!(
        engine("engine = 'boa'", Some(JsEngine::QuickJs), ""),
        Ok("quickjs")
    );
    let problem = engine("", None, "v8").unwrap_err();
    assert_eq!(problem.code, "config-invalid");
    assert!(
        problem.why.contains("expected boa or quickjs"),
        "{problem:?}"
    );
}

#[test]
fn paths_are_relative_to_their_config_file() {
    let scratch = TempDir::new();
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
    assert_eq!(
        config.settings.tools.descriptions,
        Some(project.join("words"))
    );
    assert_eq!(
        config.settings.tools.lock,
        Some(project.join("airlock.lock"))
    );
    assert_eq!(
        config.settings.broker.embeddings,
        Some(project.join("model"))
    );
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
