//! Which members of globals, and which bare names, a script uses.

use std::collections::HashSet;

/// What is spoken of. Calls that a script hides from the eye are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// `object.member`, also written `object["member"]`.
    pub members: HashSet<(String, String)>,
    pub names: HashSet<String>,
    /// Tools that the script reads about before it calls them, as far as that is plain to see.
    pub described: Described,
}

/// What a script gives to `airlock.describe`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Described {
    /// Names that stand in the script.
    pub names: HashSet<String>,
    /// Whether there may be others, which only the run knows.
    pub others: bool,
}
