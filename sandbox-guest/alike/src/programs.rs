//! Programs that are made up: short ones, each a few uses of what is replaced here, with
//! arguments and objects that nobody would think of. The same number makes the same one.

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

use super::chance::Chance;

/// Statements that run one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub statements: Vec<String>,
    /// Whether it changes what all scripts of its realm share.
    pub changes_realm: bool,
    /// Whether it is started as a script is, in the form that scripts have.
    pub is_script: bool,
}

impl Program {
    /// The one that a number makes.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut maker = Maker {
            chance: Chance::new(seed),
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

    /// One that was found before, from its file.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let statements = text.lines().filter(|line| !line.starts_with("//"));
        Self {
            statements: statements.map(str::to_owned).collect(),
            changes_realm: true,
            is_script: text.starts_with("// script"),
        }
    }

    /// As it is run. What the statements declare is theirs alone.
    #[must_use]
    pub fn text(&self) -> String {
        let statements = self.statements.join("\n");
        match self.is_script {
            true => statements,
            false => format!("(() => {{\n{statements}\n}})()"),
        }
    }
}

/// Makes one program.
pub(crate) struct Maker {
    pub(crate) chance: Chance,
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

    /// Something done, and what came of it told.
    pub(crate) fn attempt(expression: &str) -> String {
        format!("attempt(() => {expression});")
    }

    /// The same, of an error only its class: where the words are our own.
    pub(crate) fn attempt_class(expression: &str) -> String {
        format!("attemptClass(() => {expression});")
    }

    /// The same, of an error only that it is one: where several may come first.
    pub(crate) fn attempt_any(expression: &str) -> String {
        format!("attemptAny(() => {expression});")
    }

    /// A change of a standard object. What it was is put back by taking a new realm.
    pub(crate) fn change(&mut self, statement: &str) -> String {
        self.changes_realm = true;
        statement.to_owned()
    }
}
