//! Measures how deeply a script nests, before the script is parsed. The parser recurses once per
//! level, and very deep nesting overflows the stack. Such a script is refused first, with a syntax
//! error.
//!
//! The scan counts the brackets that the parser would see: it skips strings, text of templates,
//! comments and regular expressions. If a `/` could be a division or a regular expression, the scan
//! assumes the usual meaning. A wrong guess only miscounts brackets, and the limit is far above
//! ordinary code.

/// Maximum number of open brackets. Generated code rarely exceeds 40.
pub const NESTING_MAX: usize = 200;

/// Maximum number of operators in one expression or statement for which the parser or the compiler
/// recurses without a bracket: a long sum, many `else if`.
pub const CHAIN_MAX: usize = 3_000;

/// Maximum number of statements that are the body or the `else` of the statement before, plus
/// labels before labels, all without brackets: `if (a) for (;;) while (b) c()`. Brackets around
/// them count twice.
pub const HEADS_MAX: usize = 440;

/// Weight in that chain of an operator before its operand, such as the `!` of `!!!x` or the arrow
/// of `a=>b=>c`: the parser recurses much deeper for such an operator.
const PREFIX_WEIGHT: usize = 15;

/// The result of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nesting {
    /// Line and column where a limit was exceeded, from 1.
    pub too_deep_at: Option<(u32, u32)>,
    /// Line and column of a closing bracket that was never opened.
    pub unbalanced_at: Option<(u32, u32)>,
}

/// What precedes a `/` or a bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The end of an expression: a `/` is a division.
    Value,
    /// Anything else: a `/` begins a regular expression.
    Operator,
}

/// Nested statements inside one pair of brackets.
#[derive(Clone, Copy, Default)]
struct Level {
    heads: usize,
    elses: usize,
    labels: usize,
    /// Whether the statement has ended, unless an `else` follows.
    is_ended: bool,
    is_last: bool,
    /// Whether these brackets are the `${` of a template.
    is_template: bool,
}

