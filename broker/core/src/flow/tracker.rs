//! Tracks one run: the labels that have reached it, the destinations that trusted text named, and
//! the numbers of allowed calls and sent bytes. The facts of a call are computed from this state.
//!
//! Labels are only added to a run, never removed. An error adds labels like a result. A person can
//! declassify what a session has read; runs that begin later start without these labels.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use sandbox_protocol::{Failure, Outcome};
use serde::{Deserialize, Serialize};

use super::destination::{self, Destination};

use super::known_destinations::KnownDestinations;
use super::lookalike;
use super::paths::{NamedPath, ResolvedPath, Roots};
use super::shares::Pieces;
use super::texts;
use crate::call::Args;
use crate::catalog::Tool;
use crate::facts::{Counts, Facts, LargeText, RepeatedText, TEXT_BYTES_MAX, Time};
use crate::id::{CallId, Digest, ToolId};
use crate::labels::{Label, Labelling, Labels, Leaf, leaves};
use crate::session::DisclosedTools;

/// The input of the tracker, which is fixed before the run starts.
#[derive(Debug, Clone, Default)]
pub struct FlowSpec {
    /// State carried over from the session; empty for a run without a session.
    pub carried: SessionFlow,
    /// Labels of the run's input. They are trusted because the caller that starts the run sets
    /// them.
    pub input_labels: Labels,
    /// Destinations that the configuration names.
    pub known: Arc<KnownDestinations>,
}

/// The labels with which a run started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartLabels {
    /// The labels of what the session had read. The author of the script may have seen it.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub session: Labels,
    /// The labels of the input.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub input: Labels,
}

impl StartLabels {
    /// Returns the labels that are assumed for a run of which no labels are recorded.
    #[must_use]
    pub fn worst() -> Self {
        Self {
            session: Labels::worst(),
            input: Labels::worst(),
        }
    }

    pub fn join(&mut self, other: &Self) {
        self.session.join(&other.session);
        self.input.join(&other.input);
    }
}

impl FlowSpec {
    /// Returns the labels with which a run starts.
    #[must_use]
    pub fn start_labels(&self) -> StartLabels {
        StartLabels {
            session: self.carried.labels.clone(),
            input: self.input_labels.clone(),
        }
    }

    /// Adds the labels with which the earlier runs of a chain started.
    pub(crate) fn add_start_labels(&mut self, labels: &StartLabels) {
        self.carried.labels.join(&labels.session);
        self.input_labels.join(&labels.input);
    }
}

/// State that a session passes from run to run: read when a run starts, updated when it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFlow {
    /// Union of the labels of all data that the session's runs read, since all of it may have
    /// reached the model.
    pub labels: Labels,
    /// Number of allowed calls by tool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<ToolId, u64>,
    /// Total size of the arguments that were sent to tools that write outside.
    #[serde(default)]
    pub bytes: u64,
    /// Whether calls were made that nothing counted. The numbers of calls and bytes then count as
    /// the largest ones.
    #[serde(default, skip_serializing_if = "is_default")]
    pub counts_unknown: bool,
    /// What people have declassified in the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declassified: Vec<Declassification>,
}

/// A person's statement that everything that a session had read so far has none of these labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declassification {
    pub labels: Vec<Label>,
    /// Whether the numbers of calls and bytes of the session begin at zero again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub counts: bool,
    /// The name of the person.
    pub by: String,
    pub at_ms: u64,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Debug)]
pub(crate) struct FlowTracker {
    spec: FlowSpec,
    /// The descriptions that were shown in the session.
    disclosed: DisclosedTools,
    script_trusted: bool,
    labels: Labels,
    /// Destinations named by the script, if it is trusted, and by trusted results.
    known: KnownDestinations,
    pieces: Pieces,
    /// Calls that were allowed in this run.
    made: CallCounts,
    /// Calls that an earlier run of the chain made, and whose outcomes this run reused.
    reused: CallCounts,
    /// Calls that were made before anything untrusted had reached the run.
    calls_before_untrusted: BTreeSet<CallId>,
    paths: HashMap<NamedPath, Roots>,
}

/// Numbers of calls, and of the bytes that they sent outside.
#[derive(Debug, Default)]
struct CallCounts {
    calls: BTreeMap<ToolId, u64>,
    bytes: u64,
}

