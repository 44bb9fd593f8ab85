//! The labels of data. Sets of labels are joined; only a person's declassification removes a label.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use codegen::closest::closest;
use serde::{Deserialize, Serialize};

/// One label: `untrusted`, `private`, or `private:CLASS`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Label(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid label `{word}`; expected untrusted, private or private:CLASS")]
pub struct BadLabel {
    pub word: String,
    /// The closest valid label.
    pub closest: Option<&'static str>,
}

impl Label {
    pub const CHARS_MAX: usize = 40;
    const UNTRUSTED: &'static str = "untrusted";
    const PRIVATE: &'static str = "private";
    const CLASS: &'static str = "private:";

    /// Returns the label of data that an outsider may have written and that may contain
    /// instructions for its reader.
    #[must_use]
    pub fn untrusted() -> Self {
        Self(Self::UNTRUSTED.into())
    }

    /// Returns the label of private data, which only some people may see.
    #[must_use]
    pub fn private() -> Self {
        Self(Self::PRIVATE.into())
    }

    /// Parses a label. A class is a lower-case letter, then lower-case letters, digits, `_` and
    /// `-`.
    pub fn parse(word: &str) -> Result<Self, BadLabel> {
        let is_class = |class: &str| {
            class.starts_with(|c: char| c.is_ascii_lowercase())
                && class
                    .chars()
                    .all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-'))
        };
        let fits = word.len() <= Self::CHARS_MAX
            && (word == Self::UNTRUSTED
                || word == Self::PRIVATE
                || word.strip_prefix(Self::CLASS).is_some_and(is_class));
        if fits {
            return Ok(Self(word.into()));
        }
        let word: String = word.chars().take(2 * Self::CHARS_MAX).collect();
        let kind = word.split(':').next().unwrap_or_default();
        let known = [Self::UNTRUSTED, Self::PRIVATE];
        Err(BadLabel {
            closest: known
                .into_iter()
                .find(|known| closest(kind, [*known]).is_some()),
            word,
        })
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_class(&self) -> bool {
        self.0.starts_with(Self::CLASS)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// A set of labels. A set with `private:mail` always contains `private`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Labels(BTreeSet<Label>);

impl Labels {
    /// Returns the labels that are assumed if nothing is configured: `untrusted` and `private`.
    #[must_use]
    pub fn worst() -> Self {
        [Label::untrusted(), Label::private()].into_iter().collect()
    }

    pub fn join(&mut self, others: &Self) {
        if !others.is_within(self) {
            self.0.extend(others.0.iter().cloned());
        }
    }

    #[must_use]
    pub fn joined(mut self, others: &Self) -> Self {
        self.join(others);
        self
    }

    /// Returns the labels without those that a person declassified. Removing `private` also removes
    /// all its classes. Removing a single class keeps `private`, because other data may have that
    /// label.
    #[must_use]
    pub fn declassified(&self, removed: &[Label]) -> Self {
        let is_all_private = removed.contains(&Label::private());
        let stays = |it: &&Label| !(removed.contains(it) || it.is_class() && is_all_private);
        Self(self.iter().filter(stays).cloned().collect())
    }

    #[must_use]
    pub fn is_within(&self, ceiling: &Self) -> bool {
        self.0.is_subset(&ceiling.0)
    }

    #[must_use]
    pub fn contains(&self, label: &Label) -> bool {
        self.0.contains(label)
    }

    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.contains(&Label::untrusted())
    }

    #[must_use]
    pub fn is_private(&self) -> bool {
        self.contains(&Label::private())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Label> {
        self.0.iter()
    }

    #[must_use]
    pub fn to_texts(&self) -> Vec<String> {
        self.iter().map(Label::to_string).collect()
    }
}

impl FromIterator<Label> for Labels {
    fn from_iter<T: IntoIterator<Item = Label>>(labels: T) -> Self {
        let mut set: BTreeSet<Label> = labels.into_iter().collect();
        if set.iter().any(Label::is_class) {
            set.insert(Label::private());
        }
        Self(set)
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let labels = Vec::<Label>::deserialize(deserializer)?;
        Ok(labels.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], expected: &[&str]) {
        let labels: Labels = words
            .iter()
            .map(|word| Label::parse(word).unwrap())
            .collect();
        assert_eq!(labels.to_texts(), expected);
    }

    #[test]
    fn private_class_implies_private() {
        check(
            &["private:mail", "untrusted"],
            &["private", "private:mail", "untrusted"],
        );
        check(&[], &[]);
    }

    #[test]
    fn misspelt_label_suggests_closest() {
        for (word, meant) in [
            ("untrustd", Some("untrusted")),
            ("Private:mail", Some("private")),
            ("private:", Some("private")),
            ("secret", None),
        ] {
            assert_eq!(Label::parse(word).unwrap_err().closest, meant, "{word}");
        }
    }

    #[test]
    fn declassified_labels_lose_only_what_is_named() {
        for (removed, left) in [
            (&["private"][..], &["untrusted"][..]),
            (&["private:mail"], &["private", "private:hr", "untrusted"]),
            (&["untrusted", "private"], &[]),
            (&[], &["private", "private:hr", "private:mail", "untrusted"]),
        ] {
            let parse = |words: &[&str]| -> Vec<Label> {
                words.iter().map(|it| Label::parse(it).unwrap()).collect()
            };
            let all: Labels = parse(&["private:mail", "private:hr", "untrusted"])
                .into_iter()
                .collect();
            let found = all.declassified(&parse(removed));
            assert_eq!(found.to_texts(), left, "{removed:?}");
        }
    }

    #[test]
    fn join_never_removes_labels() {
        let mail: Labels = [Label::parse("private:mail").unwrap()]
            .into_iter()
            .collect();
        let both = mail.clone().joined(&Labels::worst());
        assert!(mail.is_within(&both) && Labels::worst().is_within(&both));
        assert!(!both.is_within(&mail));
    }
}
