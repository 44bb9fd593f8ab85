//! The arguments as a rule sees them: the part of a tool's input schema that Cedar can express
//! exactly. Everything else (a fraction, `null`, an object without named properties, two types in
//! one place) is omitted and reported as unmodelled. It is never rounded or guessed.

use std::collections::BTreeMap;

use codegen::shape::{Kind, NamedShape, Object, Shape, ToolShape};
use serde_json::{Map, Value as Json, json};

use super::context_value::{ContextValue, Members};
use super::mentions::{ArgRead, pointer_step};

/// Maximum number of shapes modelled for one tool. Further shapes are unmodelled.
const SHAPES_MAX: usize = 5_000;
const DEPTH_MAX: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    Bool,
    /// An integer that fits into 64 bits.
    Long,
    String,
    /// A set of booleans, numbers or texts, all of the same type.
    Set(Box<Type>),
    Record(Record),
}

/// Whether a value of this type can fit the schema and still be invisible to rules.
fn is_bounded(kind: &Type) -> bool {
    match kind {
        Type::Long => true,
        Type::Set(member) => is_bounded(member),
        Type::Bool | Type::String | Type::Record(_) => false,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record(pub BTreeMap<String, Member>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Whether the member is present in every call that fits the input schema.
    pub always: bool,
    /// The type of the member; `None` if it is unmodelled.
    pub kind: Option<Type>,
    /// Whether a call that fits the input schema can have a value here that rules do not see: a
    /// number beyond 64 bits, `null`, or a value of another type.
    pub may_be_lost: bool,
}

impl Record {
    /// Returns the arguments of a tool as rules can see them.
    pub(crate) fn from_shape(shape: &ToolShape) -> Self {
        let mut modeller = Modeller {
            named: &shape.named,
            depth: 0,
            shapes: 0,
        };
        match modeller.model(&shape.input).kind {
            Some(Type::Record(record)) => record,
            _ => Self::default(),
        }
    }

    /// Returns the pointers to the arguments that may be unmodelled in a call, so that this read
    /// does not see them. Returns `None` if the rule reads a whole record, whose members cannot be
    /// listed.
    pub fn may_hide(&self, read: &ArgRead) -> Option<Vec<String>> {
        let mut found = Vec::new();
        let mut pointer = String::new();
        let mut record = Some(self);
        for step in read.pointer.split('/').skip(1) {
            pointer.push_str(&format!("/{step}"));
            let within = record.take().into_iter().flat_map(|record| &record.0);
            let mut named = within.filter(|(name, _)| pointer_step(name).get(1..) == Some(step));
            let member = named.next().map(|(_, member)| member);
            if member.is_none_or(|member| member.may_be_lost) {
                found.push(pointer.clone());
            }
            match member.and_then(|member| member.kind.as_ref()) {
                Some(Type::Record(inner)) => record = Some(inner),
                _ => return Some(found),
            }
        }
        (!read.is_value).then_some(found)
    }

    /// Returns the record type for a Cedar schema.
    pub fn schema(&self) -> Json {
        let attribute = |(name, member): (&String, &Member)| {
            let mut schema = member.kind.as_ref()?.schema();
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("required".into(), member.always.into());
            }
            Some((name.clone(), schema))
        };
        let attributes: Map<_, _> = self.0.iter().filter_map(attribute).collect();
        json!({"type": "Record", "attributes": attributes})
    }

    /// Returns the members of an object that pass `is_wanted`, as rules see them. Adds pointers to
    /// the unmodelled parts to `lost`.
    pub fn values<'a>(
        &self,
        object: &'a Map<String, Json>,
        is_wanted: impl Fn(&str) -> bool,
        lost: &mut UnmodelledArgs,
    ) -> Members<'a> {
        let mut values = Members::new();
        for (name, value) in object {
            if !is_wanted(name) {
                continue;
            }
            lost.enter(name);
            match self.0.get(name).and_then(|member| member.kind.as_ref()) {
                Some(kind) => {
                    if let Some(value) = kind.value(value, lost) {
                        values.insert(name, value);
                    }
                }
                None => lost.here(),
            }
            lost.leave();
        }
        values
    }
}

impl Type {
    fn is_single(&self) -> bool {
        matches!(self, Self::Bool | Self::Long | Self::String)
    }

    fn schema(&self) -> Json {
        match self {
            Self::Bool => json!({"type": "Boolean"}),
            Self::Long => json!({"type": "Long"}),
            Self::String => json!({"type": "String"}),
            Self::Set(member) => json!({"type": "Set", "element": member.schema()}),
            Self::Record(record) => record.schema(),
        }
    }

