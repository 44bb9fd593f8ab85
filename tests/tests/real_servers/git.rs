//! Tests `mcp-server-git`: several calls at once, in both eras.

use std::process::Command;

use serde_json::json;
use tests::command::Home;
use tests::real_servers::installed;

use crate::{LEGACY, MODERN, stdio, value, with};

#[test]
fn git_in_both_eras() {
    let Some(servers) = installed() else { return };
    for era in ["auto", LEGACY, MODERN] {
        let home = Home::new();
        let repo = repository(&home);
        let server = stdio(&servers.python("mcp-server-git"), &["--repository", &repo]);
        let code = format!(
            r#"
const repo_path = {};
const [status, log, diff] = await Promise.all([
  git.git_status({{ repo_path }}),
  git.git_log({{ repo_path, max_count: 1 }}),
  git.git_diff_unstaged({{ repo_path }}),
]);
const outside = await git.git_status({{ repo_path: "/" }}).catch((e) => [e.code, e.message]);
return {{ status, log, diff, outside }};
"#,
            json!(repo)
        );
        let value = value(&home, &json!({"git": with(server, "era", era)}), &code);
        let text = |key: &str| {
            value[key]
                .as_str()
                .unwrap_or_else(|| panic!("{era}: `{key}` is not a string: {value:#}"))
                .to_owned()
        };
        assert!(
            text("status").contains("On branch main") && text("status").contains("notes.txt"),
            "{era}"
        );
        assert!(
            text("log").contains("first notes") && text("log").contains("Author: Ada"),
            "{era}"
        );
        assert!(text("diff").contains("+two"), "{era}");
        assert_eq!(value["outside"][0], "tool-failed", "{era}");
        assert!(
            value["outside"][1]
                .as_str()
                .unwrap()
                .contains("outside the allowed repository"),
            "{era}"
        );
    }
}

/// Creates a repository with one commit and one change.
pub(crate) fn repository(home: &Home) -> String {
    let path = home.path().join("repo");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        home.dress(&mut git);
        git.args([
            "-C",
            path.to_str().unwrap(),
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.net",
        ])
        .args(args);
        assert!(git.output().unwrap().status.success(), "git {args:?}");
    };
    home.write("repo/notes.txt", "one\n");
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "first notes"]);
    home.write("repo/notes.txt", "one\ntwo\n");
    path.display().to_string()
}
