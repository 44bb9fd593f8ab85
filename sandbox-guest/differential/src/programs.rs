//! Generates short programs, each with a few uses of replaced functions and with unusual arguments
//! and objects. The same seed gives the same program.

#[path = "programs/appending.rs"]
mod appending;
#[path = "programs/expressions.rs"]
mod expressions;
#[path = "programs/json.rs"]
mod json;
#[path = "programs/lists.rs"]
mod lists;
#[path = "programs/sorting.rs"]
mod sorting;
#[path = "programs/strings.rs"]
mod strings;
#[path = "programs/texts.rs"]
mod texts;

use super::rng::Rng;

/// Statements that run one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub statements: Vec<String>,
    /// Whether the program changes objects that all scripts of its realm share.
    pub changes_realm: bool,
    /// Whether the program is started like a script, in one of the forms of scripts.
    pub is_script: bool,
}

impl Program {
    /// Generates the program for this seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut maker = Maker {
            chance: Rng::new(seed),
            changes_realm: false,
        };
        let is_script = maker.chance.below(12) == 0;
        if is_script {
            return Self {
                statements: maker.appending(),
                changes_realm: true,
                is_script,
            };
        }
        let statements = match maker.chance.below(100) {
            0..35 => maker.matching(),
            35..50 => maker.searching(),
            50..65 => maker.sorting(),
            65..78 => maker.parsing(),
            78..90 => maker.writing(),
            _ => maker.lists(),
        };
        Self {
            statements,
            changes_realm: maker.changes_realm,
            is_script,
        }
    }

    /// Parses the file of a program that was found earlier.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let statements = text.lines().filter(|line| !line.starts_with("//"));
        Self {
            statements: statements.map(str::to_owned).collect(),
            changes_realm: true,
            is_script: text.starts_with("// script"),
        }
    }

    /// Returns the text to run. Declarations of a statement are local to it.
    #[must_use]
    pub fn text(&self) -> String {
        let statements = self.statements.join("\n");
        match self.is_script {
            true => statements,
            false => format!("(() => {{\n{statements}\n}})()"),
        }
    }
}

/// The generator of one program.
pub(crate) struct Maker {
    pub(crate) chance: Rng,
    pub(crate) changes_realm: bool,
}

impl Maker {
    pub(crate) fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        self.chance.one_of(choices)
    }

    pub(crate) fn often(&mut self) -> bool {
        self.chance.below(4) > 0
    }

    pub(crate) fn rarely(&mut self) -> bool {
        self.chance.below(8) == 0
    }

    pub(crate) fn times(&mut self, least: usize, most: usize) -> usize {
        least + self.chance.below(most - least + 1)
    }

    /// Returns an expression that reports its result.
    pub(crate) fn attempt(expression: &str) -> String {
        format!("attempt(() => {expression});")
    }

    /// Returns an expression that reports its result, and for an error only the error's class,
    /// because the message is airlock's own.
    pub(crate) fn attempt_class(expression: &str) -> String {
        format!("attemptClass(() => {expression});")
    }

    /// Returns an expression that reports its result, and for an error only that an error occurred,
    /// because several errors may come first.
    pub(crate) fn attempt_any(expression: &str) -> String {
        format!("attemptAny(() => {expression});")
    }

    /// Returns a statement that changes a standard object. A new realm undoes the change.
    pub(crate) fn change(&mut self, statement: &str) -> String {
        self.changes_realm = true;
        statement.to_owned()
    }
}
