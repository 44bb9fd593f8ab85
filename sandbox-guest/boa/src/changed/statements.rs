//! The statements of a script, as far as jumps concern them, from its tokens. The parser keeps
//! no places of statements; what it read is sure to be a script, so nothing is checked here.

use super::tokens::{Kind, Token};

pub(super) mod elements;

/// What is found. All numbers are those of tokens.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) caught_with_finally: Vec<CaughtWithFinally>,
    pub(super) labelled_breaks: usize,
    /// Loops through names, and which of them stand in another loop that goes through something.
    pub(super) loops_through_names: usize,
    pub(super) names_in_loops: Vec<NamesInLoop>,
    pub(super) left: Vec<Left>,
    pub(super) jumps: Vec<Jump>,
    /// Loops and switches without a label that need one.
    pub(super) named: Vec<usize>,
    pub(super) finallies: usize,
    /// From the inside out.
    pub(super) rerouted: Vec<Rerouted>,
}

/// A `try` with `finally` inside another one, which jumps leave for several places.
#[derive(Debug)]
pub(super) struct Rerouted {
    /// `try`
    pub(super) word: usize,
    pub(super) last: usize,
    pub(super) jumps: Vec<Leaving>,
}

/// A jump out of a `try`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leaving {
    pub(super) word: usize,
    /// The label, or the last of the value that is returned, or the word itself.
    pub(super) last: usize,
    /// What stands around it that it jumps to; a `return` has none.
    target: Option<usize>,
}

#[derive(Debug)]
pub(super) struct CaughtWithFinally {
    /// `try`
    pub(super) word: usize,
    /// The last of `catch`.
    pub(super) caught: usize,
}

#[derive(Debug)]
pub(super) struct NamesInLoop {
    /// `in`
    pub(super) word: usize,
    /// The bracket that closes the head.
    pub(super) close: usize,
}

/// A labelled statement that a `break` leaves out of loops in it that go through something.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) label: usize,
    pub(super) last: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Jump {
    /// Such a `break`, and the label that it names where that stands.
    Out {
        word: usize,
        label: usize,
        of: usize,
    },
    /// One without a label, out of a statement that is left.
    ToLabel {
        word: usize,
        label: usize,
    },
    ToNamed {
        word: usize,
        start: usize,
    },
}

impl Jump {
    pub(super) fn word(&self) -> usize {
        match *self {
            Self::Out { word, .. } | Self::ToLabel { word, .. } | Self::ToNamed { word, .. } => {
                word
            }
        }
    }
}

/// What stands around a statement in its function.
#[derive(Debug)]
struct Around {
    what: What,
    /// The token that it begins with.
    start: usize,
}

#[derive(Debug)]
enum What {
    Loop {
        /// Through the items or the names of something.
        goes_through: bool,
    },
    Switch,
    /// A `try` with `finally`.
    Finally {
        /// Until the `finally` begins.
        is_before: bool,
        left_by: Vec<Leaving>,
    },
    Label {
        is_left: bool,
        /// Jumps without a label that lead out of it, and to what.
        passed_by: Vec<(usize, usize)>,
    },
}

struct Walk<'a> {
    script: &'a str,
    tokens: &'a [Token],
    around: Vec<Around>,
    found: Found,
}

/// Goes through the statements of a script; `None` when that does not work out.
pub(super) fn find(script: &str, tokens: &[Token]) -> Option<Found> {
    let mut walk = Walk::of(script, tokens);
    walk.list(0, tokens.len())?;
    walk.found.named.sort_unstable();
    walk.found.named.dedup();
    Some(walk.found)
}

/// Words behind which an expression goes on.
const OPERATORS: [&str; 10] = [
    "typeof",
    "void",
    "delete",
    "new",
    "in",
    "instanceof",
    "await",
    "let",
    "const",
    "var",
];

impl<'a> Walk<'a> {
    fn of(script: &'a str, tokens: &'a [Token]) -> Self {
        Self {
            script,
            tokens,
            around: Vec::new(),
            found: Found::default(),
        }
    }
}

