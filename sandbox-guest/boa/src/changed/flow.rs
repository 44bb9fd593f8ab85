//! Jumps that the engine gets wrong, written so that it gets them right:
//!
//! ```text
//! try A catch B finally C              becomes   try{try A catch B} finally C
//! L: for (…) for (… of …) break L      becomes   M:do{L: for (…) for (… of …) continue M}while(false);
//! for (… of …) for (… in object)       becomes   for (… of …) for (… of names(object))
//! try {… return 1 … break …} finally C   becomes   {let r=[],j=0;M:do{try {…
//!     for(r=[1],j=1;;)continue M … for(j=2;;)continue M …} finally C}while(false);
//!     if(j===1)return r[0];if(j===2)break;}
//! ```
//!
//! Of the first the engine loses an error of B when C calls what catches another one. In the
//! second its `break` leaves the loops in between without closing what they go through, so that
//! a loop around goes on with that instead of its own; its `continue` does close it. An error
//! in a loop through names leaves it in the same way. Of jumps that leave two `finally` it takes
//! one for the other, so the inner one is left for one place only.

use std::ops::ControlFlow;

use boa_ast::statement::{Break, ForInLoop, Try};
use boa_ast::visitor::{VisitWith, Visitor};

use rustc_hash::FxHashSet;

use super::Edit;
use super::spans::Text;
use super::statements::{self, Found, Jump, Rerouted};
use super::tokens::{self, Token};

/// Whether a script may have any such jump.
pub(super) fn is_likely(script: &str) -> bool {
    let mut breaks = script.split("break").skip(1);
    script.contains("finally")
        && (script.contains("catch") || script.matches("finally").nth(1).is_some())
        || script.matches("for").nth(1).is_some() && has_in(script)
        || breaks.any(|after| {
            let label = after.trim_start_matches([' ', '\t']);
            label.len() < after.len() && !label.starts_with([';', '}', '\n', '\r', ')'])
        })
}

fn has_in(script: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    script
        .split("in")
        .zip(script.split("in").skip(1))
        .any(|(before, after)| {
            !before.is_empty() && !before.ends_with(is_word) && !after.starts_with(is_word)
        })
}

/// The changes, or none when the statements of the script are not found as the engine's
/// parser found them.
///
/// Without a function that goes through names those loops stay.
pub(super) fn edits(
    script: &str,
    (name, names): (&str, Option<&str>),
    read: &impl VisitWith,
) -> Option<Vec<Edit>> {
    let mut counted = Counted::default();
    let _ = read.visit_with(&mut counted);
    if counted == Counted::default() {
        return None;
    }
    let text = Text::new(script);
    let tokens = tokens::of(&text, read)?;
    let found = statements::find(script, &tokens)?;
    let is_whole = found.caught_with_finally.len() == counted.caught_with_finally
        && found.labelled_breaks == counted.labelled_breaks
        && found.loops_through_names == counted.loops_through_names
        && found.finallies == counted.finallies;
    let writer = Writer {
        script,
        name,
        names,
        tokens: &tokens,
    };
    is_whole.then(|| writer.edits(&found))?
}

/// What the parser found.
#[derive(Default, PartialEq, Eq)]
struct Counted {
    caught_with_finally: usize,
    labelled_breaks: usize,
    loops_through_names: usize,
    finallies: usize,
}

impl<'ast> Visitor<'ast> for Counted {
    type BreakTy = ();

    fn visit_try(&mut self, node: &'ast Try) -> ControlFlow<()> {
        let is_both = node.catch().is_some() && node.finally().is_some();
        self.caught_with_finally += usize::from(is_both);
        self.finallies += usize::from(node.finally().is_some());
        node.visit_with(self)
    }

    fn visit_for_in_loop(&mut self, node: &'ast ForInLoop) -> ControlFlow<()> {
        self.loops_through_names += 1;
        node.visit_with(self)
    }

    fn visit_break(&mut self, node: &'ast Break) -> ControlFlow<()> {
        self.labelled_breaks += usize::from(node.label().is_some());
        ControlFlow::Continue(())
    }
}

/// What comes first of changes at one place: what belongs to the word before it, then what ends
/// there, then what begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Word,
    End,
    Begin,
}

struct Writer<'a> {
    script: &'a str,
    name: &'a str,
    names: Option<&'a str>,
    tokens: &'a [Token],
}

