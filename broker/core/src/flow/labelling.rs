//! What a tool reads and writes, and which of its arguments say where to: what
//! our configuration says of it, never what its server says of itself.

use super::field::Field;
use super::label::{Label, Labels};
use crate::facts::Writes;

/// Unlabelled means the worst: the default reads and writes everything, and nothing is known
/// of where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelling {
    /// What its results, and its errors, carry.
    pub reads: Labels,
    pub writes: Writes,
    /// Arguments that say who gets to see, or what is changed.
    pub destinations: Vec<Field>,
    /// A call that names no destination goes to one that is always the same, and fine.
    pub fixed_destination: bool,
    /// Arguments that are paths of files on this machine.
    pub paths: Vec<Field>,
}

impl Default for Labelling {
    fn default() -> Self {
        Self {
            reads: Labels::worst(),
            writes: Writes::default(),
            destinations: Vec::new(),
            fixed_destination: false,
            paths: Vec::new(),
        }
    }
}

impl Labelling {
    /// The worst where these labels are in use: who may read anything may read each class.
    #[must_use]
    pub fn worst<'a>(known: impl IntoIterator<Item = &'a Label>) -> Self {
        let mut worst = Self::default();
        worst.reads.join(&known.into_iter().cloned().collect());
        worst
    }

    /// The stricter of two sayings, in each respect.
    #[must_use]
    pub fn joined(mut self, other: &Self) -> Self {
        self.reads.join(&other.reads);
        self.writes.external |= other.writes.external;
        self.writes.state |= other.writes.state;
        self.fixed_destination &= other.fixed_destination;
        extend(&mut self.destinations, &other.destinations);
        extend(&mut self.paths, &other.paths);
        self
    }

    /// Whether a call can be noticed by anybody at all.
    #[must_use]
    pub fn is_sink(&self) -> bool {
        self.writes.external || self.writes.state
    }
}

fn extend(fields: &mut Vec<Field>, others: &[Field]) {
    for other in others {
        if !fields.contains(other) {
            fields.push(other.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlabelled_tool_reads_every_class_that_is_in_use() {
        let mail = Label::parse("private:mail").unwrap();
        let labelling = Labelling::worst([&mail]);
        assert!(labelling.reads.contains(&mail) && labelling.reads.is_untrusted());
        assert!(labelling.writes.external && labelling.writes.state);
    }

    #[test]
    fn the_stricter_of_two_sayings_is_both() {
        let quiet = Labelling {
            reads: Labels::default(),
            writes: Writes {
                external: false,
                state: true,
            },
            destinations: vec![Field::parse("/a").unwrap()],
            fixed_destination: true,
            paths: Vec::new(),
        };
        let joined = quiet.clone().joined(&Labelling::default());
        assert_eq!(joined.reads, Labels::worst());
        assert!(
            joined.writes.external
                && !joined.fixed_destination
                && joined.destinations == quiet.destinations
        );
    }
}
