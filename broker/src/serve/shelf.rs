//! What all sessions share: the broker, the tools under all of their names, the
//! search over them, and the descriptions in the forms in which they are shown.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::resume_unwind;
use std::sync::{Arc, OnceLock};
use std::thread;

use airlock_core::catalog::{Catalog, Tool};
use airlock_core::id::{Digest, ServerName, ToolId, ToolName};
use airlock_core::search::{Document, Index, Ranker, Texts, Vectors, fused};
use codegen::declare::{self, Level};
use codegen::description::Description;
use codegen::stub::{ServerStubs, ToolStub};
use codegen::tool_file::ToolFile;
use serde_json::{Map, Value, json};

use super::filter;
use super::session::Listed;
use super::settings::{Disclosure, Mode, Settings};
use crate::broker::{Broker, Known, ServerStatus};

/// Names of tools that model APIs take.
const FLAT_CHARS_MAX: usize = 64;
/// Text of a page of declarations has about so many characters per token.
const CHARS_PER_TOKEN: usize = 4;
/// So many tools, those of which most is said, are declared first to see whether all could be.
const TOOLS_TRIED: usize = 8;

/// One tool as hosts and scripts know it.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) tool: Arc<Tool>,
    /// `server.tool`, the name of the tool everywhere.
    pub(super) name: String,
    /// `server_tool`, where `tools/list` has it.
    pub(super) flat: String,
    /// The script's global that carries its server.
    pub(super) global: String,
    /// Where its description stands among these.
    place: usize,
    descriptions: Arc<Vec<Description>>,
}

#[derive(Debug)]
pub(super) struct Shelf {
    pub(super) broker: Broker,
    /// What it was made from.
    pub(super) known: Arc<Known>,
    /// Sorted by name; without those that some rule denies altogether.
    pub(super) tools: Arc<Vec<Shown>>,
    /// Search answers with places in `tools`.
    pub(super) index: Arc<Index>,
    /// Present where a model says what texts mean.
    vectors: Option<Arc<Vectors>>,
    /// All declarations, when there are so few that they are disclosed at once.
    pub(super) at_once: Option<String>,
    /// Each tool stands in the list with all that is said of it.
    pub(super) lists_whole: bool,
    /// Of the list of tools as hosts see it.
    list_digest: Digest,
    /// Of the lists of groups and tags, when somebody has wanted to know.
    filter_digests: OnceLock<[Digest; 2]>,
    by_name: Arc<HashMap<String, usize>>,
}

impl Shelf {
    pub(super) fn new(broker: Broker, settings: &Settings) -> Self {
        Self::anew(broker, settings, None)
    }

    /// Vectors of tools that are in `before` are kept.
    fn anew(broker: Broker, settings: &Settings, before: Option<&Vectors>) -> Self {
        let known = broker.known();
        let tools = shown(&known);
        let (by_name, index) = thread::scope(|scope| {
            let indexing = scope.spawn(|| index(&known, &tools));
            let by_name = names(&tools);
            let index = indexing.join().unwrap_or_else(|panic| resume_unwind(panic));
            (by_name, index)
        });
        let model = broker.embeddings().cloned();
        let vectors = model.map(|model| {
            let documents = tools.iter().map(Shown::without_parameters);
            Vectors::new(model, &documents.collect::<Vec<_>>(), before)
        });
        let mut shelf = Self {
            broker,
            known,
            tools: Arc::new(tools),
            index: Arc::new(index),
            vectors: vectors.map(Arc::new),
            at_once: None,
            lists_whole: settings.lists_whole(),
            list_digest: Digest::of(b""),
            filter_digests: OnceLock::new(),
            by_name: Arc::new(by_name),
        };
        shelf.at_once = shelf.declarations_at_once(settings);
        let list = super::meta::list(&shelf, settings.mode, false);
        shelf.list_digest = Digest::of(Value::Array(list).to_string().as_bytes());
        shelf
    }

    /// The shelf as it is after a change; only what has changed is made anew.
    pub(super) fn renewed(&self, settings: &Settings) -> Self {
        let known = self.broker.known();
        let is_same = Arc::ptr_eq(&known.descriptions, &self.known.descriptions)
            && Arc::ptr_eq(&known.standing.rules, &self.known.standing.rules);
        if !is_same {
            return Self::anew(self.broker.clone(), settings, self.vectors.as_deref());
        }
        Self {
            known,
            broker: self.broker.clone(),
            tools: Arc::clone(&self.tools),
            index: Arc::clone(&self.index),
            vectors: self.vectors.clone(),
            at_once: self.at_once.clone(),
            lists_whole: self.lists_whole,
            list_digest: self.list_digest,
            filter_digests: self.filter_digests.clone(),
            by_name: Arc::clone(&self.by_name),
        }
    }

