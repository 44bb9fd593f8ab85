//! What the README shows, run as it stands there.

use std::fs;

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
fn the_readme_shows_commands_that_exist() {
    let readme = fs::read_to_string(workspace().join("README.md")).unwrap();
    assert!(
        readme.contains("examples/triage.js"),
        "the first command is the demo"
    );
    let home = Home::new();
    check_flags(&home, &readme, "run");
    check_flags(&home, &readme, "serve");
}

fn check_flags(home: &Home, readme: &str, command: &str) {
    let help = home.run([command, "--help"]).expect_code(0).stdout;
    let shown = readme.lines().filter(|line| {
        line.contains(&format!("airlock {command}")) || line.contains(&format!("-- {command} "))
    });
    for flag in shown
        .flat_map(|line| line.split_whitespace())
        .filter(|word| word.starts_with("--") && word.len() > 2)
    {
        let flag = flag
            .trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
            .split('=')
            .next()
            .unwrap();
        let cargo = ["--release", "--quiet", "--bin", "--package", "--locked"];
        assert!(
            help.contains(flag) || cargo.contains(&flag),
            "the README shows `{flag}`, `airlock {command} --help` does not"
        );
    }
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
