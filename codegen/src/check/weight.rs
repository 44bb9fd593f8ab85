//! How much stack a parser may need for a script, before one sees it. A parser
//! and everything that walks its tree descend once for each open bracket, and for
//! operators, members, calls and statements that hang on each other. Beyond a
//! bound the script is refused; below it, a script that is not light is checked
//! on a thread with [`STACK_BYTES_MIN`] of stack.
//!
//! Strings, text of templates, comments and regular expressions are stepped
//! over. Where `/` could divide or begin an expression, what ordinary code means
//! is assumed; a wrong guess miscounts some brackets and nothing else.

/// Brackets that may be open at once, as the guest has it too.
const DEPTH_MAX: usize = 200;
/// Whatever hangs on each other, in the units of [`Level`].
const UNITS_MAX: usize = 6_000;
/// An operator before its operand costs a parser this much more than one between two.
const PREFIX_UNITS: usize = 15;

/// A script within these is checked on any thread.
const LIGHT_DEPTH_MAX: usize = 32;
const LIGHT_UNITS_MAX: usize = 250;

/// Enough for every script that is not too deep.
pub const STACK_BYTES_MIN: usize = 128 * 1024 * 1024;

/// What the nesting of a script comes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    depth: usize,
    units: usize,
    /// The byte at which a bound was passed.
    pub(crate) too_deep_at: Option<u32>,
}

impl Weight {
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut scan = Scan {
            bytes: text.as_bytes(),
            at: 0,
            open: Vec::new(),
            here: Level::default(),
            outside: 0,
            after_value: false,
            ended: Ended::No,
            after_else: false,
        };
        let mut weight = Self::default();
        while scan.step() {
            weight.depth = weight.depth.max(scan.open.len());
            weight.units = weight.units.max(scan.outside + scan.here.units());
            if weight.depth > DEPTH_MAX || weight.units > UNITS_MAX {
                weight.too_deep_at = u32::try_from(scan.at.saturating_sub(1)).ok();
                break;
            }
        }
        weight
    }

    /// Whether the two mebibytes that every thread has are enough.
    #[must_use]
    pub fn is_light(self) -> bool {
        self.depth <= LIGHT_DEPTH_MAX && self.units <= LIGHT_UNITS_MAX
    }
}

/// What is open inside one pair of brackets.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Of the expression: operators, members, calls.
    chain: usize,
    /// Statements that are the body of the one before, such as `if (a) for (;;)`.
    heads: usize,
    /// The same behind each other's `else`.
    elses: usize,
    /// Whether it is the `${` of a template, whose text goes on behind its `}`.
    is_template: bool,
}

impl Level {
    fn units(self) -> usize {
        self.chain + self.heads + self.elses
    }
}

/// Whether a statement may have ended just before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    No,
    /// By a `}`: it has, unless an operator follows.
    Brace,
    /// By a `;`: it has, unless an `else` follows.
    Semicolon,
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The levels around this one.
    open: Vec<Level>,
    here: Level,
    /// The units of the levels around this one.
    outside: usize,
    /// Whether what stands before ends a value: then `/` divides.
    after_value: bool,
    ended: Ended,
    after_else: bool,
}

