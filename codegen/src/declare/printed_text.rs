//! Remembers the text that a block has printed, so that a repeated sentence is printed only once.
//! If a later property has the same name and the same sentence, the sentence is omitted. Elsewhere
//! a `…` replaces the repetition.

use std::collections::HashSet;

use crate::text::sentences;

/// Minimum length in words of a sentence that is omitted when it repeats. A shorter sentence is
/// repeated, because that helps the reader more than it costs.
const WORDS_MIN: usize = 6;
const LEFT_OUT: &str = "…";

#[derive(Debug, Default)]
pub(super) struct PrintedText {
    by_name: HashSet<(String, String)>,
    long: HashSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Printed,
    Known,
    LeftOut,
}

impl PrintedText {
    /// Returns the text that must be printed for a property with this name.
    pub(super) fn remaining(&self, name: &str, prose: &str) -> String {
        self.without_repeats(prose, |sentence| {
            let key = (name.to_owned(), sentence.to_owned());
            self.by_name.contains(&key)
        })
    }

    pub(super) fn remember(&mut self, name: &str, prose: &str) {
        for sentence in sentences(prose) {
            self.by_name.insert((name.to_owned(), sentence.to_owned()));
            if is_long(sentence) {
                self.long.insert(sentence.to_owned());
            }
        }
    }

    /// Returns the text that must be printed for a tool, and remembers it.
    pub(super) fn say_of_tool(&mut self, prose: &str) -> String {
        let left = self.without_repeats(prose, |_| false);
        let long = sentences(prose).filter(|it| is_long(it));
        self.long.extend(long.map(str::to_owned));
        left
    }

    fn without_repeats(&self, prose: &str, is_known: impl Fn(&str) -> bool) -> String {
        let fate = |sentence: &str| match sentence {
            _ if is_known(sentence) => Fate::Known,
            _ if self.long.contains(sentence) => Fate::LeftOut,
            _ => Fate::Printed,
        };
        if sentences(prose).all(|it| fate(it) == Fate::Printed) {
            return prose.to_owned();
        }
        let mut left: Vec<&str> = Vec::new();
        for sentence in sentences(prose) {
            match fate(sentence) {
                Fate::Printed => left.push(sentence),
                Fate::LeftOut if left.last() != Some(&LEFT_OUT) => left.push(LEFT_OUT),
                Fate::LeftOut | Fate::Known => {}
            }
        }
        if left == [LEFT_OUT] {
            // A `…` alone would not tell the reader what is missing.
            return prose.to_owned();
        }
        left.join(" ")
    }
}

fn is_long(sentence: &str) -> bool {
    sentence.split(' ').count() >= WORDS_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_sentence_is_printed_once_and_marked() {
        let mut printed = PrintedText::default();
        printed.remember(
            "path",
            "Where it is. Relative to the root of the workspace.",
        );
        let check = |name, prose, expected| assert_eq!(printed.remaining(name, prose), expected);
        check("path", "Where it is. Must exist.", "Must exist.");
        check("path", "Relative to the root of the workspace.", "");
        check("target", "Where it is.", "Where it is.");
        let alone = "Relative to the root of the workspace.";
        check("target", alone, alone);
        check(
            "target",
            "New. Relative to the root of the workspace.",
            "New. …",
        );
        assert_eq!(
            printed.say_of_tool("Copies. Relative to the root of the workspace. Fast."),
            "Copies. … Fast."
        );
    }
}
