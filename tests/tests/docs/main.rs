//! Compares the documents with the program.

mod commands;
mod hosts;
mod pages;
mod sessions;
mod tables;

use tests::binary::{build, workspace};
use tests::command::{Home, start};

const README_BYTES_MAX: usize = 8_192;

#[test]
fn readme_is_short() {
    let length = pages::read("README.md").text.len();
    assert!(length <= README_BYTES_MAX, "README.md has {length} bytes");
}

/// The README shows the whole example.
#[test]
fn readme_example_matches_run_example() {
    let script = std::fs::read_to_string(workspace().join("examples/triage.js")).unwrap();
    let readme = pages::read("README.md");
    assert!(readme.text.contains(&format!("```js\n{script}```")));
}

#[test]
fn triage_example_files_one_ticket_per_distinct_error() {
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
fn embedding_example_runs() {
    let home = Home::new();
    let example = build(&["--workspace", "--example", "embed"]).unwrap();
    let mut command = std::process::Command::new(example);
    home.dress(&mut command);
    let ended = start(&mut command, "").wait().expect_code(0);
    assert!(!ended.stdout.is_empty(), "{ended}");
}
