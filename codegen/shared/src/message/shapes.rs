//! Encodes the shapes of one tool, limited to what the check of a script needs: without
//! descriptions, defaults and examples.

use sandbox_protocol::codec::CodecError;
use sandbox_protocol::codec::wire::{Reader, Writer};
use serde::de::DeserializeOwned;

use super::{read_optional, write_optional};
use crate::facts::{Bound, Facts, Range};
use crate::shape::{
    ExtraKeyRule, ExtraKeys, Kind, NamedShape, Object, Property, Shape, ToolShape, Tuple,
};

type Decoded<T> = Result<T, CodecError>;

/// Maximum depth of nested shapes. A deeper shape is sent as one that accepts anything.
const DEPTH_MAX: usize = 64;

pub fn encode_shape(tool: &ToolShape) -> Decoded<Vec<u8>> {
    let mut w = Writer::bare(Vec::new());
    write_shape(&mut w, &tool.input, 0);
    write_optional(&mut w, tool.output.as_ref(), |w, it| write_shape(w, it, 0));
    w.count(tool.named.len());
    for named in &tool.named {
        w.text(&named.name);
        write_shape(&mut w, &named.shape, 0);
    }
    w.finish()
}

/// Decodes the output of [`encode_shape`].
pub fn decode_shape(bytes: &[u8]) -> Decoded<ToolShape> {
    let mut r = Reader::bare(bytes);
    let shape = ToolShape {
        input: read_shape(&mut r)?,
        output: read_optional(&mut r, read_shape)?,
        named: r.sequence("named shapes", |r| {
            Ok(NamedShape {
                name: r.text("name")?,
                shape: read_shape(r)?,
            })
        })?,
        degraded: Vec::new(),
    };
    r.finish()?;
    Ok(shape)
}

fn write_shape(w: &mut Writer, shape: &Shape, depth: usize) {
    if depth > DEPTH_MAX {
        w.u8(0);
        return write_facts(w, &Facts::default());
    }
    let below = depth + 1;
    match &shape.kind {
        Kind::Any => w.u8(0),
        Kind::Never => w.u8(1),
        Kind::Null => w.u8(2),
        Kind::Boolean => w.u8(3),
        Kind::Number { integer: false } => w.u8(4),
        Kind::Number { integer: true } => w.u8(5),
        Kind::String => w.u8(6),
        Kind::Literal(value) => {
            w.u8(7);
            w.text(&value.to_string());
        }
        Kind::Array(items) => {
            w.u8(8);
            write_shape(w, items, below);
        }
        Kind::Tuple(tuple) => {
            w.u8(9);
            write_shapes(w, &tuple.items, below);
            w.count(tuple.required);
            write_optional(w, tuple.rest.as_ref(), |w, it| write_shape(w, it, below));
        }
        Kind::Object(object) => {
            w.u8(10);
            write_object(w, object, below);
        }
        Kind::Union(members) => {
            w.u8(11);
            write_shapes(w, members, below);
        }
        Kind::Intersection(members) => {
            w.u8(12);
            write_shapes(w, members, below);
        }
        Kind::Named(index) => {
            w.u8(13);
            w.count(*index);
        }
    }
    write_facts(w, &shape.facts);
}

fn write_shapes(w: &mut Writer, shapes: &[Shape], depth: usize) {
    w.count(shapes.len());
    shapes.iter().for_each(|it| write_shape(w, it, depth));
}

fn write_object(w: &mut Writer, object: &Object, depth: usize) {
    w.count(object.properties.len());
    for property in &object.properties {
        w.text(&property.name);
        w.bool(property.required);
        write_shape(w, &property.shape, depth);
    }
    match &object.rest {
        ExtraKeys::Unsaid => w.u8(0),
        ExtraKeys::Forbidden => w.u8(1),
        ExtraKeys::Allowed(rules) => {
            w.u8(2);
            w.count(rules.len());
            for rule in rules {
                write_optional(w, rule.pattern.as_ref(), |w, it| w.text(it));
                write_shape(w, &rule.shape, depth);
            }
        }
    }
}

fn write_facts(w: &mut Writer, facts: &Facts) {
    let write_bound = |w: &mut Writer, bound: &Bound| {
        w.text(&bound.limit.to_string());
        w.bool(bound.exclusive);
    };
    let Range { min, max } = facts.length;
    let is_plain =
        facts.minimum.is_none() && facts.maximum.is_none() && min.is_none() && max.is_none();
    w.bool(!is_plain);
    if is_plain {
        return;
    }
    write_optional(w, facts.minimum.as_ref(), write_bound);
    write_optional(w, facts.maximum.as_ref(), write_bound);
    write_optional(w, min.as_ref(), |w, it| w.u64(*it));
    write_optional(w, max.as_ref(), |w, it| w.u64(*it));
}

fn read_shape(r: &mut Reader<'_>) -> Decoded<Shape> {
    let kind = match r.u8("shape")? {
        0 => Kind::Any,
        1 => Kind::Never,
        2 => Kind::Null,
        3 => Kind::Boolean,
        4 => Kind::Number { integer: false },
        5 => Kind::Number { integer: true },
        6 => Kind::String,
        7 => Kind::Literal(read_json(r)?),
        8 => Kind::Array(Box::new(read_shape(r)?)),
        9 => Kind::Tuple(Tuple {
            items: r.sequence("items", read_shape)?,
            required: r.u32("required items")? as usize,
            rest: read_optional(r, read_shape)?.map(Box::new),
        }),
        10 => Kind::Object(read_object(r)?),
        11 => Kind::Union(r.sequence("alternatives", read_shape)?),
        12 => Kind::Intersection(r.sequence("parts", read_shape)?),
        13 => Kind::Named(r.u32("named shape")? as usize),
        tag => return Err(CodecError::UnknownTag { what: "shape", tag }),
    };
    let facts = read_facts(r)?;
    Ok(Shape { kind, facts })
}

fn read_object(r: &mut Reader<'_>) -> Decoded<Object> {
    Ok(Object {
        properties: r.sequence("properties", |r| {
            Ok(Property {
                name: r.text("property")?,
                required: r.bool("required")?,
                shape: read_shape(r)?,
            })
        })?,
        rest: match r.u8("other keys")? {
            0 => ExtraKeys::Unsaid,
            1 => ExtraKeys::Forbidden,
            2 => ExtraKeys::Allowed(r.sequence("rules", |r| {
                Ok(ExtraKeyRule {
                    pattern: read_optional(r, |r| r.text("pattern"))?,
                    shape: read_shape(r)?,
                })
            })?),
            tag => {
                return Err(CodecError::UnknownTag {
                    what: "other keys",
                    tag,
                });
            }
        },
    })
}

fn read_facts(r: &mut Reader<'_>) -> Decoded<Facts> {
    if !r.bool("facts")? {
        return Ok(Facts::default());
    }
    let read_bound = |r: &mut Reader<'_>| {
        Ok(Bound {
            limit: read_json(r)?,
            exclusive: r.bool("bound")?,
        })
    };
    Ok(Facts {
        minimum: read_optional(r, read_bound)?,
        maximum: read_optional(r, read_bound)?,
        length: Range {
            min: read_optional(r, |r| r.u64("length"))?,
            max: read_optional(r, |r| r.u64("length"))?,
        },
        ..Facts::default()
    })
}

/// Reads a JSON value or number.
fn read_json<T: DeserializeOwned>(r: &mut Reader<'_>) -> Decoded<T> {
    let text = r.borrowed_text("JSON")?;
    serde_json::from_str(text).map_err(|_| CodecError::NotText { what: "JSON" })
}
