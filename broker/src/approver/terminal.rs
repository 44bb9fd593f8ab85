//! The person at the terminal, through `/dev/tty`: what goes in and out of a
//! pipe is never taken for an answer.

mod inquiring;

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
use super::question_text::{self, Typed};
use super::{Approver, Asking};
use crate::carrier::Time;

const WIDTH_UNKNOWN: usize = 80;

/// One question after the other, whoever asks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Terminal {
    screen: Arc<File>,
}

/// A process has one terminal, whoever asks there.
static TURN: Mutex<()> = Mutex::const_new(());

/// Nothing of the time passes before it is somebody's turn.
async fn turn(time: &Time) -> MutexGuard<'static, ()> {
    let _still = time.stand_still();
    TURN.lock().await
}

impl Terminal {
    /// Fails when this process has no terminal, or is in its background.
    pub fn open() -> io::Result<Self> {
        let terminal = Self {
            screen: Arc::new(open(OFlags::empty())?),
        };
        if terminal.is_in_foreground() {
            Ok(terminal)
        } else {
            Err(io::Error::other("another process has the terminal"))
        }
    }

    async fn converse(&self, question: &Question) -> io::Result<Answer> {
        let _turn = TURN.lock().await;
        let mut whole = false;
        let mut keyboard = Keyboard::new(open(OFlags::NONBLOCK)?);
        let mut open = Shown {
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
                Typed::Answer(answer) => {
                    open.is_open = false;
                    return Ok(answer);
                }
                Typed::ShowAll => whole = true,
                Typed::Unclear => {
                    self.write("        that is not one of the answers; nothing was allowed\n")?
                }
                Typed::AllWithoutNumber => {
                    self.forget_typed(&mut keyboard);
                    self.write("        up to how many calls, this one included? > ")?;
                    let Some(line) = keyboard.line(|| self.is_in_foreground()).await else {
                        return Ok(Answer::Unanswered);
                    };
                    if let Some(answer) = question_text::parse_uses(&line) {
                        open.is_open = false;
                        return Ok(answer);
                    }
                    self.write("        that is not a number; nothing was allowed\n")?;
                }
            }
        }
    }

    /// What was typed before something was shown is no answer to it. Called before the last line
    /// of what is shown, so that nothing is lost that is typed after it.
    fn forget_typed(&self, keyboard: &mut Keyboard<File>) {
        let _ = tcflush(&*self.screen, QueueSelector::IFlush);
        keyboard.forget();
    }

    /// Where a line is too long, what goes on is marked: it is nothing of ours.
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

/// A question that is dropped without an answer says so, and frees its line.
struct Shown<'a> {
    terminal: &'a Terminal,
    is_open: bool,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let _ = self
                .terminal
                .write("\n        this question is no longer open\n");
        }
    }
}

impl Approver for Terminal {
    fn ask(&self, question: Question) -> Asking<'_> {
        Box::pin(async move { self.converse(&question).await.unwrap_or(Answer::Unanswered) })
    }

    fn who(&self) -> String {
        "terminal".into()
    }
}

/// Opened anew for each way of using it, since the flags are shared by all copies of a descriptor.
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
    async fn the_time_of_a_form_begins_with_its_turn() {
        let before = TURN.lock().await;
        let time = Time::new(Duration::from_secs(10));
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
