//! Generates values for a schema: some that probably fit, and copies with one random change.

use serde_json::{Map, Value, json};

const DEPTH_MAX: usize = 6;

/// A deterministic random number generator.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns a number below `sides`, which is not 0.
    pub(crate) fn throw(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() {
            return None;
        }
        let at = self.throw(of.len());
        of.get(at)
    }
}

/// Generates a value that fits the schema, unless the schema is unusual.
pub(crate) fn sample(root: &Value, schema: &Value, dice: &mut Dice, depth: usize) -> Value {
    let Some(fields) = schema.as_object() else {
        return json!("anything");
    };
    let target = fields.get("$ref").and_then(Value::as_str);
    if let Some(target) = target.and_then(|it| root.pointer(it.strip_prefix('#')?)) {
        return sample(root, target, dice, depth + 1);
    }
    if let Some(only) = fields.get("const") {
        return only.clone();
    }
    if let Some(listed) = list(fields, "enum").and_then(|it| dice.pick(it)) {
        return listed.clone();
    }
    let branches = list(fields, "anyOf").or_else(|| list(fields, "oneOf"));
    let branch = branches
        .and_then(|it| dice.pick(it))
        .map(|it| sample(root, it, dice, depth + 1));
    if !fields.contains_key("type") && !fields.contains_key("properties") {
        return branch.unwrap_or_else(|| json!("anything"));
    }
    let types = list(fields, "type")
        .and_then(|it| dice.pick(it))
        .or(fields.get("type"));
    match types.and_then(Value::as_str).unwrap_or("object") {
        "object" => {
            let mut members = object(root, fields, dice, depth);
            members.extend(
                branch
                    .and_then(|it| it.as_object().cloned())
                    .unwrap_or_default(),
            );
            Value::Object(members)
        }
        "array" => array(root, fields, dice, depth),
        "string" => text(fields),
        "integer" => fields.get("minimum").cloned().unwrap_or_else(|| json!(3)),
        "number" => fields.get("minimum").cloned().unwrap_or_else(|| json!(1.5)),
        "boolean" => json!(dice.throw(2) == 0),
        _ => Value::Null,
    }
}

fn object(
    root: &Value,
    fields: &Map<String, Value>,
    dice: &mut Dice,
    depth: usize,
) -> Map<String, Value> {
    let required = list(fields, "required").unwrap_or_default();
    let mut members = Map::new();
    for (name, inner) in fields
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let is_required = required.iter().any(|it| it.as_str() == Some(name));
        if is_required || (depth < DEPTH_MAX && dice.throw(3) == 0) {
            members.insert(name.clone(), sample(root, inner, dice, depth + 1));
        }
    }
    if let Some(other @ Value::Object(_)) = fields.get("additionalProperties") {
        members.insert("other".to_owned(), sample(root, other, dice, depth + 1));
    }
    members
}

fn array(root: &Value, fields: &Map<String, Value>, dice: &mut Dice, depth: usize) -> Value {
    let least = fields.get("minItems").and_then(Value::as_u64).unwrap_or(0);
    let more = if depth < DEPTH_MAX { dice.throw(3) } else { 0 };
    let count = usize::try_from(least).unwrap() + more;
    let any = json!(true);
    let placed = list(fields, "prefixItems").unwrap_or_default();
    let every = fields.get("items").unwrap_or(&any);
    let item =
        |at: usize, dice: &mut Dice| sample(root, placed.get(at).unwrap_or(every), dice, depth + 1);
    Value::Array((0..count.min(20)).map(|at| item(at, dice)).collect())
}

fn text(fields: &Map<String, Value>) -> Value {
    let least = fields.get("minLength").and_then(Value::as_u64).unwrap_or(0);
    json!("text".repeat(usize::try_from(least / 4 + 1).unwrap().min(100)))
}

fn list<'a>(fields: &'a Map<String, Value>, keyword: &str) -> Option<&'a [Value]> {
    fields.get(keyword)?.as_array().map(Vec::as_slice)
}

/// Returns the value with one random change.
pub(crate) fn changed(value: &Value, dice: &mut Dice) -> Value {
    let other = [
        json!("other"),
        json!(7),
        json!(2.5),
        json!(null),
        json!(true),
        json!([]),
        json!({}),
    ];
    match value {
        Value::Object(members) if !members.is_empty() && dice.throw(4) > 0 => {
            let at = dice.throw(members.len());
            let (name, inner) = members.iter().nth(at).unwrap();
            let mut members = members.clone();
            match dice.throw(4) {
                0 => drop(members.shift_remove(name)),
                1 => drop(members.insert(format!("{name}x"), json!(1))),
                _ => drop(members.insert(name.clone(), changed(inner, dice))),
            }
            Value::Object(members)
        }
        Value::Array(items) if !items.is_empty() && dice.throw(4) > 0 => {
            let at = dice.throw(items.len());
            let mut items = items.clone();
            items[at] = changed(&items[at], dice);
            Value::Array(items)
        }
        _ => dice.pick(&other).unwrap().clone(),
    }
}
