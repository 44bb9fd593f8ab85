//! The command with which hosts start airlock.

use std::path::Path;

use super::known::{HostFile, Scope};

/// The name of the packages on npm and PyPI.
pub(crate) const PACKAGE: &str = "airlock-mcp";

/// The words that start airlock, in the files of this user and in those that other people share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AirlockCommand {
    own: Vec<String>,
    shared: Vec<String>,
    is_chosen: bool,
}

impl AirlockCommand {
    /// Returns the command that the user chose, for all files.
    pub(crate) fn chosen(words: Vec<String>) -> Self {
        Self {
            own: words.clone(),
            shared: words,
            is_chosen: true,
        }
    }

    /// Returns the command for a program that runs from this path. Package managers delete programs
    /// in their caches, so hosts start such a program through its package manager. Other people have
    /// the program at another path.
    pub(crate) fn of_program(path: &str) -> Self {
        let parts = Path::new(path).components();
        let parts: Vec<&str> = parts.filter_map(|it| it.as_os_str().to_str()).collect();
        let has = |test: fn(&str) -> bool| parts.iter().any(|it| test(it));
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
        let is_npm = has(|it| it == "node_modules");
        let is_npm_cache = is_npm
            && has(|it| {
                it == "_npx" || it == "dlx" || it.starts_with("dlx-") || it.starts_with("bunx-")
            });
        let npx: Vec<String> = words(&["npx", "-y", PACKAGE]);
        let uvx: Vec<String> = words(&["uvx", PACKAGE]);
        let (own, shared) = if is_npm_cache {
            (npx.clone(), npx)
        } else if has(is_uv_cache) {
            (uvx.clone(), uvx)
        } else if is_npm {
            (words(&[path]), npx)
        } else {
            (words(&[path]), words(&["airlock"]))
        };
        Self {
            own,
            shared,
            is_chosen: false,
        }
    }

    /// Returns the program and its first arguments for a host's file.
    pub(super) fn words(&self, file: &HostFile) -> (String, Vec<String>) {
        let words = match file.scope {
            Scope::Project => &self.shared,
            Scope::User | Scope::Local => &self.own,
        };
        let mut words = words.iter().cloned();
        (words.next().unwrap_or_default(), words.collect())
    }

    /// Returns what the people who share a project's file need.
    pub(super) fn needs(&self, file: &HostFile) -> Option<String> {
        let is_shared = file.scope == Scope::Project && !self.is_chosen;
        is_shared.then(|| {
            let program = self.shared.first().map_or("", |it| it);
            format!(
                "everybody who uses this file needs `{program}` on the PATH; --command chooses another command"
            )
        })
    }
}

/// Whether a folder is one of uv's cache, such as `archive-v0`.
fn is_uv_cache(name: &str) -> bool {
    let is_version = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
    let mut kinds = ["archive-v", "builds-v", "environments-v"].iter();
    kinds.any(|kind| name.strip_prefix(*kind).is_some_and(is_version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_outlives_caches_and_this_machine() {
        let npx = "npx -y airlock-mcp";
        for (path, own, shared) in [
            ("/opt/airlock", "/opt/airlock", "airlock"),
            (
                "/u/.npm/_npx/1a2b/node_modules/airlock-mcp-linux-x64/bin/airlock",
                npx,
                npx,
            ),
            (
                "/u/.cache/pnpm/dlx/ab/node_modules/airlock-mcp-linux-x64/bin/airlock",
                npx,
                npx,
            ),
            (
                "/srv/shop/node_modules/airlock-mcp-linux-x64/bin/airlock",
                "/srv/shop/node_modules/airlock-mcp-linux-x64/bin/airlock",
                npx,
            ),
            (
                "/u/.cache/uv/archive-v0/x9/bin/airlock",
                "uvx airlock-mcp",
                "uvx airlock-mcp",
            ),
            (
                "/u/.local/share/uv/tools/airlock-mcp/bin/airlock",
                "/u/.local/share/uv/tools/airlock-mcp/bin/airlock",
                "airlock",
            ),
        ] {
            let command = AirlockCommand::of_program(path);
            assert_eq!(command.own.join(" "), own);
            assert_eq!(command.shared.join(" "), shared);
        }
    }
}
