//! How deep a rule nests, told from its text: whatever parses and evaluates
//! conditions goes down one step for each, on a stack that ends.

use super::source::{Mark, Scan};

/// `&&`, `||`, `!`, `+`, `-`, `*`, `else` and further clauses of one rule, each of which may nest
/// in the next.
const JOINS_MAX: usize = 300;
/// Brackets within brackets, and the members, indexes and calls that follow on each other.
const STEPS_MAX: usize = 60;

/// What is too much about a rule's text, and how much is allowed.
pub(super) fn too_deep(text: &str) -> Option<String> {
    let mut nesting = Nesting::default();
    let mut scan = Scan::new(text);
    let mut seen = 0;
    while let Some((at, mark)) = scan.next() {
        if matches!(mark, Mark::Text) && at >= seen {
            let rest = text.get(at..).unwrap_or_default();
            let word = word(rest);
            seen = at + word.len();
            if word.is_empty() {
                nesting.sign(rest.chars().next().unwrap_or_default());
            } else {
                nesting.word(word);
            }
        }
        if nesting.joins() > JOINS_MAX {
            return Some(format!(
                "it joins more than {JOINS_MAX} conditions with &&, ||, !, +, -, *, else, when \
                 and unless"
            ));
        }
        if nesting.steps() > STEPS_MAX {
            return Some(format!("it nests more than {STEPS_MAX} levels deep"));
        }
    }
    None
}

/// The name or number with which a text begins, cut where Cedar cuts it.
fn word(text: &str) -> &str {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    let goes_on =
        |c: char| c.is_ascii_digit() || !is_number && (c.is_ascii_alphabetic() || c == '_');
    let end = text.find(|c| !goes_on(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

#[derive(Default)]
struct Nesting {
    halves: usize,
    joins: usize,
    clauses: usize,
    /// Around what is read now, the outermost first.
    around: Vec<Level>,
    here: Level,
    before: Before,
}

/// What stands between two brackets, as far as it is read.
#[derive(Default)]
struct Level {
    /// Of the operand that is being read: what it holds, and each step that follows on that.
    operand: usize,
    /// Of the highest before it.
    highest: usize,
    /// The bracket that opened it follows on an operand: an index or a call.
    is_step: bool,
}

#[derive(Default, PartialEq)]
enum Before {
    Operand,
    Dot,
    #[default]
    Other,
}

impl Nesting {
    /// A character outside of words. A string is one.
    fn sign(&mut self, sign: char) {
        match sign {
            '(' | '[' | '{' => self.open(),
            ')' | ']' | '}' => self.close(),
            '.' => self.here.operand += 1,
            '&' | '|' => self.halves += 1,
            '+' | '-' | '*' | '!' => self.joins += 1,
            _ => {}
        }
        if matches!(
            sign,
            '&' | '|' | '+' | '-' | '*' | '!' | ',' | '=' | '<' | '>'
        ) {
            self.here.end_operand();
        }
        self.before = match sign {
            ')' | ']' | '}' | '"' => Before::Operand,
            '.' => Before::Dot,
            _ => Before::Other,
        };
    }

    fn word(&mut self, word: &str) {
        // A member can be called by any word.
        let word = if self.before == Before::Dot { "" } else { word };
        self.before = Before::Other;
        match word {
            "else" => {
                self.joins += 1;
                self.here.end_operand();
            }
            "then" => self.here.end_operand(),
            "when" | "unless" => self.clauses += 1,
            "if" | "in" | "has" | "is" | "like" => {}
            _ => self.before = Before::Operand,
        }
    }

    fn open(&mut self) {
        let inner = Level {
            is_step: self.before == Before::Operand,
            ..Level::default()
        };
        self.around.push(std::mem::replace(&mut self.here, inner));
    }

    /// What follows goes on from the whole.
    fn close(&mut self) {
        let within = self.here.height() + 1;
        let step = usize::from(self.here.is_step);
        self.here = self.around.pop().unwrap_or_default();
        self.here.operand = self.here.operand.max(within) + step;
    }

    fn joins(&self) -> usize {
        self.halves / 2 + self.joins + self.clauses.saturating_sub(1)
    }

    fn steps(&self) -> usize {
        self.around.len() + self.here.height()
    }
}

impl Level {
    fn end_operand(&mut self) {
        self.highest = self.height();
        self.operand = 0;
    }

    fn height(&self) -> usize {
        self.highest.max(self.operand)
    }
}