    /// Of the lists of tools, groups and tags.
    pub(super) fn list_digests(&self) -> [Digest; 3] {
        let of = |list: Value| Digest::of(list.to_string().as_bytes());
        let filters = || [of(filter::groups(self)), of(filter::tags(self))];
        let [groups, tags] = *self.filter_digests.get_or_init(filters);
        [self.list_digest, groups, tags]
    }

    /// The descriptions that are shown at once. Those that some rule denies altogether are not
    /// shown, and nobody can call them: that is what a call of one is to be told.
    pub(super) fn listed(&self) -> Listed {
        let tools = self.known.standing.catalog.tools();
        let listed = tools.map(|tool| (tool.id.clone(), tool.description_digest));
        Arc::new(listed.collect())
    }

    /// A tool by any of its names: `server.tool`, `server_tool`, or as scripts call it.
    pub(super) fn find(&self, name: &str) -> Option<&Shown> {
        self.tools.get(*self.by_name.get(name)?)
    }

    /// Places in `tools`, best first.
    pub(super) fn ranked(&self, query: &str) -> Vec<usize> {
        let by_words: &dyn Ranker = &*self.index;
        let Some(by_meaning) = self.vectors.as_deref() else {
            return by_words.ranked(query);
        };
        let rankers = [by_words, by_meaning];
        fused(&rankers.map(|it| it.ranked(query)))
    }

    /// Nobody knows yet which tools there are in all, and that will change by itself.
    pub(super) fn is_filling(&self) -> bool {
        self.known.servers.iter().any(ServerStatus::is_awaited)
    }

    /// Whether it is worth to wait, at the start, for those who are still missing.
    pub(super) fn is_waited_for(&self) -> bool {
        self.known.servers.iter().any(ServerStatus::holds_up_start)
    }

    /// The tool with the digest that its description has now.
    pub(super) fn current(&self, shown: &Shown) -> Arc<Tool> {
        shown.in_catalog(&self.broker.catalog())
    }

    /// The servers with the number of their tools, in one line.
    pub(super) fn servers(&self) -> String {
        const SHOWN_MAX: usize = 40;
        let mut servers: Vec<(&str, usize)> = Vec::new();
        for shown in self.tools.iter() {
            let server = &*shown.tool.id.server.0;
            match servers.last_mut().filter(|(name, _)| *name == server) {
                Some((_, count)) => *count += 1,
                None => servers.push((server, 1)),
            }
        }
        let line: Vec<_> = servers
            .iter()
            .take(SHOWN_MAX)
            .map(|(name, count)| format!("{name} ({count})"))
            .collect();
        match servers.len().checked_sub(SHOWN_MAX) {
            Some(more @ 1..) => format!("{} and {more} more", line.join(", ")),
            _ if line.is_empty() => "none".to_owned(),
            _ => line.join(", "),
        }
    }

