//! The facts of calls that no run has made, as far as the configuration determines them.

use std::collections::{BTreeMap, BTreeSet};

use airlock_core::call::Args;
use airlock_core::facts::Facts;
use airlock_core::flow::{NamedPath, facts_without_run};
use airlock_core::id::{ServerName, ToolId};
use airlock_core::labels::Labelling;
use codegen::description::Description;
use serde_json::Value;

use crate::broker::tool_discovery;
use crate::config::{Config, FlowConfig};
use crate::resolve::PathResolver;

/// Computes facts from the configured labels, roots and destinations.
pub(super) struct CallFacts {
    flow: FlowConfig,
    resolver: PathResolver,
    /// Whether the description of a tool is the one in the lock file.
    pinned: BTreeMap<ToolId, bool>,
}

impl CallFacts {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            flow: config.flow.clone(),
            resolver: PathResolver::new(&config.flow, &config.servers),
            pinned: BTreeMap::new(),
        }
    }

    pub(super) fn with_pinned(mut self, pinned: impl Iterator<Item = (ToolId, bool)>) -> Self {
        self.pinned.extend(pinned);
        self
    }

    /// Whether paths of a server lead to the same roots with another configuration.
    pub(super) fn resolves_like(&self, other: &Self, server: &ServerName) -> bool {
        self.resolver.is_like(&other.resolver, server)
    }

    /// Returns the facts of a call. What depends on the run has its worst value: labels, counts,
    /// the script, and the destinations that trusted sources name. With `explained`, such a source
    /// names every destination. Without a configuration, nothing is known about labels.
    pub(super) fn of(&self, tool: &ToolId, schema: &Value, args: &Args, explained: bool) -> Facts {
        let mut facts = Facts::default();
        if !self.flow.is_configured {
            facts.large_texts = airlock_core::flow::large_texts(args);
            return facts;
        }
        let labelling = self.labelling(tool, schema);
        facts.writes = labelling.writes;
        facts.disclosed = true;
        facts.pinned = self.pinned.get(tool).copied();
        let roots = self.roots(tool, &labelling, args);
        let known = (&self.flow.known, explained);
        facts_without_run(&labelling, args, known, roots, &mut facts);
        facts
    }

    /// Whether a path of a call counts as outside only because the configuration does not say where
    /// relative paths of its server begin.
    pub(super) fn lacks_path_base(&self, tool: &ToolId, schema: &Value, args: &Args) -> bool {
        let named = named_paths(tool, &self.labelling(tool, schema), args);
        named.iter().any(|path| self.resolver.lacks_base(path))
    }

    fn labelling(&self, tool: &ToolId, schema: &Value) -> Labelling {
        let owner = tool_discovery::owner(&tool.server.0, &tool.tool.0);
        let labelling = tool_discovery::labelling(owner, tool, &self.flow.label_config);
        labelling.fitted(schema)
    }

    /// Returns the roots of the paths, or `None` if one of them is unknown.
    fn roots(&self, tool: &ToolId, labelling: &Labelling, args: &Args) -> Option<BTreeSet<String>> {
        let named = named_paths(tool, labelling, args);
        let count = named.len();
        let resolved = self.resolver.resolve(named);
        let roots = resolved.iter().flat_map(|it| it.roots.0.iter().cloned());
        (resolved.len() == count).then(|| roots.collect())
    }
}

fn named_paths(tool: &ToolId, labelling: &Labelling, args: &Args) -> BTreeSet<NamedPath> {
    let fields = labelling.paths.iter();
    let leaves = fields.flat_map(|field| field.leaves(args.value()));
    let named = leaves.map(|leaf| NamedPath {
        server: tool.server.clone(),
        text: leaf.text,
    });
    named.collect()
}

/// Returns tools from a lock file, which all have the description that is in it.
pub(super) fn all_pinned(tools: &[Description]) -> impl Iterator<Item = (ToolId, bool)> {
    let id = |it: &Description| ToolId::parse(&format!("{}.{}", it.server, it.name)).ok();
    tools.iter().filter_map(id).map(|id| (id, true))
}
