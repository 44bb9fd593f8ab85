//! Moves parameters that several tools share into named types. The groups are chosen so that the
//! whole text becomes as short as possible.

use std::collections::{BTreeMap, BTreeSet};

use super::alias::{Aliases, free_name, references};
use super::types::TypeWriter;
use crate::shape::{ExtraKeys, Kind, Object, Property, Shape, ToolShape};

/// Minimum number of tools that must share a group of parameters.
const SHARERS_MIN: usize = 4;
/// The cost of each use of a named group, in characters of plain type text, and the cost of the
/// group itself.
const USE_CHARS: usize = 12;
const NAMING_CHARS: usize = 30;
/// Maximum number of groups that are considered for joining, because every pair is compared.
const GROUPS_JOINED_MAX: usize = 60;
const NAMES: [&str; 8] = ["P", "Q", "R", "S", "U", "V", "W", "X"];

/// Parameters that the same tools share.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub name: String,
    pub properties: Vec<Property>,
    /// The tools' aliases, if the properties refer to named shapes.
    pub names: Vec<String>,
    sharers: BTreeSet<usize>,
    /// Length of its properties as plain type text, in characters.
    chars: usize,
}

#[derive(Debug)]
pub(super) struct Groups {
    pub found: Vec<Group>,
}

impl Groups {
    pub(super) fn find(
        shapes: &[ToolShape],
        aliases: &Aliases,
        is_full: bool,
        taken: &mut BTreeSet<String>,
    ) -> Self {
        let mut found = with_equal_sharers(shapes, aliases, is_full);
        join(&mut found);
        found.retain(Group::pays);
        let mut names = NAMES.iter().copied().chain(std::iter::repeat("P"));
        for group in &mut found {
            group.name = free_name(names.next().unwrap_or("P"), taken);
        }
        Self { found }
    }

    pub(super) fn of(&self, tool: usize) -> Vec<&Group> {
        let shares = |group: &&Group| group.sharers.contains(&tool);
        self.found.iter().filter(shares).collect()
    }
}

impl Group {
    pub(super) fn has(&self, property: &Property) -> bool {
        self.properties.iter().any(|it| it.name == property.name)
    }

    /// Returns the number of characters that the named group saves. Notes do not count, because
    /// they are printed only once in any case.
    fn saving(&self) -> isize {
        let uses = self.sharers.len();
        if uses < SHARERS_MIN {
            return 0;
        }
        let written_out = self.chars * uses;
        let named = self.chars + USE_CHARS * uses + NAMING_CHARS;
        signed(written_out) - signed(named)
    }

    fn pays(&self) -> bool {
        self.saving() > 0
    }

    /// Joins two groups, for the tools that share both.
    fn with(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.properties.extend(other.properties.iter().cloned());
        both.chars += other.chars;
        both.sharers = self.sharers.intersection(&other.sharers).copied().collect();
        both
    }

    fn without(&self, sharers: &BTreeSet<usize>) -> Self {
        let mut rest = self.clone();
        rest.sharers = self.sharers.difference(sharers).copied().collect();
        rest
    }
}

fn signed(count: usize) -> isize {
    isize::try_from(count).unwrap_or(isize::MAX)
}

/// Puts properties that exactly the same tools have into one group.
fn with_equal_sharers(shapes: &[ToolShape], aliases: &Aliases, is_full: bool) -> Vec<Group> {
    let mut sharers: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let mut order: Vec<(String, usize, &Property)> = Vec::new();
    for (tool, shape) in shapes.iter().enumerate() {
        let names = aliases.names_of(tool);
        for property in top_properties(shape) {
            let key = whole_text(property, names, is_full);
            let tools = sharers.entry(key.clone()).or_default();
            if tools.is_empty() {
                order.push((key, tool, property));
            }
            tools.insert(tool);
        }
    }
    let mut groups: Vec<Group> = Vec::new();
    for (key, tool, property) in order {
        let tools = sharers.remove(&key).unwrap_or_default();
        if tools.len() < SHARERS_MIN {
            continue;
        }
        let names = needed_names(property, aliases.names_of(tool));
        let chars = whole_text(property, &names, false).len();
        if let Some(group) = groups
            .iter_mut()
            .find(|it| it.sharers == tools && it.names == names)
        {
            group.properties.push(property.clone());
            group.chars += chars;
        } else {
            groups.push(Group {
                name: String::new(),
                properties: vec![property.clone()],
                names,
                sharers: tools,
                chars,
            });
        }
    }
    groups
}

/// Returns no names for a property without named shapes, so that the property can join any group.
fn needed_names(property: &Property, names: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    references(&property.shape, &mut found);
    if found.is_empty() {
        Vec::new()
    } else {
        names.to_vec()
    }
}

/// Joins pairs of groups, the most useful pair first, as long as that saves characters. A group
/// stays separate for the tools that have only that group.
fn join(groups: &mut Vec<Group>) {
    groups.truncate(GROUPS_JOINED_MAX);
    while let Some((a, b)) = best_pair(groups) {
        let (Some(first), Some(second)) = (groups.get(a).cloned(), groups.get(b).cloned()) else {
            return;
        };
        let both = first.with(&second);
        let rests = [first.without(&both.sharers), second.without(&both.sharers)];
        // `b` comes after `a`, so removing `b` does not move `a`.
        groups.remove(b);
        groups.remove(a);
        groups.push(both);
        groups.extend(
            rests
                .into_iter()
                .filter(|it| it.sharers.len() >= SHARERS_MIN),
        );
    }
}

fn best_pair(groups: &[Group]) -> Option<(usize, usize)> {
    let mut best = (0, None);
    for (a, first) in groups.iter().enumerate() {
        for (b, second) in groups.iter().enumerate().skip(a + 1) {
            if first.names != second.names {
                continue;
            }
            let both = first.with(second);
            if both.sharers.len() < SHARERS_MIN {
                continue;
            }
            let rests = [first.without(&both.sharers), second.without(&both.sharers)];
            let after: isize = rests
                .iter()
                .chain([&both])
                .map(|it| it.saving().max(0))
                .sum();
            let before = first.saving().max(0) + second.saving().max(0);
            if after - before > best.0 {
                best = (after - before, Some((a, b)));
            }
        }
    }
    best.1
}

fn top_properties(shape: &ToolShape) -> &[Property] {
    match &shape.input.kind {
        Kind::Object(object) if !matches!(object.rest, ExtraKeys::Allowed(_)) => &object.properties,
        _ => &[],
    }
}

/// Returns the text that is printed for a property the first time.
fn whole_text(property: &Property, names: &[String], is_full: bool) -> String {
    let alone = Object {
        properties: vec![property.clone()],
        rest: ExtraKeys::Forbidden,
    };
    TypeWriter::new(is_full).write(&Shape::from_kind(Kind::Object(alone)), names, 0)
}
