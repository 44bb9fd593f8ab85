//! Improves the message of an engine's error. The engine names the requested member but not the
//! value without that member. The engine's position is close to the failed expression, and the
//! script's own text there gives the rest:
//!
//! ```text
//! data.items.map(f)   "cannot read property 'map' of undefined", at `data`
//!                     cannot read `map` of `data.items`, which is undefined
//! ```
//!
//! If several values in the script could be meant, the engine's message is kept.

use guest_common::text::cut;
use sandbox_protocol::ScriptError;

use crate::tokens::{self, Token, TokenKind};

/// Maximum number of the script's characters that a message quotes.
const QUOTED_MAX: usize = 60;

/// Maximum size in bytes of a script that is examined.
const SCRIPT_BYTES_MAX: usize = 256 * 1024;

/// The name in the engine's message if the failed operation is an iteration.
const ITERATION: &str = "Symbol.iterator";

/// Start of the engine's message about a class that was called without `new`; the name follows.
const CLASS_CALLED: &str = "class constructor";

/// Improves the message of a script's error. The error must come from the script's own code and not
/// from a built-in function that the script called.
pub(crate) fn improve(error: &mut ScriptError, script: &str) {
    if error.name != "TypeError" || script.len() > SCRIPT_BYTES_MAX {
        return;
    }
    let tokens = tokens::tokenize(script);
    let names = Names {
        script,
        tokens: &tokens,
        from: offset_of(script, error.line, error.column),
    };
    let found = if error.message == "not a function" {
        names.callee()
    } else if error.message.starts_with(CLASS_CALLED) {
        names.class_called(&error.message)
    } else if error.message == "Cannot convert undefined or null to object" {
        names.taken_apart("}", "undefined or null")
    } else {
        names.missing(&error.message)
    };
    if let Some((message, at)) = found {
        error.message = message;
        (error.line, error.column) = place_of(script, at);
    }
}

/// Returns the position of a call's parenthesis, from the engine's position. The function has one
/// of these names, or is called exactly there.
pub(crate) fn bracket_of(
    script: &str,
    tokens: &[Token],
    (line, column): (u32, u32),
    called: [&str; 3],
) -> Option<(u32, u32)> {
    let from = offset_of(script, line, column)?;
    let names = Names {
        script,
        tokens,
        from: Some(from),
    };
    let is_call = |at: &usize| names.text(*at) == "(" && names.ends_value(at - 1);
    let calls = || (1..tokens.len()).filter(is_call);
    // Of nested calls, the last one to begin is the innermost.
    let mut by_name = calls().filter(|&at| {
        let end = names.partner(at).map_or(0, |end| names.end(end));
        called.contains(&names.text(at - 1)) && (names.start(at - 1)..end).contains(&from)
    });
    let by_place = || {
        calls().find(|&at| {
            let start = names.chain_start(at - 1).map(|first| names.start(first));
            start.is_some_and(|start| (start..names.end(at - 1)).contains(&from))
        })
    };
    let bracket = by_name.next_back().or_else(by_place)?;
    Some(place_of(script, names.start(bracket)))
}

/// A better message, and the offset of the failed expression.
type BetterMessage = Option<(String, usize)>;

struct Names<'a> {
    script: &'a str,
    tokens: &'a [Token],
    /// The engine's position; `None` if the error has none.
    from: Option<usize>,
}