    fn value<'a>(&self, value: &'a Json, lost: &mut UnmodelledArgs) -> Option<ContextValue<'a>> {
        let found = match (self, value) {
            (Self::Bool, Json::Bool(truth)) => Some(ContextValue::Truth(*truth)),
            (Self::Long, Json::Number(number)) => whole(number).map(ContextValue::Whole),
            (Self::String, Json::String(text)) => Some(ContextValue::text(text)),
            (Self::Set(member), Json::Array(items)) => {
                let mut inner = UnmodelledArgs::default();
                let items: Option<Vec<_>> = items
                    .iter()
                    .map(|item| member.value(item, &mut inner))
                    .collect();
                items.map(ContextValue::Set)
            }
            (Self::Record(record), Json::Object(object)) => {
                Some(ContextValue::Record(record.values(object, |_| true, lost)))
            }
            _ => None,
        };
        if found.is_none() {
            lost.here();
        }
        found
    }
}

/// Returns the number if its value is exactly a 64-bit integer. A float counts only up to 2⁵³.
fn whole(number: &serde_json::Number) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        let is_exact = float.fract() == 0.0 && float.abs() <= EXACT_MAX;
        #[expect(clippy::cast_possible_truncation, reason = "whole, and within 53 bits")]
        is_exact.then_some(float as i64)
    })
}

/// JSON pointers to the parts of the arguments that a rule does not see.
#[derive(Debug, Default)]
pub struct UnmodelledArgs {
    way: Vec<String>,
    pub pointers: Vec<String>,
}

impl UnmodelledArgs {
    fn enter(&mut self, name: &str) {
        self.way.push(pointer_step(name));
    }

    fn leave(&mut self) {
        self.way.pop();
    }

    fn here(&mut self) {
        self.pointers.push(self.way.concat());
    }
}

struct Modeller<'a> {
    named: &'a [NamedShape],
    depth: usize,
    shapes: usize,
}

#[derive(Default)]
struct ModelledType {
    kind: Option<Type>,
    nullable: bool,
}

impl From<Type> for ModelledType {
    fn from(kind: Type) -> Self {
        Self {
            kind: Some(kind),
            nullable: false,
        }
    }
}

impl Modeller<'_> {
    fn model(&mut self, shape: &Shape) -> ModelledType {
        self.shapes += 1;
        if self.shapes > SHAPES_MAX || self.depth >= DEPTH_MAX {
            return ModelledType::default();
        }
        self.depth += 1;
        let modelled = self.kind(&shape.kind);
        self.depth -= 1;
        modelled
    }

    fn kind(&mut self, kind: &Kind) -> ModelledType {
        match kind {
            Kind::Boolean => Type::Bool.into(),
            Kind::Number { integer: true } => Type::Long.into(),
            Kind::String => Type::String.into(),
            Kind::Null => null(),
            Kind::Literal(value) => literal(value),
            Kind::Array(item) => match self.model(item) {
                ModelledType {
                    kind: Some(kind),
                    nullable: false,
                } if kind.is_single() => Type::Set(Box::new(kind)).into(),
                _ => ModelledType::default(),
            },
            Kind::Object(object) => Type::Record(self.object(object)).into(),
            Kind::Union(members) => self.union(members),
            Kind::Intersection(members) => self.intersection(members),
            // A recursive shape ends at the maximum depth.
            Kind::Named(index) => match self.named.get(*index) {
                Some(named) => self.model(&named.shape),
                None => ModelledType::default(),
            },
            Kind::Number { integer: false } | Kind::Any | Kind::Never | Kind::Tuple(_) => {
                ModelledType::default()
            }
        }
    }

    fn object(&mut self, object: &Object) -> Record {
        let member = |property: &codegen::shape::Property| {
            let modelled = self.model(&property.shape);
            let member = Member {
                always: property.required && !modelled.nullable,
                may_be_lost: modelled.nullable || modelled.kind.as_ref().is_none_or(is_bounded),
                kind: modelled.kind,
            };
            (property.name.clone(), member)
        };
        Record(object.properties.iter().map(member).collect())
    }

    fn union(&mut self, members: &[Shape]) -> ModelledType {
        let all: Vec<ModelledType> = members.iter().map(|member| self.model(member)).collect();
        let nullable = all.iter().any(|member| member.nullable);
        let kinds = all
            .into_iter()
            .filter(|it| it.kind.is_some() || !it.nullable);
        let kinds: Option<Vec<Type>> = kinds.map(|it| it.kind).collect();
        let kind = kinds.and_then(|kinds| kinds.into_iter().map(Some).reduce(either).flatten());
        ModelledType { kind, nullable }
    }

    fn intersection(&mut self, members: &[Shape]) -> ModelledType {
        let all: Vec<ModelledType> = members.iter().map(|member| self.model(member)).collect();
        // A member without a type may accept `null` too.
        let accepts_null = all.iter().all(|it| it.nullable || it.kind.is_none());
        let kinds = all.into_iter().filter_map(|it| it.kind);
        let kind = kinds.map(Some).reduce(both).flatten();
        ModelledType {
            nullable: accepts_null && kind.is_some(),
            kind,
        }
    }
}

