//! Finds the texts and numbers in a script with a scanner that only knows quotes, templates and
//! comments. A wrong literal is still part of the script's own text. So a mistake of the scanner
//! can cause a needless question, but it never makes other text trusted.

/// Maximum number of literals; literals after it are ignored.
const LITERALS_MAX: usize = 20_000;

/// Returns every string, every piece of a template between its `${}`, and every number of three
/// digits or more. Shorter numbers occur too often to be useful.
pub(super) fn of_script(script: &str) -> Vec<String> {
    let mut scanner = Scanner {
        rest: script.chars().peekable(),
        found: Vec::new(),
        templates: Vec::new(),
    };
    scanner.scan();
    scanner.found
}

struct Scanner<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    found: Vec<String>,
    /// The number of open braces within each open `${`.
    templates: Vec<u32>,
}

impl Scanner<'_> {
    fn scan(&mut self) {
        while let Some(c) = self.rest.next() {
            if self.found.len() >= LITERALS_MAX {
                return;
            }
            match c {
                '"' | '\'' => self.text(c),
                '`' => self.text('`'),
                '/' if self.rest.peek() == Some(&'/') => self.skip_line(),
                '/' if self.rest.peek() == Some(&'*') => self.skip_comment(),
                '{' => {
                    if let Some(open) = self.templates.last_mut() {
                        *open += 1;
                    }
                }
                '}' => self.close_brace(),
                c if c.is_ascii_digit() => self.number(c),
                c if is_word(c) => self.skip_word(),
                _ => {}
            }
        }
    }

    fn close_brace(&mut self) {
        match self.templates.last_mut() {
            Some(0) => {
                self.templates.pop();
                self.text('`');
            }
            Some(open) => *open -= 1,
            None => {}
        }
    }

    /// Reads up to the closing quote, or to the `${` of a template.
    fn text(&mut self, quote: char) {
        let mut text = String::new();
        while let Some(c) = self.rest.next() {
            match c {
                c if c == quote => break,
                '\n' if quote != '`' => break,
                '$' if quote == '`' && self.rest.peek() == Some(&'{') => {
                    self.rest.next();
                    self.templates.push(0);
                    break;
                }
                '\\' => match self.rest.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('\n') | None => {}
                    // An escape code becomes a replacement character, because a reader of the
                    // script does not see the name that the code spells.
                    Some('u' | 'x') => text.push('\u{fffd}'),
                    Some(c) => text.push(c),
                },
                c => text.push(c),
            }
        }
        if !text.is_empty() {
            self.found.push(text);
        }
    }

    fn number(&mut self, first: char) {
        let mut text = String::from(first);
        while let Some(c) = self.rest.next_if(|c| is_word(*c) || *c == '.') {
            text.push(c);
        }
        if text.len() >= 3 && text.chars().all(|c| c.is_ascii_digit()) {
            self.found.push(text);
        }
    }

    fn skip_word(&mut self) {
        while self.rest.next_if(|c| is_word(*c)).is_some() {}
    }

    fn skip_line(&mut self) {
        while self.rest.next_if(|c| *c != '\n').is_some() {}
    }

    fn skip_comment(&mut self) {
        self.rest.next();
        let mut previous = ' ';
        for c in self.rest.by_ref() {
            if previous == '*' && c == '/' {
                return;
            }
            previous = c;
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expected: &[&str]) {
        assert_eq!(of_script(script), expected, "{script}");
    }

    #[test]
    fn literals_are_found_in_any_quotes() {
        check(r#"f("a b", 'c\'d', `e`)"#, &["a b", "c'd", "e"]);
        check("`https://x.example/${id}/y`", &["https://x.example/", "/y"]);
        check("`a${ f({b: \"c\"}) }d`", &["a", "c", "d"]);
        check("x = 4711 + 12 + id2345 + 1.5e3", &["4711"]);
        check("", &[]);
    }

    #[test]
    fn comments_contain_no_literals() {
        check("// \"a\"\n/* 'b' */ 'c'", &["c"]);
        check("/* open 'a'", &[]);
    }

    #[test]
    fn unterminated_literal_ends_at_line_end() {
        check("'a\n'b'", &["a", "b"]);
        check("`a${", &["a"]);
    }
}