impl Names<'_> {
    fn missing(&self, message: &str) -> BetterMessage {
        let rest = message
            .strip_prefix("cannot read property '")
            .or_else(|| message.strip_prefix("cannot set property '"))?;
        let (member, what) = rest.rsplit_once("' of ")?;
        if !["undefined", "null"].contains(&what) {
            return None;
        }
        if member == ITERATION {
            return self.iterated(what).or_else(|| self.taken_apart("]", what));
        }
        self.member(member, what)
    }

    /// Handles `value.member` and `value[member]`.
    fn member(&self, member: &str, what: &str) -> BetterMessage {
        let mut all = (1..self.tokens.len()).filter_map(|at| {
            let (shown, end) = self.member_at(at, member)?;
            let start = self.chain_start(end)?;
            Some((shown, start, end, at))
        });
        let (shown, start, end, at) = match self.from {
            None => {
                let only = all.next()?;
                if all.next().is_some() {
                    return None;
                }
                only
            }
            Some(from) => {
                all.find(|&(_, start, _, at)| self.start(start) <= from && from <= self.end(at))?
            }
        };
        let value = self.quote(start, end)?;
        let message = format!("cannot read `{shown}` of `{value}`, which is {what}");
        Some((message, self.start(at)))
    }

    /// If a token is the requested member, returns its written form and the last token before it.
    fn member_at(&self, at: usize, member: &str) -> Option<(String, usize)> {
        let before = at.checked_sub(2)?;
        let text = self.text(at);
        if self.text(at - 1) == "." && text == member {
            return Some((member.to_owned(), before));
        }
        let inner = text.trim_matches(['"', '\'']);
        let is_index = self.text(at - 1) == "["
            && self.text(at + 1) == "]"
            && matches!(self.kind(at), Some(TokenKind::Number | TokenKind::Literal))
            && inner == member;
        (is_index && self.ends_value(before)).then(|| (format!("[{text}]"), before))
    }

    /// Handles `value(…)` and `new value(…)`. The engine's position is that of the last call that
    /// began; if that call is an argument of another call, either may be meant.
    fn callee(&self) -> BetterMessage {
        let from = self.from?;
        let mut at = self
            .tokens
            .iter()
            .position(|token| token.range.contains(&from))?;
        if self.is_argument(at) {
            return None;
        }
        // From the engine's position to the parenthesis.
        let bracket = loop {
            match (self.kind(at)?, self.text(at)) {
                (TokenKind::Word, _) | (TokenKind::Sign, "." | "?.") => at += 1,
                (TokenKind::Open, "[") if self.start(at) != from => at = self.partner(at)? + 1,
                (TokenKind::Open, "(") if self.start(at) != from => break at,
                (TokenKind::Literal, text) if text.starts_with('`') => break at,
                _ => return None,
            }
        };
        let end = bracket.checked_sub(1)?;
        let value = self.quote(self.chain_start(end)?, end)?;
        let message = format!("`{value}` is not a function");
        Some((message, self.start(bracket)))
    }

    /// Handles `Name(…)`; the engine's position may be that of the last argument.
    fn class_called(&self, message: &str) -> BetterMessage {
        let from = self.from?;
        let name = message.strip_prefix(CLASS_CALLED)?.trim_start();
        let name = name.split(' ').next()?;
        let mut calls = (1..self.tokens.len()).filter(|&at| {
            let end = self.partner(at).map_or(0, |end| self.end(end));
            self.text(at) == "("
                && self.text(at - 1) == name
                && (self.start(at - 1)..end).contains(&from)
        });
        // Of nested calls, any may be meant.
        let bracket = calls.next()?;
        let is_only = calls.next().is_none();
        is_only.then(|| (message.to_owned(), self.start(bracket - 1)))
    }

    /// Whether a token is among the arguments of a call of the same function.
    fn is_argument(&self, at: usize) -> bool {
        let mut before = at;
        while let Some(here) = before.checked_sub(1) {
            before = here;
            match self.kind(here) {
                // The body of an arrow function belongs to another function.
                Some(TokenKind::Sign) if self.text(here) == "=>" => return false,
                Some(TokenKind::Close) => before = self.partner(here).unwrap_or(here),
                Some(TokenKind::Open) => {
                    let ahead = here.checked_sub(1);
                    let follows_value = ahead.is_some_and(|ahead| self.ends_value(ahead));
                    match self.text(here) {
                        "(" if follows_value => return !self.is_head(here),
                        "{" if follows_value => return false,
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        false
    }

    /// Whether a parenthesis belongs to `if (`, `for (` or a similar statement and not to a call.
    fn is_head(&self, bracket: usize) -> bool {
        const HEADS: [&str; 5] = ["if", "for", "while", "switch", "catch"];
        bracket
            .checked_sub(1)
            .is_some_and(|before| HEADS.contains(&self.text(before)))
    }

    /// Handles `for (… of value)` and `...value`.
    fn iterated(&self, what: &str) -> BetterMessage {
        let is_iterated = |&at: &usize| ["of", "..."].contains(&self.text(at));
        let (first, last) = self.first_value((0..self.tokens.len()).filter(is_iterated))?;
        let value = self.quote(first, last)?;
        let message = format!("cannot iterate over `{value}`, which is {what}");
        Some((message, self.start(first)))
    }

    /// Handles `{ … } = value` and `[ … ] = value`.
    fn taken_apart(&self, close: &str, what: &str) -> BetterMessage {
        let is_taken_apart = |&at: &usize| {
            let pattern = at.checked_sub(1).filter(|&at| self.text(at) == close);
            let pattern = pattern.filter(|_| self.text(at) == "=");
            // Of nested patterns, any may be meant.
            pattern.is_some_and(|end| {
                self.partner(end)
                    .is_some_and(|open| self.is_flat(open, end))
            })
        };
        let (first, last) = self.first_value((0..self.tokens.len()).filter(is_taken_apart))?;
        let value = self.quote(first, last)?;
        let message = format!("cannot destructure `{value}`, which is {what}");
        Some((message, self.start(first)))
    }

    /// Returns the first value after one of these tokens that ends at or after the engine's
    /// position. Without a position, returns the value if there is only one.
    fn first_value(&self, behind: impl Iterator<Item = usize>) -> Option<(usize, usize)> {
        let mut values = behind.filter_map(|at| Some((at + 1, self.value_end(at + 1)?)));
        match self.from {
            Some(from) => values.find(|&(_, last)| self.end(last) >= from),
            None => {
                let only = values.next()?;
                values.next().is_none().then_some(only)
            }
        }
    }

    /// Returns the last token of a simple value that starts here: names, members and calls, without
    /// operators.
    fn value_end(&self, first: usize) -> Option<usize> {
        let mut at = first;
        while ["await", "new"].contains(&self.text(at)) {
            at += 1;
        }
        let mut last = match self.kind(at)? {
            TokenKind::Word | TokenKind::Literal | TokenKind::Number => at,
            TokenKind::Open => self.partner(at)?,
            _ => return None,
        };
        loop {
            last = match self.text(last + 1) {
                "." | "?." => last + 2,
                "(" | "[" if self.is_same_line(last, last + 1) => self.partner(last + 1)?,
                "" | ";" | "," | ")" | "]" | "}" => return Some(last),
                _ => return (!self.is_same_line(last, last + 1)).then_some(last),
            };
        }
    }

    /// Returns the first token of the value that ends at this token.
    fn chain_start(&self, end: usize) -> Option<usize> {
        let mut at = end;
        loop {
            match self.kind(at)? {
                TokenKind::Close => {
                    at = self.partner(at)?;
                    match at.checked_sub(1) {
                        Some(before) if self.ends_value(before) => at = before,
                        _ => return Some(at),
                    }
                }
                TokenKind::Word | TokenKind::Number | TokenKind::Literal => {
                    let sign = at.checked_sub(1).map(|before| self.text(before));
                    match sign {
                        Some("." | "?.") => at = at.checked_sub(2)?,
                        _ => return Some(at),
                    }
                }
                _ => return None,
            }
        }
    }

    fn ends_value(&self, at: usize) -> bool {
        const BEFORE_VALUES: [&str; 11] = [
            "return", "await", "typeof", "new", "of", "in", "case", "throw", "void", "delete",
            "yield",
        ];
        match self.kind(at) {
            Some(TokenKind::Word) => !BEFORE_VALUES.contains(&self.text(at)),
            Some(TokenKind::Close) => self.text(at) != "}",
            Some(TokenKind::Literal) => true,
            _ => false,
        }
    }

    /// Whether no other bracket opens between these two.
    fn is_flat(&self, open: usize, close: usize) -> bool {
        (open + 1..close).all(|at| self.kind(at) != Some(TokenKind::Open))
    }

    fn text(&self, at: usize) -> &str {
        let token = self.tokens.get(at);
        token
            .and_then(|token| self.script.get(token.range.clone()))
            .unwrap_or_default()
    }

    fn kind(&self, at: usize) -> Option<TokenKind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn partner(&self, at: usize) -> Option<usize> {
        self.tokens.get(at)?.partner
    }

    fn start(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(0, |token| token.range.start)
    }

    fn end(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(0, |token| token.range.end)
    }

    fn is_same_line(&self, one: usize, other: usize) -> bool {
        let between = self.script.get(self.end(one)..self.start(other));
        between.is_some_and(|between| !between.contains('\n'))
    }

    fn quote(&self, first: usize, last: usize) -> Option<String> {
        let text = self.script.get(self.start(first)..self.end(last))?;
        let words: Vec<_> = text.split_whitespace().collect();
        Some(cut(&words.join(" "), QUOTED_MAX))
    }
}

fn offset_of(script: &str, line: u32, column: u32) -> Option<usize> {
    let mut before = 0;
    let text = script
        .split_inclusive('\n')
        .enumerate()
        .find_map(|(at, text)| {
            if at + 1 == line as usize {
                return Some(text);
            }
            before += text.len();
            None
        })?;
    let inside = text.char_indices().nth(column.checked_sub(1)? as usize);
    Some(before + inside.map_or(text.len(), |(at, _)| at))
}

fn place_of(script: &str, offset: usize) -> (u32, u32) {
    let before = script.get(..offset).unwrap_or_default();
    let line = before.split('\n').count();
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    let number = |n: usize| u32::try_from(n).unwrap_or(0);
    (number(line), number(column))
}

#[cfg(test)]
mod tests;