fn null() -> ModelledType {
    ModelledType {
        kind: None,
        nullable: true,
    }
}

fn literal(value: &Json) -> ModelledType {
    match value {
        Json::Null => null(),
        Json::Bool(_) => Type::Bool.into(),
        Json::String(_) => Type::String.into(),
        Json::Number(number) if whole(number).is_some() => Type::Long.into(),
        _ => ModelledType::default(),
    }
}

/// Returns the type of a value that has one of two types.
fn either(one: Option<Type>, other: Option<Type>) -> Option<Type> {
    merged(one?, other?, |a, b| a && b, false)
}

/// Returns the type of a value that has both types.
fn both(one: Option<Type>, other: Option<Type>) -> Option<Type> {
    merged(one?, other?, |a, b| a || b, true)
}

/// Merges two types. `alone` says whether a member that is required on one side stays required if
/// the other side does not name the member.
fn merged(one: Type, other: Type, always: fn(bool, bool) -> bool, alone: bool) -> Option<Type> {
    let (Type::Record(Record(one)), Type::Record(Record(mut other))) = (&one, other.clone()) else {
        return (one == other).then_some(one);
    };
    let mut members = BTreeMap::new();
    for (name, member) in one {
        let member = match other.remove(name) {
            Some(second) => {
                let kind = match (member.kind.clone(), second.kind) {
                    (Some(a), Some(b)) => merged(a, b, always, alone),
                    _ => None,
                };
                Member {
                    always: always(member.always, second.always),
                    may_be_lost: member.may_be_lost || second.may_be_lost || kind.is_none(),
                    kind,
                }
            }
            None => member_alone(member.clone(), alone),
        };
        members.insert(name.clone(), member);
    }
    for (name, member) in other {
        members.insert(name, member_alone(member, alone));
    }
    Some(Type::Record(Record(members)))
}

