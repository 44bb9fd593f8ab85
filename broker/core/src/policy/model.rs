//! How arguments look to a rule: the part of a tool's input schema that Cedar
//! can say exactly. What it cannot say (a fraction, `null`, a shape without
//! names, two types in one place) is left out and named as unmodelled, never
//! rounded or guessed.

use std::collections::BTreeMap;

use codegen::shape::{Kind, NamedShape, Object, Shape, ToolShape};
use serde_json::{Map, Value as Json, json};

use super::known::{Known, Members};

/// Shapes looked at for one tool; what is past it is unmodelled.
const SHAPES_MAX: usize = 5_000;
const DEPTH_MAX: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Truth,
    /// A whole number that 64 bits hold.
    Whole,
    Text,
    /// Of truths, numbers or texts, all of one kind.
    Set(Box<Type>),
    Record(Record),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record(pub(super) BTreeMap<String, Member>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// It is there in every call that fits the input schema.
    pub(super) always: bool,
    /// None: unmodelled.
    pub(super) kind: Option<Type>,
}

impl Record {
    /// What a rule can know of the arguments of a tool.
    pub(super) fn of(shape: &ToolShape) -> Self {
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

    /// Its attributes in a Cedar schema.
    pub(super) fn schema(&self) -> Json {
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

    /// The members of an object that pass `is_wanted`, as rules see them. Pointers to what is
    /// lost on the way go into `lost`.
    pub(super) fn values<'a>(
        &self,
        object: &'a Map<String, Json>,
        is_wanted: impl Fn(&str) -> bool,
        lost: &mut Lost,
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
        matches!(self, Self::Truth | Self::Whole | Self::Text)
    }

    fn schema(&self) -> Json {
        match self {
            Self::Truth => json!({"type": "Boolean"}),
            Self::Whole => json!({"type": "Long"}),
            Self::Text => json!({"type": "String"}),
            Self::Set(member) => json!({"type": "Set", "element": member.schema()}),
            Self::Record(record) => record.schema(),
        }
    }

    fn value<'a>(&self, value: &'a Json, lost: &mut Lost) -> Option<Known<'a>> {
        let found = match (self, value) {
            (Self::Truth, Json::Bool(truth)) => Some(Known::Truth(*truth)),
            (Self::Whole, Json::Number(number)) => whole(number).map(Known::Whole),
            (Self::Text, Json::String(text)) => Some(Known::text(text)),
            (Self::Set(member), Json::Array(items)) => {
                let mut inner = Lost::default();
                let items: Option<Vec<_>> = items
                    .iter()
                    .map(|item| member.value(item, &mut inner))
                    .collect();
                items.map(Known::Set)
            }
            (Self::Record(record), Json::Object(object)) => {
                Some(Known::Record(record.values(object, |_| true, lost)))
            }
            _ => None,
        };
        if found.is_none() {
            lost.here();
        }
        found
    }
}

/// A number that is whole and small enough that no reader rounds it.
fn whole(number: &serde_json::Number) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        let is_exact = float.fract() == 0.0 && float.abs() <= EXACT_MAX;
        #[expect(clippy::cast_possible_truncation, reason = "whole, and within 53 bits")]
        is_exact.then_some(float as i64)
    })
}

/// JSON pointers to what a rule does not see.
#[derive(Debug, Default)]
pub(super) struct Lost {
    way: Vec<String>,
    pub(super) pointers: Vec<String>,
}

impl Lost {
    fn enter(&mut self, name: &str) {
        self.way.push(name.replace('~', "~0").replace('/', "~1"));
    }

    fn leave(&mut self) {
        self.way.pop();
    }

    fn here(&mut self) {
        let pointer = self.way.iter().map(|step| format!("/{step}")).collect();
        self.pointers.push(pointer);
    }
}

struct Modeller<'a> {
    named: &'a [NamedShape],
    depth: usize,
    shapes: usize,
}

#[derive(Default)]
struct Modelled {
    kind: Option<Type>,
    nullable: bool,
}

impl From<Type> for Modelled {
    fn from(kind: Type) -> Self {
        Self {
            kind: Some(kind),
            nullable: false,
        }
    }
}

