//! Collects the policies, and the groups that their rules may name. `rule_folder` finds the files,
//! and the core parses the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use airlock_core::id::ToolId;
use airlock_core::policy::ConfiguredWords;
use airlock_core::policy::PolicyFile;
use airlock_core::problem::Problem;
use airlock_core::tool_pattern::ToolPattern;
use codegen::closest::closest_tool;

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
    pub groups: BTreeMap<String, Vec<GroupPattern>>,
    /// The configured roots and labels; `None` if no configuration is known.
    pub words: Option<ConfiguredWords>,
    /// The folders and files of rules.
    pub paths: Vec<PathBuf>,
    /// The folders and files that a configuration file names, and that do not count here.
    pub ignored: Vec<PathBuf>,
}

/// A pattern of a group.
#[derive(Debug, Clone)]
pub struct GroupPattern {
    pub pattern: ToolPattern,
    /// File and line.
    pub origin: String,
}

/// A pattern of the configuration that matches no tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnmatchedPattern {
    /// File and line.
    pub(crate) origin: String,
    /// The use of the pattern, such as `group pattern`.
    pub(crate) kind: &'static str,
    pub(crate) pattern: String,
    /// The tools that were tried, such as `tool`.
    pub(crate) of: String,
    /// The tool with the most similar name.
    pub(crate) closest: Option<String>,
}

/// A folder or a file of rules. If `tightens` is set, it may contain only `forbid` rules.
#[derive(Debug, Clone)]
pub(crate) struct PolicyPath {
    pub(crate) path: PathBuf,
    pub(crate) tightens: bool,
}

/// The groups of a configuration file: names and patterns.
pub(super) type ToolGroups = Vec<(String, Vec<LocatedText>)>;

impl UnmatchedPattern {
    pub(crate) const WHY: &'static str =
        "rules about such tools do not apply to a tool whose name is misspelt here";

    pub(crate) fn what(&self) -> String {
        format!(
            "the {} '{}' matches no {}",
            self.kind, self.pattern, self.of
        )
    }

    pub(crate) fn next(&self) -> String {
        self.closest.as_ref().map_or_else(
            || "`airlock types --detail names` lists all tools".to_owned(),
            |meant| format!("did you mean `{meant}`?"),
        )
    }
}

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
            config.paths.push(path.clone());
            let found = read(path, *tightens)?;
            config.files.extend(found);
        }
        for (name, patterns) in groups {
            let patterns = patterns
                .iter()
                .map(group_pattern)
                .collect::<Result<Vec<_>, _>>()?;
            config.groups.entry(name).or_default().extend(patterns);
        }
        Ok(config)
    }

    /// Returns the patterns of groups that match none of these tools. A rule that forbids a group
    /// does not forbid a tool whose name is misspelt in the group.
    pub(crate) fn unmatched(&self, tools: &[&ToolId]) -> Vec<UnmatchedPattern> {
        let names: Vec<String> = tools.iter().map(ToString::to_string).collect();
        let is_unmatched = |it: &&GroupPattern| !tools.iter().any(|tool| it.pattern.matches(tool));
        let unmatched = self.groups.values().flatten().filter(is_unmatched);
        let unmatched = unmatched.map(|GroupPattern { pattern, origin }| {
            let closest = closest_tool(pattern.as_str(), names.iter().map(String::as_str));
            UnmatchedPattern {
                origin: origin.clone(),
                kind: "group pattern",
                pattern: pattern.as_str().to_owned(),
                of: "tool".to_owned(),
                closest: closest.map(str::to_owned),
            }
        });
        unmatched.collect()
    }

    /// Returns whether there are no policies. Only patterns decide then.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.needs_permit
    }
}

fn group_pattern(at: &LocatedText) -> Result<GroupPattern, Problem> {
    let pattern = ToolPattern::parse(&at.text).map_err(|bad| {
        let what = format!("invalid pattern '{}' ({})", at.text, at.origin);
        let next = "write SERVER.TOOL, with * for any characters";
        invalid_at(&at.origin, what, bad.to_string(), next)
    })?;
    Ok(GroupPattern {
        pattern,
        origin: at.origin.clone(),
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