impl CallCounts {
    fn add(&mut self, tool: &Tool, args_bytes: usize) {
        let calls = self.calls.entry(tool.id.clone()).or_default();
        *calls = calls.saturating_add(1);
        if tool.labelling.writes.external {
            self.bytes = self.bytes.saturating_add(args_bytes as u64);
        }
    }
}

impl SessionFlow {
    /// Adds the state of another run of the session that has ended. Nothing is removed.
    pub fn join(&mut self, other: &Self) {
        self.labels.join(&other.labels);
        for (tool, calls) in &other.calls {
            let known = self.calls.entry(tool.clone()).or_default();
            *known = known.saturating_add(*calls);
        }
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.counts_unknown |= other.counts_unknown;
        self.join_declassified(other);
    }

    /// Adds what people have declassified in another session of the same caller.
    pub fn join_declassified(&mut self, other: &Self) {
        for one in &other.declassified {
            if !self.declassified.contains(one) {
                self.declassified.push(one.clone());
            }
        }
    }

    /// Removes labels, and records who declassified them. Runs in progress keep their labels, and
    /// add them again at their end.
    pub fn declassify(&mut self, declassification: Declassification) {
        self.labels = self.labels.declassified(&declassification.labels);
        if declassification.counts {
            self.calls.clear();
            self.bytes = 0;
            self.counts_unknown = false;
        }
        if !self.declassified.contains(&declassification) {
            self.declassified.push(declassification);
        }
    }

    /// Replaces the numbers of calls and bytes by those of another session.
    pub fn take_counts(&mut self, other: &Self) {
        self.calls.clone_from(&other.calls);
        self.bytes = other.bytes;
        self.counts_unknown = other.counts_unknown;
    }
}

impl FlowTracker {
    pub(crate) fn new(spec: FlowSpec, disclosed: DisclosedTools, script: &str) -> Self {
        let labels = spec.carried.labels.clone().joined(&spec.input_labels);
        let script_trusted = !spec.carried.labels.is_untrusted();
        let known = if script_trusted {
            KnownDestinations::of_script(script)
        } else {
            KnownDestinations::default()
        };
        Self {
            spec,
            disclosed,
            script_trusted,
            labels,
            known,
            pieces: Pieces::default(),
            made: CallCounts::default(),
            reused: CallCounts::default(),
            calls_before_untrusted: BTreeSet::new(),
            paths: HashMap::new(),
        }
    }

    /// Records the roots that the shell found for the paths of the next calls.
    pub(crate) fn add_resolved_paths(&mut self, paths: Vec<ResolvedPath>) {
        self.paths
            .extend(paths.into_iter().map(|it| (it.path, it.roots)));
    }

    /// Forgets resolved paths: a path may lead elsewhere when the next call is made.
    pub(crate) fn forget_paths(&mut self) {
        self.paths.clear();
    }

    /// Adds descriptions that were shown during the run.
    pub(crate) fn add_disclosed(&mut self, tools: &[(ToolId, Digest)]) {
        self.disclosed.add(tools);
    }

