//! Stores the last tool list of each server, in the state directory. There is one file per server,
//! named by the digest of its spec. Search can therefore find a server's tools before the server is
//! connected. A call is still sent only if the server lists the same tool now, so errors here are
//! ignored.

mod missed_servers;
mod search_texts;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airlock_core::id::Digest;
use airlock_core::json::{self, Bounds};
use codegen::lazy_json::JsonText;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::private_file::{make_private, replace};
use crate::upstream::GroupsAndTags;

/// The limits of a listing, which are the same as for a server's list.
const BOUNDS: Bounds = Bounds {
    bytes_max: 24 * 1024 * 1024,
    depth_max: 128,
    nodes_max: 4_000_000,
};

/// The last tool list of a server.
#[derive(Debug)]
pub(crate) struct StoredListing {
    /// The name and version that the server reports.
    pub(crate) says: Option<String>,
    pub(crate) groups_and_tags: GroupsAndTags,
    pub(crate) tools: Vec<StoredTool>,
    text: Arc<str>,
}

/// A stored tool. It has a digest if it was usable.
#[derive(Debug, Clone)]
pub(crate) struct StoredTool {
    pub(crate) text: JsonText,
    pub(crate) digest: Option<Digest>,
}

#[derive(Debug, Clone)]
pub(crate) struct ListingStore(PathBuf);

/// The content of the file. `digests` belong to `tools`, in the same order.
#[derive(Deserialize)]
struct Form<'a> {
    #[serde(default)]
    says: Option<String>,
    #[serde(default)]
    groups_and_tags: GroupsAndTags,
    #[serde(default)]
    digests: Vec<Option<Digest>>,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

impl StoredListing {
    /// Returns the text of the whole file.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn parse(text: String) -> Option<Self> {
        let whole = JsonText::new(text.into(), read);
        // The text must be an object, because serde would also read an array by position.
        let form = Some(whole.as_str()).filter(|it| it.starts_with('{'))?;
        let form: Form<'_> = serde_json::from_str(form).ok()?;
        let digests = form.digests.into_iter().chain(std::iter::repeat(None));
        let tool = |(raw, digest): (&RawValue, _)| {
            let text = whole.part(raw.get())?;
            Some(StoredTool { text, digest })
        };
        let tools = form.tools.into_iter().zip(digests).map(tool);
        Some(Self {
            says: form.says,
            groups_and_tags: form.groups_and_tags,
            tools: tools.collect::<Option<_>>()?,
            text: Arc::clone(whole.whole()),
        })
    }
}

fn load(path: &Path) -> Option<StoredListing> {
    let file = std::fs::File::open(path).ok()?;
    let expected = file.metadata().ok()?.len().min(BOUNDS.bytes_max.into());
    let mut text = String::with_capacity(expected as usize + 1);
    let bounded = file.take(u64::from(BOUNDS.bytes_max) + 1);
    let bytes = { bounded }.read_to_string(&mut text).ok()?;
    StoredListing::parse(text).filter(|_| bytes <= BOUNDS.bytes_max as usize)
}

/// Parses a part of the stored JSON text.
fn read(text: &str) -> Value {
    json::read(text.as_bytes(), BOUNDS).unwrap_or_default()
}

