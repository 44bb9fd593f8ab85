//! The person at the terminal, through `/dev/tty`: what goes in and out of a
//! pipe is never taken for an answer.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use airlock_core::decide::{Answer, Question};
use rustix::termios::{QueueSelector, tcflush, tcgetwinsize};
use tokio::sync::{Mutex, mpsc};

use super::question_text::{self, CHOICES, Typed};
use super::{Approver, Asking};

const WIDTH_UNKNOWN: usize = 80;

/// One question after the other, whoever asks.
#[derive(Debug)]
pub struct Terminal {
    screen: File,
    lines: Mutex<mpsc::Receiver<Line>>,
    /// How many questions were shown so far.
    shown: Arc<AtomicU64>,
}

/// A typed line, and how many questions had been shown when it was complete.
#[derive(Debug)]
struct Line {
    text: String,
    shown: u64,
}

impl Terminal {
    /// Fails when this process has no terminal.
    pub fn open() -> io::Result<Self> {
        let screen = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        let (sender, lines) = mpsc::channel(1);
        let shown = Arc::new(AtomicU64::new(0));
        let keyboard = Keyboard {
            input: BufReader::new(screen.try_clone()?),
            shown: Arc::clone(&shown),
        };
        std::thread::Builder::new()
            .name("terminal".into())
            .spawn(move || keyboard.forward(&sender))?;
        Ok(Self {
            screen,
            lines: Mutex::new(lines),
            shown,
        })
    }

    async fn converse(&self, question: &Question) -> io::Result<Answer> {
        let mut lines = self.lines.lock().await;
        let mut whole = false;
        // What was typed before the question was shown is no answer to it.
        let _ = tcflush(&self.screen, QueueSelector::IFlush);
        let number = self.shown.fetch_add(1, Ordering::SeqCst) + 1;
        let mut open = Shown {
            terminal: self,
            is_open: true,
        };
        loop {
            let shown = question_text::show(question, self.width(), whole);
            self.write(&format!("{shown}{:>7} {CHOICES}\n      > ", "answer"))?;
            let Some(line) = next(&mut lines, number).await else {
                return Ok(Answer::Unanswered);
            };
            match question_text::parse(&line) {
                Typed::Answer(answer) => {
                    open.is_open = false;
                    return Ok(answer);
                }
                Typed::ShowAll => whole = true,
                Typed::Unclear => {
                    self.write("        that is none of the answers; nothing was allowed\n")?
                }
                Typed::AllWithoutNumber => {
                    self.write("        up to how many calls, this one included? > ")?;
                    let Some(line) = next(&mut lines, number).await else {
                        return Ok(Answer::Unanswered);
                    };
                    if let Some(answer) = question_text::parse_uses(&line) {
                        open.is_open = false;
                        return Ok(answer);
                    }
                    self.write("        that is no number; nothing was allowed\n")?;
                }
            }
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        (&self.screen).write_all(text.as_bytes())
    }

    fn width(&self) -> usize {
        let columns = tcgetwinsize(&self.screen).map_or(0, |size| usize::from(size.ws_col));
        if columns == 0 {
            WIDTH_UNKNOWN
        } else {
            columns.clamp(40, 160)
        }
    }
}

/// A question that is dropped without an answer says so, and frees its line.
struct Shown<'a> {
    terminal: &'a Terminal,
    is_open: bool,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let _ = self.terminal.write("\n        this is no longer asked\n");
        }
    }
}

impl Approver for Terminal {
    fn ask(&self, question: Question) -> Asking<'_> {
        Box::pin(async move { self.converse(&question).await.unwrap_or(Answer::Unanswered) })
    }
}

/// The next line that was typed after this question had been shown.
async fn next(lines: &mut mpsc::Receiver<Line>, question: u64) -> Option<String> {
    loop {
        let line = lines.recv().await?;
        if line.shown >= question {
            return Some(line.text);
        }
    }
}

struct Keyboard<R> {
    input: R,
    shown: Arc<AtomicU64>,
}

impl<R: BufRead> Keyboard<R> {
    /// Reads lines for as long as the process lives; a closed terminal ends it.
    fn forward(self, sender: &mpsc::Sender<Line>) {
        for line in self.input.lines() {
            let Ok(text) = line else { return };
            let shown = self.shown.load(Ordering::SeqCst);
            if sender.blocking_send(Line { text, shown }).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_typed_before_the_question_was_shown_is_no_answer_to_it() {
        let (sender, mut lines) = mpsc::channel(4);
        for (text, shown) in [("y", 0), ("y", 1), ("n", 2)] {
            sender
                .send(Line {
                    text: text.into(),
                    shown,
                })
                .await
                .unwrap();
        }
        drop(sender);
        assert_eq!(next(&mut lines, 2).await.as_deref(), Some("n"));
        assert_eq!(next(&mut lines, 2).await, None);
    }
}
