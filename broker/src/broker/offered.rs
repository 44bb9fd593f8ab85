//! One server's tools as it listed them, each of them read once.

pub(super) mod spoken;

use std::sync::Arc;

use airlock_core::search::Texts;
use codegen::canonical::Digest;
use codegen::description::{BadTool, Description};
use codegen::later::Later;
use serde_json::Value;

use super::says::Digests;
use crate::config::Trust;
use crate::listing_file::RememberedTool;
use crate::lock_file::Pin;
use spoken::document;

#[derive(Debug)]
pub(super) struct Offered {
    pub(super) server: String,
    pub(super) trust: Trust,
    /// Where it is reached; nothing for the host's own tools.
    pub(super) target: Option<String>,
    /// What it calls itself.
    pub(super) says: Option<String>,
    pub(super) pin: Pin,
    pub(super) tools: Vec<Later>,
    /// What each of `tools` says, in their order.
    pub(super) read: Vec<Result<Description, BadTool>>,
    /// What search reads of those that can be used, where it has been read already.
    pub(super) texts: Option<Arc<Texts>>,
}

impl Offered {
    /// Of a server that nothing else is known of.
    pub(super) fn of(server: String, tools: Vec<Value>) -> Self {
        let read = tools.iter().map(|tool| Description::parse(&server, tool));
        let read = read.collect();
        let tools = tools.into_iter().map(Later::from).collect();
        Self::as_read(server, tools, read)
    }

    /// As it was read when it was stored.
    pub(super) fn remembered(server: String, tools: &[RememberedTool]) -> Self {
        let counts = digests_count(tools);
        let read = |tool: &RememberedTool| {
            let digest = tool.digest.filter(|_| counts);
            digest
                .and_then(|it| Description::recalled(&server, &tool.text, it))
                .map_or_else(|| Description::parse(&server, &tool.text.value()), Ok)
        };
        let read = tools.iter().map(read).collect();
        let tools = tools.iter().map(|tool| tool.text.clone().into());
        Self::as_read(server, tools.collect(), read)
    }

    fn as_read(server: String, tools: Vec<Later>, read: Vec<Result<Description, BadTool>>) -> Self {
        Self {
            read,
            server,
            trust: Trust::default(),
            target: None,
            says: None,
            pin: Pin::Free,
            tools,
            texts: None,
        }
    }

    /// With what search reads of it, unless that is known already.
    pub(super) fn with_texts(self, known: Option<Texts>) -> Self {
        for (_, description) in self.usable() {
            // Stubs want to know it, one after the other; here servers are read side by side.
            let _is_known_from_now_on = description.unwraps();
        }
        let known = known.filter(|it| it.documents() == self.usable().count());
        let texts = known.unwrap_or_else(|| {
            let usable = self.usable().map(|(_, description)| document(description));
            Texts::of(&usable.collect::<Vec<_>>())
        });
        Self {
            texts: Some(Arc::new(texts)),
            ..self
        }
    }

    /// What search reads is read from these: the name of the server, and tools that can be used.
    pub(super) fn searched(&self) -> Digest {
        let mut bytes = self.server.as_bytes().to_vec();
        // No digest begins a name.
        bytes.push(0);
        for (_, description) in self.usable() {
            bytes.extend(description.upstream.0);
        }
        Digest::of(&bytes)
    }

    /// Each tool as it is stored, and its digest when it can be used.
    pub(super) fn stored(&self) -> impl Iterator<Item = (String, Option<Digest>)> {
        let both = self.tools.iter().zip(&self.read);
        both.map(|(said, read)| (said.text(), read.as_ref().ok().map(|it| it.upstream)))
    }

    /// The tools that can be used, each as it was listed and as it was read.
    pub(super) fn usable(&self) -> impl Iterator<Item = (&Later, &Description)> {
        let both = self.tools.iter().zip(&self.read);
        both.filter_map(|(said, read)| Some((said, read.as_ref().ok()?)))
    }

