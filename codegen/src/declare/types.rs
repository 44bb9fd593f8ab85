//! Writes a shape as a TypeScript type.

use std::collections::HashSet;

use serde_json::Value;

use super::note::Note;
use super::printed_text::PrintedText;
use crate::names::is_identifier;
use crate::shape::extra_keys::{are_templates, key_type, needs_rest_note, spoken_rules};
use crate::shape::{ExtraKeyRule, ExtraKeys, Kind, Object, Property, Shape, Tuple};
use crate::text::{self, literal};

const LINE_CHARS_MAX: usize = 100;

/// Writes types, and remembers the descriptions that it has printed.
#[derive(Debug, Default)]
pub(super) struct TypeWriter {
    pub with_notes: bool,
    pub uses_int: bool,
    printed: PrintedText,
}

impl TypeWriter {
    pub(super) fn new(with_notes: bool) -> Self {
        Self {
            with_notes,
            ..Self::default()
        }
    }

    /// Writes the type on as many lines as needed. The first line continues the caller's line.
    pub(super) fn write(&mut self, shape: &Shape, names: &[String], indent: usize) -> String {
        if !has_object(shape) {
            return self.inline(shape, names);
        }
        if !self.has_notes(shape) {
            let text = self.inline(shape, names);
            if text.chars().count() + indent <= LINE_CHARS_MAX {
                return text;
            }
        }
        match &shape.kind {
            Kind::Object(object) => self.write_object(object, names, indent),
            Kind::Array(item) => {
                let item_text = self.write(item, names, indent);
                array_of(&item_text, &item.kind)
            }
            Kind::Tuple(tuple) => {
                let items: Vec<String> = tuple
                    .items
                    .iter()
                    .map(|it| self.write(it, names, indent))
                    .collect();
                let rest = tuple
                    .rest
                    .as_deref()
                    .map(|it| self.write(it, names, indent));
                tuple_of(tuple, items, rest)
            }
            Kind::Union(members) => {
                let gap = " ".repeat(indent + 1);
                let member = |it: &Shape| format!("\n{gap}| {}", self.write(it, names, indent + 1));
                members.iter().map(member).collect()
            }
            Kind::Intersection(parts) => {
                let written: Vec<String> = parts
                    .iter()
                    .map(|part| {
                        let text = self.write(part, names, indent);
                        in_intersection(text, &part.kind)
                    })
                    .collect();
                written.join(" & ")
            }
            _ => self.inline(shape, names),
        }
    }

    fn write_object(&mut self, object: &Object, names: &[String], indent: usize) -> String {
        let mut out = "{\n".to_owned();
        let gap = " ".repeat(indent + 1);
        for property in &object.properties {
            let note = self.take_note(property);
            let key = key_text(property);
            let text = self.write(&property.shape, names, indent + 1);
            let space = if text.starts_with('\n') && note.is_empty() {
                ""
            } else {
                " "
            };
            out.push_str(&format!("{gap}{key}:{space}{}\n", noted(&text, &note)));
        }
        for Signature { key, value, note } in self.index_signatures(object, names) {
            let note = if self.with_notes { note } else { String::new() };
            let text = match value {
                Slot::Fixed(text) => text.to_owned(),
                Slot::Of(shape) => self.write(shape, names, indent + 1),
            };
            let space = if text.starts_with('\n') { "" } else { " " };
            out.push_str(&format!("{gap}[k: {key}]:{space}{}\n", noted(&text, &note)));
        }
        out.push_str(&" ".repeat(indent));
        out.push('}');
        out
    }

    /// Writes the type on one line, without notes.
    pub(super) fn inline(&mut self, shape: &Shape, names: &[String]) -> String {
        match &shape.kind {
            Kind::Any => "any".to_owned(),
            Kind::Never => "never".to_owned(),
            Kind::Null => "null".to_owned(),
            Kind::Boolean => "boolean".to_owned(),
            Kind::String => "string".to_owned(),
            Kind::Number { integer: false } => "number".to_owned(),
            Kind::Number { integer: true } => {
                self.uses_int = true;
                "int".to_owned()
            }
            Kind::Literal(value) => literal_type(value),
            Kind::Named(index) => names
                .get(*index)
                .cloned()
                .unwrap_or_else(|| "any".to_owned()),
            Kind::Array(item) => {
                let text = self.inline(item, names);
                array_of(&text, &item.kind)
            }
            Kind::Tuple(tuple) => {
                let items: Vec<String> = tuple
                    .items
                    .iter()
                    .map(|it| self.inline(it, names))
                    .collect();
                let rest = tuple.rest.as_deref().map(|it| self.inline(it, names));
                tuple_of(tuple, items, rest)
            }
            Kind::Object(object) => self.inline_object(object, names),
            Kind::Union(members) => self.inline_union(members, names),
            Kind::Intersection(parts) => {
                let mut texts = Vec::new();
                for part in parts {
                    let text = self.inline(part, names);
                    texts.push(in_intersection(text, &part.kind));
                }
                texts.join(" & ")
            }
        }
    }

