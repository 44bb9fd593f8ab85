//! Names the types that a block declares in addition to its tools. They stand for the named shapes
//! of the schemas; tools with equal shapes share one type.

use std::collections::{BTreeSet, HashMap};

use super::types::TypeWriter;
use crate::canonical::Digest;
use crate::names;
use crate::shape::{ExtraKeys, Kind, NamedShape, Object, Shape, ToolShape};

/// The type names of a block's named shapes.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    /// For each tool, the alias of each of its named shapes.
    pub of_tool: Vec<Vec<String>>,
    /// Aliases in the order of their first use, each with its tool and shape.
    pub declared: Vec<(String, usize, usize)>,
}

impl Aliases {
    pub(super) fn choose(shapes: &[ToolShape], taken: &mut BTreeSet<String>) -> Self {
        let mut aliases = Self::default();
        let mut known: HashMap<Digest, String> = HashMap::new();
        for (tool, shape) in shapes.iter().enumerate() {
            let mut names = Vec::new();
            for (index, meaning) in meanings(&shape.named).into_iter().enumerate() {
                let wanted = shape.named.get(index).map_or("", |it| it.name.as_str());
                let alias = known.entry(meaning).or_insert_with(|| {
                    let alias = free_name(wanted, taken);
                    aliases.declared.push((alias.clone(), tool, index));
                    alias
                });
                names.push(alias.clone());
            }
            aliases.of_tool.push(names);
        }
        aliases
    }

    pub(super) fn names_of(&self, tool: usize) -> &[String] {
        self.of_tool
            .get(tool)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }
}

/// Returns a type name that is neither in use nor a type of the language.
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

/// Returns a digest for each named shape. Two digests are equal exactly if the shapes are equal,
/// including notes and all shapes that they refer to.
fn meanings(named: &[NamedShape]) -> Vec<Digest> {
    let local = local_names(named);
    let own = named.iter().zip(&local).map(|(it, name)| {
        let body = TypeWriter::new(true).write(&it.shape, &local, 0);
        Digest::sha256(format!("{name}={body} {:?}", it.shape.facts).as_bytes())
    });
    let own: Vec<Digest> = own.collect();
    let refers_to: Vec<Vec<usize>> = named
        .iter()
        .map(|it| {
            let mut found = Vec::new();
            references(&it.shape, &mut found);
            found
        })
        .collect();
    (0..named.len())
        .map(|index| whole_meaning(index, &own, &refers_to))
        .collect()
}

fn whole_meaning(index: usize, own: &[Digest], refers_to: &[Vec<usize>]) -> Digest {
    let mut reached = vec![index];
    let mut bytes: Vec<u8> = Vec::new();
    let mut next = 0;
    while let Some(current) = reached.get(next).copied() {
        next += 1;
        bytes.extend(own.get(current).map(|it| it.0).unwrap_or_default());
        for found in refers_to.get(current).into_iter().flatten() {
            if !reached.contains(found) {
                reached.push(*found);
            }
        }
    }
    Digest::sha256(&bytes)
}

/// Returns distinct names for the shapes of one tool. They do not depend on the other tools.
fn local_names(named: &[NamedShape]) -> Vec<String> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let numbered = named.iter().map(|it| {
        let count = seen.entry(&it.name).or_default();
        *count += 1;
        format!("{}#{count}", it.name)
    });
    numbered.collect()
}

pub(super) fn references(shape: &Shape, found: &mut Vec<usize>) {
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
            if let ExtraKeys::Allowed(rules) = rest {
                rules.iter().for_each(|it| references(&it.shape, found));
            }
        }
        _ => {}
    }
}

/// Types that TypeScript defines and that are not also values.
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