    pub(crate) fn facts(&mut self, call: CallId, tool: &Tool, args: &Args, now_ms: u64) -> Facts {
        if !self.labels.is_untrusted() {
            self.calls_before_untrusted.insert(call);
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
        let leaves = leaves(args.value());
        if labelling.is_sink() {
            facts.shares = self.shares(&leaves);
        }
        facts.large_texts = leaves.into_iter().filter_map(large).collect();
        facts
    }

    /// Returns the counts before a call. A reused call counts in this run like one that it made.
    /// The session has counted a reused call if the earlier run belonged to it, so its numbers are
    /// only raised to those of the run.
    fn counts(&self, tool: &ToolId) -> Counts {
        let of = |calls: &BTreeMap<ToolId, u64>| calls.get(tool).copied().unwrap_or_default();
        let (made, reused, carried) = (&self.made, &self.reused, &self.spec.carried);
        let (calls, bytes) = match carried.counts_unknown {
            true => (Counts::LARGEST, Counts::LARGEST),
            false => (of(&carried.calls), carried.bytes),
        };
        let sum = |one: u64, other: u64| one.saturating_add(other).min(Counts::LARGEST);
        let calls_run = sum(of(&made.calls), of(&reused.calls));
        let bytes_run = sum(made.bytes, reused.bytes);
        Counts {
            calls_run,
            calls_session: sum(of(&made.calls), calls).max(calls_run),
            bytes_run,
            bytes_session: sum(made.bytes, bytes).max(bytes_run),
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
        let mut all_known = !named.is_empty() && !has_misplaced_path(&tool.labelling, args);
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

    fn shares(&self, leaves: &[Leaf]) -> Vec<RepeatedText> {
        let mut shares = Vec::new();
        for leaf in leaves {
            for (call, pieces) in self.pieces.found_in(&leaf.text) {
                let field = leaf.pointer.clone();
                shares.push(RepeatedText {
                    field,
                    call,
                    pieces,
                });
            }
        }
        shares
    }

    /// Counts a call that was allowed.
    pub(crate) fn count_allowed(&mut self, tool: &Tool, args_bytes: usize) {
        self.made.add(tool, args_bytes);
    }

    /// Counts a call whose outcome was reused. The session does not count it again.
    pub(crate) fn count_reused(&mut self, tool: &Tool, args_bytes: usize) {
        self.reused.add(tool, args_bytes);
    }

    /// Records the outcome of a sent call when the run receives the outcome.
    pub(crate) fn record_outcome(&mut self, call: CallId, tool: &Tool, outcome: &Outcome) {
        let reads = &tool.labelling.reads;
        let was_before_untrusted = self.calls_before_untrusted.remove(&call);
        // A result is untrusted if untrusted data may have caused the call or the tool reads
        // untrusted data.
        let is_trusted = was_before_untrusted && !reads.is_untrusted();
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

    /// Returns the labels that have reached the run so far.
    pub(crate) fn labels_so_far(&self) -> &Labels {
        &self.labels
    }

    /// Returns the state that the session keeps from this run.
    pub(crate) fn carried(&self) -> SessionFlow {
        SessionFlow {
            labels: self.labels.clone(),
            calls: self.made.calls.clone(),
            bytes: self.made.bytes,
            counts_unknown: false,
            declassified: self.spec.carried.declassified.clone(),
        }
    }
}

/// Computes the destination facts of a call from its arguments.
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
    let misplaced = fields.iter().chain(&labelling.unfit);
    let misplaced = misplaced.filter(|field| field.is_misplaced(args.value()));
    let misplaced: BTreeSet<String> = misplaced.map(ToString::to_string).collect();
    if leaves.is_empty() && misplaced.is_empty() {
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
        if destination == Destination::Unclear || !explains(&destination) {
            facts.dest_unexplained.insert(pointer.clone());
        }
        if lookalike::is_doubtful(text) {
            facts.lookalikes.insert(pointer.clone());
        }
        // A set contains every destination, or it is absent.
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
    if !misplaced.is_empty() {
        facts.dest_unexplained.extend(misplaced);
        (hosts, addresses, domains) = (None, None, None);
    }
    facts.dest_explained = Some(facts.dest_unexplained.is_empty());
    (facts.dest_hosts, facts.dest_addresses, facts.dest_domains) = (hosts, addresses, domains);
}

/// Computes the facts that depend only on the arguments, for arguments that no run has sent:
/// destinations, roots, lookalikes and long texts. With `explained`, every destination counts as
/// named by a trusted source.
pub fn facts_without_run(
    labelling: &Labelling,
    args: &Args,
    (known, explained): (&KnownDestinations, bool),
    roots: Option<BTreeSet<String>>,
    facts: &mut Facts,
) {
    // An unclear destination is never explained.
    let explains =
        |it: &Destination| (explained && *it != Destination::Unclear) || known.explains(it);
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
    let is_known = !named.is_empty() && !has_misplaced_path(labelling, args);
    facts.path_roots = roots.filter(|_| is_known);
    facts.large_texts = large_texts(args);
}

/// Whether a labelled path has another form than the label expects, so that its texts are unknown.
fn has_misplaced_path(labelling: &Labelling, args: &Args) -> bool {
    let mut fields = labelling.paths.iter();
    fields.any(|field| field.is_misplaced(args.value()))
}

/// Returns the digest and length of each long text of a call.
#[must_use]
pub fn large_texts(args: &Args) -> BTreeMap<String, LargeText> {
    let leaves = leaves(args.value()).into_iter();
    leaves.filter_map(large).collect()
}

fn large(leaf: Leaf) -> Option<(String, LargeText)> {
    let Leaf { pointer, text } = leaf;
    (text.len() > TEXT_BYTES_MAX).then(|| {
        let large = LargeText {
            bytes: text.len() as u64,
            digest: Digest::sha256(text.as_bytes()),
        };
        (pointer, large)
    })
}

#[cfg(test)]
mod tests;
