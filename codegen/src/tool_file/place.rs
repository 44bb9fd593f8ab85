//! Finds the line of a value in a JSON text, for messages about the value. The text was parsed
//! before; this module does not validate it.

use crate::validate::member_path;

/// Returns the line, counted from 1, of the value at `path`. If the value is missing, returns the
/// line of the closest enclosing value.
pub(super) fn line_of(text: &str, root: &str, path: &str) -> usize {
    let mut scan = Scan {
        bytes: text.as_bytes(),
        at: 0,
        line: 1,
        wanted: path,
        best: (0, 1),
    };
    scan.value(root, 0);
    scan.best.1
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
    wanted: &'a str,
    /// Length and line of the best matching path so far.
    best: (usize, usize),
}

impl Scan<'_> {
    fn value(&mut self, path: &str, depth: usize) {
        self.blank();
        self.note(path);
        if depth > crate::schema::DEPTH_MAX {
            self.at = self.bytes.len();
            return;
        }
        match self.peek() {
            Some(b'{') => self.members(path, depth),
            Some(b'[') => self.items(path, depth),
            Some(b'"') => drop(self.string()),
            _ => self.word(),
        }
    }

    fn members(&mut self, path: &str, depth: usize) {
        self.at += 1;
        loop {
            self.blank();
            if self.peek() != Some(b'"') {
                break self.at += 1;
            }
            let line = self.line;
            let key = self.string();
            let member = member_path(path, &key);
            self.note_at(&member, line);
            self.blank();
            self.at += 1;
            self.value(&member, depth + 1);
            self.blank();
            if self.peek() != Some(b',') {
                break self.at += 1;
            }
            self.at += 1;
        }
    }

    fn items(&mut self, path: &str, depth: usize) {
        self.at += 1;
        self.blank();
        if self.peek() == Some(b']') {
            self.at += 1;
            return;
        }
        for index in 0_usize.. {
            self.value(&format!("{path}[{index}]"), depth + 1);
            self.blank();
            let more = self.peek() == Some(b',');
            self.at += 1;
            if !more {
                break;
            }
        }
    }

    fn note(&mut self, path: &str) {
        self.note_at(path, self.line);
    }

    fn note_at(&mut self, path: &str, line: usize) {
        if path.len() > self.best.0 && is_at_or_around(path, self.wanted) {
            self.best = (path.len(), line);
        }
    }

    fn string(&mut self) -> String {
        let from = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.at += 2,
                b'"' => break,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        let quoted = self.bytes.get(from..self.at).unwrap_or_default();
        serde_json::from_slice(quoted).unwrap_or_default()
    }

    fn word(&mut self) {
        while self
            .peek()
            .is_some_and(|byte| !matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t'))
        {
            self.at += 1;
        }
    }

    fn blank(&mut self) {
        while let Some(byte @ (b' ' | b'\n' | b'\r' | b'\t')) = self.peek() {
            self.line += usize::from(byte == b'\n');
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

fn is_at_or_around(path: &str, wanted: &str) -> bool {
    wanted
        .strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\n \"name\": \"x\",\n \"examples\": [\n  {\"input\": {}},\n  {\n   \"inptu\": {\"a b\": [1,\n 2]}\n  }\n ]\n}\n";

    #[test]
    fn finding_is_on_line_of_key_or_parent() {
        let check = |path: &str, line| assert_eq!(line_of(TEXT, "file", path), line, "{path}");
        check("file", 1);
        check("file.name", 2);
        check("file.examples[0].input", 4);
        check("file.examples[1].inptu", 6);
        check("file.examples[1].inptu[\"a b\"][1]", 7);
        check("file.examples[1].missing", 5);
        check("file.nothing", 1);
    }

    #[test]
    fn invalid_json_still_has_a_line() {
        for text in ["", "{", "[[[", "{\"a\"", "\"", "{\"a\": [1, {\"b\":"] {
            assert!(line_of(text, "file", "file.a.b") >= 1);
        }
    }
}