    /// Whether a server lists what it listed before. Digests that were remembered count for
    /// nothing then: each is made again from what was listed just now.
    pub(super) fn lists(&self, tools: &[Value]) -> bool {
        let is_same = |((before, read), now): ((&Later, &Result<Description, _>), &Value)| {
            let digest = read.as_ref().ok().map(|it| it.upstream);
            before.is(now) && digest.is_none_or(|it| Description::digest_of(now) == Some(it))
        };
        let before = self.tools.iter().zip(&self.read);
        self.tools.len() == tools.len() && before.zip(tools).all(is_same)
    }

    /// Of what the server itself says of its tools.
    pub(super) fn digests(&self) -> Digests {
        let mut digests = Digests::new();
        for (_, description) in self.usable() {
            let name = description.name.clone();
            digests.entry(name).or_insert(description.upstream);
        }
        digests
    }
}

/// Whether digests were made as they are made now: that changes with us and not with the server,
/// so that one tool shows it for all.
fn digests_count(tools: &[RememberedTool]) -> bool {
    let known = tools.iter().find_map(|it| Some((it, it.digest?)));
    known.is_some_and(|(it, digest)| Description::digest_of(&it.text.value()) == Some(digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing_file::Listings;
    use crate::scratch::Scratch;
    use serde_json::json;

    fn tools() -> Vec<Value> {
        vec![
            json!({"name": "a", "inputSchema": {"type": "object"}}),
            json!({"name": "b", "inputSchema": {"properties": {"x": {}}}, "title": "B"}),
            json!({"name": "c", "inputSchema": 7}),
            json!({"name": "d", "description": 7, "inputSchema": {}}),
        ]
    }

    /// Stored, read again, and put together from that.
    fn remembered(
        tools: &[Value],
        digests: impl Fn(usize, Option<Digest>) -> Option<Digest>,
    ) -> Offered {
        let scratch = Scratch::new();
        let (listings, spec) = (Listings::new(scratch.path()), Digest::of(b"spec"));
        let offered = Offered::of("s".into(), tools.to_vec());
        let stored = offered.stored().enumerate();
        let stored = stored.map(|(at, (text, digest))| (text, digests(at, digest)));
        listings.store(&spec, None, stored);
        let loaded = listings.load(&spec).unwrap();
        Offered::remembered("s".into(), &loaded.tools)
    }

    #[test]
    fn what_is_remembered_is_what_was_read() {
        let tools = tools();
        let read = Offered::of("s".into(), tools.clone());
        let again = remembered(&tools, |_, digest| digest);
        assert_eq!(again.read, read.read);
        assert_eq!(again.tools, read.tools);
        assert!(again.lists(&tools) && !again.lists(&tools[1..]));
        let mut other = tools;
        other[1]["title"] = "C".into();
        assert!(!again.lists(&other));
    }

    #[test]
    fn what_search_has_read_before_counts_where_it_can_be_of_these_tools() {
        let offered = |server: &str, tools: &[Value]| Offered::of(server.into(), tools.to_vec());
        let bytes = |it: Offered| it.texts.and_then(|it| it.to_bytes());
        let tools = tools();
        let read = bytes(offered("s", &tools).with_texts(None));
        let known = Texts::from_bytes(read.as_deref().unwrap());
        assert_eq!(bytes(offered("s", &tools).with_texts(known.clone())), read);
        let fewer = bytes(offered("s", &tools[1..]).with_texts(known));
        assert_eq!(fewer, bytes(offered("s", &tools[1..]).with_texts(None)));
        // And it is asked for by all that it is read from.
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
    fn digests_that_are_made_otherwise_by_now_are_made_again() {
        let tools = tools();
        let read = Offered::of("s".into(), tools.clone());
        let again = remembered(&tools, |_, digest| digest.map(|it| Digest::of(&it.0)));
        assert_eq!(again.read, read.read);
        let none = remembered(&tools, |_, _| None);
        assert_eq!(none.read, read.read);
    }

    #[test]
    fn a_digest_that_is_not_its_tools_ends_when_the_server_lists_it() {
        let tools = tools();
        let wrong = |at, digest: Option<Digest>| match at {
            1 => Some(Digest::of(b"of another")),
            _ => digest,
        };
        assert!(!remembered(&tools, wrong).lists(&tools));
    }
}
