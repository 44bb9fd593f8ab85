//! The typed intermediate form between a JSON Schema and the text generated from it. Whatever this
//! form cannot express is listed as [`Degraded`], and never dropped silently.

use serde_json::Value;

use crate::facts::Facts;

/// The shapes of one tool's arguments and result.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolShape {
    pub input: Shape,
    /// The result as the script gets it, without its wrapper. `None` if the tool declares no
    /// result.
    pub output: Option<Shape>,
    /// Shapes that are used more than once, or that contain themselves.
    pub named: Vec<NamedShape>,
    pub degraded: Vec<Degraded>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NamedShape {
    /// The schema's own name, converted to an identifier; not necessarily unique.
    pub name: String,
    pub shape: Shape,
}

/// Something that the schema requires and the type cannot express. Each call still checks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degraded {
    /// Path of the value, such as `args.filter`.
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
    /// Minimum number of items.
    pub required: usize,
    /// Shape of further items; `None` if no more are allowed.
    pub rest: Option<Box<Shape>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Object {
    /// Properties in the order of the schema.
    pub properties: Vec<Property>,
    pub rest: ExtraKeys,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    pub name: String,
    pub required: bool,
    pub shape: Shape,
}

/// The treatment of keys that a schema does not name.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ExtraKeys {
    /// The schema does not mention such keys. They are accepted, but are probably a mistake.
    #[default]
    Unsaid,
    Forbidden,
    /// Rules for keys that match a pattern, and for their values. A rule without a pattern applies
    /// to all other keys; without such a rule, the schema does not mention other keys.
    Allowed(Vec<ExtraKeyRule>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExtraKeyRule {
    pub pattern: Option<String>,
    pub shape: Shape,
}

impl Shape {
    #[must_use]
    pub fn from_kind(kind: Kind) -> Self {
        Self {
            kind,
            facts: Facts::default(),
        }
    }

    #[must_use]
    pub fn any() -> Self {
        Self::from_kind(Kind::Any)
    }
}
