//! Which policies are in force, and which groups their rules may name. Which
//! files hold them is told by `rule_folder`; what the rules say is the core's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use airlock_core::policy::PolicyFile;
use airlock_core::problem::Problem;
use airlock_core::rules::Pattern;

use super::file::Located;
use super::invalid_at;
use super::rule_folder;

const EXTENSION: &str = "cedar";

/// What flags and files say about policies.
#[derive(Debug, Clone, Default)]
pub struct PolicyConfig {
    pub files: Vec<PolicyFile>,
    /// A folder that may permit is named, if only an empty one: what no rule permits is denied.
    pub needs_permit: bool,
    /// Names for several tools, as rules write them: `Action::"group:NAME"`.
    pub groups: BTreeMap<String, Vec<Pattern>>,
    /// The names of the configured roots.
    pub roots: BTreeSet<String>,
}

/// A folder or a file of rules, and whether it may only tighten.
#[derive(Debug, Clone)]
pub(crate) struct PolicyPath {
    pub(crate) path: PathBuf,
    pub(crate) tightens: bool,
}

/// Groups as a configuration file has them.
pub(super) type Groups = Vec<(String, Vec<Located>)>;

impl PolicyConfig {
    pub(super) fn gather(paths: &[PolicyPath], groups: Groups) -> Result<Self, Problem> {
        let mut config = Self::default();
        for PolicyPath { path, tightens } in paths {
            config.needs_permit |= !tightens;
            let found = read(path, *tightens)?;
            config.files.extend(found);
        }
        for (name, patterns) in groups {
            let patterns = patterns
                .iter()
                .map(pattern)
                .collect::<Result<Vec<_>, _>>()?;
            config.groups.entry(name).or_default().extend(patterns);
        }
        Ok(config)
    }

    /// Whether anything decides besides patterns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.needs_permit
    }
}

fn pattern(at: &Located) -> Result<Pattern, Problem> {
    Pattern::parse(&at.text).map_err(|bad| {
        let what = format!("the pattern '{}' ({}) cannot be read", at.text, at.origin);
        let next = "write SERVER.TOOL, with * for any characters";
        invalid_at(&at.origin, what, bad.to_string(), next)
    })
}

/// All `.cedar` files of a folder and the folders in it, in the order of their names.
pub(crate) fn read(path: &Path, tightens: bool) -> Result<Vec<PolicyFile>, Problem> {
    let files = rule_folder::read(path, EXTENSION)?.into_iter();
    let files = files.map(|(name, text)| {
        rule_folder::is_plain(&name, &text)?;
        Ok(PolicyFile {
            name,
            text,
            tightens,
        })
    });
    files.collect()
}
