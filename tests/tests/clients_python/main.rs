//! Tests the Python client: its own tests, the programs of its page, and one agent for each
//! framework with a scripted model on loopback. Without Python or a package from PyPI, a test
//! prints one `SKIP:` line and passes.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;
use tests::agent_hosts::{PYTHON_1, PYTHON_2, PYTHON_ANTHROPIC, Packages};
use tests::binary::{airlock, workspace};
use tests::command::{CommandOutput, Home, start};
use tests::scripted_model::ScriptedModel;

const NO_BYTECODE: (&str, &str) = ("PYTHONDONTWRITEBYTECODE", "1");

/// Returns a Python without packages, in this home, or `None` after printing a `SKIP:` line.
fn python(home: &Home) -> Option<Command> {
    let mut python = Command::new("python3");
    home.dress(&mut python);
    python.envs([NO_BYTECODE]).env("AIRLOCK_BIN", airlock());
    let version = Command::new("python3").arg("--version").output();
    if version.is_err() {
        println!("SKIP: there is no python3");
        return None;
    }
    Some(python)
}

fn run(command: &mut Command) -> CommandOutput {
    start(command, "").wait().expect_code(0)
}

#[test]
fn tests_of_the_client_pass() {
    let home = Home::new();
    let Some(mut python) = python(&home) else {
        return;
    };
    python.arg(workspace().join("clients/python/tests/test_client.py"));
    let ended = run(&mut python);
    assert!(ended.stderr.contains("\nOK"), "{ended}");
}

#[test]
fn client_has_the_version_of_airlock() {
    let file = workspace().join("clients/python/src/airlock_client/_version.py");
    let expected = format!("VERSION = \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(std::fs::read_to_string(file).unwrap().contains(&expected));
}

/// The client needs no further package, so an isolated installation of it runs every program of
/// the page, with the output that the page shows.
#[test]
fn programs_of_the_page_run() {
    let home = Home::new();
    let Some(mut venv) = python(&home) else {
        return;
    };
    let page = std::fs::read_to_string(workspace().join("docs/clients-python.md")).unwrap();
    run(venv.args(["-m", "venv", "installed"]));
    // pip writes into the folder that it installs.
    let copy = home.path().join("clients/python");
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    run(Command::new("cp")
        .arg("-r")
        .args([&workspace().join("clients/python"), &copy]));
    let install = blocks(&page, "text").next().unwrap();
    assert_eq!(install, "pip install ./clients/python\n");
    let mut pip = installed(&home, "pip");
    pip.args(install.split_whitespace().skip(1));
    let ended = start(&mut pip, "").wait();
    if ended.code != Some(0) {
        println!("SKIP: the package could not be built: {ended}");
        return;
    }
    for config in blocks(&page, "toml") {
        home.write("airlock.toml", config);
    }
    for program in blocks(&page, "python") {
        let name = program.lines().next().unwrap().trim_start_matches("# ");
        home.write(name, program);
    }
    let mut checked = 0;
    for shown in blocks(&page, "text") {
        let Some((command, expected)) = shown.split_once('\n') else {
            continue;
        };
        let Some(program) = command.strip_prefix("$ python ") else {
            continue;
        };
        let mut python = installed(&home, "python");
        let ended = run(python.arg(program));
        assert_eq!(ended.stdout, expected, "{ended}");
        checked += 1;
    }
    assert_eq!(checked, 2);
}

/// Returns a program of the isolated installation, which finds airlock on PATH.
fn installed(home: &Home, program: &str) -> Command {
    let mut command = Command::new(home.path().join("installed/bin").join(program));
    home.dress(&mut command);
    let mut folders = vec![airlock().parent().unwrap().to_owned()];
    folders.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    command.env("PATH", std::env::join_paths(folders).unwrap());
    command
}

/// Returns the fenced blocks of a language.
fn blocks<'a>(page: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    let fence = format!("```{language}\n");
    let parts: Vec<_> = page.split(fence.as_str()).skip(1).collect();
    parts
        .into_iter()
        .filter_map(|it| Some(it.split_once("```")?.0))
}

/// Lets the agent of a framework read and call a function of its own program. The call needs an
/// approval, which the program gives.
fn check_framework(name: &str, packages: Packages) {
    let home = Home::new();
    let Some(mut python) = packages.python(name, &home) else {
        return;
    };
    let mut model = ScriptedModel::start();
    python
        .env("AIRLOCK_BIN", airlock())
        .arg(workspace().join("clients/python/tests/framework_agent.py"))
        .args([name, &model.url()]);
    let mut agent = start(&mut python, "");
    let calls = [
        (
            "get_tool_details",
            json!({"tools": ["host.price", "demo.tickets_list"]}),
            "price(",
        ),
        (
            "run_script",
            json!({"code": "const {tickets} = await demo.tickets_list({});
                return `${tickets.length > 0} ${await host.price({item: 'pear'})}`"}),
            "true 0.75",
        ),
        (
            "run_script",
            json!({"code": "return await demo.ticket_list({})"}),
            "Did you mean `tickets_list`?",
        ),
    ];
    for (tool, args, expected) in calls {
        match model.call(tool, args, || agent.is_running()) {
            Some(result) => assert!(result.text.contains(expected), "{result:?}"),
            None => {
                if agent.is_running() {
                    agent.signal(Signal::KILL);
                }
                panic!("no request after {tool}\n{}", agent.wait());
            }
        }
    }
    model.end(|| agent.is_running()).expect("a request");
    let _ = agent.wait().expect_code(0);
}

#[test]
fn pydantic_ai_calls_a_function_of_its_program() {
    check_framework("pydantic_ai", PYTHON_2);
}

#[test]
fn openai_agents_calls_a_function_of_its_program() {
    check_framework("openai_agents", PYTHON_2);
}

#[test]
fn langchain_calls_a_function_of_its_program() {
    check_framework("langchain", PYTHON_1);
}

#[test]
fn anthropic_calls_a_function_of_its_program() {
    check_framework("anthropic", PYTHON_ANTHROPIC);
}

/// The client names the package of a framework that is not installed.
#[test]
fn missing_framework_is_named() {
    let home = Home::new();
    let Some(mut python) = python(&home) else {
        return;
    };
    let source: &Path = &workspace().join("clients/python/src");
    let program = "import airlock_client\n\
        for name in ['pydantic_ai', 'openai_agents', 'langchain', 'anthropic']:\n    \
            try: getattr(airlock_client.Airlock(), name)()\n    \
            except airlock_client.AirlockError as error: print(error)\n";
    // Isolated from the packages of the machine.
    python.args(["-S", "-c", program]).env("PYTHONPATH", source);
    let ended = run(&mut python);
    for package in [
        "pydantic-ai-slim",
        "openai-agents",
        "langchain",
        "anthropic",
    ] {
        let advice = format!("Install it with `pip install {package}`");
        assert!(ended.stdout.contains(&advice), "{ended}");
    }
}
