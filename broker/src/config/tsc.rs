//! The setting that selects the TypeScript compiler for the check of scripts.

use std::path::PathBuf;

use serde::Deserialize;

/// The TypeScript compiler. By default, the configuration selects a native compiler on `PATH`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "FileTsc")]
pub enum TscChoice {
    #[default]
    Never,
    OnPath,
    /// The compiler at this path, whatever its version is.
    At(PathBuf),
}

/// The setting in a file: `tsc = "/opt/typescript/tsc"`, `tsc = true` or `tsc = false`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a path, true or false")]
enum FileTsc {
    Whether(bool),
    At(PathBuf),
}

impl From<FileTsc> for TscChoice {
    fn from(setting: FileTsc) -> Self {
        match setting {
            FileTsc::Whether(false) => Self::Never,
            FileTsc::Whether(true) => Self::OnPath,
            FileTsc::At(path) => Self::At(path),
        }
    }
}