    fn inline_union(&mut self, members: &[Shape], names: &[String]) -> String {
        let mut texts: Vec<String> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        for member in members {
            let text = self.inline(member, names);
            if seen.insert(text.clone()) {
                texts.push(text);
            }
        }
        // In a list of literals, spaces around the bars would be half of the tokens.
        let bar = if members.iter().any(has_object) {
            " | "
        } else {
            "|"
        };
        texts.join(bar)
    }

    fn inline_object(&mut self, object: &Object, names: &[String]) -> String {
        let mut members: Vec<String> = Vec::new();
        for property in &object.properties {
            let text = self.inline(&property.shape, names);
            members.push(format!("{}: {text}", key_text(property)));
        }
        for Signature { key, value, .. } in self.index_signatures(object, names) {
            let text = match value {
                Slot::Fixed(text) => text.to_owned(),
                Slot::Of(shape) => self.inline(shape, names),
            };
            members.push(format!("[k: {key}]: {text}"));
        }
        format!("{{ {} }}", members.join("; "))
    }

    /// Returns the index signatures for keys without a declared property, each with a note about
    /// the exact rule.
    fn index_signatures<'a>(&mut self, object: &'a Object, names: &[String]) -> Vec<Signature<'a>> {
        let rules = spoken_rules(object);
        let signature = |key: &str, value, note| Signature {
            key: key.to_owned(),
            value,
            note,
        };
        if rules.is_empty() {
            let value = if object.rest == ExtraKeys::Unsaid {
                "any"
            } else {
                "never"
            };
            let lone = object.properties.is_empty();
            let fixed = lone.then(|| signature("string", Slot::Fixed(value), String::new()));
            return fixed.into_iter().collect();
        }
        let keys: Option<Vec<String>> = rules.iter().map(|rule| key_type(rule, object)).collect();
        let only_string = rules.len() == 1 && object.properties.is_empty();
        let all_templates = are_templates(&rules, object);
        if let Some(keys) = keys.filter(|_| only_string || all_templates) {
            let shown = keys.iter().zip(rules);
            let mut signatures: Vec<Signature<'a>> = shown
                .map(|(key, rule)| signature(key, Slot::Of(&rule.shape), String::new()))
                .collect();
            if others_are_free(object) {
                signatures.push(signature("string", Slot::Fixed("any"), String::new()));
            }
            return signatures;
        }
        let [rule] = rules.as_slice() else {
            let notes: Vec<String> = rules
                .iter()
                .map(|rule| self.rule_note(rule, names))
                .collect();
            return vec![signature("string", Slot::Fixed("any"), notes.join("; "))];
        };
        let value = if object.properties.is_empty() {
            Slot::Of(&rule.shape)
        } else {
            Slot::Fixed("any")
        };
        let exact = rule.pattern.is_none() && rule.shape.kind == Kind::Any;
        let note = if exact {
            String::new()
        } else {
            self.rule_note(rule, names)
        };
        vec![signature("string", value, note)]
    }

    fn rule_note(&mut self, rule: &ExtraKeyRule, names: &[String]) -> String {
        let text = self.inline(&rule.shape, names);
        match &rule.pattern {
            Some(pattern) => format!("keys /{}/: {text}", crate::text::neutralise(pattern)),
            None => format!("other keys: {text}"),
        }
    }

    /// Returns the note of a named type.
    pub(super) fn note_of_type(&mut self, alias: &str, shape: &Shape) -> String {
        self.take_note(&Property {
            name: alias.to_owned(),
            required: true,
            shape: shape.clone(),
        })
    }

    /// Returns the part of a tool's description that the block has not yet printed.
    pub(super) fn take_prose(&mut self, prose: &str) -> String {
        self.printed.say_of_tool(prose)
    }

    fn take_note(&mut self, property: &Property) -> String {
        let note = self.note_of(property);
        if self.with_notes {
            let whole = Note::from_shape(&property.shape);
            self.printed.remember(&property.name, &whole.prose);
        }
        note.text()
    }

    /// Returns the part of a property's note that the block has not yet printed.
    fn note_of(&self, property: &Property) -> Note {
        if !self.with_notes {
            return Note::default();
        }
        let mut note = Note::from_shape(&property.shape);
        note.prose = self.printed.remaining(&property.name, &note.prose);
        note
    }

    /// Whether a property inside has a note that is not yet printed.
    fn has_notes(&self, shape: &Shape) -> bool {
        match &shape.kind {
            Kind::Object(object) => {
                let own = object
                    .properties
                    .iter()
                    .any(|it| !self.note_of(it).is_empty() || self.has_notes(&it.shape));
                let of_rest = || {
                    spoken_rules(object)
                        .iter()
                        .any(|it| self.has_notes(&it.shape))
                };
                own || (self.with_notes && needs_rest_note(object)) || of_rest()
            }
            Kind::Array(item) => self.has_notes(item),
            Kind::Tuple(tuple) => items_of(tuple).any(|it| self.has_notes(it)),
            Kind::Union(members) | Kind::Intersection(members) => {
                members.iter().any(|it| self.has_notes(it))
            }
            _ => false,
        }
    }
}