    /// All servers, also those that are not there yet.
    pub(super) fn server_names(&self) -> String {
        let configured = self.known.servers.iter().map(|it| it.name.as_str());
        let offering = self.tools.iter().map(|it| &*it.tool.id.server.0);
        let names: BTreeSet<&str> = configured.chain(offering).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// Declarations of these tools.
    pub(super) fn declarations(&self, tools: &[&Shown], level: Level) -> String {
        Self::declared(&self.broker.known(), tools, level)
    }

    /// The same from what was known at some moment.
    pub(super) fn declared(known: &Known, tools: &[&Shown], level: Level) -> String {
        let ids = tools.iter().map(|shown| &shown.tool.id);
        let chosen: HashSet<(&str, &str)> = ids.map(|it| (&*it.server.0, &*it.tool.0)).collect();
        let only = |server: &ServerStubs, tool: &ToolStub| {
            chosen.contains(&(server.server.as_str(), tool.wire_name.as_str()))
        };
        declare::declare(&known.stubs, &known.descriptions, level, &only).text
    }

    /// The full description of one tool, under the name by which it was asked for.
    pub(super) fn full(known: &Known, shown: &Shown, asked_as: &str) -> Value {
        let mut full = Map::new();
        full.insert("name".into(), asked_as.into());
        if asked_as != shown.name {
            full.insert("tool".into(), shown.name.clone().into());
        }
        if let Some(description) = known.description(&shown.tool.id) {
            if let Some(title) = &description.title {
                full.insert("title".into(), codegen::text::neutralise(title).into());
            }
            let text = description.text.as_deref().unwrap_or_default();
            full.insert("description".into(), visible(text).into());
            full.insert(
                "inputSchema".into(),
                Value::clone(&description.input_schema),
            );
            if let Some(output) = &description.output_schema {
                full.insert("outputSchema".into(), Value::clone(output));
            }
            if let Some(why) = shown.tool.input.unusable() {
                full.insert("unusable".into(), why.into());
            }
            full.insert("digest".into(), description.digest.to_string().into());
            if let Some(file) = &description.file {
                full.extend(said_besides(file));
            }
        }
        let ours = [
            ("usage_guidance", usage(known, shown)),
            ("error_guidance", error_guidance()),
        ];
        for (key, ours) in ours {
            merge(&mut full, key, ours);
        }
        Value::Object(full)
    }

    fn declarations_at_once(&self, settings: &Settings) -> Option<String> {
        // What the list shows is what counts as shown with it.
        let declared = |tools: &[&Shown]| Self::declared(&self.known, tools, Level::Full);
        let mut tools: Vec<&Shown> = self.tools.iter().collect();
        match settings.disclosure {
            Disclosure::Progressive => None,
            // They would change with the servers, and the list with them.
            Disclosure::Auto if settings.mode == Mode::Stable => None,
            Disclosure::Full => Some(declared(&tools)),
            Disclosure::Auto => {
                let tokens = |bytes: usize| bytes.div_ceil(CHARS_PER_TOKEN) as u64;
                let least = tools.iter().map(|it| it.declared_bytes_min()).sum();
                if tokens(least) > settings.tokens_at_once() {
                    return None;
                }
                // Of hundreds of tools a few say already that it is too long.
                tools.sort_by_key(|it| Reverse(it.said_bytes()));
                let mut count = TOOLS_TRIED;
                loop {
                    let text = declared(tools.get(..count).unwrap_or(&tools));
                    if tokens(text.len()) > settings.tokens_at_once() {
                        return None;
                    }
                    if count >= tools.len() {
                        return Some(text);
                    }
                    count *= 2;
                }
            }
        }
    }
}

impl Shown {
    fn description(&self) -> Option<&Description> {
        self.descriptions.get(self.place)
    }

    /// What it does, in one sentence.
    pub(super) fn summary(&self) -> String {
        self.description().map(declare::summary).unwrap_or_default()
    }

    /// What search reads of it.
    fn document(&self) -> Document {
        self.description().map(Known::document).unwrap_or_default()
    }

    /// The same as far as no schema has to be looked into.
    pub(super) fn without_parameters(&self) -> Document {
        self.description()
            .map(Known::without_parameters)
            .unwrap_or_default()
    }

    fn said_bytes(&self) -> usize {
        let text = self.description().and_then(|it| it.text.as_ref());
        text.map_or(0, String::len)
    }

    /// No declaration of it is shorter.
    fn declared_bytes_min(&self) -> usize {
        self.tool.member.len() + "(): Promise<X>\n".len()
    }

    /// The tool as a catalog has it.
    pub(super) fn in_catalog(&self, catalog: &Catalog) -> Arc<Tool> {
        let tool = catalog.find(&self.tool.id).cloned();
        tool.unwrap_or_else(|| Arc::clone(&self.tool))
    }

