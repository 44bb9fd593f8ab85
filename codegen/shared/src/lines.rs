//! Converts byte offsets of a script to lines and columns as the engine counts them: columns count
//! characters, and lines end at JavaScript's line terminators.

/// The lines of a text.
#[derive(Debug)]
pub struct Lines<'a> {
    text: &'a str,
    /// Number of bytes at the beginning that are not part of the script.
    shift: u32,
    starts: Vec<usize>,
    /// Number of characters before each block of [`BLOCK_BYTES`] bytes.
    counted: Vec<u32>,
}

/// Block size in bytes. Characters are counted from the last block boundary, not from the start of
/// a line.
const BLOCK_BYTES: usize = 256;

impl<'a> Lines<'a> {
    #[must_use]
    pub fn new(text: &'a str, shift: u32) -> Self {
        let shifted = shift as usize;
        let mut starts = vec![shifted];
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if !ends_line(c) {
                continue;
            }
            let mut end = at + c.len_utf8();
            if c == '\r' && chars.next_if(|(_, next)| *next == '\n').is_some() {
                end += 1;
            }
            starts.push(end);
        }
        let mut counted = vec![0];
        for block in text.as_bytes().chunks(BLOCK_BYTES) {
            let before = counted.last().copied().unwrap_or_default();
            counted.push(before + characters(block));
        }
        Self {
            text,
            shift,
            starts,
            counted,
        }
    }

    /// Returns the line and column, from 1, of a byte of the text.
    #[must_use]
    pub fn place(&self, at: u32) -> (u32, u32) {
        let at = (at.max(self.shift) as usize).min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let column = self.before(at).saturating_sub(self.before(start)) + 1;
        (u32::try_from(line).unwrap_or(u32::MAX), column)
    }

    /// Returns the byte offset of a line and a column, both from 1. The column is counted in bytes.
    #[must_use]
    pub fn offset(&self, line: u32, column: u32) -> u32 {
        let line = (line.max(1) - 1) as usize;
        let start = self.starts.get(line).copied().unwrap_or(self.text.len());
        let at = start.saturating_add(column.max(1) as usize - 1);
        u32::try_from(at.min(self.text.len())).unwrap_or(u32::MAX)
    }

    /// Returns the number of characters that begin before a byte of the text.
    fn before(&self, at: usize) -> u32 {
        let block = at / BLOCK_BYTES;
        let counted = self.counted.get(block).copied().unwrap_or_default();
        counted + characters(self.uncounted(at))
    }

    /// Returns the bytes from the last block boundary to `at`.
    fn uncounted(&self, at: usize) -> &'a [u8] {
        let from = at - at % BLOCK_BYTES;
        self.text.as_bytes().get(from..at).unwrap_or_default()
    }

    /// Returns the text of a line, counted from 1, including its line end.
    #[must_use]
    pub fn line(&self, number: u32) -> Option<&'a str> {
        let at = (number as usize).checked_sub(1)?;
        let start = *self.starts.get(at)?;
        let end = self.starts.get(at + 1).copied();
        self.text.get(start..end.unwrap_or(self.text.len()))
    }
}

/// Whether this character ends a line.
#[must_use]
pub fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Returns the number of characters that begin in these bytes.
fn characters(bytes: &[u8]) -> u32 {
    let first = bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80);
    u32::try_from(first.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_in_long_line_is_counted_incrementally() {
        let text = format!("x\n{}b", "é😀a.b;".repeat(40_000));
        let lines = Lines::new(&text, 0);
        for at in [2, 3, 300, 4_000, 250_000, text.len() - 1] {
            let at = text.floor_char_boundary(at);
            let expected = text.get(2..at).unwrap().chars().count() + 1;
            let place = lines.place(u32::try_from(at).unwrap());
            assert_eq!(place, (2, u32::try_from(expected).unwrap()), "{at}");
            assert!(lines.uncounted(at).len() < BLOCK_BYTES);
        }
    }

    #[test]
    fn columns_are_characters_and_line_ends_follow_ecmascript() {
        let text = "a\r\nbé😀c\rd\u{2028}e";
        let lines = Lines::new(text, 0);
        let check = |needle: &str, expected| {
            let at = u32::try_from(text.find(needle).unwrap()).unwrap();
            assert_eq!(lines.place(at), expected, "{needle}");
        };
        check("a", (1, 1));
        check("b", (2, 1));
        check("c", (2, 4));
        check("d", (3, 1));
        check("e", (4, 1));
        assert_eq!(lines.place(1000), (4, 2));
    }

    #[test]
    fn prefix_before_script_is_not_counted() {
        let lines = Lines::new("(ab\nc)", 1);
        assert_eq!(lines.place(1), (1, 1));
        assert_eq!(lines.place(2), (1, 2));
        assert_eq!(lines.place(4), (2, 1));
    }
}
