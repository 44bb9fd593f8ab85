//! Follows one run: what has reached it, what trusted things named, how often
//! and how much went out. Everything that a fact about a call is made from.
//!
//! What has reached a run can only grow, and an error counts like a result.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use sandbox_protocol::{Failure, Outcome};
use serde::{Deserialize, Serialize};

use super::destination::{self, Destination};
use super::field::{self, Leaf};
use super::known::Known;
use super::label::Labels;
use super::labelling::Labelling;
use super::lookalike;
use super::paths::{NamedPath, ResolvedPath, Roots};
use super::shares::Pieces;
use super::texts;
use crate::call::Args;
use crate::catalog::Tool;
use crate::facts::{Counts, Facts, LargeText, Share, TEXT_BYTES_MAX, Time};
use crate::id::{CallId, Digest, ToolId};
use crate::session::Disclosed;

/// What is fixed before a watched run starts.
#[derive(Debug, Clone, Default)]
pub struct FlowSpec {
    /// What the session brings along; nothing for a run of its own.
    pub carried: Carried,
    /// What the run's input carries. Whoever starts the run answers for it, as for the script.
    pub input_labels: Labels,
    /// Destinations that the configuration names.
    pub known: Arc<Known>,
}

/// What goes from run to run in a session: in at a run's start, out at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The join of what its runs had read, all of which may have reached the model.
    pub labels: Labels,
    /// Allowed calls, by tool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<ToolId, u64>,
    /// Of all arguments that went to tools which write outside.
    #[serde(default)]
    pub bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Watch {
    spec: FlowSpec,
    /// Which descriptions the session was shown.
    disclosed: Disclosed,
    script_trusted: bool,
    labels: Labels,
    /// What the script names, when it is trusted, and what trusted results named.
    known: Known,
    pieces: Pieces,
    calls: BTreeMap<ToolId, u64>,
    bytes: u64,
    /// Calls that were made while nothing untrusted had reached the run.
    clean: BTreeSet<CallId>,
    paths: HashMap<NamedPath, Roots>,
}

