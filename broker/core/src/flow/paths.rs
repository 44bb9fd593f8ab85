//! The paths that calls name. Only the file system knows where a path leads. So the shell resolves
//! the paths and passes the result to the core before the calls are decided.

use std::collections::BTreeSet;

use sandbox_protocol::OpenCall;

use crate::call::Args;
use crate::catalog::Catalog;
use crate::id::ServerName;
use crate::limits::Limits;

/// A path in the arguments of a call, on the machine of the given server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamedPath {
    pub server: ServerName,
    pub text: String,
}

/// The names of the configured roots that a path leads to, under every interpretation of the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots(pub BTreeSet<String>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPath {
    pub path: NamedPath,
    pub roots: Roots,
}

/// Returns the paths that the guest's open calls name, according to the labelling of their tools.
/// `catalog` is the catalog with which the guest was started.
#[must_use]
pub(crate) fn named(catalog: &Catalog, calls: &[OpenCall], limits: &Limits) -> BTreeSet<NamedPath> {
    let mut found = BTreeSet::new();
    for call in calls {
        let Some(tool) = catalog.tool_of_call(call) else {
            continue;
        };
        if tool.labelling.paths.is_empty() {
            continue;
        }
        let Ok(args) = Args::parse(&call.args, limits) else {
            continue;
        };
        let fields = tool.labelling.paths.iter();
        for leaf in fields.flat_map(|field| field.leaves(args.value())) {
            found.insert(NamedPath {
                server: tool.id.server.clone(),
                text: leaf.text,
            });
        }
    }
    found
}
