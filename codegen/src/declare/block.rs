//! Writes one server's block: the types that its tools share, then the tools.

use std::collections::BTreeSet;

use super::DeclaredTool;
use super::alias::Aliases;
use super::groups::{Group, Groups};
use super::guidance;
use super::note::Note;
use super::types::{TypeWriter, noted};
use crate::description::{Claims, Description};
use crate::shape::{ExtraKeys, Facts, Kind, NamedShape, Object, Property, Shape, ToolShape};
use crate::stub::{ServerStubs, ToolStub};
use crate::text::{in_comment, neutralise};

pub(super) struct Block {
    pub text: String,
    pub uses_int: bool,
}

pub(super) fn render(
    server: &ServerStubs,
    tools: &[DeclaredTool<'_>],
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
        let shape = Shape::from_kind(Kind::Object(Object {
            properties: group.properties.clone(),
            rest: ExtraKeys::Unsaid,
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
            text.push_str(&doc(tool.stub, tool.description, shape, &mut writer));
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
    for stub in tools.iter().map(|tool| tool.stub) {
        if let Some(short) = &stub.short {
            let whole = format!("{}.{}", server.global, stub.member);
            text.push_str(&format!("declare const {short}: typeof {whole}\n"));
        }
    }
    Block {
        text,
        uses_int: writer.uses_int,
    }
}

fn alias_line(alias: &str, shape: &Shape, names: &[String], writer: &mut TypeWriter) -> String {
    let note = writer.note_of_type(alias, shape);
    let body = writer.write(shape, names, 0);
    let space = if body.starts_with('\n') && note.is_empty() {
        ""
    } else {
        " "
    };
    format!("type {alias} ={space}{}\n", noted(&body, &note))
}

fn signature(
    stub: &ToolStub,
    shape: &ToolShape,
    names: &[String],
    groups: &[&Group],
    writer: &mut TypeWriter,
) -> String {
    // A method named `new` would declare a constructor.
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
    let in_order = in_order(stub.order, shape, names, writer);
    match in_order.as_slice() {
        [] => format!("{member}({parameter}): Promise<{output}>\n"),
        // A union as the type of the argument is shorter than a second signature.
        [(_, only)] => {
            let (name, of_object) = parameter.split_once(": ").unwrap_or(("a", &parameter));
            format!("{member}({name}: {only} | {of_object}): Promise<{output}>\n")
        }
        several => {
            let several = several
                .iter()
                .map(|(name, written)| format!("{name}: {written}"));
            let several = several.collect::<Vec<_>>().join(", ");
            format!(
                "{member}({parameter}): Promise<{output}>\n{member}({several}): Promise<{output}>\n"
            )
        }
    }
}

/// Returns the names and types of the arguments of a call that passes values instead of one object.
fn in_order(
    order: &'static [&'static str],
    shape: &ToolShape,
    names: &[String],
    writer: &mut TypeWriter,
) -> Vec<(String, String)> {
    let Kind::Object(object) = &shape.input.kind else {
        return Vec::new();
    };
    let mut find = |name: &&str| {
        let property = object.properties.iter().find(|it| it.name == **name)?;
        let optional = if property.required { "" } else { "?" };
        let written = writer.write(&property.shape, names, 0);
        Some((format!("{name}{optional}"), written))
    };
    order.iter().filter_map(&mut find).collect()
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
    if object.properties.is_empty() && !matches!(object.rest, ExtraKeys::Allowed(_)) {
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
    if !own.is_empty() || parts.is_empty() || matches!(object.rest, ExtraKeys::Allowed(_)) {
        let own = Shape::from_kind(Kind::Object(Object {
            properties: own,
            rest: object.rest.clone(),
        }));
        parts.push(writer.write(&own, names, 0));
    }
    format!("a{optional}: {}", parts.join(" & "))
}

/// Whether `{}` is valid, so that the argument can be omitted.
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

/// Writes a tool's doc comment: tags and the wire name first, then the server's description.
fn doc(
    stub: &ToolStub,
    description: &Description,
    shape: &ToolShape,
    writer: &mut TypeWriter,
) -> String {
    let mut parts = tags(&description.claims);
    let shown = |text: &str| in_comment(&neutralise(text));
    if stub.member != stub.wire_name {
        parts.push(format!("({})", shown(&stub.wire_name)));
    }
    let prose = description
        .text
        .as_deref()
        .map(shown)
        .filter(|it| !it.is_empty());
    let title = description
        .title
        .as_deref()
        .map(shown)
        .filter(|it| !it.is_empty());
    let said = prose.as_deref().or(title.as_deref());
    parts.extend(said.map(|it| writer.take_prose(it)));
    for (label, root) in [
        ("Arguments", Some(&shape.input)),
        ("Result", shape.output.as_ref()),
    ] {
        let note = root
            .map(root_note)
            .filter(|it| !it.is_empty() && Some(it) != prose.as_ref());
        parts.extend(note.map(|it| format!("{label}: {it}")));
    }
    if description.output_is_observed {
        parts.push("The result type was observed, not declared.".to_owned());
    }
    parts.extend(guidance::parts(description));
    if parts.is_empty() {
        String::new()
    } else {
        format!("// {}\n", parts.join(" "))
    }
}

/// Returns the note of the root shape, which has no line of its own and is added to the tool's
/// comment.
fn root_note(root: &Shape) -> String {
    Note::from_shape(root).text()
}

fn tags(claims: &Claims) -> Vec<String> {
    let mut tags = Vec::new();
    if let Some(reason) = &claims.deprecated {
        let reason = in_comment(&neutralise(reason));
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
