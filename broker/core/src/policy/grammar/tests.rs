//! Checks that the recogniser and Cedar accept the same texts and report the same errors, and that
//! messages stay short.

use cedar_policy::{ParseErrors, Policy, PolicyId, PolicySet};
use miette::Diagnostic as _;
use proptest::prelude::*;

use super::*;

/// Returns Cedar's syntax errors in our wording, with their positions. Other errors are dropped.
fn misfits(errors: &ParseErrors) -> Vec<(usize, String)> {
    const BEGINNINGS: [&str; 5] = [
        "unexpected token",
        "unexpected end of input",
        "extra token",
        "invalid token",
        "integer parse error",
    ];
    let all = errors.iter().map(|error| {
        let label = error.labels().and_then(|mut labels| labels.next());
        let at = label.as_ref().map_or(0, |label| label.offset());
        let expected = label.and_then(|label| label.label().map(str::to_owned));
        let why = error.to_string();
        let why = expected.map_or(why.clone(), |expected| format!("{why} ({expected})"));
        (at, why)
    });
    all.filter(|(_, why)| BEGINNINGS.iter().any(|it| why.starts_with(it)))
        .collect()
}

fn check(text: &str) {
    let one = Policy::parse(None, text).map(drop);
    compare(text, policy(text), one);
    let all = text.parse::<PolicySet>();
    if let (Ok(ours), Ok(theirs)) = (policies(text), &all) {
        check_places(text, &ours, theirs);
    }
    compare(text, policies(text).map(drop), all.map(drop));
}

/// Checks that each range contains the policy that Cedar finds at that place.
fn check_places(text: &str, places: &[Range<usize>], set: &PolicySet) {
    let count = set.policies().count() + set.templates().count();
    assert_eq!(places.len(), count, "{text}");
    for (at, place) in places.iter().enumerate() {
        let id = PolicyId::new(format!("policy{at}"));
        if let Some(theirs) = set.policy(&id) {
            let ours = Policy::parse(None, &text[place.clone()]).unwrap();
            assert_eq!(ours.to_json().unwrap(), theirs.to_json().unwrap(), "{text}");
        }
    }
}

fn compare(text: &str, ours: Result<(), Wrong>, theirs: Result<(), ParseErrors>) {
    let misfits = theirs.err().map_or(Vec::new(), |errors| misfits(&errors));
    match ours {
        Ok(()) => assert_eq!(misfits, [], "{text}"),
        Err(wrong) => {
            let said = misfits.iter().find(|(at, _)| *at == wrong.at);
            // After a `;` or an invalid token, Cedar starts again and may report only the later
            // error. It reports that a number is too large only if the rest of the text fits the
            // grammar.
            let (at, why) = misfits.first().cloned().unwrap_or_default();
            let between = text.get(wrong.at..at).unwrap_or_default();
            let is_passed_over =
                between.contains(';') || wrong.why.starts_with("integer") || why == "invalid token";
            match said {
                Some((_, why)) => alike(why, &wrong.why, text),
                None => assert!(
                    is_passed_over && !misfits.is_empty(),
                    "{text}\n{wrong:?}\n{misfits:?}"
                ),
            }
        }
    }
}

/// Compares the expected tokens. The recogniser lists every token that could follow; Cedar omits
/// some, depending on where it notices the error.
fn alike(theirs: &str, ours: &str, text: &str) {
    let apart = |why: &str| {
        let (what, expected) = why.split_once(" (expected ").unwrap_or((why, ""));
        let expected = expected.trim_end_matches(')').replace(", or ", ", ");
        let expected = expected.replace(" or ", ", ");
        let all: Vec<String> = expected.split(", ").map(str::to_owned).collect();
        (what.to_owned(), all)
    };
    let ((their_what, theirs), (our_what, ours)) = (apart(theirs), apart(ours));
    assert_eq!(their_what, our_what, "{text}");
    let are_named = theirs.iter().all(|it| ours.contains(it));
    assert!(are_named, "{text}\n{theirs:?}\n{ours:?}");
}

/// Generates a text that fits the grammar. The numbers in `picks` choose between the alternatives.
struct Writer<'a> {
    picks: std::iter::Copied<std::slice::Iter<'a, u8>>,
    words: Vec<&'static str>,
}

const NAMES: [&str; 14] = [
    "a",
    "b_1",
    "principal",
    "action",
    "resource",
    "context",
    "permit",
    "forbid",
    "when",
    "unless",
    "in",
    "has",
    "then",
    "is",
];
const WORDS: [&str; 5] = ["if", "true", "false", "else", "like"];
const TEXTS: [&str; 5] = ["\"\"", "\"a\"", "\"\\\"é\"", "\"// ;\n\"", "\"\\u{41}\""];
const STRAYS: [&str; 46] = [
    "if",
    "true",
    "false",
    "then",
    "else",
    "in",
    "has",
    "like",
    "is",
    "a",
    "permit",
    "when",
    "1",
    "18446744073709551616",
    "\"a\"",
    "?principal",
    "?other",
    "@",
    ".",
    ",",
    ";",
    ":",
    "::",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "==",
    "=",
    "!=",
    "<",
    "<=",
    ">=",
    ">",
    "||",
    "&&",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "#",
    "\"open",
];

