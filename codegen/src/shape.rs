//! Derives the typed intermediate form of a schema, from which text is generated. Whatever this
//! form cannot express is listed, and never dropped silently.

mod combine;
pub(crate) mod extra_keys;
pub mod json;
mod keywords;
mod lower;

use serde_json::Value;

pub use codegen_shared::facts::{Bound, Facts, Range};
pub use codegen_shared::shape::{
    Degraded, ExtraKeyRule, ExtraKeys, Kind, NamedShape, Object, Property, Shape, ToolShape, Tuple,
};

use crate::description::Description;
use crate::unwrap;

/// Derives the shapes of a tool from its schemas.
#[must_use]
pub fn tool_shape(description: &Description) -> ToolShape {
    let mut named = Vec::new();
    let mut degraded = Vec::new();
    let input = &description.input_schema;
    let mut lowering =
        lower::Lowering::new(input, "args", &description.name, &mut named, &mut degraded);
    let input = as_arguments(lowering.root(input));
    let output = description.output_schema.as_deref().map(|schema| {
        let mut lowering = lower::Lowering::new(
            schema,
            "result",
            &description.name,
            &mut named,
            &mut degraded,
        );
        let inner = unwrap::inner_schema(schema).filter(|_| description.unwraps());
        lowering.root(inner.unwrap_or(schema))
    });
    ToolShape {
        input,
        output,
        named,
        degraded,
    }
}

/// Turns a shape into an object. Arguments are always an object, even if the schema does not
/// require it.
fn as_arguments(shape: Shape) -> Shape {
    let open = Object {
        properties: Vec::new(),
        rest: ExtraKeys::Allowed(vec![ExtraKeyRule {
            pattern: None,
            shape: Shape::any(),
        }]),
    };
    match shape.kind {
        Kind::Any => Shape {
            kind: Kind::Object(open),
            facts: shape.facts,
        },
        Kind::Union(members) => {
            let objects: Vec<Shape> = members
                .into_iter()
                .filter(|it| may_be_object(&it.kind))
                .collect();
            Shape {
                kind: combine::union_kind(objects),
                facts: shape.facts,
            }
        }
        _ => shape,
    }
}

fn may_be_object(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Object(_) | Kind::Named(_) | Kind::Intersection(_) | Kind::Union(_)
    ) || matches!(kind, Kind::Literal(Value::Object(_)))
}
