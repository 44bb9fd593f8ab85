//! What to write instead of a mistake, as changes of the file's text. A fix is a
//! proposal for whoever owns the rule; one with which the mistake would still be
//! there is not made.

use std::ops::Range;
use std::sync::Arc;

use cedar_policy::pst::Expr;
use serde::Serialize;

use super::finding::Finding;
use super::parts::{self, Around, Clause, Node, Seen, Tree};
use super::rule::read_one;
use super::source::{Place, PolicyFile, Statement, one_by_one};
use super::token::tokens;
use super::validate::Checker;
use super::vocabulary::Vocabulary;

/// Of files that are gone through to see what becomes of fixes; those behind it are not made.
const BYTES_MAX: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fix {
    pub what: String,
    /// In the order of the file; none reaches into another.
    pub edits: Vec<Edit>,
}

/// A piece of a file, and what stands there afterwards.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Edit {
    pub start: Place,
    /// The first character that stays.
    pub end: Place,
    pub text: String,
    #[serde(skip)]
    first: usize,
    #[serde(skip)]
    past: usize,
}

impl Fix {
    pub(super) fn replace(
        statement: &Statement,
        range: Range<usize>,
        text: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self {
            what: what.into(),
            edits: vec![edit(statement, range, text.into())],
        }
    }

    /// Something is written in the place of these bytes of a text.
    #[must_use]
    pub fn put(
        file: &Arc<str>,
        whole: &str,
        range: Range<usize>,
        text: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        let edit = Edit {
            start: Place::of(file, whole, range.start),
            end: Place::of(file, whole, range.end),
            text: text.into(),
            first: range.start,
            past: range.end,
        };
        Self {
            what: what.into(),
            edits: vec![edit],
        }
    }

    /// The whole rule goes.
    pub(super) fn without_rule(statement: &Statement, what: impl Into<String>) -> Self {
        Self::replace(statement, 0..statement.text().len(), "", what)
    }

    /// Words of a rule's text, wherever they stand in it.
    pub(super) fn and_replace(
        mut self,
        statement: &Statement,
        range: Range<usize>,
        text: impl Into<String>,
    ) -> Self {
        self.edits.push(edit(statement, range, text.into()));
        self.edits.sort_by_key(|edit| edit.first);
        self
    }

    /// A part is written anew, in brackets where what is around it needs them.
    pub(super) fn part(
        statement: &Statement,
        seen: &Seen<'_>,
        text: &str,
        what: impl Into<String>,
    ) -> Self {
        let needs = match seen.around {
            Around::Clause => false,
            Around::All => joins(text, "||"),
            Around::Any => joins(text, "&&"),
            Around::Not => {
                text.starts_with(['!', '-']) || parts::JOINING.iter().any(|it| joins(text, it))
            }
        };
        let text = match needs {
            true => format!("({text})"),
            false => text.to_owned(),
        };
        Self::replace(statement, seen.tree.range.clone(), text, what)
    }

    /// A part goes, and with it the sign that joins it to the others.
    pub(super) fn without_part(
        statement: &Statement,
        clauses: &[Clause],
        part: &Tree,
        what: impl Into<String>,
    ) -> Option<Self> {
        let range = clauses.iter().find_map(|clause| {
            if clause.tree.range == part.range {
                return Some(clause.range.clone());
            }
            left_out(&clause.tree, part)
        })?;
        Some(Self::replace(statement, range, "", what))
    }

    /// A part that every call meets goes, where the rule is the same without it; an error says
    /// what comes of the part instead.
    pub(super) fn without_true(
        statement: &Statement,
        clauses: &[Clause],
        part: &Tree,
        what: impl Into<String>,
    ) -> Result<Self, Decides> {
        let found = clauses.iter().find_map(|clause| {
            Some(match met(&clause.tree, part)? {
                Met::Is(truth) if truth != clause.is_unless => Ok(clause.range.clone()),
                Met::Is(_) => Err(Decides::Rule),
                Met::Idle(range) => Ok(range),
                Met::Decides => Err(Decides::Joined),
            })
        });
        let range = found.unwrap_or(Err(Decides::Joined))?;
        Ok(Self::replace(statement, range, "", what))
    }

    /// The text of the file with all changes made.
    #[must_use]
    pub fn apply(&self, text: &str) -> Option<String> {
        let mut changed = String::with_capacity(text.len());
        let mut from = 0;
        for edit in &self.edits {
            changed.push_str(text.get(from..edit.first)?);
            changed.push_str(&edit.text);
            from = edit.past;
        }
        changed.push_str(text.get(from..)?);
        Some(changed)
    }
}

