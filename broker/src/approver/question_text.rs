//! Formats a question as text for a terminal, and parses what was typed as an answer.

use std::num::NonZeroU32;

use airlock_core::decide::{Answer, Question};
use airlock_core::grant::{FieldValue, Proposal, Scope, Terms, field_text};
use airlock_core::statement::StatedOutcome;

use super::argument_lines::argument_lines;
use super::question_rows::{QuestionRow, rows};
use super::wire::is_json;
use crate::render::escape;

/// Maximum number of lines of arguments shown before the person asks for the rest.
const ARGUMENT_LINES_SHOWN: usize = 40;

/// Maximum length of a condition or an example, in characters.
const EXAMPLE_CHARS_SHOWN: usize = 200;

/// A key that was typed to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedReply {
    Answer(Answer),
    /// What became of the earlier call.
    Stated(StatedOutcome),
    /// Allows several calls of this tool; their number follows.
    Similar,
    /// The earlier call happened; its result follows.
    Result,
    ShowAll,
    Explain,
    Unclear,
}

/// Returns the possible answers in one line, with one key each. If every call needs its own answer,
/// the answers cover only this call.
pub(super) fn choices(question: &Question) -> String {
    if question.outcome_of.is_some() {
        let keys = "h = it happened, r = it happened with a result, x = it did not happen, \
                    n = not known, v = view everything, ? = help";
        return keys.to_owned();
    }
    let mut keys = vec!["y = this call".to_owned()];
    if !question.reads.is_empty() {
        keys.push("d = this call, and its result is harmless".to_owned());
    }
    if let Some(proposal) = &question.proposal {
        keys.push(format!("a = {}", more_calls(question, proposal)));
    }
    keys.extend(["n = no", "v = view everything", "? = help"].map(str::to_owned));
    keys.join(", ")
}

