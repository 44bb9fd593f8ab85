//! What the README shows, run as it stands there.

use std::fs;

use airlock::config::SETTINGS;
use airlock::core::limits::Limits;
use tests::binary::{build, workspace};
use tests::command::{Home, start};

#[test]
fn triage_files_one_ticket_per_distinct_error_and_prints_one_line() {
    let home = Home::new();
    let script = workspace().join("examples/triage.js");
    let args = [
        "run",
        script.to_str().unwrap(),
        "--demo",
        "--allow",
        "demo.*",
    ];
    let ended = home.run(args).expect_code(0);
    assert_eq!(ended.stdout.trim_end().lines().count(), 1, "{ended}");
    assert!(ended.stdout.contains("ticket"), "{ended}");
    home.verify_all();
}

#[test]
fn the_documents_show_commands_that_exist() {
    let home = Home::new();
    let mut checked = 0;
    for document in ["README.md", "policies/README.md", "docs/policy-check.md"] {
        for line in read(document).lines() {
            checked += check_flags(&home, document, line);
        }
    }
    assert!(checked > 60, "{checked} flags");
}

/// The flags of each command that a line shows, held against its help.
fn check_flags(home: &Home, document: &str, line: &str) -> usize {
    let cargo = line.replace("cargo run --quiet -- ", "airlock ");
    let commands = cargo.split("airlock ").skip(1);
    let flags = commands.map(|shown| {
        // What follows in prose, or behind a comment, is not the command's.
        let shown = shown.split(['`', '#', '|', '"']).next().unwrap_or_default();
        let words: Vec<&str> = shown.split_whitespace().collect();
        let named = match words[..] {
            [
                first @ ("policy" | "runs" | "grants" | "descriptions"),
                second,
                ..,
            ] => {
                vec![first, second]
            }
            [first, ..] if COMMANDS.contains(&first) => vec![first],
            _ => return 0,
        };
        let help = home.run([&named[..], &["--help"]].concat()).expect_code(0);
        let flags = words
            .iter()
            .filter(|word| word.len() > 2 && word.starts_with("--"));
        let flags = flags.map(|word| word.split(['=', ',']).next().unwrap());
        flags.fold(0, |count, flag| {
            let is_there = help.stdout.split_whitespace().any(|it| it == flag);
            assert!(is_there, "{document} shows `{flag}` in `{line}`\n{help}");
            count + 1
        })
    });
    flags.sum()
}

const COMMANDS: [&str; 7] = [
    "run",
    "serve",
    "check",
    "types",
    "lock",
    "engines",
    "demo-server",
];

#[test]
fn the_readme_and_the_help_have_every_limit_as_it_is() {
    let readme = read("README.md");
    let help = Home::new().run(["run", "--help"]).expect_code(0).stdout;
    let defaults = Limits::default();
    for limit in &SETTINGS {
        let flag = limit.flag.map(|it| format!("`{it}`")).unwrap_or_default();
        let (name, value, what) = (limit.name, limit.show(&defaults), limit.what);
        let row = format!("| `{name}` | {value} | {flag} | {what} |");
        assert!(readme.contains(&row), "{row}");
        if let Some(flag) = limit.flag {
            let (_, told) = help.split_once(&format!("{flag} ")).unwrap();
            let (_, default) = told.split_once("[default: ").unwrap();
            assert!(default.starts_with(&format!("{value}]")), "{flag}: {value}");
        }
    }
}

/// What the file says of itself when it is asked for a key that there is not.
#[test]
fn every_key_of_the_configuration_file_is_documented() {
    let home = Home::new();
    let document = read("docs/configuration.md");
    let mut keys = 0;
    for tables in [
        "",
        "[servers.a]",
        "[rules]",
        "[extract]\ncommand = 'a'",
        "[labels.a]",
        "[labels.a.tools.b]",
    ] {
        home.write("airlock.toml", format!("{tables}\nno_such_key = 1\n"));
        let ended = home
            .run(["run", "-e", "return 1", "--config", "airlock.toml"])
            .expect_code(30)
            .expect_stderr("unknown field `no_such_key`, expected");
        let known = ended.stderr.split("expected").nth(1).unwrap();
        let known = known.lines().next().unwrap();
        for key in known.split('`').skip(1).step_by(2) {
            let is_there = [
                format!("`{key}`"),
                format!("[{key}]"),
                format!("[{key}."),
                format!(".{key}."),
            ];
            let is_there = is_there.iter().any(|it| document.contains(it));
            assert!(
                is_there,
                "docs/configuration.md lacks `{key}` of `{tables}`"
            );
            keys += 1;
        }
    }
    assert!(keys > 40, "{keys} keys");
}

fn read(document: &str) -> String {
    fs::read_to_string(workspace().join(document)).unwrap()
}

#[test]
fn the_embedding_example_runs() {
    let home = Home::new();
    let example = build(&["-p", "airlock", "--example", "embed"]).unwrap();
    let mut command = std::process::Command::new(example);
    home.dress(&mut command);
    let ended = start(&mut command, "").wait().expect_code(0);
    assert!(!ended.stdout.is_empty(), "{ended}");
}
