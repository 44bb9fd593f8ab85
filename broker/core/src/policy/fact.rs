//! The facts as members of `context`: their names, types and values. A fact that is absent in
//! [`Facts`] is absent in `context`.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::context_value::ContextValue;
use crate::facts::Facts;

/// One fact as a member of `context`.
#[derive(Debug)]
pub struct Fact {
    pub name: &'static str,
    /// Whether the fact is present for every call, so that rules need no `has`.
    pub always: bool,
    pub kind: FactKind,
    value: for<'a> fn(&'a Facts) -> Option<ContextValue<'a>>,
}

#[derive(Debug)]
pub enum FactKind {
    Truth,
    Texts,
    /// A record whose members are always present.
    Record(&'static [(&'static str, &'static str)]),
}

pub const FACTS: &[Fact] = &[
    Fact {
        name: "labels",
        always: true,
        kind: FactKind::Texts,
        value: |facts| {
            Some(ContextValue::texts(
                facts.labels.iter().map(|label| label.as_str()),
            ))
        },
    },
    Fact {
        name: "script_trusted",
        always: true,
        kind: FactKind::Truth,
        value: |facts| Some(ContextValue::Truth(facts.script_trusted)),
    },
    Fact {
        name: "writes",
        always: true,
        kind: FactKind::Record(&[("external", "Boolean"), ("state", "Boolean")]),
        value: |facts| {
            let members = [
                ("external", ContextValue::Truth(facts.writes.external)),
                ("state", ContextValue::Truth(facts.writes.state)),
            ];
            record(members)
        },
    },
    Fact {
        name: "path_roots",
        always: false,
        kind: FactKind::Texts,
        value: |facts| set(facts.path_roots.as_ref()),
    },
    Fact {
        name: "dest_hosts",
        always: false,
        kind: FactKind::Texts,
        value: |facts| set(facts.dest_hosts.as_ref()),
    },
    Fact {
        name: "dest_addresses",
        always: false,
        kind: FactKind::Texts,
        value: |facts| set(facts.dest_addresses.as_ref()),
    },
    Fact {
        name: "dest_domains",
        always: false,
        kind: FactKind::Texts,
        value: |facts| set(facts.dest_domains.as_ref()),
    },
    Fact {
        name: "dest_explained",
        always: false,
        kind: FactKind::Truth,
        value: |facts| facts.dest_explained.map(ContextValue::Truth),
    },
    Fact {
        name: "dest_unexplained",
        always: true,
        kind: FactKind::Texts,
        value: |facts| {
            Some(ContextValue::texts(
                facts.dest_unexplained.iter().map(String::as_str),
            ))
        },
    },
    Fact {
        name: "lookalikes",
        always: true,
        kind: FactKind::Texts,
        value: |facts| {
            Some(ContextValue::texts(
                facts.lookalikes.iter().map(String::as_str),
            ))
        },
    },
    Fact {
        name: "counts",
        always: true,
        kind: FactKind::Record(&[
            ("calls_run", "Long"),
            ("calls_session", "Long"),
            ("bytes_run", "Long"),
            ("bytes_session", "Long"),
        ]),
        value: |facts| {
            let counts = facts.counts;
            record([
                ("calls_run", long(counts.calls_run)),
                ("calls_session", long(counts.calls_session)),
                ("bytes_run", long(counts.bytes_run)),
                ("bytes_session", long(counts.bytes_session)),
            ])
        },
    },
    Fact {
        name: "time",
        always: true,
        kind: FactKind::Record(&[("at_ms", "Long"), ("hour", "Long"), ("weekday", "Long")]),
        value: |facts| {
            let time = facts.time;
            record([
                ("at_ms", long(time.at_ms)),
                ("hour", long(time.hour.into())),
                ("weekday", long(time.weekday.into())),
            ])
        },
    },
    Fact {
        name: "disclosed",
        always: true,
        kind: FactKind::Truth,
        value: |facts| Some(ContextValue::Truth(facts.disclosed)),
    },
    Fact {
        name: "pinned",
        always: false,
        kind: FactKind::Truth,
        value: |facts| facts.pinned.map(ContextValue::Truth),
    },
    Fact {
        name: "large_texts",
        always: true,
        kind: FactKind::Texts,
        value: |facts| {
            Some(ContextValue::texts(
                facts.large_texts.keys().map(String::as_str),
            ))
        },
    },
];

/// Name of the member that is computed from the arguments and the schema. It is not part of
/// [`Facts`].
pub const UNMODELLED: &str = "unmodelled";

impl Fact {
    pub fn value<'a>(&self, facts: &'a Facts) -> Option<ContextValue<'a>> {
        (self.value)(facts)
    }

    /// Returns the fact's type for a Cedar schema.
    pub fn schema(&self) -> Json {
        let mut schema = match self.kind {
            FactKind::Truth => json!({"type": "Boolean"}),
            FactKind::Texts => json!({"type": "Set", "element": {"type": "String"}}),
            FactKind::Record(members) => {
                let member =
                    |(name, kind): &(&str, &str)| ((*name).to_owned(), json!({"type": kind}));
                let members: serde_json::Map<_, _> = members.iter().map(member).collect();
                json!({"type": "Record", "attributes": members})
            }
        };
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("required".into(), self.always.into());
        }
        schema
    }

    /// Returns the names of the fact's members, if it is a record.
    pub fn members(&self) -> impl Iterator<Item = &'static str> {
        let members: &[(&str, &str)] = match self.kind {
            FactKind::Record(members) => members,
            FactKind::Truth | FactKind::Texts => &[],
        };
        members.iter().map(|(name, _)| *name)
    }
}

fn set(words: Option<&BTreeSet<String>>) -> Option<ContextValue<'_>> {
    words.map(|words| ContextValue::texts(words.iter().map(String::as_str)))
}

/// Converts a count to a Cedar `Long`; larger counts become the largest `Long`.
fn long(number: u64) -> ContextValue<'static> {
    ContextValue::Whole(i64::try_from(number).unwrap_or(i64::MAX))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "has the return type of facts that can be absent"
)]
fn record<const N: usize>(
    members: [(&'static str, ContextValue<'static>); N],
) -> Option<ContextValue<'static>> {
    Some(ContextValue::Record(members.into()))
}
