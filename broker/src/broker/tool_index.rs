//! The tools of a broker under all of their names, the search over them, and their descriptions in
//! the forms for hosts and scripts.

pub(crate) mod args;
pub(crate) mod details;
pub(super) mod discovery;
pub(crate) mod filter;
pub(crate) mod search;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use airlock_core::catalog::{Catalog, Tool, ToolOwner};
use airlock_core::id::{Digest, ServerName, ToolId, ToolName};
use airlock_core::search::{Document, Index, IndexedTexts, Ranker, Vectors, fused};
use codegen::declare::{self, Level};
use codegen::description::Description;
use codegen::stub::{ServerStubs, ToolStub};
use codegen::tool_file::ToolFile;
use serde_json::{Map, Value, json};

use super::{Broker, ServerStatus, ToolSnapshot};

pub(crate) const SEARCH: &str = "search_tools";
pub(crate) const DETAILS: &str = "get_tool_details";
pub(crate) const RUN: &str = "run_script";
pub(crate) const READ: &str = "read_result";
pub(crate) const RESUME: &str = "resume_run";
pub(crate) const CALL: &str = "call_tool";
pub(crate) const SERVERS: &str = "search_available_servers";
pub(crate) const ENABLE: &str = "enable_server";
pub(crate) const DISABLE: &str = "disable_server";

/// The names of airlock's own tools for hosts. No tool of a server is listed under one of these
/// names.
pub(crate) const OWN_NAMES: [&str; 9] = [
    SEARCH, DETAILS, RUN, READ, RESUME, CALL, SERVERS, ENABLE, DISABLE,
];

/// Maximum length of a tool name that model APIs accept.
const FLAT_CHARS_MAX: usize = 64;
/// The approximate number of characters per token in a page of declarations.
const CHARS_PER_TOKEN: usize = 4;
/// The number of tools with the longest descriptions that are declared first, to find out early
/// whether all tools fit the limit.
const TOOLS_TRIED: usize = 8;

/// One tool as hosts and scripts know it.
#[derive(Debug)]
pub(crate) struct ListedTool {
    pub(crate) tool: Arc<Tool>,
    /// `server.tool`, the name of the tool everywhere.
    pub(crate) name: String,
    /// `server_tool`, the name of the tool in `tools/list`.
    pub(crate) flat: String,
    /// The script's global variable for the server.
    pub(crate) global: String,
    /// The index of the description in `descriptions`.
    place: usize,
    descriptions: Arc<Vec<Description>>,
}

#[derive(Debug)]
pub(crate) struct ToolIndex {
    pub(crate) broker: Broker,
    /// The snapshot from which the index was built.
    pub(crate) known: Arc<ToolSnapshot>,
    /// Sorted by name, without tools whose calls are always denied by a rule.
    pub(crate) tools: Arc<Vec<ListedTool>>,
    /// The search index. Results are positions in `tools`.
    pub(crate) index: Arc<Index>,
    /// Present if an embedding model is configured.
    vectors: Option<Arc<Vectors>>,
    /// The declarations of all tools, if they are short enough to be disclosed at once.
    pub(crate) at_once: Option<String>,
    by_name: Arc<HashMap<String, usize>>,
    /// The tools whose calls are always denied by a rule, by all their names. No list and no search
    /// shows them.
    denied: Arc<HashMap<String, ToolId>>,
}

/// The limit for declarations that a host gets without requesting them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeclareLimit {
    Nothing,
    /// All tools, if their declarations need at most this number of tokens.
    Tokens(u64),
    Everything,
}

impl ToolIndex {
    pub(crate) fn new(broker: Broker, limit: DeclareLimit) -> Self {
        Self::reusing_vectors(broker, limit, None)
    }

    /// Builds the index, and reuses the vectors of tools that are in `before`.
    fn reusing_vectors(broker: Broker, limit: DeclareLimit, before: Option<&Vectors>) -> Self {
        let known = broker.known();
        let (tools, denied) = listed_tools(&known);
        let denied_names = names(&denied).into_iter();
        let denied_names = denied_names
            .filter_map(|(name, place)| Some((name, denied.get(place)?.tool.id.clone())));
        let (by_name, index) = thread::scope(|scope| {
            let indexing = scope.spawn(|| index(&known, &tools));
            let by_name = names(&tools);
            let index = indexing.join().unwrap_or_else(|panic| resume_unwind(panic));
            (by_name, index)
        });
        let model = broker.embeddings().cloned();
        let vectors = model.map(|model| {
            let documents = tools.iter().map(ListedTool::without_parameters);
            Vectors::new(model, &documents.collect::<Vec<_>>(), before)
        });
        let mut tool_index = Self {
            broker,
            known,
            tools: Arc::new(tools),
            index: Arc::new(index),
            vectors: vectors.map(Arc::new),
            at_once: None,
            by_name: Arc::new(by_name),
            denied: Arc::new(denied_names.collect()),
        };
        tool_index.at_once = tool_index.declarations_at_once(limit);
        tool_index
    }

