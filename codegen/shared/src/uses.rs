//! The result of searching a script for the members of globals, and the plain names, that it uses.

use std::collections::HashSet;

/// The uses in a script. Uses that the script hides, for example behind a computed name, are
/// missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// Pairs of object and member: `object.member`, also if written `object["member"]`.
    pub members: HashSet<(String, String)>,
    pub names: HashSet<String>,
    /// Tools whose descriptions the script visibly reads before it calls them.
    pub described: DescribeUse,
}

/// The arguments that a script passes to `airlock.describe`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribeUse {
    /// Tool names that are written in the script.
    pub names: HashSet<String>,
    /// Whether there may be further names, which are known only during the run.
    pub others: bool,
}
