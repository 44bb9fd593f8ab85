//! Lines that somebody types, read only while they are waited for: what is
//! typed while nobody is asked belongs to whoever reads the terminal next.

use std::io::{ErrorKind, Read};
use std::time::Duration;

/// How soon a typed line is noticed. Typing takes longer.
const NOTICED: Duration = Duration::from_millis(40);
/// A terminal gives lines of 4 KiB at most.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Over something that says [`ErrorKind::WouldBlock`] when nothing has been typed.
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

    /// What has been read already is no line any more.
    pub(super) fn forget(&mut self) {
        self.typed.clear();
    }

    /// The next whole line; none when there will be no more. `may_read` is asked before each
    /// attempt: reading from a terminal in the background would stop this process.
    pub(super) async fn line(&mut self, may_read: impl Fn() -> bool) -> Option<String> {
        let mut bytes = [0; 1024];
        loop {
            if let Some(end) = self.typed.iter().position(|b| *b == b'\n') {
                let line = self.typed.drain(..=end).collect::<Vec<_>>();
                return Some(String::from_utf8_lossy(&line).into_owned());
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

    /// Gives these pieces, a pause between them, and then its end.
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
    async fn lines_come_whole_and_the_end_is_no_line() {
        let mut keyboard = Keyboard::new(Pieces(["a 2", "0\ny\n", "half"].into(), false));
        assert_eq!(keyboard.line(|| true).await.as_deref(), Some("a 20\n"));
        assert_eq!(keyboard.line(|| true).await.as_deref(), Some("y\n"));
        assert_eq!(keyboard.line(|| true).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_typed_ahead_can_be_forgotten() {
        let mut keyboard = Keyboard::new(Pieces(["Ada\n\ns\n", "d\n"].into(), false));
        assert_eq!(keyboard.line(|| true).await.as_deref(), Some("Ada\n"));
        keyboard.forget();
        assert_eq!(keyboard.line(|| true).await.as_deref(), Some("d\n"));
    }
}