impl Level {
    fn heads(self) -> usize {
        self.heads + self.elses + self.labels
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
    line_start: usize,
    /// The levels of the open brackets, outermost first.
    open: Vec<Level>,
    here: Level,
    /// Number of statement heads in the outer levels.
    heads_outside: usize,
    chain: usize,
    unbalanced_at: Option<(u32, u32)>,
}

pub fn scan(source: &str) -> Nesting {
    let mut scan = Scan {
        bytes: source.as_bytes(),
        at: 0,
        line: 1,
        line_start: 0,
        open: Vec::new(),
        here: Level::default(),
        heads_outside: 0,
        chain: 0,
        unbalanced_at: None,
    };
    let too_deep_at = scan.run();
    Nesting {
        too_deep_at,
        unbalanced_at: scan.unbalanced_at,
    }
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn step(&mut self) {
        if self.peek(0) == b'\n' {
            self.line += 1;
            self.line_start = self.at + 1;
        }
        self.at += 1;
    }

    fn ended(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn place(&self) -> (u32, u32) {
        let column = self.at.saturating_sub(self.line_start) + 1;
        (self.line, u32::try_from(column).unwrap_or(u32::MAX))
    }

    fn run(&mut self) -> Option<(u32, u32)> {
        let mut before = Before::Operator;
        let mut after_colon = false;
        while !self.ended() {
            let byte = self.peek(0);
            let is_between = matches!(
                (byte, self.peek(1)),
                (b' ' | b'\t' | b'\r' | b'\n', _) | (b'/', b'/' | b'*')
            );
            // A label is one name before its colon, and the next label follows directly.
            if !(after_colon || is_between || byte == b':') {
                self.here.labels = 0;
            }
            after_colon = byte == b':' || after_colon && is_between;
            match byte {
                b'\'' | b'"' => {
                    self.string(byte);
                    before = Before::Value;
                }
                b'`' => {
                    self.step();
                    before = self.template_text();
                }
                b'/' if self.peek(1) == b'/' => self.until_line_end(),
                b'/' if self.peek(1) == b'*' => self.block_comment(),
                b'/' if before == Before::Operator => {
                    self.regex();
                    before = Before::Value;
                }
                b'(' | b'[' | b'{' => {
                    self.opens(false);
                    self.step();
                    before = Before::Operator;
                }
                b')' | b']' | b'}' => {
                    self.chain = 0;
                    let is_template = self.here.is_template;
                    self.closes();
                    self.here.is_ended = byte == b'}';
                    self.step();
                    before = match (is_template, byte) {
                        (true, b'}') => self.template_text(),
                        // A statement follows a block, and an operator follows an object. A `}`
                        // before `/` nearly always ends a block.
                        (_, b'}') => Before::Operator,
                        _ => Before::Value,
                    };
                }
                b'\n' if before == Before::Value => {
                    self.step();
                    if self.begins_statement() {
                        self.chain = 0;
                    }
                }
                b' ' | b'\t' | b'\r' | b'\n' => self.step(),
                b'_' | b'$' | b'\\' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => {
                    before = self.word();
                }
                b'+' | b'-' if self.peek(1) == byte && before == Before::Value => {
                    self.step();
                    self.step();
                }
                b';' | b',' => {
                    self.chain = 0;
                    (self.here.heads, self.here.labels) = (0, 0);
                    self.here.is_ended = byte == b';';
                    self.step();
                    before = Before::Operator;
                }
                b'.' => self.step(),
                b':' if before == Before::Value => {
                    self.chain += 1;
                    self.here.labels += 1;
                    self.step();
                    before = Before::Operator;
                }
                b'=' if self.peek(1) == b'>' => {
                    self.chain += PREFIX_WEIGHT;
                    self.step();
                    self.step();
                    before = Before::Operator;
                }
                _ => {
                    let prefix =
                        before == Before::Operator && matches!(byte, b'!' | b'~' | b'+' | b'-');
                    self.chain += if prefix { PREFIX_WEIGHT } else { 1 };
                    self.step();
                    before = Before::Operator;
                }
            }
            let heads = self.heads_outside + self.here.heads();
            let is_too_many = heads > 0 && heads + 2 * self.open.len() > HEADS_MAX;
            if self.open.len() > NESTING_MAX || self.chain > CHAIN_MAX || is_too_many {
                return Some(self.place());
            }
        }
        None
    }

    /// Whether a line after a value cannot continue that value, so that the statement has ended.
    fn begins_statement(&self) -> bool {
        let mut ahead = 0;
        while matches!(self.peek(ahead), b' ' | b'\t') {
            ahead += 1;
        }
        let rest = self.bytes.get(self.at + ahead..).unwrap_or_default();
        let is_word = |byte: &u8| matches!(byte, b'_' | b'$' | b'\\' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | 0x80..);
        let length = rest.iter().position(|byte| !is_word(byte));
        match rest.get(..length.unwrap_or(rest.len())).unwrap_or_default() {
            b"" => matches!(rest, [b'\'' | b'"' | b'{' | b'~', ..]),
            b"in" | b"of" | b"instanceof" | b"else" => false,
            _ => true,
        }
    }

    fn opens(&mut self, is_template: bool) {
        self.heads_outside += self.here.heads();
        let inner = Level {
            is_template,
            ..Level::default()
        };
        self.open.push(std::mem::replace(&mut self.here, inner));
    }

    fn closes(&mut self) {
        match self.open.pop() {
            Some(around) => {
                self.heads_outside -= around.heads();
                self.here = around;
            }
            None if self.unbalanced_at.is_none() => self.unbalanced_at = Some(self.place()),
            None => {}
        }
    }

    /// Updates the nesting of statements for a word, and returns the word's effect.
    fn hangs_on(&mut self, word: &[u8]) {
        let here = &mut self.here;
        let is_else = word == b"else";
        let is_head = matches!(word, b"if" | b"for" | b"while" | b"with" | b"do");
        // A word that is neither a statement head nor `else` is in the last of the nested
        // statements.
        if !is_else && (here.is_ended || here.is_last && is_head) {
            (here.heads, here.elses) = (0, 0);
        }
        (here.is_ended, here.is_last) = (false, !is_else && !is_head);
        if is_else {
            (here.heads, here.elses) = (0, here.elses + 1);
        } else if is_head {
            here.heads += 1;
        }
    }

    fn word(&mut self) -> Before {
        let start = self.at;
        while matches!(
            self.peek(0),
            b'_' | b'$' | b'\\' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | 0x80..
        ) && !self.ended()
        {
            self.at += 1;
        }
        let bytes = self.bytes;
        let word = bytes.get(start..self.at).unwrap_or_default();
        self.hangs_on(word);
        match word {
            b"await" | b"typeof" | b"void" | b"delete" | b"new" | b"yield" | b"do" => {
                self.chain += PREFIX_WEIGHT;
                Before::Operator
            }
            b"else" | b"in" | b"of" | b"instanceof" | b"case" => {
                self.chain += 1;
                Before::Operator
            }
            b"return" | b"throw" | b"default" => {
                self.chain = 0;
                Before::Operator
            }
            _ => Before::Value,
        }
    }

    fn string(&mut self, quote: u8) {
        self.step();
        while !self.ended() {
            match self.peek(0) {
                b'\\' => {
                    self.step();
                    self.step();
                }
                b'\n' => return,
                byte => {
                    self.step();
                    if byte == quote {
                        return;
                    }
                }
            }
        }
    }

    /// Scans the text of a template up to its end or its next `${`.
    fn template_text(&mut self) -> Before {
        while !self.ended() {
            match self.peek(0) {
                b'\\' => {
                    self.step();
                    self.step();
                }
                b'`' => {
                    self.step();
                    return Before::Value;
                }
                b'$' if self.peek(1) == b'{' => {
                    self.step();
                    self.step();
                    self.opens(true);
                    return Before::Operator;
                }
                _ => self.step(),
            }
        }
        Before::Value
    }

    fn until_line_end(&mut self) {
        while !self.ended() && self.peek(0) != b'\n' {
            self.step();
        }
    }

    fn block_comment(&mut self) {
        self.step();
        self.step();
        while !(self.ended() || self.peek(0) == b'*' && self.peek(1) == b'/') {
            self.step();
        }
        self.step();
        self.step();
    }

    fn regex(&mut self) {
        self.step();
        let mut class = false;
        while !self.ended() {
            match self.peek(0) {
                b'\n' => return,
                b'\\' => {
                    self.step();
                    self.step();
                    continue;
                }
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => {
                    self.step();
                    return;
                }
                _ => {}
            }
            self.step();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHAIN_MAX, HEADS_MAX, NESTING_MAX, scan};

    #[track_caller]
    fn fine(source: &str) {
        assert_eq!(scan(source).too_deep_at, None, "{source:.80}");
    }

    #[test]
    fn brackets_are_counted_where_the_parser_meets_them() {
        let deep = "(".repeat(NESTING_MAX + 1);
        assert!(scan(&deep).too_deep_at.is_some());
        fine(&"()".repeat(10_000));
        fine(&format!("'{deep}'"));
        fine(&format!("\"{deep}\""));
        fine(&format!("`{deep}`"));
        fine(&format!("// {deep}\n1"));
        fine(&format!("/* {deep} */"));
        fine(&format!("x = /[{deep}]/"));
        assert!(scan(&format!("`${{{deep}}}`")).too_deep_at.is_some());
    }

    #[test]
    fn division_is_no_regular_expression() {
        fine("const a = b / c; const d = (e) / f / g[0] / 2");
        assert!(
            scan(&format!("a / b; {}", "[".repeat(NESTING_MAX + 1)))
                .too_deep_at
                .is_some()
        );
    }

    #[test]
    fn operators_in_a_row_count_too() {
        assert!(
            scan(&format!("{}1", "!".repeat(5_000)))
                .too_deep_at
                .is_some()
        );
        assert!(scan(&"a=>".repeat(5_000)).too_deep_at.is_some());
        assert!(
            scan(&format!("{}x", "typeof ".repeat(5_000)))
                .too_deep_at
                .is_some()
        );
    }

    #[test]
    fn statements_that_hang_on_each_other_count_too() {
        for one in [
            "if(0)",
            "if(0);else ",
            "if(0){}else ",
            "if(0)x()\nelse ",
            "for(let i=0;i<0;)",
            "while(0)",
            "while /* a */ (f(1,2))",
            "do ",
            "a:",
            "a: /* b */\n",
        ] {
            let script = one.repeat(HEADS_MAX + 1);
            assert!(scan(&script).too_deep_at.is_some(), "{one}");
            fine(&format!("{};", one.repeat(HEADS_MAX / 4)));
        }
        let parts = format!("{}{{", "if(0)".repeat(50)).repeat(HEADS_MAX / 50 + 1);
        assert!(scan(&parts).too_deep_at.is_some());
        assert!(
            scan(&"(function(){if(0)if(0)".repeat(95))
                .too_deep_at
                .is_some()
        );
        fine(&"(function(){if(0)".repeat(80));
    }

    #[test]
    fn statements_one_after_the_other_do_not() {
        for one in [
            "if (a) b()\n",
            "if (a) { b() }\n",
            "if (a) b; else c;\n",
            "if (a) b()\nelse c()\n",
            "for (const a of b) for (const c of a) d(c)\n",
            "case 1: case 2: a(); break\n",
            "case a:\n",
            "a = b ? c : d\n",
            "o = { a: b, c: d, e: { f: g } }\n",
            "do a(); while (b)\n",
            "while (a) !b\n",
            "x: for (;;) break x\n",
        ] {
            fine(&one.repeat(2 * HEADS_MAX));
        }
    }

    #[test]
    fn a_line_that_ends_a_statement_ends_its_chain() {
        for one in [
            "s+='a'\n",
            "s += 'a' // b\n",
            "a = b + c\n\n\t",
            "x = !y\r\n",
            "i++\n",
        ] {
            fine(&one.repeat(2 * CHAIN_MAX));
        }
        for one in [
            "a +\n",
            "a\n+ ",
            "!\n",
            "a\n=>\n",
            "a\n? b\n: ",
            "a\nin ",
            "typeof\n",
        ] {
            let script = one.repeat(2 * CHAIN_MAX);
            assert!(scan(&script).too_deep_at.is_some(), "{one}");
        }
    }

    #[test]
    fn a_closing_bracket_without_its_opening_one_is_seen() {
        assert_eq!(scan("a\n } foo(); {").unbalanced_at, Some((2, 2)));
        assert_eq!(scan("{ '}' } // }").unbalanced_at, None);
    }

    #[test]
    fn ordinary_long_scripts_pass() {
        let script = "const x = items.map((i) => ({ ...i, n: i.n + 1 })).filter(Boolean);\n";
        fine(&script.repeat(2_000));
    }
}
