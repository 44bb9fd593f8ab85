//! The members of `context` that are facts: their names, types, and values.
//! A fact that is absent in [`Facts`] is absent here.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::known::Known;
use crate::facts::Facts;

/// One member of `context`.
pub(super) struct Fact {
    pub(super) name: &'static str,
    /// It is there for each call, so that rules need no `has`.
    pub(super) always: bool,
    pub(super) kind: Kind,
    value: for<'a> fn(&'a Facts) -> Option<Known<'a>>,
}

pub(super) enum Kind {
    Truth,
    Texts,
    /// Members that are all there.
    Record(&'static [(&'static str, &'static str)]),
}

pub(super) const FACTS: &[Fact] = &[
    Fact {
        name: "labels",
        always: true,
        kind: Kind::Texts,
        value: |facts| {
            Some(Known::texts(
                facts.labels.iter().map(|label| label.as_str()),
            ))
        },
    },
    Fact {
        name: "script_trusted",
        always: true,
        kind: Kind::Truth,
        value: |facts| Some(Known::Truth(facts.script_trusted)),
    },
    Fact {
        name: "writes",
        always: true,
        kind: Kind::Record(&[("external", "Boolean"), ("state", "Boolean")]),
        value: |facts| {
            let members = [
                ("external", Known::Truth(facts.writes.external)),
                ("state", Known::Truth(facts.writes.state)),
            ];
            record(members)
        },
    },
    Fact {
        name: "path_roots",
        always: false,
        kind: Kind::Texts,
        value: |facts| set(facts.path_roots.as_ref()),
    },
    Fact {
        name: "dest_hosts",
        always: false,
        kind: Kind::Texts,
        value: |facts| set(facts.dest_hosts.as_ref()),
    },
    Fact {
        name: "dest_addresses",
        always: false,
        kind: Kind::Texts,
        value: |facts| set(facts.dest_addresses.as_ref()),
    },
    Fact {
        name: "dest_domains",
        always: false,
        kind: Kind::Texts,
        value: |facts| set(facts.dest_domains.as_ref()),
    },
    Fact {
        name: "dest_explained",
        always: false,
        kind: Kind::Truth,
        value: |facts| facts.dest_explained.map(Known::Truth),
    },
    Fact {
        name: "dest_unexplained",
        always: true,
        kind: Kind::Texts,
        value: |facts| {
            Some(Known::texts(
                facts.dest_unexplained.iter().map(String::as_str),
            ))
        },
    },
    Fact {
        name: "lookalikes",
        always: true,
        kind: Kind::Texts,
        value: |facts| Some(Known::texts(facts.lookalikes.iter().map(String::as_str))),
    },
    Fact {
        name: "counts",
        always: true,
        kind: Kind::Record(&[
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
        kind: Kind::Record(&[("at_ms", "Long"), ("hour", "Long"), ("weekday", "Long")]),
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
        kind: Kind::Truth,
        value: |facts| Some(Known::Truth(facts.disclosed)),
    },
    Fact {
        name: "pinned",
        always: false,
        kind: Kind::Truth,
        value: |facts| facts.pinned.map(Known::Truth),
    },
    Fact {
        name: "large_texts",
        always: true,
        kind: Kind::Texts,
        value: |facts| Some(Known::texts(facts.large_texts.keys().map(String::as_str))),
    },
];

/// Computed from the arguments by the schema, not taken from [`Facts`].
pub(super) const UNMODELLED: &str = "unmodelled";

impl Fact {
    pub(super) fn value<'a>(&self, facts: &'a Facts) -> Option<Known<'a>> {
        (self.value)(facts)
    }

    /// Its type in a Cedar schema.
    pub(super) fn schema(&self) -> Json {
        let mut schema = match self.kind {
            Kind::Truth => json!({"type": "Boolean"}),
            Kind::Texts => json!({"type": "Set", "element": {"type": "String"}}),
            Kind::Record(members) => {
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

    /// The names of its members, when it has any.
    pub(super) fn members(&self) -> impl Iterator<Item = &'static str> {
        let members: &[(&str, &str)] = match self.kind {
            Kind::Record(members) => members,
            Kind::Truth | Kind::Texts => &[],
        };
        members.iter().map(|(name, _)| *name)
    }
}

fn set(words: Option<&BTreeSet<String>>) -> Option<Known<'_>> {
    words.map(|words| Known::texts(words.iter().map(String::as_str)))
}

/// A count past all counting stays the largest there is.
fn long(number: u64) -> Known<'static> {
    Known::Whole(i64::try_from(number).unwrap_or(i64::MAX))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the value of a fact, which may be absent"
)]
fn record<const N: usize>(members: [(&'static str, Known<'static>); N]) -> Option<Known<'static>> {
    Some(Known::Record(members.into()))
}