fn member_alone(member: Member, alone: bool) -> Member {
    Member {
        always: member.always && alone,
        // Another alternative may accept any value under this name.
        may_be_lost: member.may_be_lost || !alone,
        ..member
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codegen::description::Description;

    fn record(properties: &Json, required: &Json) -> Record {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let tool = json!({"name": "t", "inputSchema": schema});
        Record::from_shape(&codegen::shape::tool_shape(
            &Description::parse("s", &tool).unwrap(),
        ))
    }

    /// Checks the schema of the arguments. In `expected`, `?` marks optional members. Unmodelled
    /// members are omitted.
    fn check(schema: &Json, expected: &str) {
        let record = record(&json!({ "x": schema }), &json!(["x"]));
        let spelt = record.0["x"].kind.as_ref().map(spelt);
        let mark = if record.0["x"].always { "" } else { "?" };
        let found = spelt.map_or_else(|| "none".to_owned(), |it| format!("{it}{mark}"));
        assert_eq!(found, expected, "{schema}");
    }

    fn spelt(kind: &Type) -> String {
        match kind {
            Type::Bool => "Bool".into(),
            Type::Long => "Long".into(),
            Type::String => "String".into(),
            Type::Set(member) => format!("Set<{}>", spelt(member)),
            Type::Record(Record(members)) => {
                let member = |(name, member): (&String, &Member)| {
                    let mark = if member.always { "" } else { "?" };
                    let kind = member.kind.as_ref()?;
                    Some(format!("{name}{mark}: {}", spelt(kind)))
                };
                let members: Vec<_> = members.iter().filter_map(member).collect();
                format!("{{{}}}", members.join(", "))
            }
        }
    }

    #[test]
    fn only_exact_cedar_types_are_modelled() {
        for (schema, expected) in [
            (json!({"type": "string"}), "String"),
            (json!({"type": "integer"}), "Long"),
            (json!({"type": "number"}), "none"),
            (json!({"type": "boolean"}), "Bool"),
            (json!({"enum": ["a", "b"]}), "String"),
            (json!({"enum": ["a", 1]}), "none"),
            (json!({"const": 3}), "Long"),
            (json!({"const": 1.5}), "none"),
            (json!({"type": ["string", "null"]}), "String?"),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
                "none",
            ),
            (
                json!({"type": "array", "items": {"type": "string"}}),
                "Set<String>",
            ),
            (
                json!({"type": "array", "items": {"type": ["string", "null"]}}),
                "none",
            ),
            (
                json!({"type": "array", "items": {"type": "object"}}),
                "none",
            ),
            (json!({"type": "array"}), "none"),
            (json!({}), "none"),
            (
                json!({"type": "object", "additionalProperties": {"type": "string"}}),
                "{}",
            ),
            (
                json!({"type": "object", "properties": {"a-b": {"type": "string"}, "if": {}}, "required": ["a-b"]}),
                "{a-b: String}",
            ),
            (
                json!({"oneOf": [
                    {"type": "object", "properties": {"k": {"const": "a"}, "n": {"type": "integer"}}, "required": ["k", "n"]},
                    {"type": "object", "properties": {"k": {"const": "b"}, "n": {"type": "string"}}, "required": ["k"]},
                ]}),
                "{k: String}",
            ),
            (
                json!({"allOf": [
                    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"type": "object", "properties": {"b": {"type": "integer"}}},
                ]}),
                "{a: String, b?: Long}",
            ),
            (
                json!({"allOf": [{"type": ["string", "null"]}, {"type": ["string", "null"]}]}),
                "String?",
            ),
            (
                json!({"allOf": [{"type": ["string", "null"]}, {"description": "x"}]}),
                "String?",
            ),
            (
                json!({"allOf": [{"type": "string"}, {"type": ["string", "null"]}]}),
                "String",
            ),
        ] {
            check(&schema, expected);
        }
    }

    /// A `null` that fits is a value that rules do not see, so no proof may assume that they do.
    #[test]
    fn null_that_fits_every_part_of_a_schema_can_be_hidden() {
        let text = json!({"type": ["string", "null"]});
        let properties =
            json!({"a": {"allOf": [text, text]}, "b": {"allOf": [text, {"type": "string"}]}});
        let record = record(&properties, &json!(["a", "b"]));
        let hidden = |pointer: &str| {
            let read = ArgRead {
                pointer: pointer.to_owned(),
                is_value: true,
            };
            record.may_hide(&read)
        };
        assert_eq!(hidden("/a"), Some(vec!["/a".to_owned()]));
        assert_eq!(hidden("/b"), Some(Vec::new()));
    }

    #[test]
    fn recursive_schema_terminates() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/properties/x"}}});
        let record = record(&json!({ "x": node }), &json!([]));
        assert!(record.0["x"].kind.is_some());
    }

    #[test]
    fn unmodelled_arguments_are_named() {
        let schema = json!({
            "n": {"type": "integer"}, "f": {"type": "number"}, "s": {"type": ["string", "null"]},
            "l": {"type": "array", "items": {"type": "integer"}},
            "o": {"type": "object", "properties": {"a/b": {"type": "number"}, "c": {"type": "string"}}},
        });
        let record = record(&schema, &json!([]));
        let values = |args: Json| {
            let mut lost = UnmodelledArgs::default();
            let values = record.values(args.as_object().unwrap(), |_| true, &mut lost);
            let names: Vec<_> = values.into_keys().map(str::to_owned).collect();
            (names, lost.pointers)
        };
        let owned = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        for (args, seen, lost) in [
            (json!({"n": 5, "l": [1, 2]}), &["l", "n"][..], &[][..]),
            (json!({"n": 5.0, "s": "x"}), &["n", "s"], &[]),
            (json!({"n": 1e18, "l": [1, 1e18]}), &[], &["/n", "/l"]),
            (
                json!({"f": 1, "s": null, "extra": 1}),
                &[],
                &["/f", "/s", "/extra"],
            ),
            (json!({"o": {"a/b": 1, "c": "x"}}), &["o"], &["/o/a~1b"]),
        ] {
            assert_eq!(values(args.clone()), (owned(seen), owned(lost)), "{args}");
        }
    }
}