    /// Returns the index after a change. Only the changed parts are built again.
    pub(crate) fn renewed(&self, limit: DeclareLimit) -> Self {
        let known = self.broker.known();
        let is_same = Arc::ptr_eq(&known.descriptions, &self.known.descriptions)
            && Arc::ptr_eq(
                &known.decision_context.rules,
                &self.known.decision_context.rules,
            );
        if !is_same {
            return Self::reusing_vectors(self.broker.clone(), limit, self.vectors.as_deref());
        }
        Self {
            known,
            broker: self.broker.clone(),
            tools: Arc::clone(&self.tools),
            index: Arc::clone(&self.index),
            vectors: self.vectors.clone(),
            at_once: self.at_once.clone(),
            by_name: Arc::clone(&self.by_name),
            denied: Arc::clone(&self.denied),
        }
    }

    /// Returns whether the tools are the same as in an earlier index.
    pub(crate) fn has_tools_of(&self, before: &Self) -> bool {
        Arc::ptr_eq(&self.tools, &before.tools)
    }

    /// Finds a tool by any of its names: `server.tool`, `server_tool`, or the form in scripts.
    pub(crate) fn find(&self, name: &str) -> Option<&ListedTool> {
        self.tools.get(*self.by_name.get(name)?)
    }

    /// Returns why calls of this name are denied, if it names a tool that a rule always denies.
    pub(crate) fn denial(&self, name: &str) -> Option<String> {
        if self.by_name.contains_key(name) {
            return None;
        }
        let tool = self.denied.get(name)?;
        let rules = &self.known.decision_context.rules;
        let denied = rules.always_denied(ToolOwner::Other, tool)?;
        let why = denied.told.join("; ");
        Some(format!("the call to `{tool}` was denied: {why}"))
    }

    /// Returns positions in `tools`, best match first. Tools whose name is the query come before all
    /// others, and then one tool per server whose name is the query in upper or lower case. A server
    /// with many spellings of a name gets no more places.
    pub(crate) fn ranked(&self, query: &str) -> Vec<usize> {
        let by_words: &dyn Ranker = &*self.index;
        let ranked = match self.vectors.as_deref() {
            None => by_words.ranked(query),
            Some(by_meaning) => {
                let rankers: [&dyn Ranker; 2] = [by_words, by_meaning];
                fused(&rankers.map(|it| it.ranked(query)))
            }
        };
        let tools = || self.tools.iter().enumerate();
        let exact = tools().filter(|(_, shown)| shown.names().contains(&query));
        let (mut places, mut servers): (Vec<usize>, HashSet<&ServerName>) = exact
            .map(|(place, shown)| (place, &shown.tool.id.server))
            .unzip();
        for (place, shown) in tools() {
            let mut names = shown.names().into_iter();
            if names.any(|it| it.eq_ignore_ascii_case(query))
                && servers.insert(&shown.tool.id.server)
            {
                places.push(place);
            }
        }
        let mut seen: HashSet<usize> = places.iter().copied().collect();
        places.extend(ranked.into_iter().filter(|place| seen.insert(*place)));
        places
    }

    /// Returns whether a server has not listed its tools yet and is being connected.
    pub(crate) fn is_filling(&self) -> bool {
        self.known.servers.iter().any(ServerStatus::is_awaited)
    }

