//! The agent hosts that airlock knows, and where their configuration files are.

use std::path::{Path, PathBuf};

use super::placeholders;
use crate::config::Environment;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostKind {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    VsCode,
    Codex,
    GeminiCli,
    Windsurf,
}

/// The format of a host's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, with comments and trailing commas.
    Json,
    Toml,
}

/// Who uses the servers of a place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All projects of the user.
    User,
    /// One project, from the user's own file.
    Local,
    /// One project, from a file in its folder.
    Project,
}

/// A place in a configuration file of a host that lists servers.
#[derive(Debug, Clone)]
pub(crate) struct HostFile {
    pub(crate) kind: HostKind,
    pub(crate) scope: Scope,
    pub(crate) path: PathBuf,
    /// The keys that lead to the table of servers.
    pub(crate) keys: Vec<String>,
    /// The folder for airlock's own configuration.
    pub(crate) folder: PathBuf,
    /// The folder that rules call `project`: that of the project, or the user's home.
    pub(crate) root: PathBuf,
    /// The folder in which the host starts its servers.
    pub(crate) project: PathBuf,
}

/// The names that select hosts on the command line.
pub(crate) const KNOWN_IDS: [&str; 7] = [
    "claude-desktop",
    "claude-code",
    "cursor",
    "vscode",
    "codex",
    "gemini-cli",
    "windsurf",
];

impl HostKind {
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "claude-desktop",
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Windsurf => "windsurf",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::GeminiCli => "Gemini CLI",
            Self::Windsurf => "Windsurf",
        }
    }

    pub(crate) fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            _ => Format::Json,
        }
    }

    /// Whether the host shows questions of its servers to its user.
    pub(crate) fn asks_its_user(self) -> bool {
        matches!(
            self,
            Self::ClaudeCode | Self::Cursor | Self::VsCode | Self::Codex
        )
    }

    /// Whether the host replaces `${…}` in the entries of its servers.
    fn expands_placeholders(self) -> bool {
        !matches!(self, Self::ClaudeDesktop | Self::Codex)
    }
}

impl HostFile {
    /// Replaces placeholders as the host does before it starts a server. The error says which
    /// placeholder only the host can replace.
    pub(crate) fn expand(&self, text: &str, environment: &Environment) -> Result<String, String> {
        match self.kind.expands_placeholders() {
            true => placeholders::expand(text, &self.project, environment),
            false => Ok(text.to_owned()),
        }
    }

    /// Returns the folder of airlock's configuration below the project's folder, for a file that
    /// belongs to the project.
    pub(crate) fn folder_in_project(&self) -> Option<&Path> {
        match self.scope {
            Scope::Project => self.folder.strip_prefix(&self.root).ok(),
            Scope::User | Scope::Local => None,
        }
    }

    /// Returns the root as airlock's configuration names it. A project may lie in another folder on
    /// another machine.
    pub(crate) fn shown_root(&self) -> String {
        match self.folder_in_project() {
            Some(inside) => vec![".."; inside.components().count()].join("/"),
            None => self.root.display().to_string(),
        }
    }
}

/// Returns the existing files of all known hosts: the user's files, and those of the project in
/// `project`.
pub(crate) fn find(environment: &Environment, project: &Path) -> Vec<HostFile> {
    let mut found: Vec<HostFile> = Vec::new();
    for file in user_files(environment, project)
        .into_iter()
        .chain(project_files(project))
    {
        let is_new = |known: &HostFile| known.path != file.path || known.keys != file.keys;
        if file.path.is_file() && found.iter().all(is_new) {
            found.push(file);
        }
    }
    found
}

fn user_files(environment: &Environment, project: &Path) -> Vec<HostFile> {
    let Some(home) = environment.directory("HOME") else {
        return Vec::new();
    };
    let config = environment.directory("XDG_CONFIG_HOME");
    let config = config.unwrap_or_else(|| home.join(".config"));
    let applications = match cfg!(target_os = "macos") {
        true => home.join("Library/Application Support"),
        false => config.clone(),
    };
    let folder = |name: &str| config.join("airlock/hosts").join(name);
    let file = |kind: HostKind, path: PathBuf, key: &str| HostFile {
        kind,
        scope: Scope::User,
        path,
        keys: vec![key.to_owned()],
        folder: folder(kind.id()),
        root: home.clone(),
        project: project.to_owned(),
    };
    let claude_code = environment.directory("CLAUDE_CONFIG_DIR");
    let claude_code = claude_code.as_ref().unwrap_or(&home).join(".claude.json");
    let codex = environment.directory("CODEX_HOME");
    let codex = codex.unwrap_or_else(|| home.join(".codex"));
    let desktop = applications.join("Claude/claude_desktop_config.json");
    let mut files = vec![
        file(HostKind::ClaudeDesktop, desktop, "mcpServers"),
        file(HostKind::ClaudeCode, claude_code.clone(), "mcpServers"),
        file(
            HostKind::Cursor,
            home.join(".cursor/mcp.json"),
            "mcpServers",
        ),
        file(
            HostKind::VsCode,
            applications.join("Code/User/mcp.json"),
            "servers",
        ),
        file(HostKind::Codex, codex.join("config.toml"), "mcp_servers"),
        file(
            HostKind::GeminiCli,
            home.join(".gemini/settings.json"),
            "mcpServers",
        ),
        file(
            HostKind::Windsurf,
            home.join(".codeium/windsurf/mcp_config.json"),
            "mcpServers",
        ),
    ];
    // Claude Code keeps the servers that a user added for one project in the user's own file.
    if let (Some(key), Some(name)) = (project.to_str(), project.file_name()) {
        let name = format!("claude-code-{}", slug(&name.to_string_lossy()));
        files.push(HostFile {
            scope: Scope::Local,
            keys: ["projects", key, "mcpServers"].map(str::to_owned).to_vec(),
            folder: folder(&name),
            root: project.to_owned(),
            ..file(HostKind::ClaudeCode, claude_code, "")
        });
    }
    files
}

fn project_files(project: &Path) -> Vec<HostFile> {
    let file = |kind: HostKind, path: &str, key: &str| {
        let path = project.join(path);
        HostFile {
            kind,
            scope: Scope::Project,
            folder: path.parent().unwrap_or(project).join("airlock"),
            path,
            keys: vec![key.to_owned()],
            root: project.to_owned(),
            project: project.to_owned(),
        }
    };
    vec![
        file(HostKind::ClaudeCode, ".mcp.json", "mcpServers"),
        file(HostKind::Cursor, ".cursor/mcp.json", "mcpServers"),
        file(HostKind::VsCode, ".vscode/mcp.json", "servers"),
        file(HostKind::GeminiCli, ".gemini/settings.json", "mcpServers"),
    ]
}

fn slug(name: &str) -> String {
    let fitting = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    name.chars().map(fitting).collect()
}
