//! Collects the policies, and the groups that their rules may name. `rule_folder` finds the files,
//! and the core parses the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use airlock_core::policy::PolicyFile;
use airlock_core::problem::Problem;
use airlock_core::tool_pattern::ToolPattern;

use super::located::LocatedText;
use super::{invalid_at, rule_folder};

const EXTENSION: &str = "cedar";

/// The policy configuration from flags and files.
#[derive(Debug, Clone, Default)]
pub struct PolicyConfig {
    pub files: Vec<PolicyFile>,
    /// Whether a folder is configured that may contain `permit` rules, even if the folder is empty.
    /// Calls that no rule permits are then denied.
    pub needs_permit: bool,
    /// Groups of tools by name. Rules refer to them as `Action::"group:NAME"`.
    pub groups: BTreeMap<String, Vec<ToolPattern>>,
    /// The names of the configured roots.
    pub roots: BTreeSet<String>,
}

/// A folder or a file of rules. If `tightens` is set, it may contain only `forbid` rules.
#[derive(Debug, Clone)]
pub(crate) struct PolicyPath {
    pub(crate) path: PathBuf,
    pub(crate) tightens: bool,
}

/// The groups of a configuration file: names and patterns.
pub(super) type ToolGroups = Vec<(String, Vec<LocatedText>)>;

impl PolicyConfig {
    pub(super) fn gather(paths: &[PolicyPath], groups: ToolGroups) -> Result<Self, Problem> {
        let mut config = Self::default();
        // A folder that a flag and the configuration file name counts once.
        let mut seen = BTreeSet::new();
        for PolicyPath { path, tightens } in paths {
            let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
            if !seen.insert((whole, *tightens)) {
                continue;
            }
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

    /// Returns whether there are no policies. Only patterns decide then.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.needs_permit
    }
}

fn pattern(at: &LocatedText) -> Result<ToolPattern, Problem> {
    ToolPattern::parse(&at.text).map_err(|bad| {
        let what = format!("invalid pattern '{}' ({})", at.text, at.origin);
        let next = "write SERVER.TOOL, with * for any characters";
        invalid_at(&at.origin, what, bad.to_string(), next)
    })
}

/// Reads all `.cedar` files of a folder and its subfolders, sorted by name.
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
