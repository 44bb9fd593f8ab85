//! The typed middle form between a JSON Schema and any text made from it. What a schema says and
//! this form cannot is listed, never dropped in silence.

use serde_json::Value;

use crate::facts::Facts;

/// The shapes of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolShape {
    pub input: Shape,
    /// Of what the script is given: wrappers are taken off. Absent when the tool declares nothing.
    pub output: Option<Shape>,
    /// Shapes that are referred to more than once, or contain themselves.
    pub named: Vec<NamedShape>,
    pub degraded: Vec<Degraded>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NamedShape {
    /// As the schema calls it, made an identifier; not yet unique.
    pub name: String,
    pub shape: Shape,
}

/// Something that the schema says and the type does not. It is still checked on each call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degraded {
    /// Where, such as `args.filter`.
    pub path: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pub kind: Kind,
    pub facts: Facts,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Any,
    Never,
    Null,
    Boolean,
    Number {
        integer: bool,
    },
    String,
    /// Exactly this value.
    Literal(Value),
    Array(Box<Shape>),
    Tuple(Tuple),
    Object(Object),
    Union(Vec<Shape>),
    Intersection(Vec<Shape>),
    /// Index into [`ToolShape::named`].
    Named(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tuple {
    pub items: Vec<Shape>,
    /// How many of the items must be there.
    pub required: usize,
    /// What may follow them; `None` when nothing may.
    pub rest: Option<Box<Shape>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Object {
    /// In the order of the schema.
    pub properties: Vec<Property>,
    pub rest: Rest,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    pub name: String,
    pub required: bool,
    pub shape: Shape,
}

/// What a schema says about keys that it does not name.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Rest {
    /// Nothing. They pass, and are probably a mistake.
    #[default]
    Unsaid,
    Forbidden,
    /// Keys of certain forms, with what their values are. A rule without a pattern is about all
    /// other keys; when there is none, they are not spoken of.
    Allowed(Vec<RestRule>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct RestRule {
    pub pattern: Option<String>,
    pub shape: Shape,
}

impl Shape {
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        Self {
            kind,
            facts: Facts::default(),
        }
    }

    #[must_use]
    pub fn any() -> Self {
        Self::of(Kind::Any)
    }
}
