//! The members of `context` for one call, before they are converted to Cedar values. Texts are
//! borrowed, so a text that no rule reads is never copied.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cedar_policy::RestrictedExpression;
use serde_json::Value as Json;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextValue<'a> {
    Truth(bool),
    Whole(i64),
    Text(Cow<'a, str>),
    Set(Vec<ContextValue<'a>>),
    Record(Members<'a>),
}

pub type Members<'a> = BTreeMap<&'a str, ContextValue<'a>>;

impl<'a> ContextValue<'a> {
    pub fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    pub fn texts(words: impl Iterator<Item = &'a str>) -> Self {
        Self::Set(words.map(Self::text).collect())
    }

    /// Converts to a Cedar value. Never returns `None` in practice, because the member names of a
    /// record are distinct.
    pub(crate) fn restricted(&self) -> Option<RestrictedExpression> {
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

    pub fn json(&self) -> Json {
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

pub fn pairs(members: &Members<'_>) -> Option<Vec<(String, RestrictedExpression)>> {
    let pair = |(name, value): (&&str, &ContextValue<'_>)| {
        let value = value.restricted()?;
        Some(((*name).to_owned(), value))
    };
    members.iter().map(pair).collect()
}