impl Writer<'_> {
    fn edits(&self, found: &Found) -> Option<Vec<Edit>> {
        let mut edits = Vec::new();
        let mut rerouted = FxHashSet::default();
        for left in found.rerouted.iter().rev() {
            self.reroute(left, found, &mut rerouted, &mut edits)?;
        }
        for jump in &found.jumps {
            if !rerouted.contains(&jump.word()) {
                edits.push(self.jump(jump)?);
            }
        }
        for both in &found.caught_with_finally {
            edits.push((Side::Word, self.inserted(self.end(both.word)?, "{try")));
            edits.push((Side::End, self.inserted(self.end(both.caught)?, "}")));
        }
        for (through, names) in found.names_in_loops.iter().zip(self.names.iter().cycle()) {
            let (word, close) = (self.start(through.word)?, self.start(through.close)?);
            let of = format!("of {names}((");
            let instead = self.edit(word, self.end(through.word)?, &of);
            edits.push((Side::Begin, instead));
            edits.push((Side::End, self.inserted(close, "))")));
        }
        for left in &found.left {
            let (start, end) = (self.start(left.label)?, self.end(left.last)?);
            let begin = format!("{}:do{{", self.exit(left.label)?);
            edits.push((Side::Begin, self.inserted(start, &begin)));
            edits.push((Side::End, self.inserted(end, "}while(false);")));
        }
        for start in &found.named {
            let name = format!("{}:", self.made(*start));
            edits.push((Side::Begin, self.inserted(self.start(*start)?, &name)));
        }
        edits.sort_by_key(|(side, edit)| (edit.start, *side));
        Some(edits.into_iter().map(|(_, edit)| edit).collect())
    }

    fn jump(&self, jump: &Jump) -> Option<(Side, Edit)> {
        let (word, last) = match *jump {
            Jump::Out { word, label, .. } => (word, label),
            Jump::ToLabel { word, .. } | Jump::ToNamed { word, .. } => (word, word),
        };
        Some((Side::Begin, self.instead(word, last, &self.jumps(jump)?)?))
    }

    /// A jump as it is written anew.
    fn jumps(&self, jump: &Jump) -> Option<String> {
        Some(match *jump {
            Jump::Out { of, .. } => format!("continue {}", self.exit(of)?),
            Jump::ToLabel { word, label } => format!("{} {}", self.says(word)?, self.says(label)?),
            Jump::ToNamed { word, start } => format!("{} {}", self.says(word)?, self.made(start)),
        })
    }

    /// Has all jumps out of a `try` go to its end, and on from there.
    fn reroute(
        &self,
        left: &Rerouted,
        found: &Found,
        rerouted: &mut FxHashSet<usize>,
        edits: &mut Vec<(Side, Edit)>,
    ) -> Option<()> {
        let label = self.made(left.word);
        let (value, which) = (format!("{label}r"), format!("{label}j"));
        let mut on: Vec<String> = Vec::new();
        for jump in &left.jumps {
            if !rerouted.insert(jump.word) {
                continue;
            }
            let word = self.says(jump.word)?;
            let gives_back = word == "return";
            let written = found.jumps.iter().find(|known| known.word() == jump.word);
            let further = match written {
                Some(known) => self.jumps(known)?,
                None if gives_back => format!("return {value}[0]"),
                None if jump.last == jump.word => word.to_owned(),
                None => format!("{word} {}", self.says(jump.last)?),
            };
            let known = on.iter().position(|known| *known == further);
            let number = known.unwrap_or(on.len()) + 1;
            if known.is_none() {
                on.push(further);
            }
            if gives_back && jump.last > jump.word {
                let begin = format!("for({value}=[(");
                edits.push((Side::Begin, self.instead(jump.word, jump.word, &begin)?));
                let end = format!(")],{which}={number};;)continue {label}");
                edits.push((Side::Word, self.inserted(self.end(jump.last)?, &end)));
            } else {
                let whole = format!("for({which}={number};;)continue {label}");
                edits.push((Side::Begin, self.instead(jump.word, jump.last, &whole)?));
            }
        }
        let begin = format!("{{let {value}=[],{which}=0;{label}:do{{");
        edits.push((Side::Begin, self.inserted(self.start(left.word)?, &begin)));
        let on = on.iter().zip(1..);
        let on = on.map(|(further, number)| format!("if({which}==={number}){further};"));
        let end = format!("}}while(false);{}}}", on.collect::<String>());
        edits.push((Side::End, self.inserted(self.end(left.last)?, &end)));
        Some(())
    }

    fn says(&self, token: usize) -> Option<&str> {
        self.script.get(self.tokens.get(token)?.range.clone())
    }

    /// Something in the place of two tokens and what stands between them.
    fn instead(&self, first: usize, last: usize, text: &str) -> Option<Edit> {
        let (start, end) = (self.start(first)?, self.end(last)?);
        // What was there is kept in a comment.
        let before = self.script.get(start..end)?;
        (!before.contains("*/")).then(|| self.edit(start, end, text))
    }

    /// What the loop around a labelled statement is called.
    fn exit(&self, label: usize) -> Option<String> {
        Some(format!("{}_{}", self.name, self.says(label)?))
    }

    /// What a statement is called that has no name.
    fn made(&self, start: usize) -> String {
        format!("{}{start}", self.name)
    }

    fn start(&self, token: usize) -> Option<usize> {
        Some(self.tokens.get(token)?.range.start)
    }

    fn end(&self, token: usize) -> Option<usize> {
        Some(self.tokens.get(token)?.range.end)
    }

    fn inserted(&self, at: usize, text: &str) -> Edit {
        self.edit(at, at, text)
    }

    /// A change that can be taken back ([`restored`]).
    fn edit(&self, start: usize, end: usize, text: &str) -> Edit {
        let name = self.name;
        let before = self.script.get(start..end).unwrap_or_default();
        Edit {
            start,
            end,
            text: marked(name, text, before),
            place: Some(start),
        }
    }
}

/// Text in the place of another, so that it can be taken back.
pub(super) fn marked(name: &str, text: &str, before: &str) -> String {
    format!("/*{name}*/{text}/*{name} {before}*/")
}

/// Text as it was before such changes.
pub(super) fn restored(text: &str, name: &str) -> Option<String> {
    let (begins, ends) = (format!("/*{name}*/"), format!("/*{name} "));
    let mut pieces = text.split(begins.as_str());
    let mut whole = pieces.next()?.to_owned();
    for piece in pieces {
        let (_, rest) = piece.split_once(ends.as_str())?;
        let (before, after) = rest.split_once("*/")?;
        whole.push_str(before);
        whole.push_str(after);
    }
    Some(whole)
}
