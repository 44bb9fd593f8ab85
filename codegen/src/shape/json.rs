//! Writes shapes as JSON, for programs that use the intermediate form itself. Facts that a schema
//! does not state are omitted.

use serde_json::{Map, Value, json};

use super::{Bound, ExtraKeys, Facts, Kind, Object, Range, Shape, ToolShape, Tuple};

/// Writes the shapes of one tool.
#[must_use]
pub fn tool(shape: &ToolShape) -> Value {
    let named = shape.named.iter();
    let named: Vec<Value> = named
        .map(|it| json!({"name": it.name, "shape": one(&it.shape)}))
        .collect();
    let degraded = shape.degraded.iter();
    let degraded: Vec<Value> = degraded
        .map(|it| json!({"path": it.path, "reason": it.reason}))
        .collect();
    let mut members = Map::new();
    members.insert("input".into(), one(&shape.input));
    if let Some(output) = &shape.output {
        members.insert("output".into(), one(output));
    }
    if !named.is_empty() {
        members.insert("named".into(), named.into());
    }
    if !degraded.is_empty() {
        members.insert("degraded".into(), degraded.into());
    }
    Value::Object(members)
}

fn one(shape: &Shape) -> Value {
    let mut members = Map::new();
    kind(&shape.kind, &mut members);
    facts(&shape.facts, &mut members);
    Value::Object(members)
}

fn all(shapes: &[Shape]) -> Value {
    shapes.iter().map(one).collect()
}

fn kind(kind: &Kind, members: &mut Map<String, Value>) {
    let name = match kind {
        Kind::Any => "any",
        Kind::Never => "never",
        Kind::Null => "null",
        Kind::Boolean => "boolean",
        Kind::Number { integer: true } => "integer",
        Kind::Number { integer: false } => "number",
        Kind::String => "string",
        Kind::Literal(value) => {
            members.insert("value".into(), value.clone());
            "literal"
        }
        Kind::Array(item) => {
            members.insert("items".into(), one(item));
            "array"
        }
        Kind::Tuple(tuple) => {
            write_tuple(tuple, members);
            "tuple"
        }
        Kind::Object(object) => {
            write_object(object, members);
            "object"
        }
        Kind::Union(shapes) => {
            members.insert("members".into(), all(shapes));
            "union"
        }
        Kind::Intersection(shapes) => {
            members.insert("members".into(), all(shapes));
            "intersection"
        }
        Kind::Named(index) => {
            members.insert("index".into(), (*index).into());
            "named"
        }
    };
    members.insert("kind".into(), name.into());
}

fn write_tuple(tuple: &Tuple, members: &mut Map<String, Value>) {
    members.insert("items".into(), all(&tuple.items));
    members.insert("required".into(), tuple.required.into());
    if let Some(rest) = &tuple.rest {
        members.insert("rest".into(), one(rest));
    }
}

fn write_object(object: &Object, members: &mut Map<String, Value>) {
    let properties = object.properties.iter();
    let properties: Vec<Value> = properties
        .map(|it| json!({"name": it.name, "required": it.required, "shape": one(&it.shape)}))
        .collect();
    members.insert("properties".into(), properties.into());
    let rest = match &object.rest {
        ExtraKeys::Unsaid => "unsaid".into(),
        ExtraKeys::Forbidden => "forbidden".into(),
        ExtraKeys::Allowed(rules) => rules
            .iter()
            .map(|rule| json!({"pattern": rule.pattern, "shape": one(&rule.shape)}))
            .collect(),
    };
    members.insert("rest".into(), rest);
}

fn facts(facts: &Facts, members: &mut Map<String, Value>) {
    let bound = |bound: &Bound| json!({"limit": bound.limit, "exclusive": bound.exclusive});
    let text = |text: &String| Value::from(text.as_str());
    let found = [
        ("default", facts.default.clone()),
        ("minimum", facts.minimum.as_ref().map(bound)),
        ("maximum", facts.maximum.as_ref().map(bound)),
        ("multiple_of", facts.multiple_of.clone().map(Value::Number)),
        ("length", range(facts.length)),
        ("count", range(facts.items)),
        ("keys", range(facts.properties)),
        ("unique", facts.unique.then_some(Value::Bool(true))),
        ("pattern", facts.pattern.as_ref().map(text)),
        ("format", facts.format.as_ref().map(text)),
        ("content", facts.content.as_ref().map(text)),
        ("examples", list(&facts.examples)),
        ("deprecated", facts.deprecated.then_some(Value::Bool(true))),
        ("rules", list(&facts.rules)),
        ("text", facts.text.as_ref().map(text)),
    ];
    for (name, value) in found {
        if let Some(value) = value {
            members.insert(name.into(), value);
        }
    }
}

fn range(range: Range) -> Option<Value> {
    let is_open = range.min.is_none() && range.max.is_none();
    (!is_open).then(|| json!({"min": range.min, "max": range.max}))
}

fn list<T: Clone + Into<Value>>(items: &[T]) -> Option<Value> {
    (!items.is_empty()).then(|| items.iter().cloned().map(Into::into).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Description;

    #[test]
    fn shape_json_states_what_schema_states() {
        let schema = json!({"type": "object", "properties": {
            "n": {"type": ["integer", "null"], "minimum": 1, "default": 2},
            "t": {"enum": ["a", "b"]},
        }, "required": ["t"], "additionalProperties": false});
        let tool = json!({"name": "x", "inputSchema": schema});
        let shape = crate::shape::tool_shape(&Description::parse("s", &tool).unwrap());
        let found = super::tool(&shape);
        assert_eq!(found["input"]["rest"], "forbidden");
        assert_eq!(found["input"]["properties"][1]["required"], true);
        assert_eq!(found["input"]["properties"][0]["shape"]["default"], 2);
        assert_eq!(found["input"]["properties"][1]["shape"]["kind"], "union");
        assert!(found.get("output").is_none() && found.get("degraded").is_none());
    }
}
