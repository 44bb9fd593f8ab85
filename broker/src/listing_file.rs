//! What each server listed when it was last seen, in the state directory: one
//! file per server, named by the digest of its spec. It lets tools be found
//! before their server is connected to; a call leaves only when the server still
//! says the same. So nothing that goes wrong here is an error.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use airlock_core::id::Digest;
use airlock_core::json::{self, Bounds};
use serde_json::{Value, json};

use crate::journal_file::make_private;

/// As much as a server may list.
const BOUNDS: Bounds = Bounds {
    bytes_max: 24 * 1024 * 1024,
    depth_max: 128,
    nodes_max: 4_000_000,
};

/// What a server says it is, and its tools.
pub(crate) type Listing = (Option<String>, Vec<Value>);

#[derive(Debug, Clone)]
pub(crate) struct Listings(PathBuf);

impl Listings {
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self(state_dir.join("listings"))
    }

    pub(crate) fn load(&self, spec: &Digest) -> Option<Listing> {
        let file = std::fs::File::open(self.file(spec)).ok()?;
        let mut bytes = Vec::new();
        let bounded = file.take(u64::from(BOUNDS.bytes_max) + 1);
        { bounded }.read_to_end(&mut bytes).ok()?;
        let mut value = json::read(&bytes, BOUNDS).ok()?;
        let says = value.get("says").and_then(Value::as_str).map(str::to_owned);
        match value.get_mut("tools").map(Value::take)? {
            Value::Array(tools) => Some((says, tools)),
            _ => None,
        }
    }

    pub(crate) fn store(&self, spec: &Digest, says: Option<&str>, tools: &[Value]) {
        let path = self.file(spec);
        let text = json!({"says": says, "tools": tools}).to_string();
        let is_same = std::fs::read(&path).is_ok_and(|before| before == text.as_bytes());
        if is_same || make_private(&self.0).is_err() {
            return;
        }
        // Two processes may do this at once; each writes the whole file, and the last one stays.
        let unfinished = path.with_extension(std::process::id().to_string());
        let written = std::fs::write(&unfinished, text);
        if written
            .and_then(|()| std::fs::rename(&unfinished, &path))
            .is_err()
        {
            let _ = std::fs::remove_file(&unfinished);
        }
    }

    fn file(&self, spec: &Digest) -> PathBuf {
        self.0.join(spec.to_string().replace(':', "-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_listing_is_remembered_by_server_and_rubbish_is_forgotten() {
        let scratch = Scratch::new();
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let listings = Listings::new(scratch.path());
        assert_eq!(listings.load(&a), None);
        let tools = vec![json!({"name": "read", "inputSchema": {"type": "object"}})];
        listings.store(&a, Some("files 1.0"), &tools);
        assert_eq!(
            listings.load(&a),
            Some((Some("files 1.0".to_owned()), tools))
        );
        assert_eq!(listings.load(&b), None);
        for rubbish in ["", "[]", r#"{"tools": 1}"#, r#"{"tools": [}"#] {
            std::fs::write(listings.file(&a), rubbish).unwrap();
            assert_eq!(listings.load(&a), None, "{rubbish}");
        }
    }
}
