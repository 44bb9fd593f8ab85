//! The agent hosts that airlock knows, and where their configuration files are.

use std::path::{Path, PathBuf};

use airlock_core::id::Digest;

use super::placeholders;
use crate::config::Environment;

/// Characters of a path's digest in the name of a folder.
const DIGEST_CHARS: usize = 8;

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

/// A list in a file of a host that says which servers the host starts.
#[derive(Debug, Clone)]
pub(super) struct ServerList {
    pub(super) path: PathBuf,
    /// The keys that lead to the list. `*` stands for every key.
    pub(super) keys: Vec<String>,
    pub(super) kind: ListKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListKind {
    /// The names of servers that are not started.
    Off,
    /// The names of the only servers that are started.
    Only,
    /// A table of servers whose members say `"enabled": false`.
    States,
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
    /// Other hosts that read the same place, because their files are links to this one.
    pub(crate) shared_with: Vec<HostKind>,
    pub(super) lists: Vec<ServerList>,
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
    fn asks_its_user(self) -> bool {
        matches!(
            self,
            Self::ClaudeCode | Self::Cursor | Self::VsCode | Self::Codex
        )
    }

    /// Returns what airlock cannot know about the servers that the user switched off.
    pub(super) fn unknown_states(self) -> Option<String> {
        let title = self.title();
        matches!(self, Self::Cursor | Self::VsCode).then(|| {
            format!(
                "airlock cannot read which servers are switched off in {title}; remove those from airlock.toml"
            )
        })
    }

    /// Whether the host replaces `${…}` in the entries of its servers.
    fn expands_placeholders(self) -> bool {
        !matches!(self, Self::ClaudeDesktop | Self::Codex)
    }
}

impl HostFile {
    /// Returns the names of the hosts that read this place.
    pub(crate) fn titles(&self) -> String {
        let titles: Vec<&str> = self.kinds().map(HostKind::title).collect();
        titles.join(" and ")
    }

