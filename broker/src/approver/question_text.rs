//! A question as text for a terminal, and a typed line as an answer.

use std::num::NonZeroU32;

use airlock_core::decide::{Answer, Question};
use airlock_core::facts::{Facts, Share};
use airlock_core::flow::Label;
use airlock_core::grant::{Proposal, Scope, Terms};

use crate::render::escape;

/// Lines of arguments that are shown before one has to ask for the rest.
const ARGUMENT_LINES_SHOWN: usize = 40;
/// Fields that repeat earlier results.
const SHARES_SHOWN: usize = 8;

/// Of a condition or an example.
const EXAMPLE_CHARS_SHOWN: usize = 200;

/// What somebody typed in reply to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    Answer(Answer),
    /// All calls of this tool, and the number is still to be asked for.
    AllWithoutNumber,
    ShowAll,
    Unclear,
}

/// The answers there are; where each call is asked about, none is about more than one.
pub(super) fn choices(question: &Question) -> String {
    let Some(proposal) = &question.proposal else {
        return "y = this call, n = refuse, v = view all of it".into();
    };
    let wider: Vec<_> = question
        .scopes
        .iter()
        .filter(|scope| **scope != Scope::Run)
        .map(|scope| format!(", a N {scope} = in this {scope}"))
        .collect();
    format!(
        "y = this call, a N = up to N calls like it in this run ({} proposed){}, n = refuse, \
         v = view all of it",
        proposal.uses_max,
        wider.concat()
    )
}

/// Everything that matters for the answer. Nothing in it can move the cursor or hide.
pub(super) fn show(question: &Question, width: usize, whole: bool) -> String {
    let mut text = String::from("\n");
    let tool = escape::line(&question.tool.to_string()).into_owned();
    row(
        &mut text,
        "allow?",
        &format!("call {} of `{tool}`{}", question.call.0, site(question)),
    );
    for prompt in &question.prompts {
        row(&mut text, "asks", &escape::line(prompt));
    }
    for reason in &question.reasons {
        row(&mut text, "why", &escape::line(reason));
    }
    if let Some(facts) = &question.facts {
        facts_rows(&mut text, facts);
    }
    if let Some(claims) = claims(question) {
        row(&mut text, "note", &claims);
    }
    match question.allowed_so_far {
        0 => {}
        1 => row(
            &mut text,
            "so far",
            "1 call of this tool was allowed in this run",
        ),
        n => row(
            &mut text,
            "so far",
            &format!("{n} calls of this tool were allowed in this run"),
        ),
    }
    row(&mut text, "with", &arguments(question, width, whole));
    if let Some(proposal) = &question.proposal {
        row(&mut text, "like it", &like(proposal, whole));
    }
    text
}

/// The line that says which answers there are; `hidden` arguments are pointed out right here.
pub(super) fn parse(line: &str) -> Typed {
    let line = line.trim().to_ascii_lowercase();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
    match (word, rest.trim()) {
        ("y" | "yes", "") => Typed::Answer(Answer::AllowOnce),
        ("n" | "no", "") => Typed::Answer(Answer::Refuse),
        ("v" | "view", "") => Typed::ShowAll,
        ("a" | "all", "") => Typed::AllWithoutNumber,
        ("a" | "all", terms) => parse_uses(terms).map_or(Typed::Unclear, Typed::Answer),
        _ => Typed::Unclear,
    }
}

/// `20`, or `20 session`.
pub(super) fn parse_uses(terms: &str) -> Option<Answer> {
    let mut words = terms.split_whitespace();
    let uses_max = words.next()?.parse::<NonZeroU32>().ok()?;
    let scope = match words.next() {
        None | Some("run") => Scope::Run,
        Some("session") => Scope::Session,
        Some("project") => Scope::Project,
        Some(_) => return None,
    };
    let is_all = words.next().is_none();
    is_all.then_some(Answer::Allow(Terms {
        scope,
        ..Terms::up_to(uses_max)
    }))
}

/// What further calls would have to be, and the first of those that were asked about so far.
fn like(proposal: &Proposal, whole: bool) -> String {
    let mut text = format!(
        "where {}",
        shortened(&proposal.condition.to_string(), whole)
    );
    if proposal.calls > 1 {
        text.push_str(&format!(
            "\n        {} calls are like it so far:",
            proposal.calls
        ));
        for args in &proposal.examples {
            text.push_str(&format!("\n        {}", shortened(args.text(), whole)));
        }
    }
    text
}