    /// Returns whether a start should wait for servers that are still missing.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.known.servers.iter().any(ServerStatus::holds_up_start)
    }

    /// Returns the tool with the current digest of its description.
    pub(crate) fn current(&self, shown: &ListedTool) -> Arc<Tool> {
        shown.in_catalog(&self.broker.catalog())
    }

    /// Returns the servers and the number of their tools, in one line.
    pub(crate) fn servers(&self) -> String {
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

    /// Returns all servers, including those that are not connected yet.
    pub(crate) fn server_names(&self) -> String {
        const SHOWN_MAX: usize = 40;
        let configured = self.known.servers.iter().map(|it| it.name.as_str());
        let offering = self.tools.iter().map(|it| &*it.tool.id.server.0);
        let names: BTreeSet<&str> = configured.chain(offering).collect();
        let count = names.len();
        let shown: Vec<&str> = names.into_iter().take(SHOWN_MAX).collect();
        match count.saturating_sub(SHOWN_MAX) {
            0 if shown.is_empty() => "none".to_owned(),
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    }

    /// Returns the declarations of these tools.
    pub(crate) fn declarations(&self, tools: &[&ListedTool], level: Level) -> String {
        Self::declared(&self.broker.known(), tools, level)
    }

    /// Returns the declarations of these tools from a given snapshot.
    pub(crate) fn declared(known: &ToolSnapshot, tools: &[&ListedTool], level: Level) -> String {
        let ids = tools.iter().map(|shown| &shown.tool.id);
        let chosen: HashSet<(&str, &str)> = ids.map(|it| (&*it.server.0, &*it.tool.0)).collect();
        let only = |server: &ServerStubs, tool: &ToolStub| {
            chosen.contains(&(server.server.as_str(), tool.wire_name.as_str()))
        };
        declare::declare(&known.stubs, &known.descriptions, level, &only).text
    }

    /// Returns the full description of one tool, under the name that the request used.
    pub(crate) fn full(known: &ToolSnapshot, shown: &ListedTool, asked_as: &str) -> Value {
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
            if let Some(why) = shown.tool.args_check.unusable() {
                full.insert("unusable".into(), why.into());
            }
            full.insert("digest".into(), description.digest.to_string().into());
            if let Some(metadata) = &description.metadata {
                full.extend(said_besides(metadata));
            }
            if !full.contains_key("examples") {
                let example = codegen::example::example(&description.input_schema);
                full.extend(example.map(|input| {
                    let about = "Made from the schema";
                    let examples = json!([{"description": about, "input": input}]);
                    ("examples".to_owned(), examples)
                }));
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

    fn declarations_at_once(&self, limit: DeclareLimit) -> Option<String> {
        // These declarations count as disclosed, so they are complete.
        let declared = |tools: &[&ListedTool]| Self::declared(&self.known, tools, Level::Full);
        let mut tools: Vec<&ListedTool> = self.tools.iter().collect();
        let tokens_max = match limit {
            DeclareLimit::Nothing => return None,
            DeclareLimit::Everything => return Some(declared(&tools)),
            DeclareLimit::Tokens(tokens) => tokens,
        };
        let tokens = |bytes: usize| bytes.div_ceil(CHARS_PER_TOKEN) as u64;
        let least = tools.iter().map(|it| it.declared_bytes_min()).sum();
        if tokens(least) > tokens_max {
            return None;
        }
        // For hundreds of tools, a few declarations already show that the limit is exceeded.
        tools.sort_by_key(|it| Reverse(it.said_bytes()));
        let mut count = TOOLS_TRIED;
        loop {
            let text = declared(tools.get(..count).unwrap_or(&tools));
            if tokens(text.len()) > tokens_max {
                return None;
            }
            if count >= tools.len() {
                return Some(text);
            }
            count *= 2;
        }
    }
}

impl ListedTool {
    /// Returns the names by which a search finds the tool first.
    fn names(&self) -> [&str; 3] {
        [&self.tool.id.tool.0, &self.name, &self.flat]
    }

    fn description(&self) -> Option<&Description> {
        self.descriptions.get(self.place)
    }

    /// Returns a summary of the tool in one sentence.
    pub(crate) fn summary(&self) -> String {
        self.description().map(declare::summary).unwrap_or_default()
    }

    /// Returns the search document of the tool.
    fn document(&self) -> Document {
        self.description()
            .map(ToolSnapshot::document)
            .unwrap_or_default()
    }

    /// Returns the search document without the parameters, for which the schema would have to be
    /// parsed.
    pub(crate) fn without_parameters(&self) -> Document {
        self.description()
            .map(ToolSnapshot::without_parameters)
            .unwrap_or_default()
    }

    /// Returns the length of the tool's own text, in characters.
    pub(crate) fn text_chars(&self) -> usize {
        let text = self.description().and_then(|it| it.text.as_ref());
        text.map_or(0, |it| it.chars().count())
    }

    fn said_bytes(&self) -> usize {
        let text = self.description().and_then(|it| it.text.as_ref());
        text.map_or(0, String::len)
    }

    /// Returns a lower bound of the length of the tool's declaration in bytes.
    fn declared_bytes_min(&self) -> usize {
        self.tool.member.len() + "(): Promise<X>\n".len()
    }

    /// Returns the tool as the catalog contains it.
    pub(crate) fn in_catalog(&self, catalog: &Catalog) -> Arc<Tool> {
        let tool = catalog.find(&self.tool.id).cloned();
        tool.unwrap_or_else(|| Arc::clone(&self.tool))
    }

    /// Returns `server.tool` as it is written in a script.
    pub(crate) fn in_scripts(&self) -> String {
        let (global, member) = (&self.global, &self.tool.member);
        format!("{global}.{member}")
    }
}

/// Returns the call as a script writes it, and the tool's declaration.
fn usage(known: &ToolSnapshot, shown: &ListedTool) -> Value {
    json!({
        "in_scripts": format!("await {}({{…}})", shown.in_scripts()),
        "declaration": ToolIndex::declared(known, &[shown], Level::Signatures),
    })
}

/// Returns the tools that hosts and scripts may find, and those that a rule always denies.
fn listed_tools(known: &ToolSnapshot) -> (Vec<ListedTool>, Vec<ListedTool>) {
    let (mut tools, mut denied) = (Vec::new(), Vec::new());
    for server in &known.stubs.servers {
        for stub in &server.tools {
            let id = ToolId {
                server: ServerName(server.server.as_str().into()),
                tool: ToolName(stub.wire_name.as_str().into()),
            };
            let Some(tool) = known.decision_context.catalog.find(&id).cloned() else {
                continue;
            };
            // airlock's own tools are neither searched nor listed here.
            if tool.owner.is_own() {
                continue;
            }
            let list = match tool.denied {
                true => &mut denied,
                false => &mut tools,
            };
            list.push(ListedTool {
                tool,
                name: id.to_string(),
                flat: String::new(),
                global: server.global.clone(),
                place: stub.description,
                descriptions: Arc::clone(&known.descriptions),
            });
        }
    }
    for list in [&mut tools, &mut denied] {
        list.sort_by(|a, b| a.tool.id.cmp(&b.tool.id));
        give_flat_names(list);
    }
    (tools, denied)
}

/// Sets the flat names. A name that is too long, reserved or shared by two tools ends in a part of
/// a digest.
fn give_flat_names(tools: &mut [ListedTool]) {
    let plain = |shown: &ListedTool| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let id = &shown.tool.id;
        let name = format!("{}_{}", id.server.0, id.tool.0);
        name.replace(|c| !fits(c), "_")
    };
    let mut counts: HashMap<String, usize> = HashMap::new();
    for shown in tools.iter() {
        *counts.entry(plain(shown)).or_default() += 1;
    }
    let reserved: HashSet<&str> = OWN_NAMES.into_iter().collect();
    for shown in tools {
        let name = plain(shown);
        let is_free = counts.get(&name) == Some(&1) && !reserved.contains(name.as_str());
        shown.flat = if is_free && name.len() <= FLAT_CHARS_MAX {
            name
        } else {
            let digest = Digest::sha256(shown.name.as_bytes()).to_string();
            let piece: String = digest.chars().rev().take(8).collect();
            let head: String = name.chars().take(FLAT_CHARS_MAX - 9).collect();
            format!("{head}_{piece}")
        };
    }
}

/// Maps all names to tools. The first tool with a name keeps it, and `server.tool` comes before all
/// other forms.
fn names(tools: &[ListedTool]) -> HashMap<String, usize> {
    let mut names = HashMap::new();
    let full = tools.iter().map(|shown| shown.name.clone());
    let flat = tools.iter().map(|shown| shown.flat.clone());
    let called = tools.iter().map(ListedTool::in_scripts);
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

/// Builds the search index over all tools. If the snapshot does not contain the indexed text of a
/// tool yet, the text is built here.
fn index(known: &ToolSnapshot, tools: &[ListedTool]) -> Index {
    let read = |shown: &ListedTool| known.texts.get(shown.place).cloned().flatten();
    let unread = tools.iter().filter(|it| read(it).is_none());
    let unread: Vec<Document> = unread.map(ListedTool::document).collect();
    let unread = Arc::new(IndexedTexts::build(&unread));
    let mut places = 0..;
    let place = |shown| {
        let next = || Some((Arc::clone(&unread), places.next()?));
        read(shown).or_else(next)
    };
    let places: Vec<_> = tools.iter().filter_map(place).collect();
    Index::build(&places)
}

/// Removes invisible characters from a text, and keeps its line breaks.
pub(crate) fn visible(text: &str) -> String {
    let keep = |c: &char| matches!(c, '\n' | '\t') || !codegen::text::is_invisible(*c);
    text.chars().filter(keep).collect()
}

/// Returns the members of a tool file that have no place in the description itself.
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

/// Adds airlock's own documentation, which is the same for every tool, to the field from the tool
/// file.
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
