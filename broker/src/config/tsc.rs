//! Which TypeScript compiler is asked about scripts.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// By default the one that is on the path, when it is a native one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TscChoice {
    #[default]
    Never,
    OnPath,
    /// Whatever its version is.
    At(PathBuf),
}

/// `tsc = "/opt/typescript/tsc"`, `tsc = true` or `tsc = false` in a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum FileTsc {
    Whether(bool),
    At(PathBuf),
}

impl FileTsc {
    /// A path in a file is one beside the file.
    pub(super) fn beside(self, folder: &Path) -> TscChoice {
        match self {
            Self::Whether(false) => TscChoice::Never,
            Self::Whether(true) => TscChoice::OnPath,
            Self::At(path) => TscChoice::At(folder.join(path)),
        }
    }
}

/// What the command line says, when it says anything.
pub(super) fn of_flags(path: Option<PathBuf>, no: bool) -> Option<TscChoice> {
    let named = path.map(TscChoice::At);
    if no { Some(TscChoice::Never) } else { named }
}