impl Scan<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or_default()
    }

    /// One token or comment on; false at the end.
    fn step(&mut self) -> bool {
        if self.at >= self.bytes.len() {
            return false;
        }
        match (self.byte(0), self.byte(1)) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => self.at += 1,
            (b'/', b'/') => self.skip_to(b"\n"),
            (b'/', b'*') => {
                self.at += 2;
                self.skip_to(b"*/");
            }
            (byte, _) if is_word(byte) => self.word(),
            _ => self.sign(),
        }
        true
    }

    fn sign(&mut self) {
        if self.ended == Ended::Semicolon {
            self.begin_statement();
        }
        (self.ended, self.after_else) = (Ended::No, false);
        match self.byte(0) {
            b'/' if !self.after_value => self.regex(),
            b'\'' | b'"' => self.string(),
            b'`' => {
                self.here.chain += 1;
                self.at += 1;
                self.template();
            }
            b'(' | b'[' | b'{' => {
                self.at += 1;
                self.opens(false);
            }
            b')' | b']' | b'}' => self.closes(),
            _ => self.operator(),
        }
    }

    fn begin_statement(&mut self) {
        (self.here.chain, self.here.heads) = (0, 0);
        if self.ended != Ended::No {
            self.here.elses = 0;
        }
    }

    fn opens(&mut self, is_template: bool) {
        self.here.chain += 1;
        self.outside += self.here.units();
        let inner = Level {
            is_template,
            ..Level::default()
        };
        self.open.push(std::mem::replace(&mut self.here, inner));
        self.after_value = false;
    }

    fn closes(&mut self) {
        let is_brace = self.byte(0) == b'}';
        self.at += 1;
        let was = self.here;
        self.here = self.open.pop().unwrap_or_default();
        self.outside = self.outside.saturating_sub(self.here.units());
        if was.is_template {
            return self.template();
        }
        // A `}` before a `/` is nearly always a block's.
        self.after_value = !is_brace;
        if is_brace {
            self.ended = Ended::Brace;
        }
    }

    fn operator(&mut self) {
        let (byte, next) = (self.byte(0), self.byte(1));
        self.at += 1;
        match byte {
            b';' => self.ended = Ended::Semicolon,
            b',' => self.here.chain = 0,
            b'.' => self.here.chain += 1,
            b'+' | b'-' if next == byte && self.after_value => {
                self.at += 1;
                return;
            }
            b'=' if next == b'>' => {
                self.at += 1;
                self.here.chain += PREFIX_UNITS;
            }
            b'!' | b'~' | b'+' | b'-' if !self.after_value => self.here.chain += PREFIX_UNITS,
            _ => self.here.chain += 1,
        }
        self.after_value = false;
    }

    fn word(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| is_word(**byte)).count();
        self.at += length;
        let word = rest.get(..length).unwrap_or_default();
        let is_infix = matches!(
            word,
            b"in" | b"of" | b"instanceof" | b"as" | b"satisfies" | b"extends" | b"is"
        );
        let goes_on = word == b"else" || (is_infix && self.ended != Ended::Semicolon);
        let is_head = matches!(word, b"if" | b"for" | b"while" | b"with" | b"do" | b"try");
        if !goes_on && (self.ended != Ended::No || (self.after_value && !is_head)) {
            self.begin_statement();
        }
        if word == b"if" && !self.after_else {
            self.here.elses = 0;
        }
        self.after_else = word == b"else";
        (self.ended, self.after_value) = (Ended::No, false);
        match word {
            b"await" | b"typeof" | b"void" | b"delete" | b"new" | b"yield" | b"keyof"
            | b"infer" => self.here.chain += PREFIX_UNITS,
            b"return" | b"throw" | b"default" | b"case" => {}
            b"else" => {
                // The `if` that it belongs to nests no further.
                self.here.heads = self.here.heads.saturating_sub(1);
                self.here.chain = 0;
                self.here.elses += 1;
            }
            _ if is_head => self.here.heads += 1,
            _ if is_infix => self.here.chain += 1,
            _ => self.after_value = true,
        }
    }

    fn string(&mut self) {
        let quote = self.byte(0);
        self.at += 1;
        while self.at < self.bytes.len() {
            let byte = self.byte(0);
            if byte == b'\n' {
                break;
            }
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == quote {
                break;
            }
        }
        self.after_value = true;
    }

    /// The text of a template, to its end or its next `${`.
    fn template(&mut self) {
        self.after_value = true;
        while self.at < self.bytes.len() {
            match (self.byte(0), self.byte(1)) {
                (b'\\', _) => self.at += 2,
                (b'`', _) => {
                    self.at += 1;
                    return;
                }
                (b'$', b'{') => {
                    self.at += 2;
                    return self.opens(true);
                }
                _ => self.at += 1,
            }
        }
    }

    fn regex(&mut self) {
        self.at += 1;
        let mut in_class = false;
        while self.at < self.bytes.len() {
            let byte = self.byte(0);
            match byte {
                b'\n' => break,
                b'\\' => self.at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                _ => {}
            }
            self.at += 1;
            if byte == b'/' && !in_class {
                break;
            }
        }
        self.after_value = true;
    }

    /// Behind the next `end`, or to the end of all.
    fn skip_to(&mut self, end: &[u8]) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let found = rest.windows(end.len()).position(|it| it == end);
        self.at += found.map_or(rest.len(), |at| at + end.len());
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'\\' | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_where_a_parser_meets_them() {
        let deep = "(".repeat(DEPTH_MAX + 1);
        let check = |text: String, expected: bool| {
            let found = Weight::of(&text).too_deep_at.is_some();
            assert_eq!(found, expected, "{text:.60}");
        };
        check(deep.clone(), true);
        check(format!("`a${{{deep}}}`"), true);
        check(format!("a / b; {deep}"), true);
        check("();".repeat(10_000), false);
        check(format!("'{deep}'"), false);
        check(format!("\"\\\"{deep}\\\"\""), false);
        check(format!("`{deep}`"), false);
        check(format!("// {deep}\n1"), false);
        check(format!("/* {deep} */"), false);
        check(format!("x = /[{deep}]\\/{deep}/"), false);
        check("''+''+\"\"".to_owned(), false);
    }

    #[test]
    fn whatever_hangs_on_each_other_counts() {
        let check = |piece: &str, expected: bool| {
            let found = Weight::of(&piece.repeat(7_000)).too_deep_at.is_some();
            assert_eq!(found, expected, "{piece}");
        };
        for deep in [
            "!",
            "a=>",
            "()=>",
            "typeof ",
            "a+",
            "A<",
            "()",
            ".a",
            "[0]",
            "?.a",
            "0?1:",
            "``",
            "while(0)",
            "if(0)n=1;else ",
            "if (a) { b } else ",
            " as A",
            "(a)+",
        ] {
            check(deep, true);
        }
        for flat in [
            "const x = a + b - (c);\n",
            "f({...i, n: i.n + 1}).g(x => x);\n",
            "f(1)\ng(2)\n",
            "if (a) { b() }\n",
            "if (a) b()\n",
            "if (a) { b } else { c }\n",
            "for (const a of b) if (a) c(a);\n",
            "function f() { return 1 }\n",
            "[0, 1.5, -2],\n",
            "x = `a${b}c`;\n",
            "type A = B | C\n",
        ] {
            check(flat, false);
        }
    }

    #[test]
    fn an_ordinary_script_is_light() {
        let script = "const x = items.map((i) => ({ ...i, n: i.n + 1 })).filter(Boolean);\n";
        assert!(Weight::of(&script.repeat(2_000)).is_light());
        assert!(!Weight::of(&"[".repeat(100)).is_light());
    }
}
