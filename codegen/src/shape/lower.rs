//! Converts a JSON Schema, keyword by keyword, into a [`Shape`]. Every schema gives a correct
//! shape, and rules that the shape does not express are listed.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::combine::{Combiner, is_of, union_kind};
use super::extra_keys::needs_rest_note;
use super::keywords::{
    UNSAYABLE, constraint_text, is_keyword, only_constrains, strings, type_name, type_names,
};
use super::{
    Degraded, ExtraKeyRule, ExtraKeys, Facts, Kind, NamedShape, Object, Property, Shape, Tuple,
};
use crate::{schema, text};

/// Maximum number of shapes for one schema; further ones become `any`.
const SHAPES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 60;
/// Maximum number of named shapes of one tool; further references become `any`.
const NAMED_MAX: usize = 200;
/// Maximum size in bytes of a referenced schema that is inserted in place.
const INLINE_BYTES_MAX: usize = 80;
const RULE_CHARS_MAX: usize = 300;
/// Maximum length in characters of the path in a degraded entry.
const PATH_CHARS_MAX: usize = 120;

pub(super) struct Lowering<'a> {
    root: &'a Value,
    /// Name for a schema that has no name.
    fallback_name: String,
    named: &'a mut Vec<NamedShape>,
    degraded: &'a mut Vec<Degraded>,
    /// Named shapes, by the address of their schema.
    names: HashMap<*const Value, usize>,
    /// Number of references to each schema.
    references: HashMap<*const Value, usize>,
    /// The path to the current schema, and for each step whether it leads into a part of the value.
    open: Vec<(*const Value, bool)>,
    path: Vec<String>,
    made: usize,
    combiner: Combiner,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(
        root: &'a Value,
        root_name: &str,
        tool: &str,
        named: &'a mut Vec<NamedShape>,
        degraded: &'a mut Vec<Degraded>,
    ) -> Self {
        let suffix = if root_name == "args" {
            "Args"
        } else {
            "Result"
        };
        let mut lowering = Self {
            root,
            fallback_name: format!("{}{suffix}", type_name(tool)),
            named,
            degraded,
            names: HashMap::new(),
            references: HashMap::new(),
            open: Vec::new(),
            path: vec![root_name.to_owned()],
            made: 0,
            combiner: Combiner::default(),
        };
        lowering.count_references(root, 0);
        lowering
    }

    pub(super) fn root(&mut self, node: &'a Value) -> Shape {
        self.lower(node, None, true)
    }

    fn count_references(&mut self, node: &'a Value, depth: usize) {
        let Some(fields) = node.as_object().filter(|_| depth <= schema::DEPTH_MAX) else {
            return;
        };
        for target in schema::references(fields).filter_map(|it| schema::resolve(self.root, it)) {
            *self
                .references
                .entry(std::ptr::from_ref(target))
                .or_default() += 1;
        }
        for (_, inner) in schema::inner(fields) {
            self.count_references(inner, depth + 1);
        }
    }

    /// Converts a schema. `name` is the property that the schema belongs to. `below` is true if the
    /// schema describes a part of the value.
    fn lower(&mut self, node: &'a Value, name: Option<&str>, below: bool) -> Shape {
        self.made += 1;
        if self.made > SHAPES_MAX || self.open.len() > DEPTH_MAX {
            self.degrade("is too deep or too large to show");
            return Shape::any();
        }
        match node {
            Value::Bool(true) => Shape::any(),
            Value::Bool(false) => Shape::from_kind(Kind::Never),
            Value::Object(fields) => self.lower_fields(node, fields, name, below),
            _ => {
                self.degrade("is not a schema");
                Shape::any()
            }
        }
    }

    fn lower_fields(
        &mut self,
        node: &'a Value,
        fields: &'a Map<String, Value>,
        name: Option<&str>,
        below: bool,
    ) -> Shape {
        let identity = std::ptr::from_ref(node);
        self.open.push((identity, below));
        let mut shape = self.own(fields);
        for reference in schema::references(fields) {
            let referred = self.reference(reference);
            shape = self.both(shape, referred);
        }
        shape = self.all_of(fields, shape);
        for keyword in ["anyOf", "oneOf"] {
            shape = self.one_of(fields, keyword, shape);
        }
        if fields.get("nullable") == Some(&Value::Bool(true)) && shape.kind != Kind::Any {
            shape = Shape::from_kind(union_kind(vec![shape, Shape::from_kind(Kind::Null)]));
        }
        let mut facts = Facts::from_schema(fields, name);
        facts.rules = self.unsayable(fields);
        shape.facts = facts.over(shape.facts);
        self.open.pop();
        self.settle_name(identity, shape)
    }

    /// Gives the shape a name if an inner schema refers back to it.
    fn settle_name(&mut self, identity: *const Value, shape: Shape) -> Shape {
        let Some(index) = self.names.get(&identity).copied() else {
            return shape;
        };
        if let Some(slot) = self.named.get_mut(index) {
            slot.shape = shape;
        }
        // The description is printed where the type is declared.
        Shape::from_kind(Kind::Named(index))
    }

    fn reference(&mut self, reference: &str) -> Shape {
        let Some(target) = schema::resolve(self.root, reference) else {
            self.degrade(&format!(
                "refers to {}, which is not part of the schema",
                text::literal(reference)
            ));
            return Shape::any();
        };
        let identity = std::ptr::from_ref(target);
        let place = self.open.iter().rposition(|(it, _)| *it == identity);
        if let Some(place) = place {
            if !self.open.iter().skip(place + 1).any(|(_, below)| *below) {
                self.degrade("refers to itself endlessly");
                return Shape::any();
            }
            return match self.name_for(identity, reference) {
                Some(index) => Shape::from_kind(Kind::Named(index)),
                None => Shape::any(),
            };
        }
        if let Some(index) = self.names.get(&identity) {
            return Shape::from_kind(Kind::Named(*index));
        }
        let shared = self
            .references
            .get(&identity)
            .is_some_and(|count| *count > 1);
        if shared && is_longer(target, INLINE_BYTES_MAX) {
            self.name_for(identity, reference);
        }
        self.lower(target, None, false)
    }

    fn name_for(&mut self, identity: *const Value, reference: &str) -> Option<usize> {
        if let Some(index) = self.names.get(&identity) {
            return Some(*index);
        }
        if self.named.len() >= NAMED_MAX {
            self.degrade("refers to more types than can be shown");
            return None;
        }
        let segments = reference.rsplit(['/', '#']);
        let own = segments
            .map(type_name)
            .find(|it| !it.is_empty() && !is_keyword(it));
        let name = own.unwrap_or_else(|| self.fallback_name.clone());
        self.named.push(NamedShape {
            name,
            shape: Shape::any(),
        });
        let index = self.named.len() - 1;
        self.names.insert(identity, index);
        Some(index)
    }

    /// Converts `type`, `enum`, `const` and the keywords of the single types.
    fn own(&mut self, fields: &'a Map<String, Value>) -> Shape {
        let names = type_names(fields);
        if names.is_empty() && fields.contains_key("type") {
            self.degrade("has a `type` that is neither a type name nor a list of type names");
        }
        let kinds: Vec<Kind> = names.iter().map(|name| self.typed(name, fields)).collect();
        let listed = fields.get("const").map(std::slice::from_ref);
        let listed = listed.or_else(|| {
            fields
                .get("enum")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
        });
        let Some(values) = listed else {
            let kind = if kinds.is_empty() {
                Kind::Any
            } else {
                union_kind(kinds.into_iter().map(Shape::from_kind).collect())
            };
            return Shape::from_kind(kind);
        };
        let declares_type = fields.contains_key("type");
        let fits = |value: &&Value| !declares_type || kinds.iter().any(|kind| is_of(value, kind));
        let literals: Vec<Shape> = values
            .iter()
            .filter(fits)
            .map(|it| Shape::from_kind(Kind::Literal(it.clone())))
            .collect();
        if literals.is_empty() {
            self.degrade("lists no value that its type allows");
        }
        Shape::from_kind(union_kind(literals))
    }

    fn typed(&mut self, name: &str, fields: &'a Map<String, Value>) -> Kind {
        match name {
            "null" => Kind::Null,
            "boolean" => Kind::Boolean,
            "integer" => Kind::Number { integer: true },
            "number" => Kind::Number { integer: false },
            "string" => Kind::String,
            "array" => self.array(fields),
            "object" => self.object(fields),
            _ => {
                self.degrade(&format!(
                    "has the unknown type {}",
                    text::literal(&text::clip(name, 40))
                ));
                Kind::Any
            }
        }
    }

    fn array(&mut self, fields: &'a Map<String, Value>) -> Kind {
        let items = fields.get("items");
        let placed = fields
            .get("prefixItems")
            .or(items)
            .and_then(Value::as_array);
        let every = match (placed, items) {
            (Some(_), Some(Value::Array(_))) => fields.get("additionalItems"),
            (_, other) => other.filter(|it| !it.is_array()),
        };
        let every = every.or_else(|| fields.get("unevaluatedItems"));
        let rest = self.inside("[]", |it| every.map(|every| it.lower(every, None, true)));
        let Some(placed) = placed.filter(|it| !it.is_empty()) else {
            return Kind::Array(Box::new(rest.unwrap_or_else(Shape::any)));
        };
        let items: Vec<Shape> = placed
            .iter()
            .enumerate()
            .map(|(at, item)| self.inside(&format!("[{at}]"), |it| it.lower(item, None, true)))
            .collect();
        let count = |keyword: &str| {
            fields
                .get(keyword)
                .and_then(Value::as_u64)
                .and_then(|it| usize::try_from(it).ok())
        };
        let ends = count("maxItems").is_some_and(|max| max <= items.len());
        let rest = rest.unwrap_or_else(Shape::any);
        let rest = (!ends && rest.kind != Kind::Never).then(|| Box::new(rest));
        let required = count("minItems").unwrap_or(0).min(items.len());
        Kind::Tuple(Tuple {
            items,
            required,
            rest,
        })
    }

    fn object(&mut self, fields: &'a Map<String, Value>) -> Kind {
        let required: Vec<&str> = strings(fields.get("required"));
        let is_required: HashSet<&str> = required.iter().copied().collect();
        let declared = fields.get("properties").and_then(Value::as_object);
        let mut properties: Vec<Property> = Vec::new();
        for (name, node) in declared.into_iter().flatten() {
            let shape = self.inside(&format!(".{name}"), |it| it.lower(node, Some(name), true));
            properties.push(Property {
                name: name.clone(),
                required: is_required.contains(name.as_str()),
                shape,
            });
        }
        let rest = self.rest(fields, declared.is_some());
        let mut known: HashSet<&str> = declared
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
            .collect();
        let undeclared: Vec<&str> = required
            .into_iter()
            .filter(|name| known.insert(name))
            .collect();
        let shape = self.copied(unnamed_shape(&rest), undeclared.len());
        properties.extend(undeclared.into_iter().map(|name| Property {
            name: name.to_owned(),
            required: true,
            shape: shape.clone(),
        }));
        let mut object = Object { properties, rest };
        self.property_names(fields, &mut object);
        if needs_rest_note(&object) {
            self.degrade("limits its other keys in a way that only a note can express");
        }
        Kind::Object(object)
    }

    fn rest(&mut self, fields: &'a Map<String, Value>, names_some: bool) -> ExtraKeys {
        let others = fields
            .get("additionalProperties")
            .or_else(|| fields.get("unevaluatedProperties"));
        let patterns = fields.get("patternProperties").and_then(Value::as_object);
        let mut rules: Vec<ExtraKeyRule> = Vec::new();
        for (pattern, node) in patterns.into_iter().flatten() {
            let shape = self.inside(&format!("[/{pattern}/]"), |it| it.lower(node, None, true));
            rules.push(ExtraKeyRule {
                pattern: Some(pattern.clone()),
                shape,
            });
        }
        let other = others.map(|node| self.inside("[]", |it| it.lower(node, None, true)));
        match other {
            Some(shape) if shape.kind == Kind::Never && rules.is_empty() => {
                return ExtraKeys::Forbidden;
            }
            Some(shape) => rules.push(ExtraKeyRule {
                pattern: None,
                shape,
            }),
            None if !names_some && rules.is_empty() => {
                rules.push(ExtraKeyRule {
                    pattern: None,
                    shape: Shape::any(),
                });
            }
            None if rules.is_empty() => return ExtraKeys::Unsaid,
            None => {}
        }
        ExtraKeys::Allowed(rules)
    }

    /// Converts `propertyNames`. A list of names turns a map into optional properties; any other
    /// schema becomes a rule.
    fn property_names(&mut self, fields: &Map<String, Value>, object: &mut Object) {
        let Some(names) = fields.get("propertyNames").and_then(Value::as_object) else {
            return;
        };
        let listed = names.get("enum").and_then(Value::as_array);
        let listed: Option<Vec<&str>> =
            listed.map(|values| values.iter().filter_map(Value::as_str).collect());
        match listed {
            Some(listed) => {
                let known = object.properties.iter().map(|it| it.name.clone());
                let mut known: HashSet<String> = known.collect();
                let listed = listed.into_iter().map(str::to_owned);
                let new: Vec<String> = listed.filter(|it| known.insert(it.clone())).collect();
                let shape = self.copied(unnamed_shape(&object.rest), new.len());
                object
                    .properties
                    .extend(new.into_iter().map(|name| Property {
                        name,
                        required: false,
                        shape: shape.clone(),
                    }));
                object.rest = ExtraKeys::Forbidden;
            }
            None if names.keys().all(|it| it == "type") => {}
            None => self.degrade("limits the names of its properties (`propertyNames`)"),
        }
    }

    fn all_of(&mut self, fields: &'a Map<String, Value>, shape: Shape) -> Shape {
        let parts = fields.get("allOf").and_then(Value::as_array);
        parts.into_iter().flatten().fold(shape, |shape, part| {
            let part = self.lower(part, None, false);
            self.both(shape, part)
        })
    }

    fn one_of(&mut self, fields: &'a Map<String, Value>, keyword: &str, shape: Shape) -> Shape {
        let Some(branches) = fields.get(keyword).and_then(Value::as_array) else {
            return shape;
        };
        if branches.is_empty() || branches.iter().all(only_constrains) {
            return shape;
        }
        let members: Vec<Shape> = branches
            .iter()
            .map(|it| self.lower(it, None, false))
            .collect();
        let kind = union_kind(members.clone());
        if kind != Kind::Any {
            return self.both(shape, Shape::from_kind(kind));
        }
        // No alternative is left, so the union gets the text of each.
        let said = members.into_iter().map(|it| Facts {
            text: it.facts.text,
            ..Facts::default()
        });
        let facts = said.fold(Facts::default(), Facts::over);
        self.both(shape, Shape { kind, facts })
    }

    fn both(&mut self, a: Shape, b: Shape) -> Shape {
        let combined = self.combiner.both(a, b);
        self.note_what_is_left_out();
        combined
    }

    /// Returns a shape that will be copied `times` times, within the combiner's budget.
    fn copied(&mut self, shape: Shape, times: usize) -> Shape {
        let shape = self.combiner.copied(shape, times);
        self.note_what_is_left_out();
        shape
    }

    fn note_what_is_left_out(&mut self) {
        if self.combiner.is_spent() {
            self.degrade("combines more schemas than can be shown");
        }
    }

    fn unsayable(&mut self, fields: &Map<String, Value>) -> Vec<String> {
        let mut rules = Vec::new();
        for keyword in UNSAYABLE {
            if let Some(value) = fields.get(keyword) {
                rules.push(format!("{keyword} {}", text::json(value)));
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = fields.get(keyword).and_then(Value::as_array);
            if let Some(branches) =
                branches.filter(|it| !it.is_empty() && it.iter().all(only_constrains))
            {
                rules.push(constraint_text(keyword, branches));
            }
        }
        for rule in &rules {
            self.degrade(&format!(
                "has a rule that a type cannot express: {}",
                text::clip(rule, 100)
            ));
        }
        rules
            .into_iter()
            .map(|rule| text::clip(&rule, RULE_CHARS_MAX))
            .collect()
    }

    fn inside<T>(&mut self, step: &str, then: impl FnOnce(&mut Self) -> T) -> T {
        let step = text::neutralise(step);
        self.path.push(text::clip(&step, PATH_CHARS_MAX));
        let made = then(self);
        self.path.pop();
        made
    }

    fn degrade(&mut self, reason: &str) {
        const LISTED_MAX: usize = 20;
        if self.degraded.len() >= LISTED_MAX {
            return;
        }
        let found = Degraded {
            path: text::clip(&self.path.concat(), PATH_CHARS_MAX),
            reason: reason.to_owned(),
        };
        if !self.degraded.contains(&found) {
            self.degraded.push(found);
        }
    }
}

/// Whether a value is longer than this many bytes as JSON. Stops writing at the limit.
fn is_longer(value: &Value, bytes_max: usize) -> bool {
    struct Room(usize);
    impl std::io::Write for Room {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let left = self.0.checked_sub(bytes.len());
            self.0 = left.ok_or(std::io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Room(bytes_max), value).is_err()
}

fn unnamed_shape(rest: &ExtraKeys) -> Shape {
    match rest {
        ExtraKeys::Allowed(rules) => {
            let other = rules.iter().find(|rule| rule.pattern.is_none());
            other.map_or_else(Shape::any, |rule| rule.shape.clone())
        }
        ExtraKeys::Unsaid => Shape::any(),
        ExtraKeys::Forbidden => Shape::from_kind(Kind::Never),
    }
}
