//! Tests that `airlock policy explain`, `can` and `test` compute facts from the configuration: the
//! same call gets the same decision as in a run.

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home};

const CONFIG: &str = "[servers.fs]\ncommand = \"none\"\n\
                      [labels.fs]\nreads = [\"private\"]\nwrites = []\npaths = [\"/path\"]\n\
                      path_base = \".\"\n\
                      [roots]\ndata = \"data\"\n";

/// Returns a home with one tool that may read files under `data`.
fn home(root: &str) -> Home {
    let home = Home::new();
    let schema = json!({"type": "object", "required": ["path"], "properties": {
        "path": {"type": "string"},
    }});
    let tools = json!({"tools": [{"name": "read", "inputSchema": schema}]});
    home.write("fs.json", tools.to_string());
    home.write("data/a.txt", "a");
    home.write("airlock.toml", CONFIG);
    let notes = "@owner(\"o\") @reason(\"because\")";
    home.write(
        "rules/a.cedar",
        format!(
            "@id(\"reads-in-data\") {notes} permit(principal, action == Action::\"fs.read\", resource)\n\
             when {{ context has path_roots && context.path_roots == [\"{root}\"] }};\n\
             @id(\"private-stays\") {notes} forbid(principal, action, resource)\n\
             when {{ context.writes.external && context.labels.contains(\"private\") }};\n"
        ),
    );
    home
}

fn policy(home: &Home, args: &[&str]) -> CommandOutput {
    let sources = ["--from", "fs.json", "--config", "airlock.toml"];
    home.run([&["policy"], args, &sources].concat())
}

fn explain(home: &Home, call: &Value) -> CommandOutput {
    policy(home, &["explain", &call.to_string(), "--policy", "rules"])
}

#[test]
fn explain_uses_configured_labels_and_roots() {
    let home = home("data");
    for (path, parts) in [
        (
            "data/a.txt",
            ["decision: allowed\n", "fact: path_roots [\"data\"]\n"],
        ),
        (
            "data/../b",
            ["decision: denied\n", "fact: path_roots [\"outside\"]\n"],
        ),
    ] {
        let call = json!({"tool": "fs.read", "args": {"path": path}});
        let found = explain(&home, &call).expect_code(0);
        let assumed = "facts that depend on the run have their worst values: labels (";
        for part in parts.into_iter().chain([assumed]) {
            assert!(found.stdout.contains(part), "{part}\n{found}");
        }
    }
    let call = |roots: Value| json!({"tool": "fs.read", "args": {"path": "/etc/passwd"}, "facts": {"path_roots": roots}});
    let found = explain(&home, &call(json!(["data"]))).expect_code(0);
    let note = "`path_roots` is [\"data\"], although the paths of this call lead to [\"outside\"]";
    assert!(found.stdout.contains(note), "{found}");
    let found = explain(&home, &call(json!(["dta"]))).expect_code(2);
    let unknown = "there is no root `dta`; did you mean `data`?";
    assert!(found.stderr.contains(unknown), "{found}");
}

/// A server can use another folder than its working folder, such as the first one of its arguments.
#[test]
fn relative_path_is_inside_only_with_a_configured_base() {
    let home = home("data");
    let without = CONFIG.replace("path_base = \".\"\n", "");
    let with_cwd = without.replace("command = \"none\"\n", "command = \"none\"\ncwd = \".\"\n");
    let elsewhere = CONFIG.replace("path_base = \".\"", "path_base = \"data\"");
    for (config, path, roots) in [
        (CONFIG, "data/a.txt", "data"),
        (&without, "data/a.txt", "outside"),
        (&with_cwd, "data/a.txt", "outside"),
        (&elsewhere, "a.txt", "data"),
        (&elsewhere, "../a.txt", "outside"),
    ] {
        home.write("airlock.toml", config);
        let call = json!({"tool": "fs.read", "args": {"path": path}});
        let found = explain(&home, &call).expect_code(0);
        let fact = format!("fact: path_roots [\"{roots}\"]\n");
        assert!(found.stdout.contains(&fact), "{config}\n{found}");
        let note = "a relative path counts as `outside`, because [labels.fs] has no `path_base`";
        let is_noted = found.stdout.contains(note);
        assert_eq!(is_noted, !config.contains("path_base"), "{config}\n{found}");
    }
    home.write("airlock.toml", without);
    let absolute = home.path().join("data/a.txt");
    let call = json!({"tool": "fs.read", "args": {"path": absolute}});
    let found = explain(&home, &call).expect_code(0);
    assert!(
        found.stdout.contains("fact: path_roots [\"data\"]\n"),
        "{found}"
    );
}

/// The example is a complete call: it is allowed without the facts that `can` prints.
#[test]
fn can_shows_a_path_under_the_root() {
    let home = home("data");
    let found = policy(&home, &["can", "--auto", "--json", "--policy", "rules"]).expect_code(0);
    let call = found.json()["tools"][0]["answers"][0]["call"].clone();
    let path = call["args"]["path"].as_str().unwrap().to_owned();
    assert!(path.ends_with("/data/x"), "{found}");
    let explained = explain(&home, &json!({"tool": "fs.read", "args": {"path": path}}));
    assert!(
        explained.stdout.contains("decision: allowed\n"),
        "{explained}"
    );
}

#[test]
fn can_does_not_assume_a_root_that_is_not_configured() {
    let home = self::home("dta");
    let found = policy(&home, &["can", "--auto", "--json", "--policy", "rules"]);
    let answer = &found.json()["tools"][0]["answers"][0];
    assert_ne!(answer["possible"], true, "{found}");
    let found = policy(&home, &["check", "rules"]).expect_code(32);
    assert!(found.stdout.contains(" code: root-unknown\n"), "{found}");
}

#[test]
fn cases_use_configured_labels_and_roots() {
    let home = home("data");
    let case = |path: &str, facts: &str, level: &str| {
        format!(
            "[[cases]]\nname = \"{path} is {level}\"\ntool = \"fs.read\"\n\
             args = {{ path = \"{path}\" }}\nfacts = {{ {facts} }}\nlevel = \"{level}\"\n"
        )
    };
    let good = [
        case("data/a.txt", "", "allow"),
        case("/etc/passwd", "", "deny"),
        case("data/a.txt", "writes = { external = true }", "deny"),
    ]
    .concat();
    home.write("rules/a.cases.toml", &good);
    policy(&home, &["test", "rules"]).expect_code(0);
    // The labels no longer protect anything.
    home.write(
        "airlock.toml",
        CONFIG.replace("writes = []", "writes = [\"external\"]"),
    );
    let found = policy(&home, &["test", "rules"]).expect_code(32);
    assert!(
        found.stdout.contains("found deny by private-stays"),
        "{found}"
    );
    home.write("airlock.toml", CONFIG);
    for (facts, expected) in [
        (
            "path_roots = [\"data\"]",
            "its paths lead to outside, not to data",
        ),
        ("path_roots = [\"outsid\"]", "did you mean `outside`?"),
        (
            "labels = [\"private:mail\"]",
            "no configured label is `private:mail`",
        ),
    ] {
        home.write("rules/a.cases.toml", case("/etc/passwd", facts, "allow"));
        let found = policy(&home, &["test", "rules"]).expect_code(32);
        assert!(found.stderr.contains(expected), "{expected}\n{found}");
    }
}
