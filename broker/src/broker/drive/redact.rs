//! Removes credentials from everything that servers and guests send. Known credentials are masked
//! before the run machine sees a reply or a step, so nothing derived from them can contain one.
//! Only the arguments of a call enter unmasked, because decisions are made on the exact arguments.
//! Texts that the machine derives from arguments are masked on their way out. The journal has its
//! own masking.

use airlock_core::effect::{GuestStop, Whereabouts};
use airlock_core::outcome::{LostCause, Reply};
use airlock_core::report::ReportedCall;
use sandbox_protocol::{ConsoleLine, ScriptError, Step, StepState};

use crate::run_event::RunEvent;
use crate::secrets::Secrets;

/// Maximum length of a reply that is masked without another thread. It takes less than a
/// millisecond.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Whether a run got data only from servers whose credentials are not masked. Only then are they not
/// masked in the output of its script either, which can contain the data of every server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ReadSources {
    #[default]
    Nothing,
    OnlyUnmasked,
    Others,
}

impl ReadSources {
    /// Adds a source. Must be called before anything is read from the source.
    pub(super) fn add(&mut self, is_unmasked: bool) {
        *self = match (*self, is_unmasked) {
            (Self::Nothing | Self::OnlyUnmasked, true) => Self::OnlyUnmasked,
            _ => Self::Others,
        };
    }

    /// Returns the credentials to mask in what the script prints and returns.
    pub(super) fn secrets_in_output(self, secrets: &Secrets) -> Secrets {
        match self {
            Self::OnlyUnmasked => secrets.known_only(),
            Self::Nothing | Self::Others => secrets.clone(),
        }
    }
}

/// Masks a server's reply, which may repeat credentials that the server was given.
pub(super) fn reply(secrets: &Secrets, reply: &mut Reply) {
    match reply {
        Reply::Result {
            content,
            structured_content,
            ..
        } => {
            secrets.redact_json(content);
            structured_content
                .iter_mut()
                .for_each(|bytes| secrets.redact_json(bytes));
        }
        Reply::Refused { message, .. } | Reply::Failed { message, .. } => {
            secrets.redact_text(message)
        }
        Reply::NotSent { why } | Reply::Lost { why, .. } => secrets.redact_text(why),
        Reply::Changed => {}
    }
}

/// Masks a server's reply. A long one is masked on another thread, so that this one can still
/// cancel the run.
pub(super) async fn reply_in_background(secrets: Secrets, mut reply: Reply) -> Reply {
    if bytes(&reply) <= INLINE_BYTES_MAX {
        self::reply(&secrets, &mut reply);
        return reply;
    }
    let masking = tokio::task::spawn_blocking(move || {
        self::reply(&secrets, &mut reply);
        reply
    });
    masking.await.unwrap_or_else(|_| Reply::Lost {
        why: "credentials in the reply could not be masked".into(),
        cause: LostCause::Unreadable,
    })
}

/// Returns the length of the texts that are masked in a reply.
fn bytes(reply: &Reply) -> usize {
    match reply {
        Reply::Result {
            content,
            structured_content,
            ..
        } => content.len() + structured_content.as_ref().map_or(0, Vec::len),
        Reply::Refused { message, .. } | Reply::Failed { message, .. } => message.len(),
        Reply::NotSent { why } | Reply::Lost { why, .. } => why.len(),
        Reply::Changed => 0,
    }
}

/// Masks a step of the guest. A script may know a credential from any source.
pub(super) fn step(secrets: &Secrets, step: &mut Step) {
    console(secrets, &mut step.console);
    match &mut step.state {
        StepState::Done { value } => secrets.redact_json(value),
        StepState::Failed(error) => script_error(secrets, error),
        StepState::Waiting { .. }
        | StepState::Deadlocked
        | StepState::StackExhausted
        | StepState::OutputFlood
        | StepState::ValueTooLarge => {}
    }
}

/// Masks the last output of a guest that was stopped.
pub(super) fn stop(secrets: &Secrets, stop: &mut GuestStop) {
    match stop {
        GuestStop::Limit { console: lines, .. }
        | GuestStop::Interrupted { console: lines }
        | GuestStop::Busy { console: lines, .. } => {
            console(secrets, lines);
        }
        GuestStop::EngineFault {
            why,
            console: lines,
        } => {
            secrets.redact_text(why);
            console(secrets, lines);
        }
    }
}

/// Masks the position of a stopped script, which quotes the script.
pub(super) fn whereabouts(secrets: &Secrets, at: &mut Whereabouts) {
    secrets.redact_text(&mut at.doing);
    secrets.redact_text(&mut at.stack);
}

/// Masks the reasons of calls, which quote faulty arguments.
pub(super) fn calls(secrets: &Secrets, calls: &mut [ReportedCall]) {
    for call in calls {
        let said = call.reasons.iter_mut().chain(&mut call.warnings);
        said.for_each(|text| secrets.redact_text(text));
    }
}