impl Writer<'_> {
    fn pick(&mut self, count: u8) -> u8 {
        // After the last pick, the first choice is taken, which is the shortest.
        self.picks.next().unwrap_or(0) % count
    }

    fn one(&mut self, words: &[&'static str]) {
        let at = self.pick(words.len() as u8);
        self.words.push(words[usize::from(at)]);
    }

    fn put(&mut self, words: &[&'static str]) {
        self.words.extend(words);
    }

    fn word(&mut self) {
        match self.pick(4) {
            0 => self.one(&WORDS),
            _ => self.one(&NAMES),
        }
    }

    fn policy(&mut self) {
        for _ in 0..self.pick(3) {
            self.put(&["@"]);
            self.word();
            if self.pick(3) > 0 {
                self.put(&["("]);
                self.one(&TEXTS);
                self.put(&[")"]);
            }
        }
        self.word();
        self.put(&["("]);
        for _ in 0..self.pick(4) {
            self.variable();
            self.put(&[","]);
        }
        self.put(&[")"]);
        for _ in 0..self.pick(3) {
            self.word();
            self.put(&["{"]);
            if self.pick(8) > 0 {
                self.expr(3);
            }
            self.put(&["}"]);
        }
        self.put(&[";"]);
    }

    fn variable(&mut self) {
        self.word();
        if self.pick(4) == 1 {
            self.put(&[":"]);
            self.name();
        }
        if self.pick(4) == 1 {
            self.put(&["is"]);
            self.sum(1);
        }
        if self.pick(3) == 1 {
            self.relation();
            self.expr(1);
        }
    }

    fn relation(&mut self) {
        self.one(&["==", "in", "<", "<=", ">=", ">", "!=", "="]);
    }

    fn name(&mut self) {
        match self.pick(3) {
            0 => self.one(&NAMES),
            _ => {
                self.word();
                self.put(&["::"]);
                self.word();
            }
        }
    }

    fn expr(&mut self, depth: u8) {
        if depth > 0 && self.pick(6) == 1 {
            self.put(&["if"]);
            self.expr(depth - 1);
            self.put(&["then"]);
            self.expr(depth - 1);
            self.put(&["else"]);
            return self.expr(depth - 1);
        }
        self.compared(depth);
        for _ in 0..self.pick(3) {
            self.one(&["&&", "||"]);
            self.compared(depth);
        }
    }

    fn compared(&mut self, depth: u8) {
        self.sum(depth);
        match self.pick(8) {
            0..=2 => {
                self.relation();
                self.sum(depth);
            }
            3 => {
                self.put(&["has"]);
                match self.pick(3) {
                    0 => self.put(&["if", ".", "a"]),
                    _ => self.sum(depth),
                }
            }
            4 => {
                self.put(&["like"]);
                self.sum(depth);
            }
            5 => {
                self.put(&["is"]);
                self.sum(depth);
                if self.pick(2) == 1 {
                    self.put(&["in"]);
                    self.sum(depth);
                }
            }
            _ => {}
        }
    }

    fn sum(&mut self, depth: u8) {
        self.unary(depth);
        for _ in 0..self.pick(8).saturating_sub(5) {
            self.one(&["+", "-", "*", "/", "%"]);
            self.unary(depth);
        }
    }

    fn unary(&mut self, depth: u8) {
        let sign = if self.pick(2) == 0 { "!" } else { "-" };
        for _ in 0..self.pick(12).saturating_sub(6) {
            self.put(&[sign]);
        }
        self.primary(depth);
        for _ in 0..self.pick(6).saturating_sub(3) {
            match self.pick(3) {
                0 => {
                    self.put(&["."]);
                    self.word();
                }
                1 => {
                    self.put(&["("]);
                    self.items(depth);
                    self.put(&[")"]);
                }
                _ => {
                    self.put(&["["]);
                    self.expr(depth.saturating_sub(1));
                    self.put(&["]"]);
                }
            }
        }
    }

    fn items(&mut self, depth: u8) {
        for _ in 0..self.pick(3) {
            self.expr(depth.saturating_sub(1));
            self.put(&[","]);
        }
    }

    fn primary(&mut self, depth: u8) {
        match self.pick(if depth == 0 { 7 } else { 10 }) {
            0 => self.put(&["1"]),
            1 => self.one(&TEXTS),
            2 => self.one(&["true", "false"]),
            3 => self.one(&["?principal", "?resource", "?other"]),
            4 => self.name(),
            5 => {
                self.name();
                self.put(&["::"]);
                self.one(&TEXTS);
            }
            6 => {
                self.name();
                self.put(&["::", "{"]);
                for _ in 0..self.pick(3) {
                    self.word();
                    self.put(&[":"]);
                    self.one(&["1", "true", "\"a\""]);
                    self.put(&[","]);
                }
                self.put(&["}"]);
            }
            7 => {
                self.put(&["("]);
                self.expr(depth - 1);
                self.put(&[")"]);
            }
            8 => {
                self.put(&["["]);
                self.items(depth);
                self.put(&["]"]);
            }
            _ => {
                self.put(&["{"]);
                for _ in 0..self.pick(3) {
                    match self.pick(3) {
                        0 => self.put(&["if"]),
                        _ => self.expr(depth - 1),
                    }
                    self.put(&[":"]);
                    self.expr(depth - 1);
                    self.put(&[","]);
                }
                self.put(&["}"]);
            }
        }
    }
}

/// Returns a text that fits the grammar except for `changes`: position, kind of change, and token.
fn written(picks: &[u8], changes: &[(u16, u8, u8)], gap: &str) -> String {
    let mut writer = Writer {
        picks: picks.iter().copied(),
        words: Vec::new(),
    };
    writer.policy();
    let mut words = writer.words;
    for (at, what, token) in changes {
        let at = usize::from(*at) % (words.len() + 1);
        let stray = STRAYS[usize::from(*token) % STRAYS.len()];
        match what % 3 {
            0 => words.insert(at, stray),
            1 if at < words.len() => words[at] = stray,
            _ if at < words.len() => drop(words.remove(at)),
            _ => words.push(stray),
        }
    }
    words.join(gap)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn the_recogniser_accepts_what_the_grammar_of_cedar_does(
        picks in prop::collection::vec(any::<u8>(), 0..120),
        changes in prop::collection::vec(any::<(u16, u8, u8)>(), 0..3),
        gap in prop::sample::select(vec![" ", "\n", " // c ;\r", "\u{3000}"]),
    ) {
        check(&written(&picks, &changes, gap));
    }

    #[test]
    fn a_text_of_any_tokens_fits_as_it_does_for_cedar(
        tokens in prop::collection::vec(prop::sample::select(STRAYS.to_vec()), 0..12),
        start in prop::sample::select(vec![
            "", "permit(principal", "permit(principal, action, resource)",
            "permit(principal,action,resource) when {", "permit(a,b,c) when { a is", "@a",
            "permit(a) unless { {", "permit(a is", "permit(a) when { a::", "permit(a) when { a has",
        ]),
    ) {
        check(&format!("{start} {}", tokens.join(" ")));
    }
}

#[test]
fn what_stands_at_the_borders_of_the_grammar_is_read_as_cedar_reads_it() {
    for text in [
        "",
        ";",
        "permit(principal, action, resource);;",
        "permit(principal, action, resource); permit",
        "permit(principal, action, resource) when { a b } unless { c",
        "permit(principal, action, resource",
        "permit(principal action, resource);",
        "permit(principal, action, resource) when { context.a === 1 };",
        "permit(principal, action, resource) when { context.a and context.b };",
        "permit(principal, action, resource) when { \"\\\n\" };",
        "permit(principal, action, resource) when { 'a' };",
        "permit(principal, action, resource) when { 18446744073709551615 };",
        "permit(principal, action, resource) when { 18446744073709551616 };",
        "permit(principal, action, resource) when { 1a };",
        "permit(principal, action, resource) when { {if: 1, if::a: 2, if a then b else c: 3} };",
        "permit(principal, action, resource) when { if::a && true::b && if::a::\"c\" };",
        "permit(principal, action, resource) when { if::\"c\" };",
        "permit(principal, action, resource) when { a has if.b.c && a has if::b };",
        "permit(principal, action, resource) when { a has if + 1 };",
        "permit(principal, action, resource) when { a < b < c };",
        "permit(principal, action, resource) when { a is b in c in d };",
        "permit(principal, action, resource) when { a && if b then c else d };",
        "permit(principal, action, resource) when { !-a };",
        "permit(principal, action, resource) when { !!!!!!a || ------a };",
        "permit(principal is A::B in C::\"d\", action, resource);",
        "permit(principal: if, action, resource);",
        "permit(principal: if::a == b, action, resource);",
        "permit(principal, action, resource) // end",
        "permit(principal, action, resource)\u{a0}; // end",
        "@a @b(\"c\") permit(principal, action, resource);",
        "@a(\"c\"",
        "\u{feff}permit(principal, action, resource);",
    ] {
        check(text);
    }
}

#[test]
fn a_token_of_any_length_makes_no_long_message() {
    let text = format!("permit(\"{}\"", "é".repeat(100_000));
    let why = policy(&text).unwrap_err().why;
    assert!(why.len() < 1_000 && why.contains("expected"), "{why}");
}
