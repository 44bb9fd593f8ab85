//! Properties that must hold for every run, for any events in any order.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

use proptest::prelude::*;
use sandbox_protocol::Resume;

use super::*;
use crate::journal::{Chain, Redact, read};
use crate::report::ReportedOutcome;

/// One random event.
#[derive(Debug, Clone)]
enum Move {
    Calls {
        tools: Vec<u16>,
        end: u8,
        wake_after_ms: Option<u16>,
    },
    Reply {
        call: u32,
        how: u8,
    },
    Answer {
        answers: Vec<(u32, u8)>,
    },
    Wait {
        ms: u16,
    },
    FailAppend,
    Cancel,
    Trap,
    Limit,
    /// The host's clock goes back.
    Back,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let calls = (
        prop::collection::vec(0_u16..4, 0..5),
        0_u8..12,
        prop::option::of(0_u16..300),
    );
    let one = prop_oneof![
        8 => calls.prop_map(|(tools, end, wake_after_ms)| Move::Calls { tools, end, wake_after_ms }),
        8 => (0_u32..20, 0_u8..5).prop_map(|(call, how)| Move::Reply { call, how }),
        6 => prop::collection::vec((0_u32..20, 0_u8..5), 1..3).prop_map(|answers| Move::Answer { answers }),
        3 => (0_u16..200).prop_map(|ms| Move::Wait { ms }),
        1 => Just(Move::FailAppend),
        1 => Just(Move::Cancel),
        1 => Just(Move::Trap),
        1 => Just(Move::Limit),
        1 => Just(Move::Back),
    ];
    prop::collection::vec(one, 1..40)
}

fn replied(call: u32, reply: Reply) -> Event {
    let call = CallId(call);
    Event::Replied { call, reply }
}

fn answer_of(number: u8) -> Answer {
    match number {
        0 => Answer::Refuse,
        1 => Answer::Unanswered,
        2 => Answer::AllowOnce,
        uses => Answer::up_to(NonZeroU32::new(u32::from(uses) - 2).unwrap()),
    }
}

/// A shell that performs effects in order and notes what it saw.
struct Shell {
    run: Run,
    now_ms: u64,
    next_ticket: u32,
    lines: String,
    chain: Chain,
    /// Whether the next append fails, and with it everything after it in its batch.
    fail_next: bool,
    allowed: HashSet<CallId>,
    sent: HashSet<CallId>,
    in_flight: HashSet<CallId>,
    /// Calls that the transport reports as not sent.
    not_sent: HashSet<CallId>,
    grant_uses: HashMap<crate::id::GrantId, (u32, u32)>,
    asked: HashSet<CallId>,
    finish: Option<Report>,
    /// The guest's steps and its resumes, for a replay.
    pub(super) steps: Vec<GuestStep>,
    pub(super) resumes: Vec<Resume>,
    is_computing: bool,
}

/// One step that the run handled.
#[derive(Debug, Clone)]
pub(super) struct GuestStep {
    pub(super) tickets: Vec<CallTicket>,
    pub(super) wake_at_ms: Option<u64>,
}

const IN_FLIGHT_MAX: u32 = 3;

impl Shell {
    fn start() -> Self {
        let limits = Limits {
            calls_in_flight_max: IN_FLIGHT_MAX,
            calls_max: 30,
            run_wall_ms_max: 2_000,
            ask_wall_ms_max: 500,
            ..Limits::default()
        };
        let (run, effects) = Run::start(
            spec(&["allow fs.read", "ask fs.write", "deny fs.delete"], limits),
            T0,
        );
        let mut shell = Self {
            run,
            now_ms: T0,
            next_ticket: 0,
            lines: String::new(),
            chain: Chain::new(Redact::nothing()),
            fail_next: false,
            allowed: HashSet::new(),
            sent: HashSet::new(),
            in_flight: HashSet::new(),
            not_sent: HashSet::new(),
            grant_uses: HashMap::new(),
            asked: HashSet::new(),
            finish: None,
            steps: Vec::new(),
            resumes: Vec::new(),
            is_computing: true,
        };
        shell.perform(effects);
        shell
    }

    fn make(&mut self, what: Move) -> Vec<Event> {
        match what {
            Move::Calls {
                tools,
                end,
                wake_after_ms,
            } => {
                let calls = tools.into_iter().map(|tool| self.open_call(tool)).collect();
                let state = match end {
                    0 => StepState::Done {
                        value: b"1".to_vec(),
                    },
                    1 => StepState::Deadlocked,
                    _ => StepState::Waiting {
                        wake_at_ms: wake_after_ms.map(|ms| self.now_ms + u64::from(ms)),
                    },
                };
                vec![step(calls, state)]
            }
            Move::Reply { call, how: 0 } => vec![lost(call)],
            Move::Reply { call, how: 1 } => {
                if self.in_flight.contains(&CallId(call)) {
                    self.not_sent.insert(CallId(call));
                }
                let why = "unreachable".into();
                vec![replied(call, Reply::NotSent { why })]
            }
            Move::Reply { call, how: 2 } => {
                let message = "no".into();
                vec![replied(call, Reply::Refused { code: 1, message })]
            }
            Move::Reply { call, .. } => vec![replies(call, "1"), replies(call + 1, "2")],
            Move::Answer { answers: several } => {
                let one = |(call, answer)| answers(call, answer_of(answer));
                several.into_iter().map(one).collect()
            }
            Move::Wait { ms } => {
                self.now_ms += u64::from(ms);
                vec![Event::Woke]
            }
            Move::FailAppend => {
                self.fail_next = true;
                Vec::new()
            }
            Move::Cancel => vec![Event::Cancelled {
                why: "test".into(),
                may_wait: true,
            }],
            Move::Back => {
                self.now_ms -= 10;
                vec![Event::Woke]
            }
            Move::Limit => vec![Event::GuestStopped {
                stop: crate::effect::GuestStop::Limit {
                    limit: crate::limits::Limit::Cpu,
                    console: Vec::new(),
                },
                usage: GuestUsage::default(),
                whereabouts: None,
            }],
            Move::Trap => vec![Event::GuestStopped {
                stop: crate::effect::GuestStop::EngineFault {
                    why: "trap".into(),
                    console: Vec::new(),
                },
                usage: GuestUsage::default(),
                whereabouts: None,
            }],
        }
    }

