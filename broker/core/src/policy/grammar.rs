//! Cedar's grammar, recognised in one pass: time and memory grow with the text,
//! and nothing recurses. Cedar's own parser goes on after a mistake, and what it
//! does there grows with the square of the text and more; so it is given only
//! text that passed here. Errors use Cedar's own wording.

#[cfg(test)]
mod tests;

/// Of an unexpected token, in a message.
const SHOWN_CHARS_MAX: usize = 200;

/// The first token that does not belong where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The byte at which it begins.
    pub(super) at: usize,
    pub(super) why: String,
    /// Empty where nothing helps.
    pub(super) help: &'static str,
}

/// Whether a text is one policy.
pub(super) fn policy(text: &str) -> Result<(), Wrong> {
    recognise(text, Goal::Policy)
}

/// Whether a text is any number of policies.
pub(super) fn policies(text: &str) -> Result<(), Wrong> {
    recognise(text, Goal::Policies)
}

fn recognise(text: &str, goal: Goal) -> Result<(), Wrong> {
    let mut goals = Goals(vec![goal]);
    let (mut end, mut last) = (0, 0);
    loop {
        let at = end + blank_bytes(text.get(end..).unwrap_or_default());
        let rest = text.get(at..).unwrap_or_default();
        if rest.is_empty() && goals.may_end() {
            return Ok(());
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
            continue;
        };
        return Err(wrong);
    }
}

/// Adds what could stand at a byte before which everything fits.
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

/// Space and comments.
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

/// Of the token with which a text begins; none when it begins with no token.
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

/// With both quotes; nothing when it is not closed, or a line ends behind a backslash.
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

/// The words that are no names by themselves.
fn is_reserved(token: &str) -> bool {
    matches!(token, "if" | "true" | "false")
}

fn is_text(token: &str) -> bool {
    token.starts_with('"')
}

fn is_relation(token: &str) -> bool {
    matches!(token, "<" | "<=" | ">=" | ">" | "!=" | "==" | "=" | "in")
}

/// What may come next, the nearest last.
#[derive(Clone)]
struct Goals(Vec<Goal>);

/// A part of a policy that is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// This very token.
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
    /// Behind an `if` with which an expression begins: a condition, or a name.
    If,
    /// `!`, `-`, and what they are about.
    Operand,
    Nots,
    Minuses,
    Primary,
    /// `::` and the rest of a name, or nothing.
    NameTail,
    /// Behind a `::`.
    Name,
    /// `true` and `false` are names where `::` follows.
    ReservedTail,
    Members,
    /// A list up to a closing bracket.
    Items(&'static str),
    ItemsRest(&'static str),
    Fields,
    FieldsRest,
    FieldIf,
    RefFields,
    RefFieldsRest,
    HasField,
    HasIf,
    /// The operators that may follow on an operand, or nothing.
    Tail(Relation),
}

/// What an operand has before it, which decides on the operators behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// Nothing that compares.
    None,
    /// `==` and its like, which may follow on each other.
    Compared,
    /// `is`, on which `in` may follow.
    Is,
    /// `has`, `like`, and `in` behind `is`.
    Closed,
    /// `has if`: not even a sum goes on.
    HasIf,
    /// A type in the head of a policy, which is a sum and nothing else.
    Head,
}

/// What a goal makes of a token.
enum Turn {
    /// It took the token.
    Took,
    /// Other goals stand in its place, or none.
    Instead,
    Wrong,
}

impl Goals {
    /// Whether a token may come next. After one that may not, the goals mean nothing.
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

/// What a message calls a token that may come, and such a token, in the order in which Cedar
/// names them.
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
    /// What could stand instead, in words.
    fn expected(&self) -> Option<String> {
        /// Of the goals that a token is offered to: those that may be nothing are fewer.
        const REACHED_MAX: usize = 32;
        let from = self.0.len().saturating_sub(REACHED_MAX);
        let near = self.0.get(from..).unwrap_or_default();
        let fits = |token: &str| Self(near.to_vec()).take(token);
        let mut names: Vec<&str> = EXPECTABLE
            .iter()
            .filter(|(_, token)| fits(token))
            .map(|(name, _)| *name)
            .collect();
        // Where any name fits, the words of the grammar are names too.
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