impl Walk<'_> {
    fn token(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at)
    }

    /// What is written there, as far as it is a word or a sign.
    fn says(&self, at: usize) -> &str {
        let range = self.token(at).map(|token| token.range.clone());
        range
            .and_then(|range| self.script.get(range))
            .unwrap_or_default()
    }

    fn is_word(&self, at: usize) -> bool {
        self.token(at).is_some_and(|token| token.kind == Kind::Word)
    }

    /// The other one of a bracket, of this kind.
    fn other(&self, at: usize, bracket: &str) -> Option<usize> {
        let token = self.token(at)?;
        (self.says(at) == bracket).then_some(token.partner)
    }

    fn list(&mut self, start: usize, end: usize) -> Option<()> {
        let mut at = start;
        while at < end {
            at = self.statement(at)?;
        }
        (at == end).then_some(())
    }

    /// Answers where the next one begins.
    fn statement(&mut self, at: usize) -> Option<usize> {
        let token = self.token(at)?;
        if token.kind == Kind::Open && self.says(at) == "{" {
            return self.block(at);
        }
        if token.kind != Kind::Word {
            return self.simple(at);
        }
        if self.says(at + 1) == ":" {
            return self.labelled(at);
        }
        match self.says(at) {
            "if" => {
                let mut next = self.head(at + 1)?;
                next = self.statement(next)?;
                match self.says(next) {
                    "else" => self.statement(next + 1),
                    _ => Some(next),
                }
            }
            "for" => {
                let head = at + 1 + usize::from(self.says(at + 1) == "await");
                let body = self.head(head)?;
                let goes_through = !self.has_semicolon(head + 1, body - 1);
                if goes_through {
                    self.goes_through(head, body - 1);
                }
                self.inside(What::Loop { goes_through }, at, |walk| walk.statement(body))
            }
            "while" => {
                let body = self.head(at + 1)?;
                self.inside(PLAIN_LOOP, at, |walk| walk.statement(body))
            }
            "do" => {
                let next = self.inside(PLAIN_LOOP, at, |walk| walk.statement(at + 1))?;
                let end = self.head(next + 1)?;
                Some(self.past_semicolon(end))
            }
            "switch" => self.switch(at),
            "try" => self.attempt(at),
            "break" | "continue" => self.jump(at),
            "return" => self.gives_back(at),
            "export" if self.is_word(at + 1) => {
                self.statement(at + 1 + usize::from(self.says(at + 1) == "default"))
            }
            "async" if self.says(at + 1) == "function" => self.function(at + 1),
            "function" => self.function(at),
            "class" => self.class(at),
            _ => self.simple(at),
        }
    }

    fn inside<T>(
        &mut self,
        what: What,
        start: usize,
        walk: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        self.around.push(Around { what, start });
        let came_of_it = walk(self);
        self.around.pop();
        came_of_it
    }

    fn block(&mut self, open: usize) -> Option<usize> {
        let close = self.other(open, "{")?;
        self.list(open + 1, close)?;
        Some(close + 1)
    }

    fn head(&mut self, open: usize) -> Option<usize> {
        let close = self.other(open, "(")?;
        self.expressions(open + 1, close)?;
        Some(close + 1)
    }

    fn past_semicolon(&self, at: usize) -> usize {
        at + usize::from(self.says(at) == ";")
    }

    /// Notes whether a loop goes through names.
    fn goes_through(&mut self, open: usize, close: usize) {
        let declares = matches!(self.says(open + 1), "const" | "let" | "var");
        let mut at = open + 1 + usize::from(declares);
        loop {
            at = match self.token(at) {
                Some(token) if token.kind == Kind::Open => token.partner + 1,
                _ => at + 1,
            };
            if at >= close || self.says(at) == "of" && self.says(at - 1) != "." {
                return;
            }
            if self.says(at) == "in" && self.says(at - 1) != "." {
                break;
            }
        }
        self.found.loops_through_names += 1;
        let is_inside = |around: &Around| matches!(around.what, What::Loop { goes_through: true });
        if self.around.iter().any(is_inside) {
            let names = NamesInLoop { word: at, close };
            self.found.names_in_loops.push(names);
        }
    }

    fn has_semicolon(&self, start: usize, end: usize) -> bool {
        let mut at = start;
        while at < end {
            match self.token(at) {
                Some(token) if token.kind == Kind::Open => at = token.partner,
                _ if self.says(at) == ";" => return true,
                _ => {}
            }
            at += 1;
        }
        false
    }

    fn switch(&mut self, at: usize) -> Option<usize> {
        let open = self.head(at + 1)?;
        let close = self.other(open, "{")?;
        self.inside(What::Switch, at, |walk| {
            let mut next = open + 1;
            while next < close {
                next = match walk.says(next) {
                    "case" => walk.case(next + 1)?,
                    "default" => next + 2,
                    _ => walk.statement(next)?,
                };
            }
            (next == close).then_some(())
        })?;
        Some(close + 1)
    }

    /// Past the colon of a case.
    fn case(&mut self, start: usize) -> Option<usize> {
        let mut at = start;
        let mut choices = 0;
        loop {
            let mut next = self.operand(at)?;
            match self.says(at) {
                ":" if choices == 0 => return Some(next),
                ":" => choices -= 1,
                "?" if self.says(at + 1) == "?" => next += 1,
                "?" if self.is_optional(at) => {}
                "?" => choices += 1,
                _ => {}
            }
            at = next;
        }
    }

    /// Whether a question mark is the one of `?.`
    fn is_optional(&self, at: usize) -> bool {
        let is_dot = self.says(at + 1) == ".";
        is_dot && !self.says(at + 2).starts_with(|c: char| c.is_ascii_digit())
    }

    fn attempt(&mut self, word: usize) -> Option<usize> {
        let has_finally = self.has_finally(word)?;
        if has_finally {
            self.found.finallies += 1;
            let what = What::Finally {
                is_before: true,
                left_by: Vec::new(),
            };
            self.around.push(Around { what, start: word });
        }
        let mut next = self.block(word + 1)?;
        if self.says(next) == "catch" {
            next += 1;
            if self.says(next) == "(" {
                next = self.head(next)?;
            }
            next = self.block(next)?;
            if has_finally {
                let caught = next - 1;
                let both = CaughtWithFinally { word, caught };
                self.found.caught_with_finally.push(both);
            }
        }
        if has_finally {
            if let What::Finally { is_before, .. } = &mut self.around.last_mut()?.what {
                *is_before = false;
            }
            next = self.block(next + 1)?;
            let around = self.around.pop()?;
            if let What::Finally { left_by, .. } = around.what {
                self.leaves(word, next - 1, left_by);
            }
        }
        Some(next)
    }

    fn has_finally(&self, word: usize) -> Option<bool> {
        let mut next = self.other(word + 1, "{")? + 1;
        if self.says(next) == "catch" {
            let open = self
                .other(next + 1, "(")
                .map_or(next + 1, |close| close + 1);
            next = self.other(open, "{")? + 1;
        }
        Some(self.says(next) == "finally")
    }

    /// Notes of a `try` which is left for several places behind a `finally` around it.
    fn leaves(&mut self, word: usize, last: usize, jumps: Vec<Leaving>) {
        let is_outer = |around: &Around| {
            matches!(
                around.what,
                What::Finally {
                    is_before: true,
                    ..
                }
            )
        };
        let Some(outer) = self.around.iter().rposition(is_outer) else {
            return;
        };
        let is_outside = |jump: &&Leaving| jump.target.is_none_or(|target| target < outer);
        let mut places = jumps.iter().filter(is_outside).map(|jump| self.place(jump));
        let first = places.next();
        if places.any(|place| Some(&place) != first.as_ref()) {
            self.found.rerouted.push(Rerouted { word, last, jumps });
        }
    }

    /// Where a jump goes: to what, and whether it begins that again.
    fn place(&self, jump: &Leaving) -> (Option<usize>, bool) {
        (jump.target, self.says(jump.word) == "continue")
    }

    /// Notes a jump in every `try` with `finally` that it leaves.
    fn leaving(&mut self, jump: Leaving) {
        let inside = jump.target.map_or(0, |target| target + 1);
        for around in self.around.iter_mut().skip(inside) {
            if let What::Finally { left_by, .. } = &mut around.what {
                left_by.push(jump);
            }
        }
    }

    fn gives_back(&mut self, word: usize) -> Option<usize> {
        let has_value = self.token(word + 1).is_some_and(|token| !token.begins_line);
        let next = match has_value {
            true => self.simple(word)?,
            false => word + 1,
        };
        let last = match self.says(next - 1) {
            ";" => next - 2,
            _ => next - 1,
        };
        self.leaving(Leaving {
            word,
            last,
            target: None,
        });
        Some(next)
    }

    fn labelled(&mut self, label: usize) -> Option<usize> {
        let what = What::Label {
            is_left: false,
            passed_by: Vec::new(),
        };
        self.around.push(Around { what, start: label });
        let next = self.statement(label + 2);
        let around = self.around.pop()?;
        let next = next?;
        if let What::Label {
            is_left: true,
            passed_by,
        } = around.what
        {
            let last = next - 1;
            self.found.left.push(Left { label, last });
            for (word, target) in passed_by {
                let jump = self.named(word, target);
                self.found.jumps.push(jump);
            }
        }
        Some(next)
    }

    /// A jump to the loop or the switch that begins there, by a label.
    fn named(&mut self, word: usize, start: usize) -> Jump {
        let label = start.checked_sub(2).filter(|label| {
            self.around
                .iter()
                .any(|around| matches!(around.what, What::Label { .. }) && around.start == *label)
        });
        match label {
            Some(label) => Jump::ToLabel { word, label },
            None => {
                self.found.named.push(start);
                Jump::ToNamed { word, start }
            }
        }
    }

    fn jump(&mut self, word: usize) -> Option<usize> {
        let has_label = self.is_word(word + 1) && !self.token(word + 1)?.begins_line;
        let is_break = self.says(word) == "break";
        let last = word + usize::from(has_label);
        let target = match has_label {
            true => self.by_label(word, is_break)?,
            false => self.passes(word, is_break)?,
        };
        self.leaving(Leaving {
            word,
            last,
            target: Some(target),
        });
        Some(self.past_semicolon(last + 1))
    }

    /// Answers which of what stands around has the label.
    fn by_label(&mut self, word: usize, is_break: bool) -> Option<usize> {
        let label = self.says(word + 1);
        let is_it = |around: &Around| {
            matches!(around.what, What::Label { .. }) && self.says(around.start) == label
        };
        let number = self.around.iter().rposition(is_it)?;
        let of = self.around.get(number)?.start;
        // Out of a loop to its own label is as without one.
        let crosses = self.around.iter().skip(number + 1).any(|around| {
            matches!(around.what, What::Loop { goes_through: true }) && around.start != of + 2
        });
        self.found.labelled_breaks += usize::from(is_break);
        if crosses
            && is_break
            && let What::Label { is_left, .. } = &mut self.around.get_mut(number)?.what
        {
            *is_left = true;
            let label = word + 1;
            self.found.jumps.push(Jump::Out { word, label, of });
        }
        Some(number)
    }

    /// Notes of the labels that a jump without one leads out of, and answers to what it leads.
    fn passes(&mut self, word: usize, is_break: bool) -> Option<usize> {
        let is_target = |around: &Around| match around.what {
            What::Loop { .. } => true,
            What::Switch => is_break,
            _ => false,
        };
        let number = self.around.iter().rposition(is_target)?;
        let target = self.around.get(number)?.start;
        for around in self.around.iter_mut().skip(number + 1) {
            if let What::Label { passed_by, .. } = &mut around.what {
                passed_by.push((word, target));
            }
        }
        Some(number)
    }

    /// A statement that ends with a semicolon, or where a line ends and it can.
    fn simple(&mut self, start: usize) -> Option<usize> {
        let mut at = start;
        while let Some(token) = self.token(at) {
            if token.kind == Kind::Close {
                break;
            }
            if self.says(at) == ";" {
                return Some(at + 1);
            }
            if at > start && token.begins_line && self.ends_before(at) {
                break;
            }
            at = self.operand(at)?;
        }
        Some(at)
    }

    /// Whether a statement ends with the line before this token.
    fn ends_before(&self, at: usize) -> bool {
        let is_behind_arrow = self.closes_arrow(at - 1);
        if !self.ends_value(at - 1) {
            return false;
        }
        let Some(token) = self.token(at) else {
            return true;
        };
        match (token.kind, self.says(at)) {
            (_, "," | ":") => false,
            (Kind::Open, "{") | (Kind::Sign, "~" | "#") => true,
            (Kind::Word, word) => !matches!(word, "in" | "instanceof"),
            (Kind::Sign, "!") => self.says(at + 1) != "=",
            (Kind::Sign, "+" | "-") if self.is_doubled(at) => true,
            (Kind::Literal, text) => is_behind_arrow || !text.starts_with('`'),
            _ => is_behind_arrow,
        }
    }

    /// Whether an expression can end with this token.
    fn ends_value(&self, at: usize) -> bool {
        let Some(token) = self.token(at) else {
            return true;
        };
        match token.kind {
            Kind::Word => {
                let is_name = at.checked_sub(1).is_some_and(|dot| self.says(dot) == ".");
                is_name || !OPERATORS.contains(&self.says(at))
            }
            Kind::Literal | Kind::Close => true,
            // `x++`
            Kind::Sign => {
                let counts = at.checked_sub(1).is_some_and(|at| self.is_doubled(at));
                counts && at.checked_sub(2).is_some_and(|at| self.ends_value(at))
            }
            Kind::Open => false,
        }
    }

    /// `++` or `--`
    fn is_doubled(&self, at: usize) -> bool {
        let (Some(one), Some(two)) = (self.token(at), self.token(at + 1)) else {
            return false;
        };
        matches!(self.says(at), "+" | "-")
            && one.range.end == two.range.start
            && self.says(at) == self.says(at + 1)
    }

    fn closes_arrow(&self, at: usize) -> bool {
        let open = self.other(at, "}");
        open.is_some_and(|open| self.is_behind_arrow(open))
    }

    fn is_behind_arrow(&self, at: usize) -> bool {
        at >= 2 && self.says(at - 1) == ">" && self.says(at - 2) == "="
    }

    fn expressions(&mut self, start: usize, end: usize) -> Option<()> {
        let mut at = start;
        while at < end {
            at = self.operand(at)?;
        }
        (at == end).then_some(())
    }

    /// Past a token, with all that is in the brackets that it opens.
    fn operand(&mut self, at: usize) -> Option<usize> {
        let token = self.token(at)?;
        let close = token.partner;
        if token.kind == Kind::Open {
            match self.says(at) {
                "{" if self.is_behind_arrow(at) => return self.body(at),
                "{" => self.members(at + 1, close)?,
                _ => self.expressions(at + 1, close)?,
            }
            return Some(close + 1);
        }
        let is_name = at.checked_sub(1).is_some_and(|dot| self.says(dot) == ".");
        match self.says(at) {
            "function" if !is_name && (self.is_word(at + 1) || self.begins_function(at + 1)) => {
                self.function(at)
            }
            "class" if !is_name && (self.is_word(at + 1) || self.says(at + 1) == "{") => {
                self.class(at)
            }
            _ => Some(at + 1),
        }
    }

    fn begins_function(&self, at: usize) -> bool {
        matches!(self.says(at), "(" | "*")
    }

    /// From `function` on.
    fn function(&mut self, word: usize) -> Option<usize> {
        let mut at = word + 1;
        while self.says(at) == "*" || self.is_word(at) {
            at += 1;
        }
        let body = self.head(at)?;
        self.body(body)
    }

    fn body(&mut self, open: usize) -> Option<usize> {
        let around = std::mem::take(&mut self.around);
        let next = self.block(open);
        self.around = around;
        next
    }

    fn class(&mut self, word: usize) -> Option<usize> {
        let mut at = word + 1;
        while self.says(at) != "{" {
            at = self.operand(at)?;
        }
        let close = self.other(at, "{")?;
        self.members(at + 1, close)?;
        Some(close + 1)
    }

    /// What stands between the brackets of an object or a class.
    fn members(&mut self, start: usize, end: usize) -> Option<()> {
        let mut at = start;
        while at < end {
            let is_body = self.says(at) == "{" && matches!(self.says(at - 1), ")" | "static");
            at = match is_body {
                true => self.body(at)?,
                false => self.operand(at)?,
            };
        }
        (at == end).then_some(())
    }
}

const PLAIN_LOOP: What = What::Loop {
    goes_through: false,
};