/// `[k: KEY]: VALUE // NOTE`
struct Signature<'a> {
    key: String,
    value: Slot<'a>,
    note: String,
}

enum Slot<'a> {
    Fixed(&'static str),
    Of(&'a Shape),
}

/// Whether the schema does not mention keys that match no pattern.
fn others_are_free(object: &Object) -> bool {
    match &object.rest {
        ExtraKeys::Allowed(rules) => rules.iter().all(|it| it.pattern.is_some()),
        ExtraKeys::Unsaid | ExtraKeys::Forbidden => false,
    }
}

/// Appends the note to the first line.
pub(super) fn noted(text: &str, note: &str) -> String {
    if note.is_empty() {
        return text.to_owned();
    }
    match text.split_once('\n') {
        Some(("", rest)) => format!("// {note}\n{rest}"),
        Some((first, rest)) => format!("{first} // {note}\n{rest}"),
        None => format!("{text} // {note}"),
    }
}

fn key_text(property: &Property) -> String {
    let optional = if property.required { "" } else { "?" };
    if is_identifier(&property.name) {
        format!("{}{optional}", property.name)
    } else {
        format!("{}{optional}", literal(&property.name))
    }
}

fn items_of(tuple: &Tuple) -> impl Iterator<Item = &Shape> {
    tuple.items.iter().chain(tuple.rest.as_deref())
}

fn tuple_of(tuple: &Tuple, items: Vec<String>, rest: Option<String>) -> String {
    let mut texts: Vec<String> = Vec::new();
    for (at, (text, item)) in items.into_iter().zip(&tuple.items).enumerate() {
        let optional = at >= tuple.required;
        let compound = matches!(item.kind, Kind::Union(_) | Kind::Intersection(_));
        texts.push(match (optional, compound) {
            (true, true) => format!("({text})?"),
            (true, false) => format!("{text}?"),
            _ => text,
        });
    }
    if let (Some(text), Some(shape)) = (rest, &tuple.rest) {
        texts.push(format!("...{}", array_of(&text, &shape.kind)));
    }
    format!("[{}]", texts.join(", "))
}

fn array_of(text: &str, kind: &Kind) -> String {
    match kind {
        Kind::Union(_) | Kind::Intersection(_) => format!("({text})[]"),
        _ => format!("{text}[]"),
    }
}

fn in_intersection(text: String, kind: &Kind) -> String {
    if matches!(kind, Kind::Union(_)) {
        format!("({text})")
    } else {
        text
    }
}

/// Writes the type that has this value only.
fn literal_type(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}: {}", literal(key), literal_type(value))
            };
            format!(
                "{{ {} }}",
                members.iter().map(member).collect::<Vec<_>>().join("; ")
            )
        }
        Value::Array(items) => format!(
            "[{}]",
            items
                .iter()
                .map(literal_type)
                .collect::<Vec<_>>()
                .join(", ")
        ),
        other => text::json(other),
    }
}

fn has_object(shape: &Shape) -> bool {
    match &shape.kind {
        Kind::Object(_) => true,
        Kind::Array(item) => has_object(item),
        Kind::Tuple(tuple) => items_of(tuple).any(has_object),
        Kind::Union(members) | Kind::Intersection(members) => members.iter().any(has_object),
        _ => false,
    }
}