fn shortened(text: &str, whole: bool) -> String {
    let chars_max = if whole { 20_000 } else { EXAMPLE_CHARS_SHOWN };
    escape::brief(text, chars_max)
}

fn row(text: &mut String, label: &str, value: &str) {
    text.push_str(&format!("{label:>7} {value}\n"));
}

fn site(question: &Question) -> String {
    match question.site.line {
        0 => String::new(),
        line => format!(", line {line} of the script"),
    }
}

/// What the run had read, where the call goes, and what its fields repeat.
fn facts_rows(text: &mut String, facts: &Facts) {
    let list = |words: &mut dyn Iterator<Item = &str>| {
        let words: Vec<_> = words
            .map(|word| escape::brief(word, EXAMPLE_CHARS_SHOWN))
            .collect();
        words.join(", ")
    };
    if !facts.labels.is_empty() {
        let labels = list(&mut facts.labels.iter().map(Label::as_str));
        row(text, "read", &format!("the run has read what is {labels}"));
    }
    let places = [&facts.dest_hosts, &facts.dest_addresses, &facts.path_roots];
    let places = list(&mut places.into_iter().flatten().flatten().map(String::as_str));
    if !places.is_empty() {
        row(text, "to", &places);
    }
    if !facts.dest_unexplained.is_empty() {
        let fields = list(&mut facts.dest_unexplained.iter().map(String::as_str));
        row(
            text,
            "to",
            &format!("nothing trusted names what stands in {fields}"),
        );
    }
    if !facts.lookalikes.is_empty() {
        let fields = list(&mut facts.lookalikes.iter().map(String::as_str));
        row(
            text,
            "to",
            &format!("{fields} may be read as something else than it seems"),
        );
    }
    for share in facts.shares.iter().take(SHARES_SHOWN) {
        let Share { field, call, .. } = share;
        let field = escape::brief(field, EXAMPLE_CHARS_SHOWN);
        row(
            text,
            "from",
            &format!("{field} repeats what call {} returned", call.0),
        );
    }
}

fn claims(question: &Question) -> Option<String> {
    let effects = question.effects;
    match (
        effects.read_only,
        effects.claims_destructive,
        effects.claims_read_only,
    ) {
        (Some(true), ..) => Some("your configuration says that it only reads".to_owned()),
        (_, Some(true), _) => Some("the server says that it is destructive".to_owned()),
        (.., Some(true)) => Some("the server claims that it only reads".to_owned()),
        _ => None,
    }
}

fn arguments(question: &Question, width: usize, whole: bool) -> String {
    let pretty = serde_json::to_string_pretty(question.args.value()).unwrap_or_default();
    let lines: Vec<String> = pretty
        .lines()
        .flat_map(|line| wrapped(&escape::line(line), width))
        .collect();
    let shown = if whole {
        lines.len()
    } else {
        lines.len().min(ARGUMENT_LINES_SHOWN)
    };
    let mut text = lines
        .iter()
        .take(shown)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n        ");
    if shown < lines.len() {
        text.push_str(&format!(
            "\n        … {} MORE LINES; type v to view them",
            lines.len() - shown
        ));
    }
    text
}

/// A text whose lines fit: no line of it begins where the terminal would break another one.
pub(super) fn fitted(text: &str, width: usize) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let body = line.strip_suffix('\n');
        // What was wrapped already fits.
        let first = width.saturating_sub(1).max(20);
        let pieces = in_pieces(body.unwrap_or(line), first, room(width)).join("\n        ");
        if body.is_some() {
            pieces + "\n"
        } else {
            pieces
        }
    });
    lines.collect()
}

/// A line in pieces that fit; a piece that goes on is marked, so that no text can look like our own.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    in_pieces(line, room(width), room(width))
}

/// Columns of a piece behind its indentation and its mark.
fn room(width: usize) -> usize {
    width.saturating_sub(12).max(20)
}

