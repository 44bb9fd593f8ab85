//! Reads typed lines and keys, only while one is expected. Anything typed at other times is left for the
//! next reader of the terminal.

use std::io::{ErrorKind, Read};
use std::time::Duration;

/// Interval between two checks for input. A person does not notice the delay.
const NOTICED: Duration = Duration::from_millis(40);
/// Maximum length of a line, in bytes. A terminal delivers at most 4 KiB per line.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// What Ctrl-D types if the terminal does not collect lines.
const END_OF_INPUT: char = '\u{4}';

/// Reads from an input that returns [`ErrorKind::WouldBlock`] when nothing has been typed.
pub(super) struct Keyboard<R> {
    input: R,
    typed: Vec<u8>,
}

impl<R: Read> Keyboard<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            typed: Vec::new(),
        }
    }

    /// Discards the part of a line that was already read.
    pub(super) fn forget(&mut self) {
        self.typed.clear();
    }

    /// Returns the next complete line, or `None` at the end of the input. `may_read` is called
    /// before each attempt, because reading from a terminal in the background would stop this
    /// process.
    pub(super) async fn line(&mut self, may_read: impl Fn() -> bool) -> Option<String> {
        let line = self.read_until(may_read, |typed| {
            typed.iter().position(|b| *b == b'\n').map(|end| end + 1)
        });
        line.await
    }

    /// Returns what was typed at once, usually one key. The terminal must deliver keys without
    /// waiting for Enter. The key for the end of the input counts as the end.
    pub(super) async fn keys(&mut self, may_read: impl Fn() -> bool) -> Option<String> {
        let is_end = |typed: &str| typed.starts_with(END_OF_INPUT);
        let keys = self.read_until(may_read, |typed| Some(typed.len()).filter(|it| *it > 0));
        keys.await.filter(|typed| !is_end(typed))
    }

    /// Reads until `end` returns a number of bytes, and takes these bytes.
    async fn read_until(
        &mut self,
        may_read: impl Fn() -> bool,
        end: impl Fn(&[u8]) -> Option<usize>,
    ) -> Option<String> {
        let mut bytes = [0; 1024];
        loop {
            if let Some(end) = end(&self.typed) {
                let taken = self.typed.drain(..end).collect::<Vec<_>>();
                return Some(String::from_utf8_lossy(&taken).into_owned());
            }
            let read = if may_read() {
                self.input.read(&mut bytes)
            } else {
                Err(ErrorKind::WouldBlock.into())
            };
            match read {
                Ok(0) => return None,
                Ok(length) => self.typed.extend(bytes.get(..length)?),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    tokio::time::sleep(NOTICED).await
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
            if self.typed.len() > LINE_BYTES_MAX {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io;

    use super::*;

    /// Returns these pieces with a pause between them, and then the end.
    struct Pieces(VecDeque<&'static str>, bool);

    impl Read for Pieces {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let piece = self.0.pop_front().unwrap_or_default();
            bytes[..piece.len()].copy_from_slice(piece.as_bytes());
            Ok(piece.len())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lines_are_whole_and_eof_is_not_a_line() {
        let mut keyboard = Keyboard::new(Pieces(["a 2", "0\ny\n", "half"].into(), false));
        assert_eq!(keyboard.line(|| true).await.as_deref(), Some("a 20\n"));
        assert_eq!(keyboard.line(|| true).await.as_deref(), Some("y\n"));
        assert_eq!(keyboard.line(|| true).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_what_was_typed_at_once() {
        let mut keyboard = Keyboard::new(Pieces(["y", "pasted text\n", "\u{4}"].into(), false));
        assert_eq!(keyboard.keys(|| true).await.as_deref(), Some("y"));
        let pasted = keyboard.keys(|| true).await;
        assert_eq!(pasted.as_deref(), Some("pasted text\n"));
        assert_eq!(keyboard.keys(|| true).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn discard_drops_input_typed_ahead() {
        let mut keyboard = Keyboard::new(Pieces(["Ada\n\ns\n", "d\n"].into(), false));
        assert_eq!(keyboard.line(|| true).await.as_deref(), Some("Ada\n"));
        keyboard.forget();
        assert_eq!(keyboard.line(|| true).await.as_deref(), Some("d\n"));
    }
}
