//! Paths that calls name. Where a path leads only the file system knows, so
//! the shell looks before the calls are decided, and the core is told.

use std::collections::BTreeSet;

use sandbox_protocol::OpenCall;

use crate::call::Args;
use crate::catalog::Catalog;
use crate::id::ServerName;
use crate::limits::Limits;

/// A path as a call names it, on the machine of this server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamedPath {
    pub server: ServerName,
    pub text: String,
}

/// The names of the configured roots under which a path leads, in every way it may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots(pub BTreeSet<String>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPath {
    pub path: NamedPath,
    pub roots: Roots,
}

/// The paths that the guest's open calls name, as the labelling of their tools has it. `catalog`
/// is the one that the guest was started with.
#[must_use]
pub(crate) fn named(catalog: &Catalog, calls: &[OpenCall], limits: &Limits) -> BTreeSet<NamedPath> {
    let mut found = BTreeSet::new();
    for call in calls {
        let Some(tool) = catalog.meant(call) else {
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
