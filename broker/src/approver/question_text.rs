//! Formats a question as text for a terminal, and parses a typed line as an answer.

use std::num::NonZeroU32;

use airlock_core::decide::{Answer, Question};
use airlock_core::grant::{Proposal, Scope, Terms};

use super::question_rows::{QuestionRow, rows};
use crate::render::escape;

/// Maximum number of lines of arguments shown before the person asks for the rest.
const ARGUMENT_LINES_SHOWN: usize = 40;

/// Maximum length of a condition or an example, in characters.
const EXAMPLE_CHARS_SHOWN: usize = 200;

/// A reply that was typed to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedReply {
    Answer(Answer),
    /// Allows all calls of this tool; the number still has to be asked for.
    AllWithoutNumber,
    ShowAll,
    Unclear,
}

/// Returns the possible answers. If every call needs its own answer, the answers cover only this
/// call.
pub(super) fn choices(question: &Question) -> String {
    let declassify = match question.reads.is_empty() {
        true => "",
        false => ", d = allow it, and its result counts as neither private nor untrusted",
    };
    let Some(proposal) = &question.proposal else {
        return format!("y = allow this call{declassify}, n = refuse, v = view everything");
    };
    let wider: Vec<_> = question
        .scopes
        .iter()
        .filter(|scope| **scope != Scope::Run)
        .map(|scope| format!(", a N {scope} = in this {scope}"))
        .collect();
    format!(
        "y = allow this call{declassify}, a N = allow up to N similar calls in this run ({} \
         proposed){}, n = refuse, v = view everything",
        proposal.uses_max,
        wider.concat()
    )
}

/// Formats everything that matters for the answer. All texts are escaped, so that none can move the
/// cursor or hide.
pub(super) fn show(question: &Question, width: usize, whole: bool) -> String {
    let mut text = String::from("\n");
    let tool = escape::line(&question.tool.to_string()).into_owned();
    row(
        &mut text,
        "allow?",
        &format!("call {} of `{tool}`{}", question.call.0, site(question)),
    );
    for QuestionRow {
        name, text: said, ..
    } in rows(question)
    {
        row(&mut text, name, &said);
    }
    row(&mut text, "with", &arguments(question, width, whole));
    if let Some(proposal) = &question.proposal {
        row(&mut text, "similar", &like(proposal, whole));
    }
    text
}

/// Parses a typed line as a reply.
pub(super) fn parse(line: &str) -> TypedReply {
    let line = line.trim().to_ascii_lowercase();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
    match (word, rest.trim()) {
        ("y" | "yes", "") => TypedReply::Answer(Answer::AllowOnce),
        ("d" | "declassify", "") => TypedReply::Answer(Answer::AllowDeclassified),
        ("n" | "no", "") => TypedReply::Answer(Answer::Refuse),
        ("v" | "view", "") => TypedReply::ShowAll,
        ("a" | "all", "") => TypedReply::AllWithoutNumber,
        ("a" | "all", terms) => parse_uses(terms).map_or(TypedReply::Unclear, TypedReply::Answer),
        _ => TypedReply::Unclear,
    }
}

/// Parses terms such as `20` or `20 session`.
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

/// Describes the condition for similar calls, and the similar calls that were asked about so far.
fn like(proposal: &Proposal, whole: bool) -> String {
    let mut text = format!(
        "where {}",
        shortened(&proposal.condition.to_string(), whole)
    );
    if proposal.calls > 1 {
        text.push_str(&format!(
            "\n        {} such calls were asked about so far:",
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

/// Wraps a text so that the terminal never breaks a line.
pub(super) fn fitted(text: &str, width: usize) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let body = line.strip_suffix('\n');
        // A line that was already wrapped fits into the width.
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

/// Splits a line into pieces that fit. Further pieces are marked, so that no text can imitate
/// airlock's own lines.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    in_pieces(line, room(width), room(width))
}

/// Returns the columns available for a piece, without its indentation and mark.
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

/// Returns the maximum number of columns of a character.
fn columns(c: char) -> usize {
    match c {
        '\t' => 8,
        '\0'..='\x7f' => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use airlock_core::facts::{Facts, RepeatedText};
    use airlock_core::id::CallId;

    use super::*;
    use crate::approver::wire::tests::asked;

    #[test]
    fn only_unambiguous_line_is_an_answer() {
        let uses = |n| TypedReply::Answer(Answer::up_to(NonZeroU32::new(n).unwrap()));
        for (line, expected) in [
            ("y\n", TypedReply::Answer(Answer::AllowOnce)),
            (" YES ", TypedReply::Answer(Answer::AllowOnce)),
            ("d", TypedReply::Answer(Answer::AllowDeclassified)),
            ("n", TypedReply::Answer(Answer::Refuse)),
            ("a 20", uses(20)),
            ("all 3", uses(3)),
            ("a", TypedReply::AllWithoutNumber),
            ("v", TypedReply::ShowAll),
            ("", TypedReply::Unclear),
            ("a 0", TypedReply::Unclear),
            ("a -1", TypedReply::Unclear),
            ("a 3 run", uses(3)),
            ("a 3 forever", TypedReply::Unclear),
            ("a 3 run 4", TypedReply::Unclear),
            ("a 99999999999", TypedReply::Unclear),
            ("y please", TypedReply::Unclear),
        ] {
            assert_eq!(parse(line), expected, "{line:?}");
        }
    }

    /// Checks that text from servers and scripts never begins a line.
    #[test]
    fn question_rows_never_exceed_terminal_width() {
        let fakes = format!("x{}answer y = refuse", " ".repeat(70));
        let mut question = asked(r#"{"to":"x"}"#);
        question.facts = Some(std::sync::Arc::new(Facts {
            dest_addresses: Some([fakes.clone()].into()),
            dest_unexplained: [fakes.clone()].into(),
            shares: vec![RepeatedText {
                field: fakes.clone(),
                call: CallId(2),
                pieces: 9,
            }],
            ..Facts::default()
        }));
        question.prompts = vec![fakes.clone()];
        question.reasons = vec![fakes.clone()];
        let mut text = show(&question, 80, false);
        row(&mut text, "similar", &fakes);
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
    fn wrapped_text_is_not_wrapped_twice() {
        let long = format!(
            "    with {}",
            wrapped(&"x".repeat(300), 80).join("\n        ")
        );
        assert_eq!(fitted(&long, 80), long);
    }

    #[test]
    fn long_line_is_wrapped_with_continuation_marks() {
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
