//! The setting that selects the TypeScript compiler for the check of scripts.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The TypeScript compiler. By default, the configuration selects a native compiler on `PATH`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TscChoice {
    #[default]
    Never,
    OnPath,
    /// The compiler at this path, whatever its version is.
    At(PathBuf),
}

/// The setting in a file: `tsc = "/opt/typescript/tsc"`, `tsc = true` or `tsc = false`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum FileTsc {
    Whether(bool),
    At(PathBuf),
}

impl FileTsc {
    /// Returns the choice, with a path relative to the folder of the file.
    pub(super) fn beside(self, folder: &Path) -> TscChoice {
        match self {
            Self::Whether(false) => TscChoice::Never,
            Self::Whether(true) => TscChoice::OnPath,
            Self::At(path) => TscChoice::At(folder.join(path)),
        }
    }
}

/// Returns the choice of the command line, if it contains one.
pub(super) fn of_flags(path: Option<PathBuf>, no: bool) -> Option<TscChoice> {
    let named = path.map(TscChoice::At);
    if no { Some(TscChoice::Never) } else { named }
}