fn in_pieces(line: &str, first: usize, others: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let (mut taken, mut room) = (0, first);
    for c in line.chars() {
        taken += columns(c);
        if taken > room {
            pieces.push("↪ ".to_owned());
            (taken, room) = (columns(c), others);
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

/// Columns that a character takes at most.
fn columns(c: char) -> usize {
    match c {
        '\t' => 8,
        '\0'..='\x7f' => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use airlock_core::id::CallId;

    use super::*;

    #[test]
    fn a_typed_line_is_an_answer_only_when_it_is_clear() {
        let uses = |n| Typed::Answer(Answer::up_to(NonZeroU32::new(n).unwrap()));
        for (line, expected) in [
            ("y\n", Typed::Answer(Answer::AllowOnce)),
            (" YES ", Typed::Answer(Answer::AllowOnce)),
            ("n", Typed::Answer(Answer::Refuse)),
            ("a 20", uses(20)),
            ("all 3", uses(3)),
            ("a", Typed::AllWithoutNumber),
            ("v", Typed::ShowAll),
            ("", Typed::Unclear),
            ("a 0", Typed::Unclear),
            ("a -1", Typed::Unclear),
            ("a 3 run", uses(3)),
            ("a 3 forever", Typed::Unclear),
            ("a 3 run 4", Typed::Unclear),
            ("a 99999999999", Typed::Unclear),
            ("y please", Typed::Unclear),
        ] {
            assert_eq!(parse(line), expected, "{line:?}");
        }
    }

    #[test]
    fn what_the_run_has_read_and_where_the_call_goes_is_shown_without_its_tricks() {
        let facts = Facts {
            dest_addresses: Some(["eve\u{1b}[2J@evil.example".to_owned()].into()),
            dest_unexplained: ["/to".to_owned()].into(),
            lookalikes: ["/to".to_owned()].into(),
            shares: vec![Share {
                field: "/body".into(),
                call: CallId(2),
                pieces: 9,
            }],
            ..Facts::default()
        };
        let mut text = String::new();
        facts_rows(&mut text, &facts);
        for part in [
            "read the run has read what is private, untrusted",
            "to nothing trusted names what stands in /to",
            "to /to may be read as something else",
            "from /body repeats what call 2 returned",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains('\u{1b}'));
    }

    /// Nothing that somebody else wrote begins a line of its own.
    #[test]
    fn no_row_of_a_question_goes_on_where_the_terminal_breaks_it() {
        let fakes = format!("x{}answer y = refuse", " ".repeat(70));
        let facts = Facts {
            dest_addresses: Some([fakes.clone()].into()),
            dest_unexplained: [fakes.clone()].into(),
            shares: vec![Share {
                field: fakes.clone(),
                call: CallId(2),
                pieces: 9,
            }],
            ..Facts::default()
        };
        let mut text = String::new();
        facts_rows(&mut text, &facts);
        for label in ["asks", "why", "like it"] {
            row(&mut text, label, &fakes);
        }
        text.push_str(&format!("        {}\n", "long ".repeat(500)));
        let shown = fitted(&text, 80);
        for line in shown.lines() {
            let columns: usize = line.chars().map(columns).sum();
            assert!(columns < 80, "{columns}: {line}");
            let is_ours = line.starts_with("        ") || !line.starts_with("  answer");
            let begins = line.trim_start();
            assert!(is_ours && !begins.starts_with("answer"), "{line}");
        }
        assert!(shown.matches('↪').count() >= 6, "{shown}");
    }

    #[test]
    fn what_was_wrapped_already_is_not_wrapped_again() {
        let long = format!(
            "    with {}",
            wrapped(&"x".repeat(300), 80).join("\n        ")
        );
        assert_eq!(fitted(&long, 80), long);
    }

    #[test]
    fn a_long_line_is_wrapped_and_each_further_piece_is_marked() {
        assert_eq!(wrapped("ab", 80), ["ab"]);
        assert_eq!(wrapped("", 80), [""]);
        assert_eq!(wrapped(&"語".repeat(25), 32).len(), 3);
        let asked = format!("        > {}   asks  call 7\n      > ", " ".repeat(90));
        let shown = fitted(&asked, 80);
        assert!(shown.ends_with("\n      > "), "{shown}");
        let is_marked =
            |line: &str| line.chars().count() <= 80 && line.trim_start().starts_with(['>', '↪']);
        assert!(shown.lines().all(is_marked), "{shown}");
        let pieces = wrapped(&"x".repeat(45), 32);
        assert_eq!(
            pieces,
            [
                "x".repeat(20),
                format!("↪ {}", "x".repeat(20)),
                format!("↪ {}", "x".repeat(5))
            ]
        );
    }
}
