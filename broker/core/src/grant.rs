//! A human's yes to more than one call: all calls of one tool, with the
//! description that was shown, in this run, up to a number of uses.
//!
//! A grant lifts "ask" to "allow" and never lifts a denial. Grants live as long
//! as the run does, and a use is consumed in the same act that allows a call.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;

use crate::id::{Digest, GrantId, ToolId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub id: GrantId,
    pub tool: ToolId,
    pub description_digest: Digest,
    pub uses_max: NonZeroU32,
    pub uses: u32,
}

/// Which use of which grant allowed a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    pub grant: GrantId,
    pub number: u32,
    pub uses_max: NonZeroU32,
}

/// All grants of one run that have uses left, and how often each tool was allowed in it.
#[derive(Debug, Default)]
pub struct Grants {
    given: u32,
    /// In the order in which they were given.
    open: HashMap<(ToolId, Digest), VecDeque<Grant>>,
    allowed: HashMap<ToolId, u32>,
}

impl Grants {
    pub fn give(
        &mut self,
        tool: &ToolId,
        description_digest: Digest,
        uses_max: NonZeroU32,
    ) -> GrantId {
        self.given = self.given.saturating_add(1);
        let id = GrantId(self.given);
        let key = (tool.clone(), description_digest);
        self.open.entry(key).or_default().push_back(Grant {
            id,
            tool: tool.clone(),
            description_digest,
            uses_max,
            uses: 0,
        });
        id
    }

    /// Takes one use of the first grant that covers this tool with this description.
    pub fn consume(&mut self, tool: &ToolId, description_digest: Digest) -> Option<Use> {
        let key = (tool.clone(), description_digest);
        let grants = self.open.get_mut(&key)?;
        let grant = grants.front_mut()?;
        grant.uses += 1;
        let used = Use {
            grant: grant.id,
            number: grant.uses,
            uses_max: grant.uses_max,
        };
        if grant.uses == grant.uses_max.get() {
            grants.pop_front();
        }
        if grants.is_empty() {
            self.open.remove(&key);
        }
        Some(used)
    }

    #[must_use]
    pub fn covers(&self, tool: &ToolId, description_digest: Digest) -> bool {
        self.open.contains_key(&(tool.clone(), description_digest))
    }

    /// Whether no grant has uses left.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.open.is_empty()
    }

    /// How many calls of this tool have been allowed in this run.
    #[must_use]
    pub fn allowed_so_far(&self, tool: &ToolId) -> u32 {
        self.allowed.get(tool).copied().unwrap_or(0)
    }

    pub(crate) fn note_allowed(&mut self, tool: &ToolId) {
        match self.allowed.get_mut(tool) {
            Some(count) => *count = count.saturating_add(1),
            None => {
                self.allowed.insert(tool.clone(), 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uses_max: u32, asked: &[(&str, &str)], expected: &[bool]) {
        let id = |text: &str| ToolId::parse(text).unwrap();
        let mut grants = Grants::default();
        grants.give(
            &id("fs.write"),
            Digest::of(b"v1"),
            NonZeroU32::new(uses_max).unwrap(),
        );
        let covered: Vec<_> = asked
            .iter()
            .map(|(tool, text)| {
                grants
                    .consume(&id(tool), Digest::of(text.as_bytes()))
                    .is_some()
            })
            .collect();
        assert_eq!(covered, expected);
    }

    #[test]
    fn a_used_grant_does_not_allow_one_more_call() {
        check(2, &[("fs.write", "v1"); 3], &[true, true, false]);
    }

    #[test]
    fn a_grant_covers_only_its_tool_with_its_description() {
        check(
            9,
            &[("fs.delete", "v1"), ("git.write", "v1"), ("fs.write", "v2")],
            &[false; 3],
        );
    }
}
