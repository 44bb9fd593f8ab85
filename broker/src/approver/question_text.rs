//! A question as text for a terminal, and a typed line as an answer.

use std::num::NonZeroU32;

use airlock_core::decide::{Answer, Question};
use airlock_core::rules::Level;

use crate::render::escape;

/// Lines of arguments that are shown before one has to ask for the rest.
const ARGUMENT_LINES_SHOWN: usize = 40;

/// What somebody typed in reply to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    Answer(Answer),
    /// All calls of this tool, and the number is still to be asked for.
    AllWithoutNumber,
    ShowAll,
    Unclear,
}

/// The answers there are; where each call is asked about, none is about more than one.
pub(super) fn choices(question: &Question) -> &'static str {
    if question.level == Level::AskCall {
        "y = this call, n = refuse, v = view all of it"
    } else {
        "y = this call, a N = up to N calls of this tool in this run, n = refuse, v = view all of it"
    }
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
        ("a" | "all", number) => parse_uses(number).map_or(Typed::Unclear, Typed::Answer),
        _ => Typed::Unclear,
    }
}

pub(super) fn parse_uses(number: &str) -> Option<Answer> {
    let uses_max = number.trim().parse::<NonZeroU32>().ok()?;
    Some(Answer::AllowTool { uses_max })
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

/// A line in pieces that fit; a piece that goes on is marked, so that no text can look like our own.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let room = width.saturating_sub(12).max(20);
    let chars: Vec<char> = line.chars().collect();
    let mut pieces: Vec<String> = chars
        .chunks(room)
        .map(|piece| piece.iter().collect())
        .collect();
    for piece in pieces.iter_mut().skip(1) {
        piece.insert_str(0, "↪ ");
    }
    if pieces.is_empty() {
        vec![String::new()]
    } else {
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_line_is_an_answer_only_when_it_is_clear() {
        let uses = |n| {
            Typed::Answer(Answer::AllowTool {
                uses_max: NonZeroU32::new(n).unwrap(),
            })
        };
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
            ("a 99999999999", Typed::Unclear),
            ("y please", Typed::Unclear),
        ] {
            assert_eq!(parse(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_long_line_is_wrapped_and_each_further_piece_is_marked() {
        assert_eq!(wrapped("ab", 80), ["ab"]);
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