    /// Whether every host that reads this place shows questions of its servers to its user.
    pub(crate) fn asks_its_user(&self) -> bool {
        self.kinds().all(HostKind::asks_its_user)
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = HostKind> {
        std::iter::once(self.kind).chain(self.shared_with.iter().copied())
    }

    /// Replaces placeholders as the host does before it starts a server. The error says which
    /// placeholder only the host can replace.
    pub(crate) fn expand(&self, text: &str, environment: &Environment) -> Result<String, String> {
        match self.kind.expands_placeholders() {
            true => placeholders::expand(text, &self.project, environment),
            false => Ok(text.to_owned()),
        }
    }

    /// Returns the path of the file itself, without links.
    pub(crate) fn target(&self) -> PathBuf {
        let target = self.path.canonicalize();
        target.unwrap_or_else(|_| self.path.clone())
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
/// `project`. A place that several hosts reach through links is returned once.
pub(crate) fn find(environment: &Environment, project: &Path) -> Vec<HostFile> {
    let mut found: Vec<(PathBuf, HostFile)> = Vec::new();
    for mut file in user_files(environment, project)
        .into_iter()
        .chain(project_files(project))
    {
        if !file.path.is_file() {
            continue;
        }
        let target = file.target();
        let mut known = found.iter_mut();
        let known = known.find(|(path, it)| *path == target && it.keys == file.keys);
        match known {
            Some((_, known)) if known.kinds().all(|it| it != file.kind) => {
                known.shared_with.push(file.kind);
                known.lists.extend(server_lists(&file, environment));
            }
            Some(_) => {}
            None => {
                file.lists = server_lists(&file, environment);
                found.push((target, file));
            }
        }
    }
    found.into_iter().map(|(_, file)| file).collect()
}

/// Returns the lists of servers that a host does not start.
fn server_lists(file: &HostFile, environment: &Environment) -> Vec<ServerList> {
    let Some(home) = environment.directory("HOME") else {
        return Vec::new();
    };
    let list = |path: &Path, keys: &[&str], kind: ListKind| ServerList {
        path: path.to_owned(),
        keys: keys.iter().map(|it| (*it).to_owned()).collect(),
        kind,
    };
    let project = &file.project;
    match file.kind {
        HostKind::GeminiCli => {
            let settings = [&home, project].map(|it| it.join(".gemini/settings.json"));
            let of_settings = |path: &PathBuf| {
                [
                    list(path, &["mcp", "excluded"], ListKind::Off),
                    list(path, &["excludeMCPServers"], ListKind::Off),
                    list(path, &["mcp", "allowed"], ListKind::Only),
                    list(path, &["allowMCPServers"], ListKind::Only),
                ]
            };
            let mut lists: Vec<ServerList> = settings.iter().flat_map(of_settings).collect();
            let states = home.join(".gemini/mcp-server-enablement.json");
            lists.push(list(&states, &[], ListKind::States));
            lists
        }
        HostKind::ClaudeCode => {
            let user = claude_code_file(environment, &home);
            // A server of the user can be disabled in each project.
            let here = match file.scope {
                Scope::User => "*",
                Scope::Local | Scope::Project => project.to_str().unwrap_or("*"),
            };
            let mut lists = vec![list(
                &user,
                &["projects", here, "disabledMcpServers"],
                ListKind::Off,
            )];
            if file.scope == Scope::Project {
                let key = "disabledMcpjsonServers";
                lists.push(list(&user, &["projects", here, key], ListKind::Off));
                for settings in [
                    home.join(".claude/settings.json"),
                    project.join(".claude/settings.json"),
                    project.join(".claude/settings.local.json"),
                ] {
                    lists.push(list(&settings, &[key], ListKind::Off));
                }
            }
            lists
        }
        _ => Vec::new(),
    }
}

fn claude_code_file(environment: &Environment, home: &Path) -> PathBuf {
    let folder = environment.directory("CLAUDE_CONFIG_DIR");
    folder
        .unwrap_or_else(|| home.to_owned())
        .join(".claude.json")
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
        shared_with: Vec::new(),
        lists: Vec::new(),
    };
    let claude_code = claude_code_file(environment, &home);
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
        // Two projects can have one name.
        let digest = Digest::sha256(key.as_bytes()).to_string();
        let digest: String = digest.chars().rev().take(DIGEST_CHARS).collect();
        let name = format!("claude-code-{}-{digest}", slug(&name.to_string_lossy()));
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
            shared_with: Vec::new(),
            lists: Vec::new(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir::TempDir;

    fn files(home: &TempDir, project: &str) -> Vec<HostFile> {
        let path = home.path().display().to_string();
        let environment = Environment::from([("HOME", &*path)]);
        find(&environment, &home.path().join(project))
    }

    #[test]
    fn two_projects_with_one_name_have_two_folders() {
        let home = TempDir::new();
        home.file(".claude.json", "{}");
        let folders = ["a/shop", "b/shop"].map(|project| {
            let local = files(&home, project).into_iter();
            let mut local = local.filter(|it| it.scope == Scope::Local);
            local.next().unwrap().folder
        });
        assert_ne!(folders[0], folders[1]);
        let name = folders[0].file_name().unwrap().to_string_lossy();
        assert!(name.starts_with("claude-code-shop-"), "{name}");
    }

    #[test]
    fn file_that_several_hosts_reach_through_links_is_found_once() {
        let home = TempDir::new();
        let folder = |name: &str| std::fs::create_dir_all(home.path().join(name)).unwrap();
        folder(".cursor");
        folder(".codeium/windsurf");
        let real = home.file("servers.json", "{}");
        for link in [".cursor/mcp.json", ".codeium/windsurf/mcp_config.json"] {
            std::os::unix::fs::symlink(&real, home.path().join(link)).unwrap();
        }
        let found = files(&home, "shop");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].titles(), "Cursor and Windsurf");
        assert!(!found[0].asks_its_user());
    }
}
