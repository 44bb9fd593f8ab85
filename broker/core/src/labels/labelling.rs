//! Defines what a tool reads and writes, and which arguments name the destination. A labelling
//! comes from the configuration, never from the server.

use codegen::description::Description;
use codegen::shape::{ToolShape, tool_shape};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::field::Field;
use super::label::{Label, Labels};

/// The labelling of one tool. The default is the worst case: the tool reads and writes everything,
/// and no argument is known to name a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelling {
    /// Labels of the tool's results and errors.
    pub reads: Labels,
    pub writes: Writes,
    /// Arguments that name the receiver of the data, or the thing that is changed.
    pub destinations: Vec<Field>,
    /// Whether a call without a named destination always goes to the same destination, which is
    /// acceptable.
    pub fixed_destination: bool,
    /// Arguments that are file paths on this machine.
    pub paths: Vec<Field>,
    /// Labelled arguments that the tool's input schema does not have. No fact comes from them, and
    /// a call that has one is refused.
    pub unfit: Vec<Field>,
}

/// The effects that a tool has with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writes {
    /// Whether the arguments are sent to others outside.
    pub external: bool,
    /// Whether a call changes something outside.
    pub state: bool,
}

impl Default for Writes {
    /// Returns the worst case, for a tool without labels.
    fn default() -> Self {
        Self {
            external: true,
            state: true,
        }
    }
}

impl Default for Labelling {
    fn default() -> Self {
        Self {
            reads: Labels::worst(),
            writes: Writes::default(),
            destinations: Vec::new(),
            fixed_destination: false,
            paths: Vec::new(),
            unfit: Vec::new(),
        }
    }
}

impl Labelling {
    /// Returns the worst case if these labels are in use: the tool may read data of every known
    /// class.
    #[must_use]
    pub fn worst<'a>(known: impl IntoIterator<Item = &'a Label>) -> Self {
        let mut worst = Self::default();
        worst.reads.join(&known.into_iter().cloned().collect());
        worst
    }

    /// Combines two labellings; the stricter value of each property counts.
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

    /// Returns the labelling for a tool with this input schema. Facts about a call come only from
    /// arguments that the schema has: a server may ignore any other argument and use a different
    /// one instead.
    #[must_use]
    pub fn fitted(mut self, input_schema: &Value) -> Self {
        if self.destinations.is_empty() && self.paths.is_empty() {
            return self;
        }
        let shape = input_shape(input_schema);
        let fits = |field: &Field| shape.as_ref().is_some_and(|shape| field.fits(shape));
        for fields in [&mut self.destinations, &mut self.paths] {
            let (fit, unfit) = fields.drain(..).partition(fits);
            *fields = fit;
            extend(&mut self.unfit, &unfit);
        }
        self
    }

    /// Returns why a call with these arguments is refused, whatever the rules say.
    #[must_use]
    pub fn objection(&self, args: &Value) -> Option<String> {
        let mut unfit = self.unfit.iter();
        let field = unfit.find(|field| !field.leaves(args).is_empty())?;
        Some(format!(
            "`{field}` is not in the tool's input schema, and a label names it"
        ))
    }

    /// Whether a call can have any effect outside.
    #[must_use]
    pub fn is_sink(&self) -> bool {
        self.writes.external || self.writes.state
    }
}

/// Returns the shapes of a tool's arguments; `None` if the schema cannot be read.
fn input_shape(input_schema: &Value) -> Option<ToolShape> {
    let tool = json!({"name": "tool", "inputSchema": input_schema});
    let description = Description::parse("server", &tool).ok()?;
    Some(tool_shape(&description))
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
    fn unlabelled_tool_reads_every_class_in_use() {
        let mail = Label::parse("private:mail").unwrap();
        let labelling = Labelling::worst([&mail]);
        assert!(labelling.reads.contains(&mail) && labelling.reads.is_untrusted());
        assert!(labelling.writes.external && labelling.writes.state);
    }

    #[test]
    fn argument_outside_schema_gives_no_fact_and_is_refused() {
        let field = |text: &str| Field::parse(text).unwrap();
        let schema = json!({"type": "object", "properties": {"file": {"type": "string"}}});
        let labelling = Labelling {
            paths: vec![field("/path"), field("/file")],
            ..Labelling::default()
        };
        let fitted = labelling.fitted(&schema);
        assert_eq!(
            (&*fitted.paths, &*fitted.unfit),
            (&[field("/file")][..], &[field("/path")][..])
        );
        assert_eq!(fitted.objection(&json!({"file": "/etc/passwd"})), None);
        let why = fitted.objection(&json!({"file": "/etc/passwd", "path": "/srv/x"}));
        assert!(
            why.unwrap()
                .contains("`/path` is not in the tool's input schema")
        );
    }

    #[test]
    fn stricter_combines_both_labellings() {
        let quiet = Labelling {
            reads: Labels::default(),
            writes: Writes {
                external: false,
                state: true,
            },
            destinations: vec![Field::parse("/a").unwrap()],
            fixed_destination: true,
            ..Labelling::default()
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
