//! What is known of one call, as rules see it: the members of `context` before
//! Cedar has them. Nothing is copied; a text that no rule looks at costs nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cedar_policy::RestrictedExpression;
use serde_json::Value as Json;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known<'a> {
    Truth(bool),
    Whole(i64),
    Text(Cow<'a, str>),
    Set(Vec<Known<'a>>),
    Record(Members<'a>),
}

pub(super) type Members<'a> = BTreeMap<&'a str, Known<'a>>;

impl<'a> Known<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    pub(super) fn texts(words: impl Iterator<Item = &'a str>) -> Self {
        Self::Set(words.map(Self::text).collect())
    }

    /// As Cedar has it. None: never, since a record's names differ.
    pub(super) fn restricted(&self) -> Option<RestrictedExpression> {
        Some(match self {
            Self::Truth(truth) => RestrictedExpression::new_bool(*truth),
            Self::Whole(number) => RestrictedExpression::new_long(*number),
            Self::Text(text) => RestrictedExpression::new_string(text.clone().into_owned()),
            Self::Set(items) => {
                let items: Option<Vec<_>> = items.iter().map(Self::restricted).collect();
                RestrictedExpression::new_set(items?)
            }
            Self::Record(members) => RestrictedExpression::new_record(pairs(members)?).ok()?,
        })
    }

    pub(super) fn json(&self) -> Json {
        match self {
            Self::Truth(truth) => (*truth).into(),
            Self::Whole(number) => (*number).into(),
            Self::Text(text) => (&**text).into(),
            Self::Set(items) => items.iter().map(Self::json).collect(),
            Self::Record(members) => members
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.json()))
                .collect(),
        }
    }
}

pub(super) fn pairs(members: &Members<'_>) -> Option<Vec<(String, RestrictedExpression)>> {
    let pair = |(name, value): (&&str, &Known<'_>)| {
        let value = value.restricted()?;
        Some(((*name).to_owned(), value))
    };
    members.iter().map(pair).collect()
}
