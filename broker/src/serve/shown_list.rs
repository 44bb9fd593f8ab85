//! What the list of tools says about the tools of servers: the names of the servers and, if they are
//! short enough for the host, all declarations. Outside progressive mode, the list says the same for
//! as long as the process runs, because a changed list makes a host's model read everything again.
//! Later tools are found by search.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::listed_schema::listed_schema;
use super::session::ListedTools;
use super::settings::{ListMode, ServeSettings};
use crate::broker::tool_index::ToolIndex;

/// The tools as the first list of this process has shown them.
pub(super) type FirstShown = OnceLock<Arc<ShownTools>>;

#[derive(Debug)]
pub(super) struct ShownTools {
    /// The names of the servers, in one line.
    pub(super) servers: String,
    /// The declarations of all tools, if the settings want them in the list.
    declarations: Option<String>,
    /// The digests of the declared tools.
    digests: ListedTools,
}

/// What one host gets of it.
#[derive(Debug, Clone)]
pub(super) struct ShownList {
    pub(super) tools: Arc<ShownTools>,
    /// Maximum length of a description, in characters.
    pub(super) chars_max: usize,
    /// Whether scripts of this host can call `extract`.
    pub(super) can_extract: bool,
}

impl ShownTools {
    fn new(tool_index: &ToolIndex) -> Self {
        Self {
            servers: tool_index.server_names(),
            declarations: tool_index.at_once.clone(),
            digests: match tool_index.at_once {
                Some(_) => digests(tool_index),
                None => ListedTools::default(),
            },
        }
    }
}

/// Returns what the list shows now: in progressive mode the current tools, otherwise the tools of the
/// first list.
pub(super) fn shown_now(
    first: &FirstShown,
    settings: &ServeSettings,
    tool_index: &ToolIndex,
) -> Arc<ShownTools> {
    let now = || Arc::new(ShownTools::new(tool_index));
    match settings.mode {
        ListMode::Progressive => now(),
        ListMode::Code | ListMode::Stable => Arc::clone(first.get_or_init(now)),
    }
}

/// Returns the digests of all tools. Tools that a rule always denies are included although no list
/// shows them: a call of such a tool is denied by the rule.
fn digests(tool_index: &ToolIndex) -> ListedTools {
    let tools = tool_index.known.decision_context.catalog.tools();
    let digests = tools.map(|tool| (tool.id.clone(), tool.description_digest));
    Arc::new(digests.collect())
}

impl ShownList {
    /// Returns the declarations if a description has room for them besides a text of this length.
    pub(super) fn declarations(&self, other_chars: usize) -> Option<&str> {
        let declarations = self.tools.declarations.as_deref()?;
        let chars = declarations.chars().count() + other_chars;
        (chars <= self.chars_max).then_some(declarations)
    }

    /// Returns the digests of the declared tools.
    pub(super) fn digests(&self) -> &ListedTools {
        &self.tools.digests
    }
}

/// Returns the digests of the tools whose entry in a list of full descriptions is complete: their
/// text is not cut, and hosts can read their schema.
pub(super) fn digests_of_whole_entries(tool_index: &ToolIndex, chars_max: usize) -> ListedTools {
    let mut digests: HashMap<_, _> = HashMap::clone(&digests(tool_index));
    for shown in tool_index.tools.iter() {
        let is_cut = shown.text_chars() > chars_max;
        if is_cut || listed_schema(&tool_index.known, shown).is_none() {
            digests.remove(&shown.tool.id);
        }
    }
    Arc::new(digests)
}
