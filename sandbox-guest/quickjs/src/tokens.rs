//! A script as a row of tokens: enough to tell what form it has and what stands
//! at a place, without a parser. Where a `/` could be either a division or the
//! beginning of a regular expression, what ordinary code means is assumed.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    Number,
    /// A text, template or regular expression, whole.
    Literal,
    Open,
    Close,
    Sign,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) range: Range<usize>,
    /// Of an opening bracket, where in the row its closing one is, and the reverse.
    pub(crate) partner: Option<usize>,
}

/// The tokens of a script, without white space and comments.
pub(crate) fn of(script: &str) -> Vec<Token> {
    let mut row = Row {
        bytes: script.as_bytes(),
        at: 0,
        tokens: Vec::new(),
        open: Vec::new(),
    };
    row.read();
    row.tokens
}

struct Row<'a> {
    bytes: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
    /// Opening brackets, as places in the row.
    open: Vec<usize>,
}

impl Row<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn ended(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn read(&mut self) {
        while !self.ended() {
            let start = self.at;
            let kind = match self.peek(0) {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.at += 1;
                    continue;
                }
                b'/' if self.peek(1) == b'/' => {
                    self.until(|row| row.peek(0) == b'\n');
                    continue;
                }
                b'/' if self.peek(1) == b'*' => {
                    self.at += 2;
                    self.until(|row| row.peek(0) == b'*' && row.peek(1) == b'/');
                    self.at += 2;
                    continue;
                }
                quote @ (b'\'' | b'"') => {
                    self.text(quote);
                    Kind::Literal
                }
                b'`' => {
                    self.template();
                    Kind::Literal
                }
                b'/' if !self.ends_value() => {
                    self.regex();
                    Kind::Literal
                }
                b'0'..=b'9' => {
                    self.while_word();
                    Kind::Number
                }
                byte if is_word(byte) => {
                    self.while_word();
                    Kind::Word
                }
                b'(' | b'[' | b'{' => Kind::Open,
                b')' | b']' | b'}' => Kind::Close,
                _ => Kind::Sign,
            };
            match kind {
                Kind::Open | Kind::Close => self.at += 1,
                Kind::Sign => self.sign(),
                _ => {}
            }
            self.push(kind, start..self.at);
        }
    }

    fn push(&mut self, kind: Kind, range: Range<usize>) {
        let here = self.tokens.len();
        let partner = match kind {
            Kind::Close => self.open.pop(),
            _ => None,
        };
        if kind == Kind::Open {
            self.open.push(here);
        }
        if let Some(open) = partner.and_then(|open| self.tokens.get_mut(open)) {
            open.partner = Some(here);
        }
        self.tokens.push(Token {
            kind,
            range,
            partner,
        });
    }

    /// Whether what came before ends an expression, so that a `/` divides.
    fn ends_value(&self) -> bool {
        let Some(last) = self.tokens.last() else {
            return false;
        };
        let text = self.bytes.get(last.range.clone()).unwrap_or_default();
        match last.kind {
            Kind::Number | Kind::Literal => true,
            Kind::Word => !matches!(
                text,
                b"return"
                    | b"typeof"
                    | b"void"
                    | b"in"
                    | b"of"
                    | b"case"
                    | b"await"
                    | b"throw"
                    | b"delete"
                    | b"new"
                    | b"do"
                    | b"else"
                    | b"instanceof"
                    | b"yield"
                    | b"default"
            ),
            Kind::Close => text != b"}",
            Kind::Open => false,
            Kind::Sign => matches!(text, b"++" | b"--"),
        }
    }

    fn until(&mut self, is_end: impl Fn(&Self) -> bool) {
        while !self.ended() && !is_end(self) {
            self.at += 1;
        }
    }

    fn while_word(&mut self) {
        while is_word(self.peek(0)) && !self.ended() {
            self.at += 1;
        }
    }

    fn text(&mut self, quote: u8) {
        self.at += 1;
        while !self.ended() {
            match self.peek(0) {
                b'\\' => self.at += 2,
                b'\n' => return,
                byte => {
                    self.at += 1;
                    if byte == quote {
                        return;
                    }
                }
            }
        }
        self.at = self.bytes.len();
    }

    /// A template with all that stands in its `${}`, as one token.
    fn template(&mut self) {
        self.at += 1;
        // Whether we are in text, for each template and each `${` that is open.
        let mut inside = vec![b'`'];
        while let Some(&within) = inside.last()
            && !self.ended()
        {
            let byte = self.peek(0);
            self.at += 1;
            match (within, byte) {
                (b'`', b'\\') => self.at += 1,
                (b'`', b'$') if self.peek(0) == b'{' => {
                    self.at += 1;
                    inside.push(b'}');
                }
                (b'`', b'`') | (b'}', b'}') => {
                    inside.pop();
                }
                (b'}', b'{') => inside.push(b'}'),
                (b'}', b'`') => inside.push(b'`'),
                (b'}', quote @ (b'\'' | b'"')) => {
                    self.at -= 1;
                    self.text(quote);
                }
                _ => {}
            }
        }
        self.at = self.at.min(self.bytes.len());
    }

    fn regex(&mut self) {
        self.at += 1;
        let mut class = false;
        while !self.ended() {
            match self.peek(0) {
                b'\n' => return,
                b'\\' => self.at += 1,
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => {
                    self.at += 1;
                    self.while_word();
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.bytes.len();
    }

    fn sign(&mut self) {
        const LONG: [&[u8]; 6] = [b"...", b"=>", b"?.", b"++", b"--", b"??"];
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let long = LONG.iter().find(|sign| rest.starts_with(sign));
        self.at += long.map_or(1, |sign| sign.len());
    }
}

fn is_word(byte: u8) -> bool {
    matches!(byte, b'_' | b'$' | b'#' | b'\\' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | 0x80..)
}
