//! The tools of one server as it listed them. Each is parsed once.

pub(super) mod search_text;

use std::sync::Arc;

use airlock_core::search::IndexedTexts;
use codegen::canonical::Digest;
use codegen::description::{BadTool, Description};
use codegen::lazy_json::LazyJson;
use serde_json::Value;

use super::latest_listings::Digests;
use crate::config::ToolTrust;
use crate::listing_file::StoredTool;
use crate::lock_file::Pin;
use crate::upstream::GroupsAndTags;
use search_text::document;

#[derive(Debug)]
pub(super) struct ServerTools {
    pub(super) server: String,
    pub(super) trust: ToolTrust,
    /// The command or address of the server. `None` for in-process tools.
    pub(super) target: Option<String>,
    /// The same with a keyed digest of its command or address, variables and headers. Recorded results
    /// of a server are reused only while it is the same.
    pub(super) identity: Option<String>,
    pub(super) about: ServerAbout,
    pub(super) pin: Pin,
    pub(super) tools: Vec<LazyJson>,
    /// The parsed form of each of `tools`, in the same order.
    pub(super) read: Vec<Result<Description, BadTool>>,
    /// The search texts of the usable tools, if they have been built.
    pub(super) texts: Option<Arc<IndexedTexts>>,
}

/// What a server says about itself, and about its groups and tags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerAbout {
    /// The server's own name and version.
    pub(super) says: Option<String>,
    pub(super) groups_and_tags: GroupsAndTags,
}

impl ServerTools {
    /// Returns the tools of a server about which nothing else is known.
    pub(super) fn new(server: String, tools: Vec<Value>) -> Self {
        let read = tools.iter().map(|tool| Description::parse(&server, tool));
        let read = read.collect();
        let tools = tools.into_iter().map(LazyJson::from).collect();
        Self::as_read(server, tools, read)
    }

    /// Returns the tools as they were parsed when they were stored.
    pub(super) fn remembered(server: String, tools: &[StoredTool]) -> Self {
        let counts = digests_count(tools);
        let read = |tool: &StoredTool| {
            let digest = tool.digest.filter(|_| counts);
            digest
                .and_then(|it| Description::recalled(&server, &tool.text, it))
                .map_or_else(|| Description::parse(&server, &tool.text.value()), Ok)
        };
        let read = tools.iter().map(read).collect();
        let tools = tools.iter().map(|tool| tool.text.clone().into());
        Self::as_read(server, tools.collect(), read)
    }

    fn as_read(
        server: String,
        tools: Vec<LazyJson>,
        read: Vec<Result<Description, BadTool>>,
    ) -> Self {
        Self {
            read,
            server,
            trust: ToolTrust::default(),
            target: None,
            identity: None,
            about: ServerAbout::default(),
            pin: Pin::Free,
            tools,
            texts: None,
        }
    }

    /// Adds the search texts, unless `known` contains them already.
    pub(super) fn with_texts(self, known: Option<IndexedTexts>) -> Self {
        for (_, description) in self.usable() {
            // Computes and caches the value here, where servers are processed in parallel. The
            // stubs need it later, for one tool after the other.
            let _is_known_from_now_on = description.unwraps();
        }
        let known = known.filter(|it| it.documents() == self.usable().count());
        let texts = known.unwrap_or_else(|| {
            let usable = self.usable().map(|(_, description)| document(description));
            IndexedTexts::build(&usable.collect::<Vec<_>>())
        });
        Self {
            texts: Some(Arc::new(texts)),
            ..self
        }
    }

    /// Returns a digest of the inputs of the search texts: the name of the server, and its usable
    /// tools.
    pub(super) fn searched(&self) -> Digest {
        let mut bytes = self.server.as_bytes().to_vec();
        // This byte separates the name from the digests that follow.
        bytes.push(0);
        for (_, description) in self.usable() {
            bytes.extend(description.upstream.0);
        }
        Digest::sha256(&bytes)
    }

    /// Returns each tool as it is stored, and its digest if it is usable.
    pub(super) fn stored(&self) -> impl Iterator<Item = (String, Option<Digest>)> {
        let both = self.tools.iter().zip(&self.read);
        both.map(|(said, read)| (said.text(), read.as_ref().ok().map(|it| it.upstream)))
    }

    /// Returns the usable tools, each as it was listed and as it was parsed.
    pub(super) fn usable(&self) -> impl Iterator<Item = (&LazyJson, &Description)> {
        let both = self.tools.iter().zip(&self.read);
        both.filter_map(|(said, read)| Some((said, read.as_ref().ok()?)))
    }

