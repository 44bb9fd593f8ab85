//! Asks the person at the terminal, through `/dev/tty`. Data from a pipe never counts as an answer.

mod forms;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;

use airlock_core::decide::{Answer, Question};
use rustix::fs::OFlags;
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp, tcgetwinsize};
use tokio::sync::{Mutex, MutexGuard};

use super::keyboard::Keyboard;
use super::question_text::{self, TypedReply};
use super::{AnswerFuture, Approver};
use crate::client_bridge::AnswerDeadline;

const WIDTH_UNKNOWN: usize = 80;

/// Asks one question at a time, from all runs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Terminal {
    screen: Arc<File>,
}

/// Serialises questions, because a process has only one terminal.
static TURN: Mutex<()> = Mutex::const_new(());

/// Waits for the terminal. The time limit of the question is paused meanwhile.
async fn turn(time: &AnswerDeadline) -> MutexGuard<'static, ()> {
    let _still = time.stand_still();
    TURN.lock().await
}

impl Terminal {
    /// Opens the terminal. Fails if this process has no terminal, or is in its background.
    pub fn open() -> io::Result<Self> {
        let terminal = Self {
            screen: Arc::new(open(OFlags::empty())?),
        };
        if terminal.is_in_foreground() {
            Ok(terminal)
        } else {
            Err(io::Error::other("airlock is in the background"))
        }
    }

    async fn converse(&self, question: &Question) -> io::Result<Answer> {
        let _turn = TURN.lock().await;
        let mut whole = false;
        let mut keyboard = Keyboard::new(open(OFlags::NONBLOCK)?);
        let mut open = OpenPrompt {
            terminal: self,
            is_open: true,
        };
        loop {
            let shown = question_text::show(question, self.width(), whole);
            let choices = question_text::choices(question);
            self.show(&shown)?;
            self.forget_typed(&mut keyboard);
            self.show(&format!("{:>7} {choices}\n      > ", "answer"))?;
            let Some(line) = keyboard.line(|| self.is_in_foreground()).await else {
                return Ok(Answer::Unanswered);
            };
            match question_text::parse(&line) {
                TypedReply::Answer(answer) => {
                    open.is_open = false;
                    return Ok(answer);
                }
                TypedReply::ShowAll => whole = true,
                TypedReply::Unclear => {
                    self.write("        unknown answer; nothing was allowed\n")?
                }
                TypedReply::AllWithoutNumber => {
                    self.forget_typed(&mut keyboard);
                    self.write("        maximum number of calls, including this one? > ")?;
                    let Some(line) = keyboard.line(|| self.is_in_foreground()).await else {
                        return Ok(Answer::Unanswered);
                    };
                    if let Some(answer) = question_text::parse_uses(&line) {
                        open.is_open = false;
                        return Ok(answer);
                    }
                    self.write("        invalid number; nothing was allowed\n")?;
                }
            }
        }
    }

    /// Discards earlier input, because it cannot be an answer to a question that was not shown yet.
    /// Must be called before the last line is shown, so that input after that line is kept.
    fn forget_typed(&self, keyboard: &mut Keyboard<File>) {
        let _ = tcflush(&*self.screen, QueueSelector::IFlush);
        keyboard.forget();
    }

    /// Shows a text. Wrapped lines are marked, so that no text can imitate airlock's own lines.
    fn show(&self, text: &str) -> io::Result<()> {
        self.write(&question_text::fitted(text, self.width()))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        (&*self.screen).write_all(text.as_bytes())
    }

    fn is_in_foreground(&self) -> bool {
        tcgetpgrp(&*self.screen).is_ok_and(|group| group == getpgrp())
    }

    fn width(&self) -> usize {
        let columns = tcgetwinsize(&*self.screen).map_or(0, |size| usize::from(size.ws_col));
        if columns == 0 {
            WIDTH_UNKNOWN
        } else {
            columns.clamp(40, 160)
        }
    }
}

/// A question on the screen. If it is dropped without an answer, a line informs the person.
struct OpenPrompt<'a> {
    terminal: &'a Terminal,
    is_open: bool,
}

impl Drop for OpenPrompt<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let _ = self
                .terminal
                .write("\n        this question is no longer open\n");
        }
    }
}

impl Approver for Terminal {
    fn ask(&self, question: Question) -> AnswerFuture<'_> {
        Box::pin(async move { self.converse(&question).await.unwrap_or(Answer::Unanswered) })
    }

    fn who(&self) -> String {
        "terminal".into()
    }
}

/// Opens the terminal with these flags. Each use opens the terminal again, because all copies of a
/// descriptor share their flags.
fn open(flags: OFlags) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags((flags | OFlags::NOCTTY).bits().cast_signed());
    options.open("/dev/tty")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn form_deadline_starts_with_its_turn() {
        let before = TURN.lock().await;
        let time = AnswerDeadline::new(Duration::from_secs(10));
        let form = async {
            let _turn = turn(&time).await;
            sleep(Duration::from_secs(60)).await;
        };
        let somebody_else = async {
            sleep(Duration::from_secs(100)).await;
            drop(before);
        };
        let begun = Instant::now();
        let (over, ()) = futures_util::join!(time.limit(form), somebody_else);
        assert!(over.is_err());
        assert_eq!(begun.elapsed().as_secs(), 110);
    }
}