impl Carried {
    /// Two runs of a session that ended: nothing is taken away.
    pub fn join(&mut self, other: &Self) {
        self.labels.join(&other.labels);
        for (tool, calls) in &other.calls {
            let known = self.calls.entry(tool.clone()).or_default();
            *known = known.saturating_add(*calls);
        }
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl Watch {
    pub(crate) fn new(spec: FlowSpec, disclosed: Disclosed, script: &str) -> Self {
        let labels = spec.carried.labels.clone().joined(&spec.input_labels);
        let script_trusted = !spec.carried.labels.is_untrusted();
        let known = if script_trusted {
            Known::of_script(script)
        } else {
            Known::default()
        };
        Self {
            spec,
            disclosed,
            script_trusted,
            labels,
            known,
            pieces: Pieces::default(),
            calls: BTreeMap::new(),
            bytes: 0,
            clean: BTreeSet::new(),
            paths: HashMap::new(),
        }
    }

    /// What the shell found for the paths of the calls that are made next.
    pub(crate) fn resolved(&mut self, paths: Vec<ResolvedPath>) {
        self.paths
            .extend(paths.into_iter().map(|it| (it.path, it.roots)));
    }

    /// What was true of a path when one call was made says nothing about the next.
    pub(crate) fn forget_paths(&mut self) {
        self.paths.clear();
    }

    /// Descriptions that were shown meanwhile.
    pub(crate) fn disclosed(&mut self, tools: &[(ToolId, Digest)]) {
        self.disclosed.add(tools);
    }

    pub(crate) fn facts(&mut self, call: CallId, tool: &Tool, args: &Args, now_ms: u64) -> Facts {
        if !self.labels.is_untrusted() {
            self.clean.insert(call);
        }
        let labelling = &*tool.labelling;
        let mut facts = Facts {
            labels: self.labels.clone(),
            script_trusted: self.script_trusted,
            writes: labelling.writes,
            counts: self.counts(&tool.id),
            time: Time::at(now_ms),
            disclosed: self.disclosed.allows(tool),
            pinned: tool.pinned,
            ..Facts::default()
        };
        self.destinations(tool, args, &mut facts);
        self.path_roots(tool, args, &mut facts);
        let leaves = field::leaves(args.value());
        if labelling.is_sink() {
            facts.shares = self.shares(&leaves);
        }
        facts.large_texts = leaves.into_iter().filter_map(large).collect();
        facts
    }

    fn counts(&self, tool: &ToolId) -> Counts {
        let of = |calls: &BTreeMap<ToolId, u64>| calls.get(tool).copied().unwrap_or_default();
        let calls_run = of(&self.calls);
        Counts {
            calls_run,
            calls_session: calls_run.saturating_add(of(&self.spec.carried.calls)),
            bytes_run: self.bytes,
            bytes_session: self.bytes.saturating_add(self.spec.carried.bytes),
        }
    }

    fn destinations(&self, tool: &Tool, args: &Args, facts: &mut Facts) {
        let explains = |it: &Destination| self.known.explains(it) || self.spec.known.explains(it);
        destinations(&tool.labelling, args, explains, facts);
    }

    fn path_roots(&self, tool: &Tool, args: &Args, facts: &mut Facts) {
        let named: Vec<Leaf> = tool
            .labelling
            .paths
            .iter()
            .flat_map(|field| field.leaves(args.value()))
            .collect();
        let mut roots = BTreeSet::new();
        let mut all_known = !named.is_empty();
        for leaf in named {
            if lookalike::is_doubtful(&leaf.text) {
                facts.lookalikes.insert(leaf.pointer);
            }
            let path = NamedPath {
                server: tool.id.server.clone(),
                text: leaf.text,
            };
            match self.paths.get(&path) {
                Some(found) => roots.extend(found.0.iter().cloned()),
                None => all_known = false,
            }
        }
        facts.path_roots = (all_known && !roots.is_empty()).then_some(roots);
    }

    fn shares(&self, leaves: &[Leaf]) -> Vec<Share> {
        let mut shares = Vec::new();
        for leaf in leaves {
            for (call, pieces) in self.pieces.found_in(&leaf.text) {
                let field = leaf.pointer.clone();
                shares.push(Share {
                    field,
                    call,
                    pieces,
                });
            }
        }
        shares
    }

    /// A call was allowed.
    pub(crate) fn allowed(&mut self, tool: &Tool, args_bytes: usize) {
        let calls = self.calls.entry(tool.id.clone()).or_default();
        *calls = calls.saturating_add(1);
        if tool.labelling.writes.external {
            self.bytes = self.bytes.saturating_add(args_bytes as u64);
        }
    }

    /// The run hears what became of a call that had left.
    pub(crate) fn heard(&mut self, call: CallId, tool: &Tool, outcome: &Outcome) {
        let reads = &tool.labelling.reads;
        let was_clean = self.clean.remove(&call);
        // What was asked for by untrusted data is as untrusted as what it answers with.
        let is_trusted = was_clean && !reads.is_untrusted();
        self.labels.join(reads);
        let (known, pieces) = (&mut self.known, &mut self.pieces);
        let mut text = |text: &str| {
            if is_trusted {
                known.learn(text);
            }
            pieces.add(call, text);
        };
        match outcome {
            Outcome::Value(json) => texts::each(json, text),
            Outcome::Failure(Failure {
                message,
                content,
                structured_content,
                ..
            }) => {
                text(message);
                texts::each(content, &mut text);
                texts::each(structured_content, text);
            }
        }
    }

    /// What has reached the run so far.
    pub(crate) fn reached(&self) -> &Labels {
        &self.labels
    }

    /// What the session takes over from this run.
    pub(crate) fn carried(&self) -> Carried {
        Carried {
            labels: self.labels.clone(),
            calls: self.calls.clone(),
            bytes: self.bytes,
        }
    }
}

/// Where a call goes, as far as its arguments say.
fn destinations(
    labelling: &Labelling,
    args: &Args,
    explains: impl Fn(&Destination) -> bool,
    facts: &mut Facts,
) {
    let fields = &labelling.destinations;
    let leaves: BTreeMap<String, String> = fields
        .iter()
        .flat_map(|field| field.leaves(args.value()))
        .map(|leaf| (leaf.pointer, leaf.text))
        .collect();
    if leaves.is_empty() {
        facts.dest_explained = labelling.fixed_destination.then_some(true);
        return;
    }
    let (mut hosts, mut addresses, mut domains) = (
        Some(BTreeSet::new()),
        Some(BTreeSet::new()),
        Some(BTreeSet::new()),
    );
    for (pointer, text) in &leaves {
        let destination = destination::read(text);
        if !explains(&destination) {
            facts.dest_unexplained.insert(pointer.clone());
        }
        if lookalike::is_doubtful(text) {
            facts.lookalikes.insert(pointer.clone());
        }
        // A set that would leave one destination out is no set of the destinations.
        match destination {
            Destination::Web(web) => {
                if let Some(hosts) = &mut hosts {
                    hosts.insert(web.host);
                }
                (addresses, domains) = (None, None);
            }
            Destination::Mail(list) => {
                for address in list {
                    if let Some(addresses) = &mut addresses {
                        addresses.insert(address.text);
                    }
                    if let Some(domains) = &mut domains {
                        domains.insert(address.domain);
                    }
                }
                hosts = None;
            }
            Destination::Name(_) | Destination::Unclear => {
                (hosts, addresses, domains) = (None, None, None);
            }
        }
    }
    facts.dest_explained = Some(facts.dest_unexplained.is_empty());
    (facts.dest_hosts, facts.dest_addresses, facts.dest_domains) = (hosts, addresses, domains);
}

/// What else follows from arguments that no run has sent: where they go, when something trusted
/// names all of it or nothing does, under which roots they lie, and what is long in them.
pub(crate) fn imagined(
    labelling: &Labelling,
    args: &Args,
    (known, explained): (&Known, bool),
    roots: Option<BTreeSet<String>>,
    facts: &mut Facts,
) {
    let explains = |it: &Destination| explained || known.explains(it);
    destinations(labelling, args, explains, facts);
    let fields = labelling.paths.iter();
    let named: Vec<Leaf> = fields.flat_map(|it| it.leaves(args.value())).collect();
    let doubtful = named
        .iter()
        .filter(|leaf| lookalike::is_doubtful(&leaf.text));
    facts
        .lookalikes
        .extend(doubtful.map(|leaf| leaf.pointer.clone()));
    let roots = roots.filter(|roots| !roots.is_empty());
    facts.path_roots = roots.filter(|_| !named.is_empty());
    facts.large_texts = large_texts(args);
}

/// The long texts of a call, which stand for themselves by digest and length.
#[must_use]
pub fn large_texts(args: &Args) -> BTreeMap<String, LargeText> {
    let leaves = field::leaves(args.value()).into_iter();
    leaves.filter_map(large).collect()
}

fn large(leaf: Leaf) -> Option<(String, LargeText)> {
    let Leaf { pointer, text } = leaf;
    (text.len() > TEXT_BYTES_MAX).then(|| {
        let large = LargeText {
            bytes: text.len() as u64,
            digest: Digest::of(text.as_bytes()),
        };
        (pointer, large)
    })
}

#[cfg(test)]
mod tests;
