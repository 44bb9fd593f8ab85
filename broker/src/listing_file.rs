//! What each server listed when it was last seen, in the state directory: one
//! file per server, named by the digest of its spec. It lets tools be found
//! before their server is connected to; a call leaves only when the server still
//! says the same. So nothing that goes wrong here is an error.

mod missed;
mod words;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airlock_core::id::Digest;
use airlock_core::json::{self, Bounds};
use codegen::later::Text;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::journal_file::make_private;

/// As much as a server may list.
const BOUNDS: Bounds = Bounds {
    bytes_max: 24 * 1024 * 1024,
    depth_max: 128,
    nodes_max: 4_000_000,
};

/// What a server listed when it was last seen.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// What it said that it is.
    pub(crate) says: Option<String>,
    pub(crate) tools: Vec<RememberedTool>,
    text: Arc<str>,
}

/// One of its tools. A digest says that it could be used, and what it was known by.
#[derive(Debug, Clone)]
pub(crate) struct RememberedTool {
    pub(crate) text: Text,
    pub(crate) digest: Option<Digest>,
}

#[derive(Debug, Clone)]
pub(crate) struct Listings(PathBuf);

/// `digests` are those of `tools`, in their order.
#[derive(Deserialize)]
struct Form<'a> {
    #[serde(default)]
    says: Option<String>,
    #[serde(default)]
    digests: Vec<Option<Digest>>,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

impl Remembered {
    /// The whole file.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn of(text: String) -> Option<Self> {
        let whole = Text::new(text.into(), read);
        // Of an array serde would take the members by their order.
        let form = Some(whole.as_str()).filter(|it| it.starts_with('{'))?;
        let form: Form<'_> = serde_json::from_str(form).ok()?;
        let digests = form.digests.into_iter().chain(std::iter::repeat(None));
        let tool = |(raw, digest): (&RawValue, _)| {
            let text = whole.part(raw.get())?;
            Some(RememberedTool { text, digest })
        };
        let tools = form.tools.into_iter().zip(digests).map(tool);
        Some(Self {
            says: form.says,
            tools: tools.collect::<Option<_>>()?,
            text: Arc::clone(whole.whole()),
        })
    }
}

/// A part of what was stored as JSON.
fn read(text: &str) -> Value {
    json::read(text.as_bytes(), BOUNDS).unwrap_or_default()
}

impl Listings {
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self(state_dir.join("listings"))
    }

    pub(crate) fn load(&self, spec: &Digest) -> Option<Remembered> {
        let file = std::fs::File::open(self.file(spec)).ok()?;
        let expected = file.metadata().ok()?.len().min(BOUNDS.bytes_max.into());
        let mut text = String::with_capacity(expected as usize + 1);
        let bounded = file.take(u64::from(BOUNDS.bytes_max) + 1);
        let bytes = { bounded }.read_to_string(&mut text).ok()?;
        Remembered::of(text).filter(|_| bytes <= BOUNDS.bytes_max as usize)
    }

    /// Each tool as JSON, with its digest when it can be used.
    pub(crate) fn store(
        &self,
        spec: &Digest,
        says: Option<&str>,
        tools: impl Iterator<Item = (String, Option<Digest>)>,
    ) {
        let path = self.file(spec);
        let (tools, digests): (Vec<_>, Vec<_>) = tools.unzip();
        let tools = tools.join(",");
        let (says, digests) = (Value::from(says), json!(digests));
        let text = format!(r#"{{"says":{says},"digests":{digests},"tools":[{tools}]}}"#);
        self.replace(&path, text.as_bytes());
        self.forget_missed(spec);
    }

    /// What is the same stays.
    fn replace(&self, path: &Path, bytes: &[u8]) {
        let is_same = std::fs::read(path).is_ok_and(|before| before == bytes);
        if is_same || make_private(&self.0).is_err() {
            return;
        }
        // Two processes may do this at once; each writes the whole file, and the last one stays.
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(format!(".{}", std::process::id()));
        let written = std::fs::write(&unfinished, bytes);
        if written
            .and_then(|()| std::fs::rename(&unfinished, path))
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
        assert!(listings.load(&a).is_none());
        let tools = [
            json!({"name": "read", "inputSchema": {"type": "object"}}),
            json!({"name": "é\"]", "inputSchema": 7}),
        ];
        let digests = [Some(Digest::of(b"read")), None];
        let stored = tools.iter().map(Value::to_string).zip(digests);
        listings.store(&a, Some("files 1.0"), stored);
        let loaded = listings.load(&a).unwrap();
        let read: Vec<_> = loaded.tools.iter().map(|it| it.text.value()).collect();
        let known: Vec<_> = loaded.tools.iter().map(|it| it.digest).collect();
        assert_eq!(loaded.says.as_deref(), Some("files 1.0"));
        assert_eq!((&read[..], &known[..]), (&tools[..], &digests[..]));
        assert!(listings.load(&b).is_none());
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
    fn a_listing_without_digests_is_one_too() {
        let scratch = Scratch::new();
        let listings = Listings::new(scratch.path());
        let a = Digest::of(b"a");
        listings.store(&a, None, std::iter::empty());
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