fn edit(statement: &Statement, range: Range<usize>, text: String) -> Edit {
    Edit {
        start: statement.place(range.start),
        end: statement.place(range.end),
        text,
        first: statement.start() + range.start,
        past: statement.start() + range.end,
    }
}

/// Whether a sign stands in a text outside of all brackets.
fn joins(text: &str, sign: &str) -> bool {
    let mut depth = 0;
    tokens(text).iter().any(|token| {
        depth += token.depth();
        depth == 0 && token.text == sign
    })
}

/// What a part decides that every call meets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Decides {
    /// What it is joined to, or its opposite.
    Joined,
    /// No call meets the rule.
    Rule,
}

/// What a tree comes to by a part that is always true.
enum Met {
    Is(bool),
    /// Nothing: this can be left out.
    Idle(Range<usize>),
    Decides,
}

fn met(tree: &Tree, part: &Tree) -> Option<Met> {
    if std::ptr::eq(tree, part) {
        return Some(Met::Is(true));
    }
    let (sides, idle) = match &tree.node {
        Node::Part(_) => return None,
        Node::Not(operand) => {
            return Some(match met(operand, part)? {
                Met::Is(truth) => Met::Is(!truth),
                found => found,
            });
        }
        Node::All(sides) => (sides, true),
        Node::Any(sides) => (sides, false),
    };
    let within = |(at, side): (usize, &Tree)| Some((at, met(side, part)?));
    let (at, found) = sides.iter().enumerate().find_map(within)?;
    Some(match found {
        Met::Is(truth) if truth == idle => side_out(sides, at).map_or(Met::Decides, Met::Idle),
        Met::Is(_) => Met::Decides,
        found => found,
    })
}

/// A side, and the sign that joins it to the one before or behind it.
fn side_out(sides: &[Tree], at: usize) -> Option<Range<usize>> {
    let own = &sides.get(at)?.range;
    let before = at.checked_sub(1).and_then(|at| sides.get(at));
    match (before, sides.get(at + 1)) {
        (Some(before), _) => Some(before.range.end..own.end),
        (None, Some(after)) => Some(own.start..after.range.start),
        (None, None) => None,
    }
}

/// What to leave out of a tree so that a part of it is gone.
fn left_out(tree: &Tree, part: &Tree) -> Option<Range<usize>> {
    match &tree.node {
        Node::Part(_) => None,
        Node::Not(operand) => left_out(operand, part),
        Node::All(sides) | Node::Any(sides) => {
            let at = sides.iter().position(|side| is_it(side, part));
            match at {
                Some(at) => side_out(sides, at),
                None => sides.iter().find_map(|side| left_out(side, part)),
            }
        }
    }
}

fn is_it(side: &Tree, part: &Tree) -> bool {
    let within = match &side.node {
        Node::Not(operand) => is_it(operand, part),
        _ => false,
    };
    within || side.range == part.range
}

/// The part that an expression is, by its place or by what it says.
pub(super) fn part_of<'a>(all: &[Seen<'a>], expr: &Expr) -> Option<Seen<'a>> {
    let same = |seen: &&Seen<'a>| seen.expr == expr;
    all.iter().find(same).copied()
}

/// Takes the fix from each finding that would still be there with it.
pub(super) fn keep_good(findings: &mut [Finding], files: &[PolicyFile], vocabulary: &Vocabulary) {
    let mut checker = Checker::new(vocabulary);
    let mut bytes_left = BYTES_MAX;
    for finding in findings {
        let Some(fix) = &finding.fix else { continue };
        let file = files.iter().find(|file| *file.name == *finding.place.file);
        let bytes = file.map_or(0, |file| file.text.len());
        bytes_left = bytes_left.saturating_sub(bytes);
        if bytes_left == 0 || !is_good(fix, finding, file, &mut checker) {
            finding.fix = None;
        }
    }
}

fn is_good(
    fix: &Fix,
    finding: &Finding,
    file: Option<&PolicyFile>,
    checker: &mut Checker<'_>,
) -> bool {
    let changed = file.and_then(|file| Some((file, fix.apply(&file.text)?)));
    let Some((file, changed)) = changed else {
        return false;
    };
    let first = fix.edits.first().map_or(0, |edit| edit.first);
    let (name, changed) = (file.name.as_str().into(), changed.as_str().into());
    let Some(statement) = one_by_one(&name, &changed).find(|it| it.end() > first) else {
        return true;
    };
    let after = match read_one(statement, file.tightens) {
        Ok(rule) => checker.check(&[rule]),
        Err(findings) => findings,
    };
    after
        .iter()
        .all(|it| (it.kind, &it.what) != (finding.kind, &finding.what))
}
