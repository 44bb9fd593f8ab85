//! Recognises Cedar's grammar in one pass: time and memory are linear in the text, and nothing
//! recurses. Cedar's own parser continues after an error, at a cost that is quadratic or worse in
//! the length of the text. So Cedar only gets text that was accepted here. Errors use Cedar's own
//! wording.

#[cfg(test)]
mod tests;

use std::ops::Range;

/// Maximum length of an unexpected token in a message.
const SHOWN_CHARS_MAX: usize = 200;

/// The first token that does not fit the grammar, or that is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Byte offset of the token.
    pub(super) at: usize,
    pub(super) why: String,
    /// Advice on how to fix the error; empty if there is none.
    pub(super) help: &'static str,
}

/// Checks whether a text is exactly one policy.
pub(super) fn policy(text: &str) -> Result<(), Wrong> {
    recognise(text, Goal::Policy).map(drop)
}

/// Returns the range of each policy of a text, from its first token to its semicolon.
pub(super) fn policies(text: &str) -> Result<Vec<Range<usize>>, Wrong> {
    recognise(text, Goal::Policies)
}

fn recognise(text: &str, goal: Goal) -> Result<Vec<Range<usize>>, Wrong> {
    let mut goals = Goals(vec![goal]);
    let (mut end, mut last) = (0, 0);
    let (mut start, mut policies) = (None, Vec::new());
    loop {
        let at = end + blank_bytes(text.get(end..).unwrap_or_default());
        let rest = text.get(at..).unwrap_or_default();
        if rest.is_empty() && goals.may_end() {
            return Ok(policies);
        }
        let token = rest.get(..token_bytes(rest)).unwrap_or_default();
        let wrong = if rest.is_empty() {
            let why = "unexpected end of input";
            expecting(text, goal, at, Wrong::new(last, why))
        } else if token.is_empty() {
            Wrong::invalid(at, rest)
        } else if !goals.take(token) {
            let shown = codegen::text::clip(token, SHOWN_CHARS_MAX);
            let why = format!("unexpected token `{shown}`");
            expecting(text, goal, at, Wrong::new(at, why))
        } else if starts_digit(token) && token.parse::<u64>().is_err() {
            Wrong::new(
                at,
                "integer parse error: number too large to fit in target type",
            )
        } else {
            end = at + token.len();
            last = end;
            let begun = *start.get_or_insert(at);
            if goals.may_end() {
                policies.push(begun..end);
                start = None;
            }
            continue;
        };
        return Err(wrong);
    }
}

/// Adds the tokens that were expected at byte offset `before` to an error. The text before this
/// offset fits the grammar.
fn expecting(text: &str, goal: Goal, before: usize, mut wrong: Wrong) -> Wrong {
    let mut goals = Goals(vec![goal]);
    let mut at = 0;
    loop {
        at += blank_bytes(text.get(at..).unwrap_or_default());
        if at >= before {
            break;
        }
        let rest = text.get(at..).unwrap_or_default();
        let token = rest.get(..token_bytes(rest)).unwrap_or_default();
        goals.take(token);
        at += token.len();
    }
    if let Some(expected) = goals.expected() {
        wrong.why = format!("{} (expected {expected})", wrong.why);
    }
    wrong
}

impl Wrong {
    fn new(at: usize, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { at, why, help: "" }
    }

    fn invalid(at: usize, rest: &str) -> Self {
        let help = match rest.chars().next() {
            Some('"') => "try checking that all strings are closed properly",
            Some('\'') => "strings must use double quotes, not single quotes",
            _ => "",
        };
        Self {
            help,
            ..Self::new(at, "invalid token")
        }
    }
}

/// Returns the length of the space and comments at the start of a text.
fn blank_bytes(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if !rest.starts_with("//") {
            return text.len() - rest.len();
        }
        let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        rest = rest.get(end..).unwrap_or_default();
    }
}

/// Returns the length of the token at the start of a text; 0 if there is none.
fn token_bytes(text: &str) -> usize {
    const LONG: [&str; 7] = ["::", "==", "!=", "<=", ">=", "||", "&&"];
    const SHORT: &[u8] = b"@.,;:(){}[]<>+-*/%!=";
    let run = |from: usize, fits: fn(&u8) -> bool| {
        let bytes = text.as_bytes().get(from..).unwrap_or_default();
        from + bytes.iter().take_while(|byte| fits(byte)).count()
    };
    let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    match text.as_bytes() {
        [b'"', ..] => string_bytes(text),
        [b'0'..=b'9', ..] => run(1, u8::is_ascii_digit),
        [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => run(1, in_word),
        [b'?', b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => run(2, in_word),
        _ if LONG.iter().any(|sign| text.starts_with(sign)) => 2,
        [first, ..] if SHORT.contains(first) => 1,
        _ => 0,
    }
}

/// Returns the length of a string with both quotes; 0 if it is not closed, or a backslash ends a
/// line.
fn string_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(rest) = bytes.get(at..) {
        let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
            return 0;
        };
        let found = at + found;
        if bytes.get(found) == Some(&b'"') {
            return found + 1;
        }
        match text.get(found + 1..).and_then(|rest| rest.chars().next()) {
            None | Some('\n') => return 0,
            Some(escaped) => at = found + 1 + escaped.len_utf8(),
        }
    }
    0
}

