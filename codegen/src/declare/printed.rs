//! What a block has said already. Text that repeats is printed once, sentence by
//! sentence: under the name of a property it is then known of every property of
//! that name; elsewhere a `…` stands where it was left out.

use std::collections::HashSet;

use crate::text::sentences;

/// Shorter sentences are repeated where they stand: the reader gains more than is saved.
const WORDS_MIN: usize = 6;
const LEFT_OUT: &str = "…";

#[derive(Debug, Default)]
pub(super) struct Printed {
    by_name: HashSet<(String, String)>,
    long: HashSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Printed,
    Known,
    LeftOut,
}

impl Printed {
    /// What is left to say about a property of this name.
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

    /// What is left to say about a tool; from now on it is said.
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
            // A mark alone would not tell what it stands for.
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
    fn a_sentence_is_said_once_under_one_name_and_marked_where_another_name_has_said_it() {
        let mut printed = Printed::default();
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
