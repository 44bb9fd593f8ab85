//! The elements of a class, each from its first token to its last.

use super::{Kind, Token, Walk};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Form {
    Method,
    Field,
    Block,
}

#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Element {
    pub(in super::super) form: Form,
    pub(in super::super) is_static: bool,
    pub(in super::super) is_private: bool,
    pub(in super::super) is_constructor: bool,
    pub(in super::super) first: usize,
    /// The token of the name, behind the `#` of a private one.
    pub(in super::super) name: usize,
    /// Without the semicolon.
    pub(in super::super) last: usize,
}

/// The bracket that opens a class and what stands in it; `word` is the class's name, or `class`.
pub(in super::super) fn of(
    script: &str,
    tokens: &[Token],
    word: usize,
) -> Option<(usize, Vec<Element>)> {
    let walk = Walk::of(script, tokens);
    let mut open = word + 1;
    while walk.says(open) != "{" {
        open = walk.past(open)?;
    }
    let close = walk.other(open, "{")?;
    let mut elements = Vec::new();
    let mut at = open + 1;
    while at < close {
        if walk.says(at) == ";" {
            at += 1;
            continue;
        }
        let element = walk.element(at, close)?;
        at = element.last + 1;
        elements.push(element);
    }
    Some((open, elements))
}

impl Walk<'_> {
    fn element(&self, first: usize, close: usize) -> Option<Element> {
        let mut at = first;
        let is_static = self.says(at) == "static" && !self.ends_name(at + 1);
        at += usize::from(is_static);
        if is_static && self.says(at) == "{" {
            let last = self.token(at)?.partner;
            return Some(Element {
                form: Form::Block,
                is_static,
                is_private: false,
                is_constructor: false,
                first,
                name: at,
                last,
            });
        }
        if matches!(self.says(at), "get" | "set" | "async") && !self.ends_name(at + 1) {
            at += 1;
        }
        at += usize::from(self.says(at) == "*");
        let is_private = self.says(at) == "#";
        at += usize::from(is_private);
        let name = at;
        at = self.past(at)?;
        let (form, last) = match self.says(at) {
            "(" => {
                let body = self.token(at)?.partner + 1;
                (Form::Method, self.other(body, "{")?)
            }
            "=" => (Form::Field, self.last_of_value(at + 1, close)?),
            _ => (Form::Field, at - 1),
        };
        Some(Element {
            form,
            is_static,
            is_private,
            is_constructor: form == Form::Method && !is_static && self.says(name) == "constructor",
            first,
            name,
            last,
        })
    }

    /// Whether what stands there ends the name of an element, so that a word before is no `static`.
    fn ends_name(&self, at: usize) -> bool {
        matches!(self.says(at), "=" | ";" | "(" | "}")
    }

    /// The last token of what a field begins with.
    fn last_of_value(&self, start: usize, close: usize) -> Option<usize> {
        let mut at = start;
        while at < close && self.says(at) != ";" {
            let ends = at > start && self.token(at)?.begins_line && self.ends_before(at);
            if ends {
                break;
            }
            at = self.past(at)?;
        }
        (at > start).then_some(at - 1)
    }

    /// Past a token, and all that is in the brackets that it opens.
    fn past(&self, at: usize) -> Option<usize> {
        let token = self.token(at)?;
        if token.kind == Kind::Open {
            return Some(token.partner + 1);
        }
        let is_name = at.checked_sub(1).is_some_and(|dot| self.says(dot) == ".");
        let is_class = self.says(at) == "class" && !is_name;
        if !is_class {
            return Some(at + 1);
        }
        // What it extends may end with a bracket.
        let mut open = at + 1;
        while self.says(open) != "{" {
            open = self.past(open)?;
        }
        Some(self.token(open)?.partner + 1)
    }
}