fn starts_digit(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_digit())
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Whether a token is a reserved word, which cannot be a name by itself.
fn is_reserved(token: &str) -> bool {
    matches!(token, "if" | "true" | "false")
}

fn is_text(token: &str) -> bool {
    token.starts_with('"')
}

fn is_relation(token: &str) -> bool {
    matches!(token, "<" | "<=" | ">=" | ">" | "!=" | "==" | "=" | "in")
}

/// The goals that are still to be matched; the last one comes next.
#[derive(Clone)]
struct Goals(Vec<Goal>);

/// A part of a policy that is still to be matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// Exactly this token.
    Token(&'static str),
    /// Any identifier, `if`, `true` and `false` included.
    Word,
    Text,
    Literal,
    Policies,
    Policy,
    AnnotationTextMaybe,
    Variables,
    VariableRest,
    TypeMaybe,
    Type,
    TypeTail,
    IsMaybe,
    RelationMaybe,
    Conditions,
    Body,
    Expr,
    /// After an `if` at the start of an expression: a condition, or a name.
    If,
    /// `!`, `-`, and their operand.
    Operand,
    Nots,
    Minuses,
    Primary,
    /// `::` and the rest of a name, or nothing.
    NameTail,
    /// The name after a `::`.
    Name,
    /// After `true` or `false`: `::` and the rest of a name, or nothing.
    ReservedTail,
    Members,
    /// A list up to this closing bracket.
    Items(&'static str),
    ItemsRest(&'static str),
    Fields,
    FieldsRest,
    FieldIf,
    RefFields,
    RefFieldsRest,
    HasField,
    HasIf,
    /// The operators that may follow an operand, or nothing.
    Tail(Relation),
}

/// The operator before an operand, which decides which operators may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// No comparison.
    None,
    /// `==` or a similar operator, which may be chained.
    Compared,
    /// `is`, which `in` may follow.
    Is,
    /// `has`, `like`, or `in` after `is`.
    Closed,
    /// `has if`, after which arithmetic operators are not allowed either.
    HasIf,
    /// A type in the scope of a policy; only arithmetic operators may follow.
    Head,
}

/// The result of offering a token to a goal.
enum Turn {
    /// The goal took the token.
    Took,
    /// The goal was replaced by other goals, or by none.
    Instead,
    Wrong,
}

impl Goals {
    /// Offers the next token and returns whether it fits. After a token that does not fit, the
    /// goals are invalid.
    fn take(&mut self, token: &str) -> bool {
        while let Some(goal) = self.0.pop() {
            match self.turn(goal, token) {
                Turn::Took => return true,
                Turn::Instead => {}
                Turn::Wrong => return false,
            }
        }
        false
    }

    fn may_end(&self) -> bool {
        self.0.iter().all(|goal| *goal == Goal::Policies)
    }

    fn took(&mut self, goals: &[Goal]) -> Turn {
        self.0.extend(goals.iter().rev());
        Turn::Took
    }

    fn instead(&mut self, goals: &[Goal]) -> Turn {
        self.0.extend(goals.iter().rev());
        Turn::Instead
    }

    fn turn(&mut self, goal: Goal, token: &str) -> Turn {
        match goal {
            Goal::Token(own) if token == own => Turn::Took,
            Goal::Word if is_word(token) => Turn::Took,
            Goal::Text if is_text(token) => Turn::Took,
            Goal::Literal if matches!(token, "true" | "false") => Turn::Took,
            Goal::Literal if is_text(token) || starts_digit(token) => Turn::Took,
            Goal::Token(_) | Goal::Word | Goal::Text | Goal::Literal => Turn::Wrong,
            Goal::Policies
            | Goal::Policy
            | Goal::AnnotationTextMaybe
            | Goal::Variables
            | Goal::VariableRest
            | Goal::TypeMaybe
            | Goal::Type
            | Goal::TypeTail
            | Goal::IsMaybe
            | Goal::RelationMaybe
            | Goal::Conditions
            | Goal::Body => self.policy_turn(goal, token),
            Goal::Expr
            | Goal::If
            | Goal::Operand
            | Goal::Nots
            | Goal::Minuses
            | Goal::HasField
            | Goal::HasIf => self.expression_turn(goal, token),
            Goal::Primary | Goal::NameTail | Goal::Name | Goal::ReservedTail | Goal::Members => {
                self.primary_turn(goal, token)
            }
            Goal::Items(_)
            | Goal::ItemsRest(_)
            | Goal::Fields
            | Goal::FieldsRest
            | Goal::FieldIf
            | Goal::RefFields
            | Goal::RefFieldsRest => self.list_turn(goal, token),
            Goal::Tail(relation) => self.tail_turn(relation, token),
        }
    }

    fn policy_turn(&mut self, goal: Goal, token: &str) -> Turn {
        use Goal::*;
        match (goal, token) {
            (Policies, _) => self.instead(&[Policy, Policies]),
            (Policy, "@") => self.took(&[Word, AnnotationTextMaybe, Policy]),
            (Policy, _) if is_word(token) => self.took(&[Token("("), Variables, Conditions]),
            (AnnotationTextMaybe, "(") => self.took(&[Text, Token(")")]),
            (Variables | VariableRest, ")") => Turn::Took,
            (Variables, _) if is_word(token) => {
                self.took(&[TypeMaybe, IsMaybe, RelationMaybe, VariableRest])
            }
            (VariableRest, ",") => self.took(&[Variables]),
            (TypeMaybe, ":") => self.took(&[Type]),
            (Type, _) if is_reserved(token) => self.took(&[Token("::"), Word, TypeTail]),
            (Type, _) if is_word(token) => self.took(&[TypeTail]),
            (TypeTail, "::") => self.took(&[Word, TypeTail]),
            (IsMaybe, "is") => self.took(&[Operand, Tail(Relation::Head)]),
            (RelationMaybe, _) if is_relation(token) => self.took(&[Expr]),
            (AnnotationTextMaybe | TypeMaybe | TypeTail | IsMaybe | RelationMaybe, _) => {
                Turn::Instead
            }
            (Conditions, ";") => Turn::Took,
            (Conditions, _) if is_word(token) => self.took(&[Token("{"), Body]),
            (Body, "}") => self.took(&[Conditions]),
            (Body, _) => self.instead(&[Expr, Token("}"), Conditions]),
            _ => Turn::Wrong,
        }
    }

    fn expression_turn(&mut self, goal: Goal, token: &str) -> Turn {
        use Goal::*;
        match (goal, token) {
            (Expr, "if") => self.took(&[If]),
            (Expr, _) => self.instead(&[Operand, Tail(Relation::None)]),
            (If, "::") => self.took(&[Word, NameTail, Members, Tail(Relation::None)]),
            (If, _) => self.instead(&[Expr, Token("then"), Expr, Token("else"), Expr]),
            (Operand, "!") => self.took(&[Nots, Primary, Members]),
            (Operand, "-") => self.took(&[Minuses, Primary, Members]),
            (Operand, _) => self.instead(&[Primary, Members]),
            (Nots, "!") => self.took(&[Nots]),
            (Minuses, "-") => self.took(&[Minuses]),
            (Nots | Minuses, _) => Turn::Instead,
            (HasField, "if") => self.took(&[HasIf]),
            (HasField, _) => self.instead(&[Operand, Tail(Relation::Closed)]),
            (HasIf, "::") => self.took(&[Word, NameTail, Members, Tail(Relation::Closed)]),
            (HasIf, _) => self.instead(&[Members, Tail(Relation::HasIf)]),
            _ => Turn::Wrong,
        }
    }

    fn primary_turn(&mut self, goal: Goal, token: &str) -> Turn {
        use Goal::*;
        match (goal, token) {
            (Primary, "(") => self.took(&[Expr, Token(")")]),
            (Primary, "[") => self.took(&[Items("]")]),
            (Primary, "{") => self.took(&[Fields]),
            (Primary, "if") => self.took(&[Token("::"), Word, NameTail]),
            (Primary, "true" | "false") => self.took(&[ReservedTail]),
            (Primary, _) if is_word(token) => self.took(&[NameTail]),
            (Primary, _) if is_text(token) || starts_digit(token) => Turn::Took,
            (Primary, _) if token.starts_with('?') => Turn::Took,
            (ReservedTail, "::") => self.took(&[Word, NameTail]),
            (NameTail, "::") => self.took(&[Name]),
            (Name, "{") => self.took(&[RefFields]),
            (Name, _) if is_text(token) => Turn::Took,
            (Name, _) if is_word(token) => self.took(&[NameTail]),
            (Members, ".") => self.took(&[Word, Members]),
            (Members, "(") => self.took(&[Items(")"), Members]),
            (Members, "[") => self.took(&[Expr, Token("]"), Members]),
            (ReservedTail | NameTail | Members, _) => Turn::Instead,
            _ => Turn::Wrong,
        }
    }

    fn list_turn(&mut self, goal: Goal, token: &str) -> Turn {
        use Goal::*;
        match (goal, token) {
            (Items(close) | ItemsRest(close), _) if token == close => Turn::Took,
            (Items(close), _) => self.instead(&[Expr, ItemsRest(close)]),
            (ItemsRest(close), ",") => self.took(&[Items(close)]),
            (Fields | FieldsRest | RefFields | RefFieldsRest, "}") => Turn::Took,
            (Fields, "if") => self.took(&[FieldIf, FieldsRest]),
            (Fields, _) => self.instead(&[Expr, Token(":"), Expr, FieldsRest]),
            (FieldsRest, ",") => self.took(&[Fields]),
            (FieldIf, ":") => self.took(&[Expr]),
            (FieldIf, _) => self.instead(&[If, Token(":"), Expr]),
            (RefFields, _) if is_word(token) => self.took(&[Token(":"), Literal, RefFieldsRest]),
            (RefFieldsRest, ",") => self.took(&[RefFields]),
            _ => Turn::Wrong,
        }
    }

    fn tail_turn(&mut self, relation: Relation, token: &str) -> Turn {
        use Goal::{HasField, Operand, Tail};
        match (relation, token) {
            (Relation::HasIf, "+" | "-" | "*" | "/" | "%") => Turn::Instead,
            (_, "+" | "-" | "*" | "/" | "%") => self.took(&[Operand, Tail(relation)]),
            (Relation::Head, _) => Turn::Instead,
            (_, "&&" | "||") => self.took(&[Operand, Tail(Relation::None)]),
            (Relation::None, "has") => self.took(&[HasField]),
            (Relation::None, "like") => self.took(&[Operand, Tail(Relation::Closed)]),
            (Relation::None, "is") => self.took(&[Operand, Tail(Relation::Is)]),
            (Relation::None | Relation::Compared, _) if is_relation(token) => {
                self.took(&[Operand, Tail(Relation::Compared)])
            }
            (Relation::Is, "in") => self.took(&[Operand, Tail(Relation::Closed)]),
            _ => Turn::Instead,
        }
    }
}

/// The names that messages use for expected tokens, each with an example token, in Cedar's order.
const EXPECTABLE: [(&str, &str); 46] = [
    ("`!`", "!"),
    ("`!=`", "!="),
    ("`&&`", "&&"),
    ("`(`", "("),
    ("`)`", ")"),
    ("`*`", "*"),
    ("`+`", "+"),
    ("`,`", ","),
    ("`-`", "-"),
    ("`.`", "."),
    ("`:`", ":"),
    ("`::`", "::"),
    ("`;`", ";"),
    ("`<`", "<"),
    ("`<=`", "<="),
    ("`==`", "=="),
    ("`>`", ">"),
    ("`>=`", ">="),
    ("`@`", "@"),
    ("`[`", "["),
    ("`]`", "]"),
    ("`{`", "{"),
    ("`||`", "||"),
    ("`}`", "}"),
    ("`action`", "action"),
    ("`context`", "context"),
    ("`else`", "else"),
    ("`false`", "false"),
    ("`forbid`", "forbid"),
    ("`has`", "has"),
    (IDENTIFIER, "a"),
    ("`if`", "if"),
    ("`in`", "in"),
    ("`is`", "is"),
    ("`like`", "like"),
    ("number", "1"),
    ("`permit`", "permit"),
    ("`principal`", "principal"),
    ("`?principal`", "?principal"),
    ("`resource`", "resource"),
    ("`?resource`", "?resource"),
    ("string literal", "\"\""),
    ("`then`", "then"),
    ("`true`", "true"),
    ("`unless`", "unless"),
    ("`when`", "when"),
];
const IDENTIFIER: &str = "identifier";

impl Goals {
    /// Formats the expected tokens for a message.
    fn expected(&self) -> Option<String> {
        /// Maximum number of goals that a token is offered to. There are never this many optional
        /// goals in a row.
        const REACHED_MAX: usize = 32;
        let from = self.0.len().saturating_sub(REACHED_MAX);
        let near = self.0.get(from..).unwrap_or_default();
        let fits = |token: &str| Self(near.to_vec()).take(token);
        let mut names: Vec<&str> = EXPECTABLE
            .iter()
            .filter(|(_, token)| fits(token))
            .map(|(name, _)| *name)
            .collect();
        // If an identifier fits, keywords fit as identifiers too and are not listed separately.
        if names.contains(&IDENTIFIER) {
            let begins_expression = names.contains(&"`!`");
            names.retain(|name| {
                let token = name.trim_matches('`');
                !is_word(token)
                    || matches!(*name, IDENTIFIER | "number" | "string literal")
                    || is_reserved(token) && begins_expression
            });
        }
        let (last, others) = names.split_last()?;
        Some(match others {
            [] => (*last).to_owned(),
            [one] => format!("{one} or {last}"),
            _ => format!("{}, or {last}", others.join(", ")),
        })
    }
}