impl Modeller<'_> {
    fn model(&mut self, shape: &Shape) -> Modelled {
        self.shapes += 1;
        if self.shapes > SHAPES_MAX || self.depth >= DEPTH_MAX {
            return Modelled::default();
        }
        self.depth += 1;
        let modelled = self.kind(&shape.kind);
        self.depth -= 1;
        modelled
    }

    fn kind(&mut self, kind: &Kind) -> Modelled {
        match kind {
            Kind::Boolean => Type::Truth.into(),
            Kind::Number { integer: true } => Type::Whole.into(),
            Kind::String => Type::Text.into(),
            Kind::Null => null(),
            Kind::Literal(value) => literal(value),
            Kind::Array(item) => match self.model(item) {
                Modelled {
                    kind: Some(kind),
                    nullable: false,
                } if kind.is_single() => Type::Set(Box::new(kind)).into(),
                _ => Modelled::default(),
            },
            Kind::Object(object) => Type::Record(self.object(object)).into(),
            Kind::Union(members) => self.union(members),
            Kind::Intersection(members) => self.intersection(members),
            // One that contains itself ends at the depth that is looked at.
            Kind::Named(index) => match self.named.get(*index) {
                Some(named) => self.model(&named.shape),
                None => Modelled::default(),
            },
            Kind::Number { integer: false } | Kind::Any | Kind::Never | Kind::Tuple(_) => {
                Modelled::default()
            }
        }
    }

    fn object(&mut self, object: &Object) -> Record {
        let member = |property: &codegen::shape::Property| {
            let modelled = self.model(&property.shape);
            let member = Member {
                always: property.required && !modelled.nullable,
                kind: modelled.kind,
            };
            (property.name.clone(), member)
        };
        Record(object.properties.iter().map(member).collect())
    }

    fn union(&mut self, members: &[Shape]) -> Modelled {
        let all: Vec<Modelled> = members.iter().map(|member| self.model(member)).collect();
        let nullable = all.iter().any(|member| member.nullable);
        let kinds = all
            .into_iter()
            .filter(|it| it.kind.is_some() || !it.nullable);
        let kinds: Option<Vec<Type>> = kinds.map(|it| it.kind).collect();
        let kind = kinds.and_then(|kinds| kinds.into_iter().map(Some).reduce(either).flatten());
        Modelled { kind, nullable }
    }

    fn intersection(&mut self, members: &[Shape]) -> Modelled {
        let kinds: Vec<Type> = members
            .iter()
            .filter_map(|it| self.model(it).kind)
            .collect();
        let kind = kinds.into_iter().map(Some).reduce(both).flatten();
        Modelled {
            kind,
            nullable: false,
        }
    }
}

fn null() -> Modelled {
    Modelled {
        kind: None,
        nullable: true,
    }
}

fn literal(value: &Json) -> Modelled {
    match value {
        Json::Null => null(),
        Json::Bool(_) => Type::Truth.into(),
        Json::String(_) => Type::Text.into(),
        Json::Number(number) if whole(number).is_some() => Type::Whole.into(),
        _ => Modelled::default(),
    }
}

/// What holds of a value that is one or the other.
fn either(one: Option<Type>, other: Option<Type>) -> Option<Type> {
    merged(one?, other?, |a, b| a && b, false)
}

/// What holds of a value that is both.
fn both(one: Option<Type>, other: Option<Type>) -> Option<Type> {
    merged(one?, other?, |a, b| a || b, true)
}

/// `alone`: whether a member of one side that is always there stays so when the other side
/// does not name it.
fn merged(one: Type, other: Type, always: fn(bool, bool) -> bool, alone: bool) -> Option<Type> {
    let (Type::Record(Record(one)), Type::Record(Record(mut other))) = (&one, other.clone()) else {
        return (one == other).then_some(one);
    };
    let mut members = BTreeMap::new();
    for (name, member) in one {
        let member = match other.remove(name) {
            Some(second) => Member {
                always: always(member.always, second.always),
                kind: match (member.kind.clone(), second.kind) {
                    (Some(a), Some(b)) => merged(a, b, always, alone),
                    _ => None,
                },
            },
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
        Record::of(&codegen::shape::of(
            &Description::parse("s", &tool).unwrap(),
        ))
    }

    /// `?` marks what may be absent; unmodelled members are left out.
    fn check(schema: &Json, expected: &str) {
        let record = record(&json!({ "x": schema }), &json!(["x"]));
        let spelt = record.0["x"].kind.as_ref().map(spelt);
        let mark = if record.0["x"].always { "" } else { "?" };
        let found = spelt.map_or_else(|| "none".to_owned(), |it| format!("{it}{mark}"));
        assert_eq!(found, expected, "{schema}");
    }

    fn spelt(kind: &Type) -> String {
        match kind {
            Type::Truth => "Bool".into(),
            Type::Whole => "Long".into(),
            Type::Text => "String".into(),
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
    fn what_cedar_can_say_exactly_is_modelled_and_nothing_else() {
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
        ] {
            check(&schema, expected);
        }
    }

    #[test]
    fn a_schema_that_contains_itself_comes_to_an_end() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/properties/x"}}});
        let record = record(&json!({ "x": node }), &json!([]));
        assert!(record.0["x"].kind.is_some());
    }

    #[test]
    fn what_a_rule_does_not_see_is_named() {
        let schema = json!({
            "n": {"type": "integer"}, "f": {"type": "number"}, "s": {"type": ["string", "null"]},
            "l": {"type": "array", "items": {"type": "integer"}},
            "o": {"type": "object", "properties": {"a/b": {"type": "number"}, "c": {"type": "string"}}},
        });
        let record = record(&schema, &json!([]));
        let values = |args: Json| {
            let mut lost = Lost::default();
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