pub(super) fn event(secrets: &Secrets, event: &mut RunEvent) {
    if let RunEvent::CallDecided { reasons, .. } = event {
        let reasons = reasons.iter_mut();
        reasons.for_each(|reason| secrets.redact_text(reason));
    }
}

fn console(secrets: &Secrets, lines: &mut [ConsoleLine]) {
    let texts = lines.iter_mut().map(|line| &mut line.text);
    texts.for_each(|text| secrets.redact_text(text));
}

fn script_error(secrets: &Secrets, error: &mut ScriptError) {
    for text in [&mut error.name, &mut error.message, &mut error.stack] {
        secrets.redact_text(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    use airlock_core::id::{CallId, ToolId};
    use airlock_core::journal::Verdict;
    use airlock_core::report::{ReportedDecision, ReportedOutcome};
    use sandbox_protocol::ConsoleLevel;

    const TOKEN: &str = "tok-12345";

    fn secrets() -> Secrets {
        Secrets::new([TOKEN])
    }

    fn line() -> ConsoleLine {
        ConsoleLine {
            level: ConsoleLevel::Log,
            text: format!("is {TOKEN}"),
        }
    }

    /// Checks that each text of `said` contained the token before, and that none contains it
    /// afterwards.
    fn check<T: std::fmt::Debug>(mut said: T, redact: fn(&Secrets, &mut T), texts: usize) {
        assert_eq!(format!("{said:?}").matches(TOKEN).count(), texts);
        redact(&secrets(), &mut said);
        let left = format!("{said:?}");
        assert!(!left.contains(TOKEN), "{left}");
        assert_eq!(left.matches("***").count(), texts, "{left}");
    }

    /// A run can be cancelled while a long reply is masked.
    #[tokio::test]
    async fn long_reply_is_masked_on_another_thread() {
        for (bytes, is_long) in [(10, false), (2 << 20, true)] {
            let text = "eyJ-".repeat(bytes / 4);
            let reply = Reply::NotSent {
                why: format!("{text}{TOKEN}"),
            };
            let mut masking = Box::pin(reply_in_background(secrets(), reply));
            let done = masking.as_mut().now_or_never();
            assert_eq!(done.is_none(), is_long, "{bytes}");
            let done = match done {
                Some(done) => done,
                None => masking.await,
            };
            assert!(!format!("{done:?}").contains(TOKEN), "{bytes}");
        }
    }

    #[test]
    fn guest_output_is_redacted() {
        let said = |state| Step {
            console: vec![line()],
            console_dropped_bytes: 0,
            calls: Vec::new(),
            state,
        };
        let text = || format!("a {TOKEN} b");
        let error = ScriptError {
            name: text(),
            message: text(),
            stack: text(),
            ..ScriptError::default()
        };
        check(said(StepState::Failed(error)), step, 4);
        let console = vec![line(), line()];
        check(GuestStop::Interrupted { console }, stop, 2);
        let (doing, stack) = (text(), text());
        let at = Whereabouts {
            line: 1,
            column: 1,
            doing,
            stack,
        };
        check(at, whereabouts, 2);
        let (why, console) = (text(), vec![line()]);
        check(GuestStop::EngineFault { why, console }, stop, 2);
    }

    #[test]
    fn argument_findings_are_redacted() {
        let reasons = vec![format!("`{TOKEN}` is not one of a, b")];
        let decided = RunEvent::CallDecided {
            call: CallId(1),
            tool: ToolId::parse("a.b").unwrap(),
            decision: Verdict::Deny,
            code: None,
            reasons: reasons.clone(),
        };
        check(decided, event, 1);
        let reported = ReportedCall {
            id: 1,
            tool: "a.b".into(),
            decision: ReportedDecision::Deny,
            warnings: reasons.clone(),
            reasons,
            outcome: ReportedOutcome::Denied,
            code: None,
            ms: 0,
            reused_from: None,
        };
        check(vec![reported], |secrets, said| calls(secrets, said), 2);
    }

    #[test]
    fn output_is_masked_unless_all_sources_are_unmasked() {
        let shown = |sources: &[bool]| {
            let mut read = ReadSources::default();
            sources.iter().for_each(|it| read.add(*it));
            let secrets = read.secrets_in_output(&secrets());
            (
                secrets.redact(TOKEN).is_some(),
                secrets.redact("a://u:p@b.example").is_some(),
            )
        };
        assert_eq!(shown(&[]), (true, true));
        assert_eq!(shown(&[true, true]), (true, false));
        assert_eq!(shown(&[true, false]), (true, true));
        assert_eq!(shown(&[false, true]), (true, true));
    }

    #[test]
    fn redacted_value_stays_valid_json() {
        let mut done = Step {
            console: Vec::new(),
            console_dropped_bytes: 0,
            calls: Vec::new(),
            state: StepState::Done {
                value: br#"{"tok-12345":["\ntok-12345"]}"#.to_vec(),
            },
        };
        step(&secrets(), &mut done);
        let value = br#"{"***":["\n***"]}"#.to_vec();
        assert_eq!(done.state, StepState::Done { value });
    }
}
