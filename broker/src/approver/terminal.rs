//! Asks the person at the terminal, through `/dev/tty`. Data from a pipe never counts as an answer.

mod forms;
mod key_mode;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use airlock_core::decide::{Answer, Question};
use airlock_core::statement::StatedOutcome;
use rustix::fs::OFlags;
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp, tcgetwinsize};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::keyboard::Keyboard;
use super::question_text::{self, TypedReply};
use super::{AnswerFuture, Approver, by_user};
use crate::client_bridge::AnswerDeadline;
use key_mode::KeyMode;

const WIDTH_UNKNOWN: usize = 80;

/// Asks one question at a time, from all runs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Terminal {
    screen: Arc<File>,
}

/// Time during which no key counts: after a question that follows another one was shown, and
/// after the key for several calls.
const KEY_SETTLES: Duration = Duration::from_millis(400);

/// Serialises questions, because a process has only one terminal. Holds the time at which the last
/// question ended.
static TURN: Mutex<Option<Instant>> = Mutex::const_new(None);

/// The use of the terminal for one question. When dropped, records that the question has ended:
/// it was answered or withdrawn, or it failed.
struct Turn(MutexGuard<'static, Option<Instant>>);

impl Turn {
    /// Whether a key may still be meant for the question before this one.
    fn follows_closely(&self) -> bool {
        self.0.is_some_and(|last| last.elapsed() < KEY_SETTLES)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0 = Some(Instant::now());
    }
}

/// Waits for the terminal. The time limit of the question is paused meanwhile.
async fn turn(time: &AnswerDeadline) -> Turn {
    let _still = time.stand_still();
    Turn(TURN.lock().await)
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
        let turn = Turn(TURN.lock().await);
        let mut keyboard = Keyboard::new(open(OFlags::NONBLOCK)?);
        let mut open = OpenPrompt {
            terminal: self,
            is_open: true,
        };
        self.show(&question_text::show(question, self.width(), false))?;
        // A key that was meant for the last question is no answer to this one.
        if turn.follows_closely() {
            tokio::time::sleep(KEY_SETTLES).await;
        }
        let answer = loop {
            match self.key(question, &mut keyboard).await? {
                None => return Ok(Answer::Unanswered),
                Some(TypedReply::Answer(answer)) => break answer,
                Some(TypedReply::Stated(outcome)) => break self.stated(outcome),
                Some(TypedReply::ShowAll) => {
                    self.show(&question_text::show(question, self.width(), true))?;
                }
                Some(TypedReply::Explain) => self.show(&question_text::explained(question))?,
                Some(TypedReply::Unclear) => {
                    let keys = question_text::keys(question);
                    self.write(&format!("        nothing was allowed; type {keys}\n"))?;
                }
                Some(TypedReply::Result) => {
                    let Some(line) = self
                        .line(question_text::WHICH_RESULT, &mut keyboard)
                        .await?
                    else {
                        return Ok(Answer::Unanswered);
                    };
                    if let Some(outcome) = question_text::parse_result(&line) {
                        break self.stated(outcome);
                    }
                    self.write("        not JSON; nothing was recorded\n")?;
                }
                Some(TypedReply::Similar) => {
                    let how_many = question_text::how_many(question);
                    let Some(line) = self.line(&how_many, &mut keyboard).await? else {
                        return Ok(Answer::Unanswered);
                    };
                    if let Some(answer) = question_text::parse_number(question, &line) {
                        break answer;
                    }
                    self.write("        invalid number; nothing was allowed\n")?;
                }
            }
        };
        open.is_open = false;
        Ok(answer)
    }

    fn stated(&self, outcome: StatedOutcome) -> Answer {
        let by = by_user(&self.who());
        Answer::Stated { outcome, by }
    }

    /// Asks for a line. `None` is the end of the input.
    async fn line(
        &self,
        prompt: &str,
        keyboard: &mut Keyboard<File>,
    ) -> io::Result<Option<String>> {
        // Enter has a meaning of its own, so it must follow the prompt.
        tokio::time::sleep(KEY_SETTLES).await;
        self.forget_typed(keyboard);
        self.write(prompt)?;
        Ok(keyboard.line(|| self.is_in_foreground()).await)
    }

    /// Shows the answers and reads one key. `None` is the end of the input.
    async fn key(
        &self,
        question: &Question,
        keyboard: &mut Keyboard<File>,
    ) -> io::Result<Option<TypedReply>> {
        let mode = KeyMode::begin(&self.screen, || self.is_in_foreground())?;
        self.forget_typed(keyboard);
        let choices = question_text::choices(question);
        self.show(&format!("{:>7} {choices}\n      > ", "answer"))?;
        let typed = keyboard.keys(|| self.is_in_foreground()).await;
        let Some(typed) = typed else { return Ok(None) };
        let reply = question_text::parse(question, &typed);
        // Enter after a key belongs to the key.
        mode.end_and_forget();
        if !typed.contains(['\r', '\n'])
            && !matches!(reply, TypedReply::Similar | TypedReply::Result)
        {
            self.write("\n")?;
        }
        Ok(Some(reply))
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
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn withdrawn_question_delays_the_keys_of_the_next_one() {
        static QUESTIONS: Mutex<Option<Instant>> = Mutex::const_new(None);
        let withdrawn = async {
            let turn = Turn(QUESTIONS.lock().await);
            assert!(!turn.follows_closely());
            std::future::pending::<()>().await;
        };
        let limit = Duration::from_secs(10);
        assert!(tokio::time::timeout(limit, withdrawn).await.is_err());
        assert!(Turn(QUESTIONS.lock().await).follows_closely());
        sleep(KEY_SETTLES).await;
        assert!(!Turn(QUESTIONS.lock().await).follows_closely());
    }

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
