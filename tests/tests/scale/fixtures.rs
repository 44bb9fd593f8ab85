//! Sets up servers that list the tools of a file, and hosts that use them through airlock.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tests::command::{Home, program};
use tests::stdio_host::StdioHost;

/// The tools of one server.
pub(crate) struct Fixture {
    pub(crate) name: String,
    pub(crate) tools: Vec<Value>,
}

pub(crate) fn tool(name: &str, about: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    json!({"name": name, "description": about, "inputSchema": schema})
}

/// Returns twelve servers, from the corpus if `AIRLOCK_CORPUS` names one, and otherwise generated.
/// Together they have more than a thousand tools.
pub(crate) fn twelve() -> Vec<Fixture> {
    const SERVERS: usize = 12;
    const TOOLS_MIN: usize = 1_000;
    let mut fixtures = std::env::var_os("AIRLOCK_CORPUS")
        .map(|folder| corpus(&Path::new(&folder).join("tools")))
        .unwrap_or_default();
    fixtures.sort_by_key(|it| std::cmp::Reverse(it.tools.len()));
    fixtures.truncate(SERVERS - 1);
    while fixtures.len() < SERVERS {
        let name = format!("made{}", fixtures.len());
        let listed: usize = fixtures.iter().map(|it| it.tools.len()).sum();
        let left = SERVERS - fixtures.len();
        let count = (TOOLS_MIN + 50).saturating_sub(listed).div_ceil(left);
        let tools = (0..count).map(made_up).collect();
        fixtures.push(Fixture { name, tools });
    }
    let tools: usize = fixtures.iter().map(|it| it.tools.len()).sum();
    assert!(tools >= TOOLS_MIN, "{tools} tools");
    fixtures
}

fn made_up(number: usize) -> Value {
    const DEEDS: [&str; 5] = ["list", "create", "delete", "export", "rename"];
    const THINGS: [&str; 7] = [
        "invoice", "ticket", "branch", "sheet", "page", "alarm", "backup",
    ];
    let (deed, thing) = (DEEDS[number % 5], THINGS[number % 7]);
    let about = format!("Can {deed} the {thing} of customer number {number}, with its history.");
    tool(&format!("{deed}_{thing}_{number}"), &about)
}

fn corpus(folder: &Path) -> Vec<Fixture> {
    let Ok(files) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).ok()?;
        let saved: Value = serde_json::from_str(&text).ok()?;
        let name = path.file_name()?.to_str()?.split('.').next()?.to_owned();
        let tools = saved.pointer("/result/tools")?.as_array()?.clone();
        Some(Fixture { name, tools })
    };
    files
        .flatten()
        .filter_map(|entry| read(entry.path()))
        .collect()
}

/// A home with servers in its configuration.
pub(crate) struct Site {
    pub(crate) home: Home,
    config: String,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self {
            home: Home::new(),
            config: "[rules]\nallow = [\"*.*\"]\n".to_owned(),
        }
    }

    /// Writes the tools that a server lists.
    pub(crate) fn list(&self, name: &str, tools: &[Value]) -> PathBuf {
        let file = format!("{name}.json");
        self.home.write(&file, json!(tools).to_string())
    }

    /// Adds a server that lists these tools. `more` is added to its configuration.
    pub(crate) fn server(&mut self, name: &str, tools: &[Value], more: &str) {
        self.slow(name, tools, None, more);
    }

    /// Adds a server that stays silent until the file `after` exists.
    pub(crate) fn slow(&mut self, name: &str, tools: &[Value], after: Option<&str>, more: &str) {
        let file = self.list(name, tools);
        let mut args = vec![file.to_string_lossy().into_owned()];
        if let Some(after) = after {
            let other = self.home.path().join(after);
            args.extend(["--after".into(), other.to_string_lossy().into_owned()]);
        }
        let (program, log) = (program("replaying-server"), self.log(name));
        let (program, log) = (json!(program), json!(log));
        self.config.push_str(&format!(
            "[servers.{name}]\ncommand = {program}\nargs = {}\nenv = {{ REPLAY_LOG = {log} }}\n{more}\n",
            json!(args)
        ));
    }

    fn log(&self, name: &str) -> PathBuf {
        self.home.path().join(format!("{name}.log"))
    }

    /// Returns the log lines of a server. The list is empty if the server was never started.
    pub(crate) fn heard(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.log(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn host(&self, flags: &[&str]) -> StdioHost {
        StdioHost::start(&mut self.command(flags), &json!({}))
    }

    pub(crate) fn command(&self, flags: &[&str]) -> Command {
        let config = self.home.write("airlock.toml", &self.config);
        let mut command = self.home.serve(flags);
        command.args(["--quiet", "--config"]).arg(config);
        command
    }
}
