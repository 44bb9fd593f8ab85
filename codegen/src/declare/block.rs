//! One server's block: the types that its tools share, then the tools.

use std::collections::{BTreeMap, BTreeSet};

use super::Picked;
use super::alias::{Aliases, free_name};
use super::note::Note;
use super::types::TypeWriter;
use crate::description::{Claims, Description};
use crate::shape::{Facts, Kind, NamedShape, Object, Property, Rest, Shape, ToolShape};
use crate::stub::{ServerStubs, ToolStub};
use crate::text::{in_comment, neutralise};

/// Tools that must share a group of parameters before it gets a name.
const SHARERS_MIN: usize = 4;
/// What naming a group costs at each use, and once, in characters of plain type text.
const USE_CHARS: usize = 12;
const NAMING_CHARS: usize = 30;

pub(super) struct Block {
    pub text: String,
    pub uses_int: bool,
}

pub(super) fn render(
    server: &ServerStubs,
    tools: &[Picked<'_>],
    shapes: &[ToolShape],
    is_full: bool,
    taken: &mut BTreeSet<String>,
) -> Block {
    let aliases = Aliases::choose(shapes, taken);
    let mut writer = TypeWriter::new(is_full);
    let groups = Groups::find(shapes, &aliases, is_full, taken);
    let mut text = String::new();
    for (alias, tool, index) in &aliases.declared {
        let named = shapes.get(*tool).and_then(|it| it.named.get(*index));
        let names = aliases.of_tool.get(*tool);
        if let (Some(named), Some(names)) = (named, names) {
            text.push_str(&alias_line(alias, &named.shape, names, &mut writer));
        }
    }
    for group in &groups.found {
        let shape = Shape::of(Kind::Object(Object {
            properties: group.properties.clone(),
            rest: Rest::Unsaid,
        }));
        text.push_str(&format!(
            "type {} = {}\n",
            group.name,
            writer.write(&shape, &group.names, 0)
        ));
    }
    text.push_str(&format!("declare const {}: {{\n", server.global));
    for (at, (tool, shape)) in tools.iter().zip(shapes).enumerate() {
        let names = aliases
            .of_tool
            .get(at)
            .map(Vec::as_slice)
            .unwrap_or_default();
        if is_full {
            text.push_str(&doc(tool.stub, tool.description, shape));
        }
        text.push_str(&signature(
            tool.stub,
            shape,
            names,
            &groups.of(at),
            &mut writer,
        ));
    }
    text.push_str("}\n");
    Block {
        text,
        uses_int: writer.uses_int,
    }
}

fn alias_line(alias: &str, shape: &Shape, names: &[String], writer: &mut TypeWriter) -> String {
    let body = writer.write(shape, names, 0);
    format!(
        "type {alias} ={}{body}\n",
        if body.starts_with('\n') { "" } else { " " }
    )
}

fn signature(
    stub: &ToolStub,
    shape: &ToolShape,
    names: &[String],
    groups: &[&Group],
    writer: &mut TypeWriter,
) -> String {
    // A method of this name would declare a constructor.
    let member = if stub.member == "new" {
        "\"new\""
    } else {
        &stub.member
    };
    let parameter = parameter(shape, names, groups, writer);
    let output = shape
        .output
        .as_ref()
        .map_or_else(|| "any".to_owned(), |it| writer.write(it, names, 0));
    format!("{member}({parameter}): Promise<{output}>\n")
}

fn parameter(
    shape: &ToolShape,
    names: &[String],
    groups: &[&Group],
    writer: &mut TypeWriter,
) -> String {
    let optional = if may_be_empty(&shape.input, &shape.named, 0) {
        "?"
    } else {
        ""
    };
    let Kind::Object(object) = &shape.input.kind else {
        return format!("a{optional}: {}", writer.write(&shape.input, names, 0));
    };
    if object.properties.is_empty() && !matches!(object.rest, Rest::Allowed(_)) {
        return String::new();
    }
    let is_grouped = |property: &&Property| groups.iter().any(|group| group.has(property));
    let own: Vec<Property> = object
        .properties
        .iter()
        .filter(|it| !is_grouped(it))
        .cloned()
        .collect();
    let mut parts: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
    if !own.is_empty() || parts.is_empty() || matches!(object.rest, Rest::Allowed(_)) {
        let own = Shape::of(Kind::Object(Object {
            properties: own,
            rest: object.rest.clone(),
        }));
        parts.push(writer.write(&own, names, 0));
    }
    format!("a{optional}: {}", parts.join(" & "))
}

/// Whether `{}` would do, so that the argument may be left out.
fn may_be_empty(shape: &Shape, named: &[NamedShape], depth: usize) -> bool {
    const DEPTH_MAX: usize = 20;
    let all = |shapes: &[Shape]| shapes.iter().all(|it| may_be_empty(it, named, depth + 1));
    let any = |shapes: &[Shape]| shapes.iter().any(|it| may_be_empty(it, named, depth + 1));
    match &shape.kind {
        _ if depth > DEPTH_MAX => false,
        Kind::Any => true,
        Kind::Object(object) => {
            object.properties.iter().all(|it| !it.required) && !asks_for_some(&shape.facts)
        }
        Kind::Union(members) => any(members),
        Kind::Intersection(parts) => all(parts),
        Kind::Named(index) => named
            .get(*index)
            .is_some_and(|it| may_be_empty(&it.shape, named, depth + 1)),
        _ => false,
    }
}

/// Whether an empty object is refused although no single property is required.
fn asks_for_some(facts: &Facts) -> bool {
    let asks =
        |rule: &String| rule.starts_with("at least one of") || rule.starts_with("exactly one of");
    facts.properties.min.is_some() || facts.rules.iter().any(asks)
}

/// What the server says of the tool, after what its reader should know first.
fn doc(stub: &ToolStub, description: &Description, shape: &ToolShape) -> String {
    let mut parts = tags(&description.claims);
    if stub.member != stub.wire_name {
        parts.push(format!("({})", neutralise(&stub.wire_name)));
    }
    let prose = description
        .text
        .as_deref()
        .map(neutralise)
        .filter(|it| !it.is_empty());
    let title = description
        .title
        .as_deref()
        .map(neutralise)
        .filter(|it| !it.is_empty());
    parts.extend(prose.clone().or(title));
    for (label, root) in [
        ("Arguments", Some(&shape.input)),
        ("Result", shape.output.as_ref()),
    ] {
        let note = root
            .map(root_note)
            .filter(|it| !it.is_empty() && Some(it) != prose.as_ref());
        parts.extend(note.map(|it| format!("{label}: {it}")));
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!("/** {} */\n", in_comment(&parts.join(" ")))
    }
}

/// The root has no line of its own: what is said of it goes into the tool's.
fn root_note(root: &Shape) -> String {
    Note::of(root).text()
}

fn tags(claims: &Claims) -> Vec<String> {
    let mut tags = Vec::new();
    if let Some(reason) = &claims.deprecated {
        let reason = neutralise(reason);
        tags.push(if reason.is_empty() {
            "[deprecated]".to_owned()
        } else {
            format!("[deprecated: {reason}]")
        });
    }
    if claims.read_only == Some(true) {
        tags.push("[read-only]".to_owned());
    } else if claims.destructive == Some(true) {
        tags.push("[destructive]".to_owned());
    }
    tags
}

/// A group of parameters that the same tools share.
struct Group {
    name: String,
    properties: Vec<Property>,
    /// Aliases by which the properties refer to named shapes.
    names: Vec<String>,
    sharers: Vec<usize>,
}

impl Group {
    /// Whether the text gets shorter by naming this group. Notes do not count: they are printed once anyway.
    fn pays(&self) -> bool {
        let object = Object {
            properties: self.properties.clone(),
            rest: Rest::Unsaid,
        };
        let text = TypeWriter::new(false).inline(&Shape::of(Kind::Object(object)), &self.names);
        let uses = self.sharers.len();
        text.len() * uses.saturating_sub(1) > USE_CHARS * uses + NAMING_CHARS
    }

    fn has(&self, property: &Property) -> bool {
        self.properties.iter().any(|it| it.name == property.name)
    }
}

struct Groups {
    found: Vec<Group>,
}

impl Groups {
    fn find(
        shapes: &[ToolShape],
        aliases: &Aliases,
        is_full: bool,
        taken: &mut BTreeSet<String>,
    ) -> Self {
        let mut sharers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut order: Vec<(String, usize, Property)> = Vec::new();
        for (tool, shape) in shapes.iter().enumerate() {
            let names = aliases
                .of_tool
                .get(tool)
                .map(Vec::as_slice)
                .unwrap_or_default();
            for property in top_properties(shape) {
                let key = whole_text(property, names, is_full);
                let tools = sharers.entry(key.clone()).or_default();
                if tools.is_empty() {
                    order.push((key, tool, property.clone()));
                }
                tools.push(tool);
            }
        }
        let mut by_sharers: Vec<Group> = Vec::new();
        for (key, tool, property) in order {
            let tools = sharers.remove(&key).unwrap_or_default();
            if tools.len() < SHARERS_MIN {
                continue;
            }
            if let Some(group) = by_sharers.iter_mut().find(|it| it.sharers == tools) {
                group.properties.push(property);
            } else {
                let names = aliases.of_tool.get(tool).cloned().unwrap_or_default();
                by_sharers.push(Group {
                    name: String::new(),
                    properties: vec![property],
                    names,
                    sharers: tools,
                });
            }
        }
        by_sharers.retain(Group::pays);
        for group in &mut by_sharers {
            group.name = free_name("P", taken);
        }
        Self { found: by_sharers }
    }

    fn of(&self, tool: usize) -> Vec<&Group> {
        self.found
            .iter()
            .filter(|it| it.sharers.contains(&tool))
            .collect()
    }
}

fn top_properties(shape: &ToolShape) -> &[Property] {
    match &shape.input.kind {
        Kind::Object(object) if !matches!(object.rest, Rest::Allowed(_)) => &object.properties,
        _ => &[],
    }
}

/// Everything that would be printed for a property, were it printed for the first time.
fn whole_text(property: &Property, names: &[String], is_full: bool) -> String {
    let alone = Object {
        properties: vec![property.clone()],
        rest: Rest::Forbidden,
    };
    TypeWriter::new(is_full).write(&Shape::of(Kind::Object(alone)), names, 0)
}
