//! Servers that change while others use them: controls `changing-server` through its folder.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use airlock::upstream::{ServerSpec, Transport};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::program;
use crate::patience::PATIENCE;

/// One server, controlled through its folder.
#[derive(Debug)]
pub struct ChangingServer {
    name: String,
    folder: TempDir,
}

impl ChangingServer {
    /// Creates a server of this name that lists these tools.
    #[must_use]
    pub fn new(name: &str, tools: &[Value]) -> Self {
        let server = Self {
            name: name.to_owned(),
            folder: TempDir::with_prefix("airlock-changing-").expect("a temporary folder"),
        };
        server.lists(tools);
        server
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the specification that starts the server.
    #[must_use]
    pub fn spec(&self) -> ServerSpec {
        let transport = Transport::Stdio {
            command: program("changing-server").display().to_string(),
            args: vec![self.folder().display().to_string()],
            env: Vec::new(),
            cwd: None,
        };
        ServerSpec::new(&self.name, transport)
    }

    /// Returns the value for `--server` that starts the server.
    #[must_use]
    pub fn flag(&self) -> String {
        let (program, folder) = (program("changing-server"), self.folder());
        format!("{}={} {}", self.name, program.display(), folder.display())
    }

    /// Sets the tools that the server lists from now on.
    pub fn lists(&self, tools: &[Value]) {
        // Replaced in one step, because the server may be reading the file.
        let text = Value::from(tools.to_vec()).to_string();
        let beside = self.path("tools.json.new");
        std::fs::write(&beside, text).expect("a file in its folder");
        std::fs::rename(beside, self.path("tools.json")).expect("a file in its folder");
    }

    /// Creates a control file.
    pub fn put(&self, name: &str) {
        std::fs::write(self.path(name), "").expect("a file in its folder");
    }

    /// Removes a control file.
    pub fn take(&self, name: &str) {
        std::fs::remove_file(self.path(name)).expect("a file in its folder");
    }

    /// Returns how often the server has logged this line.
    #[must_use]
    pub fn noted(&self, what: &str) -> usize {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        log.lines().filter(|line| *line == what).count()
    }

    /// Waits until the server has logged this line `times` times.
    pub async fn until(&self, what: &str, times: usize) {
        let since = Instant::now();
        while self.noted(what) < times {
            assert!(since.elapsed() < PATIENCE, "{}: no `{what}`", self.name);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }
}

/// Returns a tool that takes any object.
#[must_use]
pub fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// Returns the same tool with another description.
#[must_use]
pub fn redefined(name: &str) -> Value {
    json!({"name": name, "description": "Now it is another one.", "inputSchema": {"type": "object"}})
}
