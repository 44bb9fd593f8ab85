//! The two eras of the protocol, and the memory of which era a server supports.

use std::fmt;
use std::sync::Arc;

use codegen::canonical::Digest;

/// The protocol versions before 2026-07-28, which begin with `initialize`; newest first.
pub(crate) const LEGACY_VERSIONS: [&str; 4] =
    ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
pub(crate) const MODERN_VERSION: &str = "2026-07-28";

/// The handshake and the message format of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// 2025-11-25 and before: `initialize`, and sessions over HTTP.
    Legacy,
    /// 2026-07-28: `server/discover`, no session, `_meta` in every request.
    Modern,
}

impl Era {
    /// Returns the newest version of the era, which is also its name in configuration files.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Self::Legacy => LEGACY_VERSIONS[0],
            Self::Modern => MODERN_VERSION,
        }
    }

    /// Parses a text that [`Era::version`] returned.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Legacy, Self::Modern]
            .into_iter()
            .find(|era| era.version() == text)
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EraChoice {
    /// Detect the era by asking the server.
    #[default]
    Auto,
    Pinned(Era),
}

type Load = dyn Fn(&Digest) -> Option<Era> + Send + Sync;
type Store = dyn Fn(&Digest, Era) + Send + Sync;

/// Remembers the era of each server at its last connection, by the digest of its spec. Two
/// functions of the caller load and store an era. A lost entry costs one probe.
#[derive(Clone)]
pub struct EraMemory {
    load: Arc<Load>,
    store: Arc<Store>,
}

impl EraMemory {
    pub fn new(
        load: impl Fn(&Digest) -> Option<Era> + Send + Sync + 'static,
        store: impl Fn(&Digest, Era) + Send + Sync + 'static,
    ) -> Self {
        Self {
            load: Arc::new(load),
            store: Arc::new(store),
        }
    }

    /// Creates a memory that stores nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|_| None, |_, _| ())
    }

    pub(super) fn load(&self, spec: &Digest) -> Option<Era> {
        (self.load)(spec)
    }

    pub(super) fn store(&self, spec: &Digest, era: Era) {
        (self.store)(spec, era);
    }
}

impl fmt::Debug for EraMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EraMemory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn era_parses_from_its_version() {
        assert_eq!(Era::parse("2026-07-28"), Some(Era::Modern));
        assert_eq!(Era::parse("2025-11-25"), Some(Era::Legacy));
        assert_eq!(Era::parse("2025-06-18"), None);
    }
}
