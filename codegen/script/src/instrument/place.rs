//! The instrumented places of a script, with the texts that describe a failure there.

/// One instrumented place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
    /// The name of the function that contains the place.
    pub(super) function: String,
    pub(super) what: SiteKind,
    /// Where the value at this place was read from.
    pub(super) from: Option<ValueOrigin>,
}

/// What the script does at a place. The texts are quoted from the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SiteKind {
    /// `of.member`
    Read {
        of: String,
        member: String,
    },
    /// `callee(…)`, where `on` is the object of a member.
    Call {
        callee: String,
        on: Option<String>,
        member: Option<String>,
        given: Vec<ArgumentSource>,
    },
    New {
        callee: String,
    },
    /// `{ a } = of`; `inner` are the nested patterns. In the head of a loop, each value of the loop
    /// is destructured.
    Apart {
        pattern: String,
        of: String,
        is_each: bool,
        inner: Vec<NestedPattern>,
    },
    /// A parameter that destructures its argument.
    Given {
        pattern: String,
        number: usize,
    },
    /// `for … of of`, `...of`
    Over {
        of: String,
    },
    /// A name that may not have a value yet, or that is not declared.
    Name {
        name: String,
        declared_in_line: Option<u32>,
    },
    /// A tool of a server.
    Tool,
    Throw,
    /// `left operator right`; a unary operator has no right operand.
    Operation {
        operator: String,
        left: String,
        right: Option<String>,
    },
    /// `${of}` in a template.
    Held {
        of: String,
    },
    /// A second assignment to a constant.
    Constant {
        name: String,
        declared_in_line: u32,
    },
    /// `of.member = …`
    Write {
        of: String,
        member: String,
    },
    /// `class … extends of`
    Extends {
        of: String,
    },
    /// `super(…)`
    Super,
    /// `this` before `super(…)`
    This,
    /// `of.#name`
    Private {
        of: String,
        name: String,
    },
    /// A nested pattern, of which only the name of the destructured member is known.
    Inside {
        pattern: String,
        from: Option<String>,
    },
    /// `await of`, or a value that an async function returns.
    Wait {
        of: String,
        kind: WaitKind,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitKind {
    Await,
    Return,
    ForAwait,
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArgumentSource {
    pub(super) text: String,
    pub(super) from: Option<ValueOrigin>,
}

/// A pattern in a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NestedPattern {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) pattern: String,
    /// Whether the pattern destructures a list.
    pub(super) is_list: bool,
    pub(super) path: Vec<PathStep>,
}

/// One step from a destructured value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    Name(String),
    Index(usize),
}

/// A value that was read as a member of another value, the parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueOrigin {
    /// The place where the parent's value was last recorded.
    pub(super) place: usize,
    /// The parent's text in the script.
    pub(super) of: String,
    pub(super) key: Key,
    /// Where the parent was read from, if the parent could be missing without an error.
    pub(super) outer: Option<Box<ValueOrigin>>,
    /// The line where the value was read, if that was in another statement.
    pub(super) named_in_line: Option<u32>,
}

impl ValueOrigin {
    /// Removes the parents beyond the first `links`.
    pub(super) fn cut(&mut self, links: usize) {
        match (&mut self.outer, links) {
            (outer, 0) => *outer = None,
            (Some(outer), links) => outer.cut(links - 1),
            (None, _) => {}
        }
    }

    /// Returns the places where the parent and its own parents were last recorded.
    pub(super) fn places(&self) -> Vec<usize> {
        let above = std::iter::successors(Some(self), |it| it.outer.as_deref());
        above.map(|it| it.place).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Name(String),
    Computed(String),
}