    /// `server.tool` as it is written in a script.
    pub(super) fn in_scripts(&self) -> String {
        let (global, member) = (&self.global, &self.tool.member);
        format!("{global}.{member}")
    }
}

/// How a script calls it, with its types.
fn usage(known: &Known, shown: &Shown) -> Value {
    json!({
        "in_scripts": format!("await {}({{…}})", shown.in_scripts()),
        "declaration": Shelf::declared(known, &[shown], Level::Signatures),
    })
}

fn shown(known: &Known) -> Vec<Shown> {
    let mut tools = Vec::new();
    let rules = &known.standing.rules;
    for server in &known.stubs.servers {
        for stub in &server.tools {
            let id = ToolId {
                server: ServerName(server.server.as_str().into()),
                tool: ToolName(stub.wire_name.as_str().into()),
            };
            let Some(tool) = known.standing.catalog.find(&id).cloned() else {
                continue;
            };
            // Ours are not among what is searched and listed.
            if tool.whose.is_own() || rules.deny_always(&id) {
                continue;
            }
            tools.push(Shown {
                tool,
                name: id.to_string(),
                flat: String::new(),
                global: server.global.clone(),
                place: stub.description,
                descriptions: Arc::clone(&known.descriptions),
            });
        }
    }
    tools.sort_by(|a, b| a.tool.id.cmp(&b.tool.id));
    give_flat_names(&mut tools);
    tools
}

/// A name that is too long, or that two tools would have, ends in a piece of a digest.
fn give_flat_names(tools: &mut [Shown]) {
    let plain = |shown: &Shown| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let id = &shown.tool.id;
        let name = format!("{}_{}", id.server.0, id.tool.0);
        name.replace(|c| !fits(c), "_")
    };
    let mut counts: HashMap<String, usize> = HashMap::new();
    for shown in tools.iter() {
        *counts.entry(plain(shown)).or_default() += 1;
    }
    let reserved: HashSet<&str> = super::meta::NAMES.into_iter().collect();
    for shown in tools {
        let name = plain(shown);
        let is_free = counts.get(&name) == Some(&1) && !reserved.contains(name.as_str());
        shown.flat = if is_free && name.len() <= FLAT_CHARS_MAX {
            name
        } else {
            let digest = Digest::of(shown.name.as_bytes()).to_string();
            let piece: String = digest.chars().rev().take(8).collect();
            let head: String = name.chars().take(FLAT_CHARS_MAX - 9).collect();
            format!("{head}_{piece}")
        };
    }
}

/// The first name given wins: `server.tool` before all others.
fn names(tools: &[Shown]) -> HashMap<String, usize> {
    let mut names = HashMap::new();
    let full = tools.iter().map(|shown| shown.name.clone());
    let flat = tools.iter().map(|shown| shown.flat.clone());
    let called = tools.iter().map(Shown::in_scripts);
    let stub = tools.iter().map(|shown| shown.tool.flat.clone());
    for (place, name) in full
        .enumerate()
        .chain(flat.enumerate())
        .chain(called.enumerate())
        .chain(stub.enumerate())
    {
        if !name.is_empty() {
            names.entry(name).or_insert(place);
        }
    }
    names
}

/// Over all of them; what nobody has read yet is read here.
fn index(known: &Known, tools: &[Shown]) -> Index {
    let read = |shown: &Shown| known.texts.get(shown.place).cloned().flatten();
    let unread = tools.iter().filter(|it| read(it).is_none());
    let unread: Vec<Document> = unread.map(Shown::document).collect();
    let unread = Arc::new(Texts::of(&unread));
    let mut places = 0..;
    let place = |shown| {
        let next = || Some((Arc::clone(&unread), places.next()?));
        read(shown).or_else(next)
    };
    let places: Vec<_> = tools.iter().filter_map(place).collect();
    Index::of(&places)
}

/// Prose with its lines, and without characters that hide.
pub(super) fn visible(text: &str) -> String {
    let keep = |c: &char| matches!(c, '\n' | '\t') || !codegen::text::is_invisible(*c);
    text.chars().filter(keep).collect()
}

/// What a tool file says, beyond what has a place in the description itself.
fn said_besides(file: &ToolFile) -> Map<String, Value> {
    const ELSEWHERE: [&str; 9] = [
        "$schema",
        "name",
        "upstream",
        "pulled",
        "title",
        "description",
        "arguments",
        "outputSchema",
        "observed",
    ];
    let said = serde_json::to_value(file).unwrap_or_default();
    let mut said = said.as_object().cloned().unwrap_or_default();
    said.retain(|key, _| !ELSEWHERE.contains(&key.as_str()));
    said
}

/// What we say of every tool, beside what a file says of this one.
fn merge(full: &mut Map<String, Value>, key: &str, ours: Value) {
    match (full.get_mut(key).and_then(Value::as_object_mut), ours) {
        (Some(said), Value::Object(ours)) => said.extend(ours),
        (Some(said), ours) => drop(said.insert("in_scripts".into(), ours)),
        (None, ours) => drop(full.insert(key.into(), ours)),
    }
}

fn error_guidance() -> Value {
    json!(
        "In a script a failed call throws a ToolError with code, tool, message, retryable, content and structuredContent. \
           `invalid-arguments`, `tool-unusable`, `denied`, `refused` and `unanswered` mean that nothing happened; `tool-failed` that something may have."
    )
}