impl ListingStore {
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self(state_dir.join("listings"))
    }

    pub(crate) fn load(&self, spec: &Digest) -> Option<StoredListing> {
        load(&self.file(spec))
    }

    /// Returns a tool with this name and this digest of its description, from the list of any server.
    pub(crate) fn find(&self, name: &str, digest: Digest) -> Option<Value> {
        let files = std::fs::read_dir(&self.0).ok()?.flatten();
        let listings = files.filter_map(|file| load(&file.path()));
        let tools = listings.flat_map(|listing| listing.tools);
        let same = tools.filter(|tool| tool.digest == Some(digest));
        same.map(|tool| tool.text.value())
            .find(|tool| tool.get("name").and_then(Value::as_str) == Some(name))
    }

    /// Stores each tool as JSON text, with its digest if it is usable.
    pub(crate) fn store(
        &self,
        spec: &Digest,
        says: Option<&str>,
        groups_and_tags: &GroupsAndTags,
        tools: impl Iterator<Item = (String, Option<Digest>)>,
    ) {
        let path = self.file(spec);
        let (tools, digests): (Vec<_>, Vec<_>) = tools.unzip();
        let tools = tools.join(",");
        let (says, digests) = (Value::from(says), json!(digests));
        let groups_and_tags = match groups_and_tags.is_empty() {
            true => String::new(),
            false => format!(r#""groups_and_tags":{},"#, json!(groups_and_tags)),
        };
        let text =
            format!(r#"{{"says":{says},{groups_and_tags}"digests":{digests},"tools":[{tools}]}}"#);
        self.replace(&path, text.as_bytes());
        self.forget_missed(spec);
    }

    /// Replaces a file unless its content is the same.
    fn replace(&self, path: &Path, bytes: &[u8]) {
        let is_same = std::fs::read(path).is_ok_and(|before| before == bytes);
        if is_same || make_private(&self.0).is_err() {
            return;
        }
        // Two processes may do this at once. Each writes the whole file, and the last write wins.
        let _ = replace(path, bytes, false);
    }

    fn file(&self, spec: &Digest) -> PathBuf {
        self.0.join(spec.to_string().replace(':', "-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir::TempDir;
    use crate::upstream::NameDescription;

    #[test]
    fn listing_is_stored_per_server_and_corrupt_file_is_ignored() {
        let scratch = TempDir::new();
        let (a, b) = (Digest::sha256(b"a"), Digest::sha256(b"b"));
        let listings = ListingStore::new(scratch.path());
        assert!(listings.load(&a).is_none());
        let tools = [
            json!({"name": "read", "inputSchema": {"type": "object"}}),
            json!({"name": "é\"]", "inputSchema": 7}),
        ];
        let digests = [Some(Digest::sha256(b"read")), None];
        let stored = tools.iter().map(Value::to_string).zip(digests);
        let mut groups_and_tags = GroupsAndTags::default();
        groups_and_tags
            .tags
            .insert("beta".into(), NameDescription::default());
        listings.store(&a, Some("files 1.0"), &groups_and_tags, stored);
        let loaded = listings.load(&a).unwrap();
        let read: Vec<_> = loaded.tools.iter().map(|it| it.text.value()).collect();
        let known: Vec<_> = loaded.tools.iter().map(|it| it.digest).collect();
        assert_eq!(loaded.says.as_deref(), Some("files 1.0"));
        assert_eq!(loaded.groups_and_tags, groups_and_tags);
        assert_eq!((&read[..], &known[..]), (&tools[..], &digests[..]));
        assert!(listings.load(&b).is_none());
        assert_eq!(
            listings.find("read", Digest::sha256(b"read")).as_ref(),
            tools.first()
        );
        assert_eq!(listings.find("write", Digest::sha256(b"read")), None);
        assert_eq!(listings.find("read", Digest::sha256(b"write")), None);
        for rubbish in [
            "",
            "[]",
            r#"["files", [], []]"#,
            r#"{"tools": 1}"#,
            r#"{"tools": [}"#,
            r#"{"tools": []"#,
            r#"{"tools": [], "digests": ["x"]}"#,
        ] {
            std::fs::write(listings.file(&a), rubbish).unwrap();
            assert!(listings.load(&a).is_none(), "{rubbish}");
        }
    }

    #[test]
    fn listing_without_digests_is_accepted() {
        let scratch = TempDir::new();
        let listings = ListingStore::new(scratch.path());
        let a = Digest::sha256(b"a");
        listings.store(&a, None, &GroupsAndTags::default(), std::iter::empty());
        let before = r#"{"says":null,"tools":[{"name":"read"}]}"#;
        std::fs::write(listings.file(&a), before).unwrap();
        let loaded = listings.load(&a).unwrap();
        assert_eq!(loaded.says, None);
        let [tool] = &loaded.tools[..] else {
            panic!("{loaded:?}");
        };
        assert_eq!(tool.text.as_str(), r#"{"name":"read"}"#);
        assert_eq!(tool.digest, None);
    }
}
