//! Limits the length and the nesting of a rule. Parsing and evaluating conditions recurses once
//! per level, on a bounded stack.

use super::source::{Mark, Scan};

/// Maximum length of a rule. A person cannot review a longer one.
const BYTES_MAX: usize = 64 * 1024;
/// Maximum number of `&&`, `||`, `!`, `+`, `-`, `*`, `else` and additional clauses in one rule.
/// Each of these may nest in the next.
const JOINS_MAX: usize = 300;
/// Maximum nesting of brackets plus chained members, indexes and calls.
const STEPS_MAX: usize = 60;

/// Returns which limit a rule's text exceeds, or `None` if it exceeds none.
pub(super) fn too_complex(text: &str) -> Option<String> {
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
                "the rule joins more than {JOINS_MAX} conditions with &&, ||, !, +, -, *, else, \
                 when and unless"
            ));
        }
        if nesting.steps() > STEPS_MAX {
            return Some(format!("the rule nests more than {STEPS_MAX} levels deep"));
        }
    }
    let (bytes, most) = (text.len(), BYTES_MAX / 1024);
    (bytes > BYTES_MAX).then(|| format!("the rule has {bytes} bytes; the maximum is {most} KiB"))
}

/// Returns the name or number at the start of a text, delimited as in Cedar.
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
    /// The levels around the current one, the outermost first.
    around: Vec<Level>,
    here: Level,
    before: Before,
}

/// The text between two brackets, as far as it has been read.
#[derive(Default)]
struct Level {
    /// Height of the current operand: its nesting, plus each step that follows it.
    operand: usize,
    /// Maximum height of the earlier operands.
    highest: usize,
    /// Whether the opening bracket follows an operand, as in an index or a call.
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
    /// Handles a character outside of words. A string counts as one character.
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
        // A member may have any name, including a keyword.
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

    /// Handles a closing bracket: the bracketed text becomes part of the current operand.
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
