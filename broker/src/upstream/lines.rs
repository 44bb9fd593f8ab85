//! Reads lines of limited length from a stream.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};

const READ_BYTES: usize = 64 * 1024;
/// Number of bytes kept from the beginning and the end of a line that is too long: enough to find
/// an id.
const END_BYTES: usize = 512;
/// A line that is too long is skipped if its length is within this multiple of the maximum.
const SKIP_FACTOR: usize = 4;
/// Maximum size of a buffer that is kept after its line. A larger buffer is shrunk.
const BUFFER_BYTES_KEPT: usize = 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// A line without its line ending.
    Whole(&'a [u8]),
    /// A line that was too long and was skipped; the next line follows.
    TooLong { head: &'a [u8], tail: &'a [u8] },
    /// A line whose end was not found within the limit for skipping.
    Endless { head: &'a [u8] },
}

#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    tail: Vec<u8>,
    line_bytes_max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R, line_bytes_max: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(READ_BYTES, reader),
            line: Vec::new(),
            tail: Vec::new(),
            line_bytes_max,
        }
    }

    /// Returns the next line, or `None` at the end. A last line without a line ending counts.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        self.line.shrink_to(BUFFER_BYTES_KEPT);
        let room = self.line_bytes_max.saturating_add(1) as u64;
        let read = (&mut self.reader)
            .take(room)
            .read_until(b'\n', &mut self.line)
            .await?;
        if read == 0 {
            return Ok(None);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() > self.line_bytes_max {
            return self.skip().await.map(Some);
        }
        Ok(Some(Line::Whole(&self.line)))
    }

    async fn skip(&mut self) -> io::Result<Line<'_>> {
        let mut left = self.line_bytes_max.saturating_mul(SKIP_FACTOR);
        self.tail.clear();
        keep_tail(&mut self.tail, &self.line);
        loop {
            let chunk = self.reader.fill_buf().await?;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let (taken, used) = match end {
                Some(end) => (chunk.get(..end).unwrap_or_default(), end + 1),
                None => (chunk, chunk.len()),
            };
            keep_tail(&mut self.tail, taken);
            let ended = end.is_some() || chunk.is_empty();
            self.reader.consume(used);
            let head = self.line.get(..END_BYTES).unwrap_or(&self.line);
            if ended {
                let tail = &self.tail;
                return Ok(Line::TooLong { head, tail });
            }
            left = left.saturating_sub(used);
            if left == 0 {
                return Ok(Line::Endless { head });
            }
        }
    }
}

fn keep_tail(tail: &mut Vec<u8>, chunk: &[u8]) {
    let last = chunk
        .get(chunk.len().saturating_sub(END_BYTES)..)
        .unwrap_or_default();
    tail.extend_from_slice(last);
    let surplus = tail.len().saturating_sub(END_BYTES);
    tail.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(input: &[u8], line_bytes_max: usize) -> Vec<String> {
        let mut lines = Lines::new(input, line_bytes_max);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            seen.push(match line {
                Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Line::TooLong { head, tail } => {
                    format!("<long {} {}>", head.len(), String::from_utf8_lossy(tail))
                }
                Line::Endless { .. } => {
                    seen.push("<endless>".to_owned());
                    break;
                }
            });
        }
        seen
    }

    #[tokio::test]
    async fn lines_are_split_and_last_needs_no_newline() {
        assert_eq!(read(b"a\n\nb\r\nc", 8).await, ["a", "", "b\r", "c"]);
        assert_eq!(
            read(b"12345678\n123456789\nx\n", 8).await,
            ["12345678", "<long 9 123456789>", "x"]
        );
    }

    #[tokio::test]
    async fn overlong_line_is_skipped_and_its_tail_kept() {
        let input = format!("{}END\nnext\n", "x".repeat(30));
        assert_eq!(read(input.as_bytes(), 20).await.last().unwrap(), "next");
        let long = read(input.as_bytes(), 20).await.remove(0);
        assert!(long.ends_with("END>"), "{long}");
    }

    #[tokio::test]
    async fn endless_line_is_abandoned() {
        let input = vec![b'x'; 10_000_000];
        assert_eq!(read(&input, 1_000).await, ["<endless>"]);
    }
}
