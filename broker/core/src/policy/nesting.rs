//! How deep a rule nests, told from its text: whatever parses and evaluates
//! conditions goes down one step for each, on a stack that ends.

use super::source::{Mark, Scan};

/// `&&`, `||`, `!`, `+`, `-`, `*` and `else` of one rule, each of which may nest in the next.
const JOINS_MAX: usize = 300;
/// Brackets within brackets, and the ways and calls on which they stand.
const STEPS_MAX: usize = 60;

/// What is too much about a rule's text, and how much is allowed.
pub(super) fn too_deep(text: &str) -> Option<String> {
    let mut nesting = Nesting::default();
    let mut scan = Scan::new(text);
    while let Some((at, mark)) = scan.next() {
        if matches!(mark, Mark::Text) {
            nesting.step(text.get(at..).unwrap_or_default());
        }
        if nesting.joins() > JOINS_MAX {
            return Some(format!(
                "it joins more than {JOINS_MAX} conditions with &&, ||, !, +, -, * and else"
            ));
        }
        if nesting.steps() > STEPS_MAX {
            return Some(format!("it nests more than {STEPS_MAX} levels deep"));
        }
    }
    None
}

#[derive(Default)]
struct Nesting {
    halves: usize,
    joins: usize,
    /// For each open bracket, the dots of the way on which it stands; then those of the last way.
    open: Vec<usize>,
    dots: usize,
}

impl Nesting {
    /// `rest`: from a character on that is no space and stands in no comment. A string is one.
    fn step(&mut self, rest: &str) {
        match rest.chars().next() {
            Some('(' | '[' | '{') => self.open.push(std::mem::take(&mut self.dots)),
            // What follows goes on from the whole.
            Some(')' | ']' | '}') => self.dots = self.open.pop().unwrap_or_default(),
            Some('.') => self.dots += 1,
            Some('&' | '|') => {
                self.halves += 1;
                self.dots = 0;
            }
            Some('+' | '-' | '*' | '!') => {
                self.joins += 1;
                self.dots = 0;
            }
            Some(',' | '=' | '<' | '>') => self.dots = 0,
            Some('e') if rest.starts_with("else") => {
                self.joins += 1;
                self.dots = 0;
            }
            _ => {}
        }
    }

    fn joins(&self) -> usize {
        self.halves / 2 + self.joins
    }

    fn steps(&self) -> usize {
        self.open.len() + self.open.iter().sum::<usize>() + self.dots
    }
}