    /// Returns a call of a tool; every seventh call has bad arguments.
    fn open_call(&mut self, tool: u16) -> OpenCall {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let args = if ticket % 7 == 6 {
            r#"{"bad":1}"#
        } else {
            "{}"
        };
        open_call(ticket, if tool == 3 { 1 } else { tool }, args)
    }

    fn hear(&mut self, events: Vec<Event>) {
        for event in &events {
            if let Event::Replied { call, .. } = event {
                self.in_flight.remove(call);
            }
            if let Event::Stepped { step, .. } = event
                && std::mem::take(&mut self.is_computing)
            {
                let wake_at_ms = match step.state {
                    StepState::Waiting { wake_at_ms } => wake_at_ms,
                    _ => None,
                };
                self.steps.push(GuestStep {
                    tickets: step.calls.iter().map(|call| call.ticket).collect(),
                    wake_at_ms,
                });
            }
        }
        let effects = self.run.handle_all(self.now_ms, events);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            assert!(self.finish.is_none(), "{effect:?} after the end");
            match effect {
                Effect::Append { .. } if self.fail_next => {
                    self.fail_next = false;
                    return self.hear(vec![append_fails()]);
                }
                Effect::Append { entry, .. } => {
                    self.note(&entry.body);
                    self.lines += &self.chain.seal(&entry).unwrap();
                }
                Effect::Call(call) => {
                    assert!(self.allowed.contains(&call.id()), "left without an entry");
                    assert!(self.sent.insert(call.id()), "left twice");
                    self.in_flight.insert(call.id());
                    assert!(self.in_flight.len() <= IN_FLIGHT_MAX as usize);
                }
                Effect::CancelCall(call) => {
                    assert!(self.in_flight.remove(&call), "cancelled and not in flight");
                }
                Effect::Ask(question) => {
                    assert!(self.asked.insert(question.call), "asked twice");
                }
                Effect::Resume(resume) => {
                    self.resumes.push(resume);
                    self.is_computing = true;
                }
                Effect::Finish(report) => self.finish = Some(*report),
                _ => {}
            }
        }
    }

    fn note(&mut self, body: &Body) {
        let Body::Decided(decided) = body else { return };
        if decided.decision == Verdict::Allow {
            self.allowed.insert(decided.call);
        }
        if let Some(used) = &decided.grant {
            let (uses, uses_max) = self
                .grant_uses
                .entry(used.id.clone())
                .or_insert((0, used.uses_max));
            *uses += 1;
            assert!(*uses <= *uses_max, "a grant was used too often");
        }
    }

    fn end(&mut self) {
        self.hear(vec![Event::Cancelled {
            why: "the test is over".into(),
            may_wait: true,
        }]);
        if self.finish.is_none() {
            // The host's clock may be behind the latest time that the run has seen.
            self.now_ms += 60_000;
            self.hear(vec![Event::Woke]);
        }
    }

    /// Checks what must hold for the report of every run, however it ended.
    fn check_report(&self) {
        let report = self.finish.as_ref().expect("every run ends");
        assert!(self.run.is_finished());
        let ids: Vec<_> = report.calls.iter().map(|call| call.id).collect();
        assert_eq!(
            ids,
            (1..=u32::try_from(ids.len()).unwrap()).collect::<Vec<_>>()
        );
        for call in &report.calls {
            let left = self.sent.contains(&CallId(call.id));
            let may_have_happened = matches!(
                call.outcome,
                ReportedOutcome::Returned | ReportedOutcome::Failed | ReportedOutcome::Unknown
            );
            let says_not = self.not_sent.contains(&CallId(call.id));
            assert_eq!(left && !says_not, may_have_happened, "{call:?}");
        }
        self.check_journal(report);
        super::replay::check(self.lines.as_bytes(), &self.steps, &self.resumes);
    }

    fn check_journal(&self, report: &Report) {
        let verified = read(self.lines.as_bytes()).expect("the chain holds");
        if report.code == Some(crate::code::Code::JournalUnwritable) {
            return;
        }
        assert!(verified.in_doubt.is_empty());
        let ended = verified.ended().expect("the end is recorded");
        assert_eq!((ended.status, ended.code), (report.status, report.code));
        let recorded: HashSet<_> = verified
            .lines
            .iter()
            .filter_map(|line| match &line.body {
                Body::Decided(decided) => Some(decided.call.0),
                _ => None,
            })
            .collect();
        assert_eq!(
            recorded.len(),
            report.calls.len(),
            "each attempt is in the journal"
        );
    }
}

proptest! {
    #[test]
    fn invariants_hold_for_any_event_order(moves in moves()) {
        let mut shell = Shell::start();
        for what in moves {
            if shell.finish.is_some() {
                break;
            }
            let events = shell.make(what);
            shell.hear(events);
        }
        if shell.finish.is_none() {
            shell.end();
        }
        shell.check_report();
    }
}
