//! Splits a script into tokens: enough to determine its form and to find the token at a position,
//! without a parser. If a `/` could be a division or the start of a regular expression, the usual
//! meaning is assumed.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    Number,
    /// A complete string, template or regular expression.
    Literal,
    Open,
    Close,
    Sign,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) range: Range<usize>,
    /// For an opening bracket, the index of its closing bracket, and the reverse.
    pub(crate) partner: Option<usize>,
}

/// Returns the tokens of a script, without white space and comments.
pub(crate) fn tokenize(script: &str) -> Vec<Token> {
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
    /// Indices of the open brackets.
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
                    TokenKind::Literal
                }
                b'`' => {
                    self.template();
                    TokenKind::Literal
                }
                b'/' if !self.ends_value() => {
                    self.regex();
                    TokenKind::Literal
                }
                b'0'..=b'9' => {
                    self.while_word();
                    TokenKind::Number
                }
                byte if is_word(byte) => {
                    self.while_word();
                    TokenKind::Word
                }
                b'(' | b'[' | b'{' => TokenKind::Open,
                b')' | b']' | b'}' => TokenKind::Close,
                _ => TokenKind::Sign,
            };
            match kind {
                TokenKind::Open | TokenKind::Close => self.at += 1,
                TokenKind::Sign => self.sign(),
                _ => {}
            }
            self.push(kind, start..self.at);
        }
    }

    fn push(&mut self, kind: TokenKind, range: Range<usize>) {
        let here = self.tokens.len();
        let partner = match kind {
            TokenKind::Close => self.open.pop(),
            _ => None,
        };
        if kind == TokenKind::Open {
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

    /// Whether the text before ends an expression, so that a `/` is a division.
    fn ends_value(&self) -> bool {
        let Some(last) = self.tokens.last() else {
            return false;
        };
        let text = self.bytes.get(last.range.clone()).unwrap_or_default();
        match last.kind {
            TokenKind::Number | TokenKind::Literal => true,
            TokenKind::Word => !matches!(
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
            TokenKind::Close => text != b"}",
            TokenKind::Open => false,
            TokenKind::Sign => matches!(text, b"++" | b"--"),
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

    /// Reads a template, with the content of its `${}`, as one token.
    fn template(&mut self) {
        self.at += 1;
        // For each open template and each open `${`, whether the position is in text.
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