    /// Returns whether a server lists the same tools as before. Stored digests are not trusted
    /// here: each is computed again from the new list.
    pub(super) fn lists(&self, tools: &[Value]) -> bool {
        let is_same = |((before, read), now): ((&LazyJson, &Result<Description, _>), &Value)| {
            let digest = read.as_ref().ok().map(|it| it.upstream);
            before.is(now) && digest.is_none_or(|it| Description::digest_of(now) == Some(it))
        };
        let before = self.tools.iter().zip(&self.read);
        self.tools.len() == tools.len() && before.zip(tools).all(is_same)
    }

    /// Returns the digests of the server's own tool descriptions.
    pub(super) fn digests(&self) -> Digests {
        let mut digests = Digests::new();
        for (_, description) in self.usable() {
            let name = description.name.clone();
            digests.entry(name).or_insert(description.upstream);
        }
        digests
    }
}

/// Returns whether this version of airlock computes the same digests as the stored ones. The
/// algorithm does not depend on the server, so checking one tool is enough.
fn digests_count(tools: &[StoredTool]) -> bool {
    let known = tools.iter().find_map(|it| Some((it, it.digest?)));
    known.is_some_and(|(it, digest)| Description::digest_of(&it.text.value()) == Some(digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing_file::ListingStore;
    use crate::tempdir::TempDir;
    use serde_json::json;

    fn tools() -> Vec<Value> {
        vec![
            json!({"name": "a", "inputSchema": {"type": "object"}}),
            json!({"name": "b", "inputSchema": {"properties": {"x": {}}}, "title": "B"}),
            json!({"name": "c", "inputSchema": 7}),
            json!({"name": "d", "description": 7, "inputSchema": {}}),
        ]
    }

    /// Stores tools, loads them again, and builds the result from the loaded ones.
    fn remembered(
        tools: &[Value],
        digests: impl Fn(usize, Option<Digest>) -> Option<Digest>,
    ) -> ServerTools {
        let scratch = TempDir::new();
        let (listings, spec) = (ListingStore::new(scratch.path()), Digest::sha256(b"spec"));
        let offered = ServerTools::new("s".into(), tools.to_vec());
        let stored = offered.stored().enumerate();
        let stored = stored.map(|(at, (text, digest))| (text, digests(at, digest)));
        listings.store(&spec, None, &GroupsAndTags::default(), stored);
        let loaded = listings.load(&spec).unwrap();
        ServerTools::remembered("s".into(), &loaded.tools)
    }

    #[test]
    fn stored_tools_equal_listed_tools() {
        let tools = tools();
        let read = ServerTools::new("s".into(), tools.clone());
        let again = remembered(&tools, |_, digest| digest);
        assert_eq!(again.read, read.read);
        assert_eq!(again.tools, read.tools);
        assert!(again.lists(&tools) && !again.lists(&tools[1..]));
        let mut other = tools;
        other[1]["title"] = "C".into();
        assert!(!again.lists(&other));
    }

    #[test]
    fn cached_search_words_are_used_only_for_the_same_tools() {
        let offered =
            |server: &str, tools: &[Value]| ServerTools::new(server.into(), tools.to_vec());
        let bytes = |it: ServerTools| it.texts.and_then(|it| it.to_bytes());
        let tools = tools();
        let read = bytes(offered("s", &tools).with_texts(None));
        let known = IndexedTexts::from_bytes(read.as_deref().unwrap());
        assert_eq!(bytes(offered("s", &tools).with_texts(known.clone())), read);
        let fewer = bytes(offered("s", &tools[1..]).with_texts(known));
        assert_eq!(fewer, bytes(offered("s", &tools[1..]).with_texts(None)));
        // The digest depends on everything from which the search texts are built.
        let searched = offered("s", &tools).searched();
        assert_eq!(remembered(&tools, |_, digest| digest).searched(), searched);
        assert_ne!(offered("t", &tools).searched(), searched);
        let mut other = tools;
        for (member, text) in [("title", "C"), ("description", "D")] {
            other[1][member] = text.into();
            assert_ne!(offered("s", &other).searched(), searched, "{member}");
            other[1].as_object_mut().unwrap().remove(member);
            other[1]["title"] = "B".into();
        }
        other[1]["inputSchema"]["properties"]["x"]["description"] = "E".into();
        assert_ne!(offered("s", &other).searched(), searched);
    }

    #[test]
    fn digests_of_old_format_are_recomputed() {
        let tools = tools();
        let read = ServerTools::new("s".into(), tools.clone());
        let again = remembered(&tools, |_, digest| digest.map(|it| Digest::sha256(&it.0)));
        assert_eq!(again.read, read.read);
        let none = remembered(&tools, |_, _| None);
        assert_eq!(none.read, read.read);
    }

    #[test]
    fn wrong_stored_digest_is_replaced_on_next_listing() {
        let tools = tools();
        let wrong = |at, digest: Option<Digest>| match at {
            1 => Some(Digest::sha256(b"of another")),
            _ => digest,
        };
        assert!(!remembered(&tools, wrong).lists(&tools));
    }
}
