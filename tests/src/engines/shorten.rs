//! Shortens the script of a difference while it still shows a difference.

use super::compare::{Comparison, Difference, Pair};
use super::generate::GeneratedScript;
use super::known;

/// Maximum number of comparisons for one script.
const TRIES_MAX: usize = 700;

impl Pair {
    /// Returns the same difference with a shorter script. Removes statements first, then the
    /// content of brackets and items between commas, then single words.
    #[must_use]
    pub fn shorten(&self, difference: Difference) -> Difference {
        let mut search = Search {
            pair: self,
            found: difference,
            tries: 0,
        };
        search.statements();
        loop {
            let before = search.found.made.statements.concat().len();
            search.words();
            let after = search.found.made.statements.concat().len();
            if after >= before || search.tries >= TRIES_MAX {
                return search.found;
            }
        }
    }
}

struct Search<'a> {
    pair: &'a Pair,
    found: Difference,
    tries: usize,
}

impl Search<'_> {
    fn statements(&mut self) {
        let mut at = self.first();
        while at < self.found.made.statements.len() {
            let mut fewer = self.found.made.statements.clone();
            fewer.remove(at);
            if !self.take(fewer) {
                at += 1;
            }
        }
    }

    /// Removes sequences of words, the longest first.
    fn words(&mut self) {
        for statement in self.first()..self.found.made.statements.len() {
            let mut length = self.words_of(statement).len();
            while length > 0 {
                let mut at = 0;
                loop {
                    let words = self.words_of(statement);
                    if at >= words.len() || self.tries >= TRIES_MAX {
                        break;
                    }
                    let end = (at + length).min(words.len());
                    let is_balanced = is_balanced(&words[at..end]);
                    let fewer = [&words[..at], &words[end..]].concat();
                    if !(is_balanced && self.take_words(statement, &fewer)) {
                        at += 1.max(length / 4);
                    }
                }
                length = if length > 8 {
                    length * 2 / 3
                } else {
                    length - 1
                };
            }
        }
        self.unwrap();
    }

    /// Removes pairs of brackets and keeps their content.
    fn unwrap(&mut self) {
        for statement in self.first()..self.found.made.statements.len() {
            let mut at = 0;
            loop {
                let words = self.words_of(statement);
                if at >= words.len() || self.tries >= TRIES_MAX {
                    break;
                }
                let closes = closing(&words, at);
                let shorter = closes.map(|closes| {
                    let mut words = words.clone();
                    words.remove(closes);
                    words.remove(at);
                    words
                });
                if !shorter.is_some_and(|words| self.take_words(statement, &words)) {
                    at += 1;
                }
            }
        }
    }

    /// Returns the index of the first statement that may be removed. The declarations before it
    /// stay, because a missing name would be another difference.
    fn first(&self) -> usize {
        let first = self.found.made.statements.first();
        usize::from(first.is_some_and(|first| first.starts_with("let a = 1,")))
    }

    fn words_of(&self, statement: usize) -> Vec<String> {
        split(&self.found.made.statements[statement])
    }

    fn take_words(&mut self, statement: usize, words: &[String]) -> bool {
        let mut statements = self.found.made.statements.clone();
        statements[statement] = words.concat();
        self.take(statements)
    }

    /// Compares these statements, and keeps them if the engines differ on them in the same way.
    fn take(&mut self, statements: Vec<String>) -> bool {
        self.tries += 1;
        let is_new = |script: &str| known::is_never_made_up(script);
        if is_new(&statements.join("\n")) && !is_new(&self.found.made.statements.join("\n")) {
            return false;
        }
        let made: GeneratedScript = self.found.made.with(statements);
        match self.pair.compare(&made) {
            Comparison::Different(found) if is_alike(&found, &self.found) => {
                self.found = *found;
                true
            }
            _ => false,
        }
    }
}

/// Returns whether two differences are of the same kind. A script that does not parse, or that ends
/// in another way, is another difference.
fn is_alike(found: &Difference, wanted: &Difference) -> bool {
    let kind = |line: &str| -> (bool, bool, bool) {
        (
            line.contains("SyntaxError"),
            line.contains("ReferenceError"),
            line == "nothing more",
        )
    };
    kind(&found.boa) == kind(&wanted.boa) && kind(&found.quickjs) == kind(&wanted.quickjs)
}

/// Splits a text into words, white space, and single other characters. Words are names and numbers.
fn split(text: &str) -> Vec<String> {
    let class = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' || c == '$' => 1,
        c if c.is_whitespace() => 2,
        _ => 3,
    };
    let mut words: Vec<String> = Vec::new();
    let mut before = 0;
    for c in text.chars() {
        let now = class(c);
        match words.last_mut() {
            Some(word) if now == before && now != 3 => word.push(c),
            _ => words.push(c.to_string()),
        }
        before = now;
    }
    words
}

fn is_balanced(words: &[String]) -> bool {
    let mut depth = 0_i32;
    for word in words {
        match word.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

/// Returns the index of the bracket that closes the one at this index.
fn closing(words: &[String], at: usize) -> Option<usize> {
    if !matches!(words.get(at)?.as_str(), "(" | "[" | "{") {
        return None;
    }
    (at + 1..words.len()).find(|&end| is_balanced(&words[at..=end]))
}
