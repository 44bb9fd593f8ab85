//! The places of a script that a second look watches, and what each is called
//! when something fails there.

/// One watched place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
    /// The function that it is in.
    pub(super) function: String,
    pub(super) what: What,
    /// How the value of this place came to be.
    pub(super) from: Option<From>,
}

/// What the script does at a place. Texts are the script's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
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
        given: Vec<Given>,
    },
    New {
        callee: String,
    },
    /// `{ a } = of`; `inner` are the patterns inside, and what each takes apart. A loop does that
    /// with each value of what it goes over.
    Apart {
        pattern: String,
        of: String,
        is_each: bool,
        inner: Vec<Inner>,
    },
    /// A parameter that takes its argument apart.
    Given {
        pattern: String,
        number: usize,
    },
    /// `for … of of`, `...of`
    Over {
        of: String,
    },
    /// A name that may not have a value yet, or that nothing declares.
    Name {
        name: String,
        declared_in_line: Option<u32>,
    },
    /// A tool of a server.
    Tool,
    Throw,
    /// `left operator right`; one that stands before its only operand has no right.
    Operation {
        operator: String,
        left: String,
        right: Option<String>,
    },
    /// `${of}` in a template.
    Held {
        of: String,
    },
    /// A name that is given a value for the second time.
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
    /// A pattern in a pattern, of which only the name is known that it is taken from.
    Inside {
        pattern: String,
        from: Option<String>,
    },
    /// `await of`, or what an asynchronous function returns.
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
pub(super) struct Given {
    pub(super) text: String,
    pub(super) from: Option<From>,
}

/// A pattern in a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inner {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) pattern: String,
    /// It takes a list apart.
    pub(super) is_list: bool,
    pub(super) path: Vec<Step>,
}

/// From what is taken apart to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Name(String),
    Index(usize),
}

/// A value that was read as a member of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct From {
    /// The place that the other was last seen at.
    pub(super) place: usize,
    /// What the script calls the other.
    pub(super) of: String,
    pub(super) key: Key,
    /// How that came to be, where it may have been missing without an error.
    pub(super) outer: Option<Box<From>>,
    /// The line of the reading, where it is another statement's.
    pub(super) named_in_line: Option<u32>,
}

impl From {
    /// Forgets what is further above.
    pub(super) fn cut(&mut self, links: usize) {
        match (&mut self.outer, links) {
            (outer, 0) => *outer = None,
            (Some(outer), links) => outer.cut(links - 1),
            (None, _) => {}
        }
    }

    /// The places that it and those above were last seen at.
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