/// Returns the keys that are answers, for a person who typed something else.
pub(super) fn keys(question: &Question) -> String {
    let choices = choices(question);
    let keys: Vec<&str> = choices
        .split(", ")
        .filter_map(|choice| Some(choice.split_once(" = ")?.0))
        .collect();
    match keys.split_last() {
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Explains each answer in a line of its own.
pub(super) fn explained(question: &Question) -> String {
    if question.outcome_of.is_some() {
        return OUTCOME_HELP.to_owned();
    }
    let mut lines = vec!["y  allow this call, and no other".to_owned()];
    if !question.reads.is_empty() {
        let what = "d  allow this call; its result counts as neither private nor untrusted, so it \
                    adds no labels to the run";
        lines.push(what.to_owned());
    }
    if let Some(proposal) = &question.proposal {
        let wider: Vec<String> = wider(question)
            .map(|scope| format!(", and `N {scope}` counts them in the {scope}"))
            .collect();
        lines.push(format!(
            "a  allow this call and further calls of this tool, if their arguments fit `similar`; \
             airlock then asks for their number: Enter takes {}, `N` takes N calls of this run{}",
            proposal.uses_max,
            wider.concat()
        ));
    }
    lines.push("n  refuse this call; the script gets an error, and may go on".to_owned());
    lines.push("v  show the question again, without shortening anything".to_owned());
    lines.push("Ctrl-C ends the run; no call is allowed without an answer".to_owned());
    let lines = lines.iter().map(|line| format!("        {line}\n"));
    lines.collect()
}

const OUTCOME_HELP: &str = "        \
    h  the earlier call had its effect, and is not made again; its result is not known, so the script \
    gets an error
        r  the earlier call had its effect; airlock then asks for its result, which the script gets
        x  the earlier call had no effect; this call is decided, and may be made
        n  leave it unknown; the call is not made, and the script gets an error
        v  show the question again, without shortening anything
        Ctrl-C ends the run; no call is made without an answer
";

/// Asks for the result of a call that happened.
pub(super) const WHICH_RESULT: &str =
    "\n        the result as JSON in one line; Enter = no result > ";

/// Parses the result of a call that happened. An empty line is no result.
pub(super) fn parse_result(line: &str) -> Option<StatedOutcome> {
    let text = line.trim();
    let result = (!text.is_empty()).then(|| text.to_owned());
    let is_usable = result.as_deref().is_none_or(is_json);
    is_usable.then_some(StatedOutcome::Happened { result })
}

/// Asks for the number of similar calls.
pub(super) fn how_many(question: &Question) -> String {
    let proposed = question.proposal.as_ref().map(|it| it.uses_max);
    let proposed = proposed.map_or_else(String::new, |count| format!("; Enter = {count}"));
    format!("\n        how many calls, including this one{proposed} > ")
}

fn wider(question: &Question) -> impl Iterator<Item = &Scope> {
    let is_wider = |scope: &&Scope| **scope != Scope::Run;
    question.scopes.iter().filter(is_wider)
}

/// Returns in words which calls the answer for several calls allows. The number is asked for later.
fn more_calls(question: &Question, proposal: &Proposal) -> String {
    let condition = &proposal.condition;
    let is_any = condition.same().is_empty() && !condition.free().is_empty();
    let which = match is_any {
        true => "this tool with any values",
        false => "similar calls of this tool",
    };
    let wider: Vec<String> = wider(question)
        .map(|scope| format!(" or this {scope}"))
        .collect();
    format!("{which} (asks how many, in this run{})", wider.concat())
}

/// Returns a field of the arguments as a script would write it, such as `entities[0].name`. A field
/// with unusual characters stays a JSON pointer.
fn argument_name(field: &str) -> String {
    let is_name = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let parts: Vec<&str> = field.split('/').skip(1).collect();
    if parts.is_empty() || !parts.iter().all(|part| is_name(part) && !part.is_empty()) {
        return field_text(field).into_owned();
    }
    let mut name = String::new();
    for part in parts {
        if part.starts_with(|c: char| c.is_ascii_digit()) {
            name.push_str(&format!("[{part}]"));
        } else {
            let dot = if name.is_empty() { "" } else { "." };
            name.push_str(&format!("{dot}{part}"));
        }
    }
    format!("`{name}`")
}

/// Formats everything that matters for the answer. All texts are escaped, so that none can move the
/// cursor or hide.
pub(super) fn show(question: &Question, width: usize, whole: bool) -> String {
    let mut text = String::from("\n");
    let tool = escape::line(&question.tool.to_string()).into_owned();
    let call = format!("call {} of `{tool}`{}", question.call.0, site(question));
    match &question.outcome_of {
        Some(earlier) => {
            let at = earlier.to_string();
            let what = format!("what became of call {}? {call} is equal", escape::line(&at));
            row(&mut text, "state", &what);
        }
        None => {
            let site = site(question);
            let what = format!("`{tool}` (call {} of this run{site})", question.call.0);
            row(&mut text, "allow?", &what);
        }
    }
    for QuestionRow {
        name, text: said, ..
    } in rows(question)
    {
        row(&mut text, name, &said);
    }
    row(&mut text, "with", &arguments(question, width, whole));
    if let Some(proposal) = &question.proposal {
        row(&mut text, "similar", &similar(proposal, chars_max(whole)));
    }
    text
}

/// Parses what was typed at once: one key, or one key with Enter. Text of several characters is no
/// answer, because a person may have pasted it.
pub(super) fn parse(question: &Question, typed: &str) -> TypedReply {
    let key = typed.trim_end_matches(['\r', '\n']).to_ascii_lowercase();
    let is_about_outcome = question.outcome_of.is_some();
    match key.as_str() {
        "h" if is_about_outcome => TypedReply::Stated(StatedOutcome::Happened { result: None }),
        "r" if is_about_outcome => TypedReply::Result,
        "x" if is_about_outcome => TypedReply::Stated(StatedOutcome::DidNotHappen),
        "y" | "d" | "a" if is_about_outcome => TypedReply::Unclear,
        "y" => TypedReply::Answer(Answer::AllowOnce),
        "d" if !question.reads.is_empty() => TypedReply::Answer(Answer::AllowDeclassified),
        "n" => TypedReply::Answer(Answer::Refuse),
        "v" => TypedReply::ShowAll,
        "?" => TypedReply::Explain,
        "a" if question.proposal.is_some() => TypedReply::Similar,
        _ => TypedReply::Unclear,
    }
}

/// Parses the number of similar calls. An empty line takes the proposed number.
pub(super) fn parse_number(question: &Question, line: &str) -> Option<Answer> {
    let proposal = question.proposal.as_ref()?;
    match line.trim() {
        "" => Some(Answer::Allow(Terms::up_to(proposal.uses_max))),
        terms => parse_uses(terms),
    }
}

/// Parses terms such as `20` or `20 session`.
fn parse_uses(terms: &str) -> Option<Answer> {
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

/// Describes in words which calls are similar, and those that were asked about so far. Each text has
/// at most `chars_max` characters.
pub(crate) fn similar(proposal: &Proposal, chars_max: usize) -> String {
    let shortened = |text: &str| escape::brief(text, chars_max);
    let condition = &proposal.condition;
    let mut parts: Vec<String> = condition
        .same()
        .iter()
        .map(|(field, same)| {
            let verb = match same {
                FieldValue::Under(_) => "is",
                _ => "stays",
            };
            let (field, value) = (argument_name(field), shortened(&same.to_string()));
            format!("{field} {verb} {value}")
        })
        .collect();
    let free: Vec<String> = condition
        .free()
        .iter()
        .map(|field| anything(field))
        .collect();
    parts.extend(free);
    if parts.is_empty() {
        parts.push("there are no arguments".to_owned());
    }
    let mut text = format!("calls of this tool where {}", shortened(&parts.join(", ")));
    if proposal.calls > 1 {
        text.push_str(&format!(
            "\n        {} such calls were asked about so far:",
            proposal.calls
        ));
        for args in &proposal.examples {
            text.push_str(&format!("\n        {}", shortened(args.text())));
        }
    }
    text
}

fn anything(field: &str) -> String {
    match field {
        "" => "the arguments are anything".to_owned(),
        field => format!("{} is anything", argument_name(field)),
    }
}

fn chars_max(whole: bool) -> usize {
    if whole { 20_000 } else { EXAMPLE_CHARS_SHOWN }
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
    let lines: Vec<String> = argument_lines(question.args.value())
        .iter()
        .flat_map(|line| wrapped(line, width))
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
            "\n        … {} MORE LINES; press v to view them",
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
    use airlock_core::labels::Label;

    use super::*;
    use crate::approver::wire::tests::{asked, unknown_call};

    #[test]
    fn one_key_is_an_answer_and_pasted_text_is_not() {
        let question = asked(r#"{"to":"x"}"#);
        for (typed, expected) in [
            ("y", TypedReply::Answer(Answer::AllowOnce)),
            ("Y\n", TypedReply::Answer(Answer::AllowOnce)),
            ("n", TypedReply::Answer(Answer::Refuse)),
            ("a", TypedReply::Similar),
            ("v", TypedReply::ShowAll),
            ("?", TypedReply::Explain),
            ("d", TypedReply::Unclear),
            ("", TypedReply::Unclear),
            ("\n", TypedReply::Unclear),
            ("yes", TypedReply::Unclear),
            ("y\ny\n", TypedReply::Unclear),
            (" y", TypedReply::Unclear),
            ("\u{1b}[A", TypedReply::Unclear),
        ] {
            assert_eq!(parse(&question, typed), expected, "{typed:?}");
        }
        let mut each = question;
        each.proposal = None;
        assert_eq!(parse(&each, "a"), TypedReply::Unclear);
        each.reads = [Label::private()].into_iter().collect();
        let declassified = TypedReply::Answer(Answer::AllowDeclassified);
        assert_eq!(parse(&each, "d"), declassified);
    }

    #[test]
    fn question_about_outcome_has_answers_of_its_own() {
        let mut question = asked(r#"{"to":"x"}"#);
        question.outcome_of = Some(unknown_call());
        // A key of the other kind of question states nothing.
        question.reads = [Label::private()].into_iter().collect();
        let stated = TypedReply::Stated;
        for (typed, expected) in [
            ("h", stated(StatedOutcome::Happened { result: None })),
            ("x", stated(StatedOutcome::DidNotHappen)),
            ("d", TypedReply::Unclear),
            ("r", TypedReply::Result),
            ("n", TypedReply::Answer(Answer::Refuse)),
            ("y", TypedReply::Unclear),
            ("a", TypedReply::Unclear),
        ] {
            assert_eq!(parse(&question, typed), expected, "{typed}");
        }
        let result = |text: &str| {
            let result = Some(text.to_owned());
            Some(StatedOutcome::Happened { result })
        };
        assert_eq!(parse_result("{\"id\": 1}\n"), result("{\"id\": 1}"));
        assert_eq!(parse_result("{id: 1}\n"), None);
        let none = Some(StatedOutcome::Happened { result: None });
        assert_eq!(parse_result("\n"), none);
        let text = show(&question, 100, false);
        assert!(text.contains("what became of call r0:3?"), "{text}");
        assert!(text.contains("may have had its effect"), "{text}");
        assert!(choices(&question).starts_with("h = it happened"));
        assert!(explained(&question).contains("x  the earlier call had no effect"));
    }

    #[test]
    fn number_of_similar_calls_is_exact() {
        let question = asked(r#"{"to":"x"}"#);
        let uses = |n| Some(Answer::up_to(NonZeroU32::new(n).unwrap()));
        for (line, expected) in [
            ("\n", uses(20)),
            ("3\n", uses(3)),
            (" 3 run", uses(3)),
            ("0", None),
            ("-1", None),
            ("3 forever", None),
            ("3 run 4", None),
            ("99999999999", None),
            ("y", None),
        ] {
            assert_eq!(parse_number(&question, line), expected, "{line:?}");
        }
    }

    #[test]
    fn grant_is_described_in_words() {
        let question = asked(r#"{"project":"OPS","title":"a"}"#);
        let text = show(&question, 100, false);
        let similar =
            "similar calls of this tool where `project` stays \"OPS\", `title` is anything";
        assert!(text.contains(similar), "{text}");
        let odd = show(&asked(r#"{"to is anything, /a":1}"#), 100, false);
        assert!(
            odd.contains(r#"where "/to is anything, ~1a" is anything"#),
            "{odd}"
        );
        assert_eq!(
            choices(&question),
            "y = this call, a = similar calls of this tool (asks how many, in this run), n = no, \
             v = view everything, ? = help"
        );
        assert_eq!(keys(&question), "y, a, n, v or ?");
        let mut any = asked(r#"{"title":"a"}"#);
        any.scopes = vec![Scope::Run, Scope::Project];
        let expected = "a = this tool with any values (asks how many, in this run or this project)";
        assert!(choices(&any).contains(expected), "{}", choices(&any));
        let help = explained(&question);
        for part in [
            "y  allow this call",
            "a  allow",
            "n  refuse",
            "v  show",
            "Enter takes 20",
        ] {
            assert!(help.contains(part), "{part}: {help}");
        }
        assert!(!help.contains("d  "), "{help}");
    }

    #[test]
    fn argument_is_named_as_in_a_script() {
        for (field, expected) in [
            ("/to", "`to`"),
            ("/entities/0/name", "`entities[0].name`"),
            ("/content-type", "/content-type"),
            ("/a~1b", "/a~1b"),
            ("/a, b", "\"/a, b\""),
            ("/", "/"),
        ] {
            assert_eq!(argument_name(field), expected, "{field}");
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
