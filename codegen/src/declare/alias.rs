//! Names for types that a block declares beside its tools: shapes that the
//! schemas name themselves, shared by all tools that mean the same by them.

use std::collections::{BTreeSet, HashMap};

use super::types::TypeWriter;
use crate::names;
use crate::shape::{Kind, NamedShape, Object, Rest, Shape, ToolShape};

/// What a block calls its named shapes.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    /// For each tool, the alias of each of its named shapes.
    pub of_tool: Vec<Vec<String>>,
    /// Aliases in the order of their first use: which tool's which shape.
    pub declared: Vec<(String, usize, usize)>,
}

impl Aliases {
    pub(super) fn choose(shapes: &[ToolShape], taken: &mut BTreeSet<String>) -> Self {
        let mut aliases = Self::default();
        let mut known: HashMap<String, String> = HashMap::new();
        for (tool, shape) in shapes.iter().enumerate() {
            let mut names = Vec::new();
            for (index, named) in shape.named.iter().enumerate() {
                let alias = known
                    .entry(meaning(&shape.named, index))
                    .or_insert_with(|| {
                        let alias = free_name(&named.name, taken);
                        aliases.declared.push((alias.clone(), tool, index));
                        alias
                    });
                names.push(alias.clone());
            }
            aliases.of_tool.push(names);
        }
        aliases
    }
}

/// A type name that is neither taken nor a type of the language.
pub(super) fn free_name(wanted: &str, taken: &mut BTreeSet<String>) -> String {
    let is_free = |name: &str| {
        !taken.contains(name) && !names::is_known_global(name) && !LIBRARY_TYPES.contains(&name)
    };
    let wanted = if names::is_identifier(wanted) {
        wanted
    } else {
        "T"
    };
    let mut name = wanted.to_owned();
    let mut count = 1;
    while !is_free(&name) {
        count += 1;
        name = format!("{wanted}{count}");
    }
    taken.insert(name.clone());
    name
}

/// A text that is equal for two named shapes exactly when they say the same, notes included.
fn meaning(named: &[NamedShape], index: usize) -> String {
    let local: Vec<String> = (0..named.len()).map(|at| local_name(named, at)).collect();
    let mut reached = vec![index];
    let mut at = 0;
    let mut text = String::new();
    while let Some(current) = reached.get(at).copied() {
        at += 1;
        let Some(shape) = named.get(current).map(|it| &it.shape) else {
            continue;
        };
        let body = TypeWriter::new(true).write(shape, &local, 0);
        text.push_str(&format!(
            "{}={body} {:?}\n",
            local_name(named, current),
            shape.facts
        ));
        let mut found = Vec::new();
        references(shape, &mut found);
        let new: Vec<usize> = found
            .into_iter()
            .filter(|it| !reached.contains(it))
            .collect();
        for index in new {
            if !reached.contains(&index) {
                reached.push(index);
            }
        }
    }
    text
}

fn local_name(named: &[NamedShape], index: usize) -> String {
    let name = named.get(index).map_or("", |it| it.name.as_str());
    let earlier = named
        .iter()
        .take(index)
        .filter(|it| it.name == name)
        .count();
    format!("{name}#{earlier}")
}

fn references(shape: &Shape, found: &mut Vec<usize>) {
    match &shape.kind {
        Kind::Named(index) => found.push(*index),
        Kind::Array(item) => references(item, found),
        Kind::Tuple(tuple) => tuple
            .items
            .iter()
            .chain(tuple.rest.as_deref())
            .for_each(|it| references(it, found)),
        Kind::Union(members) | Kind::Intersection(members) => {
            members.iter().for_each(|it| references(it, found))
        }
        Kind::Object(Object { properties, rest }) => {
            properties
                .iter()
                .for_each(|it| references(&it.shape, found));
            if let Rest::Allowed(rules) = rest {
                rules.iter().for_each(|it| references(&it.shape, found));
            }
        }
        _ => {}
    }
}

/// Types that every TypeScript program knows and that are not values as well.
const LIBRARY_TYPES: [&str; 58] = [
    "ArrayBufferLike",
    "ArrayBufferTypes",
    "ArrayBufferView",
    "ArrayLike",
    "AsyncGenerator",
    "AsyncGeneratorFunction",
    "AsyncIterable",
    "AsyncIterableIterator",
    "AsyncIteratorObject",
    "Awaited",
    "BuiltinIteratorReturn",
    "CallableFunction",
    "Capitalize",
    "ConcatArray",
    "ConstructorParameters",
    "Disposable",
    "ErrorOptions",
    "Exclude",
    "Extract",
    "FlatArray",
    "Generator",
    "GeneratorFunction",
    "IArguments",
    "ImportAttributes",
    "ImportMeta",
    "InstanceType",
    "Iterable",
    "IterableIterator",
    "IteratorObject",
    "IteratorResult",
    "Lowercase",
    "NewableFunction",
    "NoInfer",
    "NonNullable",
    "Omit",
    "OmitThisParameter",
    "Parameters",
    "Partial",
    "Pick",
    "PromiseLike",
    "PropertyDescriptor",
    "PropertyDescriptorMap",
    "PropertyKey",
    "Readonly",
    "ReadonlyArray",
    "ReadonlyMap",
    "ReadonlySet",
    "Record",
    "RegExpExecArray",
    "RegExpMatchArray",
    "Required",
    "ReturnType",
    "StringNumber",
    "TemplateStringsArray",
    "ThisType",
    "TypedPropertyDescriptor",
    "Uncapitalize",
    "Uppercase",
];
