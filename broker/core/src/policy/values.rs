//! The texts that an argument can have, if the tool's input schema lists them.

use std::collections::{BTreeMap, BTreeSet};

use codegen::shape::{Kind, Shape, ToolShape};
use serde_json::Value;

/// Returns the listed texts of the top-level arguments whose texts are listed completely.
pub(super) fn listed(shape: &ToolShape) -> BTreeMap<String, BTreeSet<String>> {
    let Kind::Object(object) = &shape.input.kind else {
        return BTreeMap::new();
    };
    let listed = object.properties.iter().filter_map(|property| {
        let texts = texts(&property.shape)?;
        Some((property.name.clone(), texts))
    });
    listed.collect()
}

fn texts(shape: &Shape) -> Option<BTreeSet<String>> {
    match &shape.kind {
        Kind::Literal(Value::String(text)) => Some(BTreeSet::from([text.clone()])),
        Kind::Null => Some(BTreeSet::new()),
        Kind::Array(items) => texts(items),
        Kind::Union(members) => {
            let all: Option<Vec<_>> = members.iter().map(texts).collect();
            Some(all?.into_iter().flatten().collect())
        }
        _ => None,
    }
}
