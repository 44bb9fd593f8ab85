//! The names of packages and platforms. Nothing else names them.

/// The version of all packages.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The name of the packages on npm and PyPI. `airlock` belongs to other projects there.
pub(super) const PACKAGE: &str = "airlock-mcp";
/// The same name in file names of Python packages.
pub(super) const PYTHON_PACKAGE: &str = "airlock_mcp";
/// The name of the clients.
pub(super) const CLIENT: &str = "airlock-client";
pub(super) const ABOUT: &str =
    "Runs scripts that call MCP tools, in a sandbox, under rules, with a journal";
pub(super) const LICENCE: &str = "Apache-2.0";

/// The target of this build of xtask.
pub(super) const HOST: &str = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    "x86_64-unknown-linux-gnu"
} else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
    "aarch64-unknown-linux-gnu"
} else if cfg!(all(target_os = "macos", target_arch = "aarch64")) {
    "aarch64-apple-darwin"
} else {
    "x86_64-apple-darwin"
};

/// A platform for which packages are made.
#[derive(Debug)]
pub(super) struct Platform {
    pub(super) target: &'static str,
    /// The names of system and processor in Node and npm.
    pub(super) node: (&'static str, &'static str),
    /// The processor in tags of wheels, and the system if it is macOS.
    pub(super) wheel: &'static str,
}

/// Windows is missing: the program uses process groups and file modes of Unix.
pub(super) static PLATFORMS: [Platform; 4] = [
    Platform {
        target: "x86_64-unknown-linux-gnu",
        node: ("linux", "x64"),
        wheel: "x86_64",
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        node: ("linux", "arm64"),
        wheel: "aarch64",
    },
    Platform {
        target: "aarch64-apple-darwin",
        node: ("darwin", "arm64"),
        wheel: "macosx_11_0_arm64",
    },
    Platform {
        target: "x86_64-apple-darwin",
        node: ("darwin", "x64"),
        wheel: "macosx_10_12_x86_64",
    },
];

impl Platform {
    pub(super) fn is_linux(&self) -> bool {
        self.node.0 == "linux"
    }

    /// Returns the name of the npm package with the program of this platform.
    pub(super) fn npm_package(&self) -> String {
        format!("{PACKAGE}-{}-{}", self.node.0, self.node.1)
    }
}
