//! Determines whether a script consists of one expression. If the tokens alone do not decide, the
//! engine parses `(` script `)`.

use guest_common::forms::may_be_expression;

use crate::tokens::{self, Token, TokenKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Single {
    Function,
    Expression,
}

/// Words that start a statement which is not an expression.
const STATEMENTS: [&str; 23] = [
    "break", "class", "const", "continue", "debugger", "do", "export", "for", "if", "let",
    "return", "switch", "throw", "try", "var", "while", "with", "else", "case", "default", "catch",
    "finally", "enum",
];

/// Returns the kind of a script that consists of one expression. `parses` returns whether a text is
/// an expression.
pub(crate) fn detect(script: &str, parses: impl FnOnce(&str) -> bool) -> Option<Single> {
    if !may_be_expression(script) {
        return None;
    }
    let all = tokens::tokenize(script);
    let row = Tokens { script, all: &all };
    let mut end = all.len();
    if end > 0 && row.is(end - 1, ";") {
        end -= 1;
    }
    let (first, last) = (all.first()?, all.get(end.checked_sub(1)?)?);
    let text = script.get(first.range.start..last.range.end)?;
    if !row.can_begin(end) || !parses(text) {
        return None;
    }
    Some(if row.is_function(0, end) {
        Single::Function
    } else {
        Single::Expression
    })
}

struct Tokens<'a> {
    script: &'a str,
    all: &'a [Token],
}

impl Tokens<'_> {
    fn text(&self, at: usize) -> &str {
        let token = self.all.get(at);
        token
            .and_then(|token| self.script.get(token.range.clone()))
            .unwrap_or_default()
    }

    fn is(&self, at: usize, text: &str) -> bool {
        self.text(at) == text
    }

    fn kind(&self, at: usize) -> Option<TokenKind> {
        self.all.get(at).map(|token| token.kind)
    }

    fn partner(&self, at: usize) -> Option<usize> {
        self.all.get(at)?.partner
    }

    /// Whether the tokens up to `end` can be one expression statement: a `{` would start a block, a
    /// function's text must end with its body, and a comma would separate two expressions.
    fn can_begin(&self, end: usize) -> bool {
        let first = self.text(0);
        if first == "{" || STATEMENTS.contains(&first) {
            return false;
        }
        if first == "import" && !["(", "."].contains(&self.text(1)) {
            return false;
        }
        if self.begins_function(0) && self.function_end(0) != Some(end) {
            return false;
        }
        !self.has_comma(end)
    }

    fn has_comma(&self, end: usize) -> bool {
        let mut at = 0;
        while at < end {
            if self.is(at, ",") {
                return true;
            }
            at = match (self.kind(at), self.partner(at)) {
                (Some(TokenKind::Open), Some(partner)) => partner + 1,
                _ => at + 1,
            };
        }
        false
    }

    fn begins_function(&self, at: usize) -> bool {
        self.is(at, "function") || self.is(at, "async") && self.is(at + 1, "function")
    }

    /// Returns the end of the function that starts here.
    fn function_end(&self, at: usize) -> Option<usize> {
        let mut at = at + if self.is(at, "async") { 2 } else { 1 };
        if self.is(at, "*") {
            at += 1;
        }
        if self.kind(at) == Some(TokenKind::Word) {
            at += 1;
        }
        let body = self.partner(at).filter(|_| self.is(at, "("))? + 1;
        let end = self.partner(body).filter(|_| self.is(body, "{"))?;
        Some(end + 1)
    }

    /// Whether the expression from `at` to `end` consists of a function.
    fn is_function(&self, at: usize, end: usize) -> bool {
        if self.is(at, "(") && self.partner(at).is_some_and(|partner| partner + 1 == end) {
            return self.is_function(at + 1, end - 1);
        }
        if self.begins_function(at) {
            return self.function_end(at) == Some(end);
        }
        // An arrow function's body extends to the end of the expression.
        let is_async = self.is(at, "async") && !self.is(at + 1, "=>");
        let head = at + usize::from(is_async);
        let after = match self.partner(head).filter(|_| self.is(head, "(")) {
            Some(partner) => partner + 1,
            None => head + 1,
        };
        after < end && self.is(after, "=>")
    }
}
