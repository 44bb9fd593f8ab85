//! The byte encoding of the messages: the version word, a byte for the kind, then the fields in the
//! order of their declaration. Numbers are little-endian, and data of variable size follow their
//! length.
//!
//! Decoding never panics, and accepts only bytes that encoding produces. It allocates in proportion
//! to the number of bytes, not to the lengths that the bytes claim.

pub mod wire;

pub use wire::CodecError;
use wire::{Reader, Writer};

use crate::message::{
    CallOutcome, CallTicket, ConsoleLevel, ConsoleLine, Failure, GuestLimits, OpenCall, Outcome,
    Resume, ScriptError, ServerStubs, Start, Step, StepState, ToolStub,
};

/// Maximum size of a message in bytes.
pub const FRAME_BYTES_MAX: usize = 256 * 1024 * 1024;

const KIND_START: u8 = 1;
const KIND_RESUME: u8 = 2;
const KIND_STEP: u8 = 3;

type Decoded<T> = Result<T, CodecError>;

pub fn encode_start(start: &Start) -> Decoded<Vec<u8>> {
    let mut w = Writer::new(KIND_START);
    w.text(&start.script);
    w.text(&start.script_name);
    w.count(start.stubs.len());
    for server in &start.stubs {
        w.text(&server.name);
        w.count(server.tools.len());
        for tool in &server.tools {
            w.text(&tool.member);
            w.text(&tool.flat);
            w.text(&tool.short);
            w.count(tool.order.len());
            tool.order.iter().for_each(|name| w.text(name));
            w.bool(tool.hidden);
        }
    }
    w.bytes(&start.input);
    w.u64(start.seed);
    w.u64(start.now_ms);
    let limits = &start.limits;
    w.u32(limits.console_bytes_max);
    w.u64(limits.console_flood_bytes_max);
    w.u32(limits.args_bytes_max);
    w.u32(limits.value_bytes_max);
    w.u32(limits.json_depth_max);
    w.u32(limits.recursion_max);
    w.finish()
}

pub fn decode_start(frame: &[u8]) -> Decoded<Start> {
    let mut r = Reader::new(frame, KIND_START)?;
    let start = Start {
        script: r.text("script")?,
        script_name: r.text("script name")?,
        stubs: r.sequence("stubs", |r| {
            Ok(ServerStubs {
                name: r.text("server name")?,
                tools: r.sequence("tools", |r| {
                    Ok(ToolStub {
                        member: r.text("member")?,
                        flat: r.text("flat name")?,
                        short: r.text("short name")?,
                        order: r.sequence("order", |r| r.text("argument name"))?,
                        hidden: r.bool("hidden")?,
                    })
                })?,
            })
        })?,
        input: r.bytes("input")?,
        seed: r.u64("seed")?,
        now_ms: r.u64("time")?,
        limits: GuestLimits {
            console_bytes_max: r.u32("limits")?,
            console_flood_bytes_max: r.u64("limits")?,
            args_bytes_max: r.u32("limits")?,
            value_bytes_max: r.u32("limits")?,
            json_depth_max: r.u32("limits")?,
            recursion_max: r.u32("limits")?,
        },
    };
    r.finish()?;
    Ok(start)
}

pub fn encode_resume(resume: &Resume) -> Decoded<Vec<u8>> {
    let (mut frame, last) = split_resume(resume)?;
    frame.extend_from_slice(last);
    Ok(frame)
}

/// Encodes a message in two pieces, so that the last value is not copied; it is often the only
/// value and may be large. [`take_resume`] is the counterpart.
pub fn split_resume(resume: &Resume) -> Decoded<(Vec<u8>, &[u8])> {
    let mut w = Writer::new(KIND_RESUME);
    w.u64(resume.now_ms);
    w.count(resume.outcomes.len());
    let mut last: &[u8] = &[];
    for CallOutcome { ticket, outcome } in &resume.outcomes {
        w.uncounted(std::mem::take(&mut last));
        w.u32(ticket.0);
        match outcome {
            Outcome::Value(value) => {
                w.u8(0);
                w.count(value.len());
                last = value;
            }
            Outcome::Failure(failure) => {
                w.u8(1);
                w.text(&failure.code);
                w.text(&failure.tool);
                w.text(&failure.message);
                w.bool(failure.retryable);
                w.bytes(&failure.content);
                w.bytes(&failure.structured_content);
            }
        }
    }
    let frame = w.finish()?;
    if frame.len() + last.len() > FRAME_BYTES_MAX {
        return Err(CodecError::TooLarge);
    }
    Ok((frame, last))
}

pub fn decode_resume(frame: &[u8]) -> Decoded<Resume> {
    let (now_ms, read) = read_resume(frame)?;
    let outcomes = read.into_iter().map(ReadOutcome::copied).collect();
    Ok(Resume { now_ms, outcomes })
}

/// Decodes a frame that is no longer needed. The last outcome, often the only one and possibly
/// large, keeps the memory of the frame.
pub fn take_resume(mut frame: Vec<u8>) -> Decoded<Resume> {
    let (now_ms, mut read) = read_resume(&frame)?;
    let last = read.pop();
    let mut outcomes: Vec<_> = read.into_iter().map(ReadOutcome::copied).collect();
    match last {
        None => {}
        Some(ReadOutcome::Value(ticket, value)) => {
            // Nothing follows the value.
            let start = frame.len().saturating_sub(value.len());
            frame.drain(..start);
            let outcome = Outcome::Value(frame);
            outcomes.push(CallOutcome { ticket, outcome });
        }
        Some(failure) => outcomes.push(failure.copied()),
    }
    Ok(Resume { now_ms, outcomes })
}

/// An outcome whose value is still in the frame.
enum ReadOutcome<'a> {
    Value(CallTicket, &'a [u8]),
    Failure(CallTicket, Failure),
}

impl ReadOutcome<'_> {
    fn copied(self) -> CallOutcome {
        let (ticket, outcome) = match self {
            Self::Value(ticket, value) => (ticket, Outcome::Value(value.to_vec())),
            Self::Failure(ticket, failure) => (ticket, Outcome::Failure(failure)),
        };
        CallOutcome { ticket, outcome }
    }
}

fn read_resume(frame: &[u8]) -> Decoded<(u64, Vec<ReadOutcome<'_>>)> {
    let mut r = Reader::new(frame, KIND_RESUME)?;
    let now_ms = r.u64("time")?;
    let outcomes = r.sequence("outcomes", read_outcome)?;
    r.finish()?;
    Ok((now_ms, outcomes))
}

fn read_outcome<'a>(r: &mut Reader<'a>) -> Decoded<ReadOutcome<'a>> {
    let ticket = CallTicket(r.u32("ticket")?);
    match r.u8("outcome")? {
        0 => Ok(ReadOutcome::Value(ticket, r.borrowed("value")?)),
        1 => {
            let failure = Failure {
                code: r.text("code")?,
                tool: r.text("tool")?,
                message: r.text("message")?,
                retryable: r.bool("retryable")?,
                content: r.bytes("content")?,
                structured_content: r.bytes("structured content")?,
            };
            Ok(ReadOutcome::Failure(ticket, failure))
        }
        tag => Err(CodecError::UnknownTag {
            what: "outcome",
            tag,
        }),
    }
}

pub fn encode_step(step: &Step) -> Decoded<Vec<u8>> {
    let mut w = Writer::new(KIND_STEP);
    w.count(step.console.len());
    for line in &step.console {
        write_line(&mut w, line.level, &line.text);
    }
    w.u64(step.console_dropped_bytes);
    w.count(step.calls.len());
    for call in &step.calls {
        w.u32(call.ticket.0);
        w.u16(call.server);
        w.u16(call.tool);
        w.bytes(&call.args);
        w.u32(call.line);
        w.u32(call.column);
    }
    match &step.state {
        StepState::Waiting { wake_at_ms: None } => w.u8(0),
        StepState::Waiting {
            wake_at_ms: Some(at),
        } => {
            w.u8(1);
            w.u64(*at);
        }
        StepState::Done { value } => {
            w.u8(2);
            w.bytes(value);
        }
        StepState::Failed(error) => {
            w.u8(3);
            write_error(&mut w, error);
        }
        StepState::Deadlocked => w.u8(4),
        StepState::StackExhausted => w.u8(5),
        StepState::OutputFlood => w.u8(6),
        StepState::ValueTooLarge => w.u8(7),
    }
    w.finish()
}

pub fn decode_step(frame: &[u8]) -> Decoded<Step> {
    let mut r = Reader::new(frame, KIND_STEP)?;
    let step = Step {
        console: r.sequence("console", read_line)?,
        console_dropped_bytes: r.u64("dropped bytes")?,
        calls: r.sequence("calls", |r| {
            Ok(OpenCall {
                ticket: CallTicket(r.u32("ticket")?),
                server: r.u16("server")?,
                tool: r.u16("tool")?,
                args: r.bytes("arguments")?,
                line: r.u32("line")?,
                column: r.u32("column")?,
            })
        })?,
        state: match r.u8("state")? {
            0 => StepState::Waiting { wake_at_ms: None },
            1 => StepState::Waiting {
                wake_at_ms: Some(r.u64("wake time")?),
            },
            2 => StepState::Done {
                value: r.bytes("value")?,
            },
            3 => StepState::Failed(read_error(&mut r)?),
            4 => StepState::Deadlocked,
            5 => StepState::StackExhausted,
            6 => StepState::OutputFlood,
            7 => StepState::ValueTooLarge,
            tag => return Err(CodecError::UnknownTag { what: "state", tag }),
        },
    };
    r.finish()?;
    Ok(step)
}

fn write_error(w: &mut Writer, error: &ScriptError) {
    w.text(&error.name);
    w.text(&error.message);
    w.text(&error.code);
    w.u32(error.line);
    w.u32(error.column);
    w.text(&error.stack);
    w.bool(error.ticket.is_some());
    if let Some(CallTicket(ticket)) = error.ticket {
        w.u32(ticket);
    }
}

fn read_error(r: &mut Reader<'_>) -> Decoded<ScriptError> {
    Ok(ScriptError {
        name: r.text("error name")?,
        message: r.text("error message")?,
        code: r.text("error code")?,
        line: r.u32("line")?,
        column: r.u32("column")?,
        stack: r.text("stack")?,
        ticket: if r.bool("ticket")? {
            Some(CallTicket(r.u32("ticket")?))
        } else {
            None
        },
    })
}

/// Appends one console line to `printed`. The guest keeps printed lines in this form at a known
/// address, so that the host finds them after a trap.
pub fn append_line(printed: &mut Vec<u8>, level: ConsoleLevel, text: &str) {
    let mut w = Writer::bare(std::mem::take(printed));
    write_line(&mut w, level, text);
    *printed = w.into_bytes();
}

/// Decodes the output of [`append_line`].
pub fn decode_lines(printed: &[u8]) -> Decoded<Vec<ConsoleLine>> {
    let mut r = Reader::bare(printed);
    let mut lines = Vec::new();
    while !r.is_empty() {
        lines.push(read_line(&mut r)?);
    }
    Ok(lines)
}

fn write_line(w: &mut Writer, level: ConsoleLevel, text: &str) {
    w.u8(match level {
        ConsoleLevel::Debug => 0,
        ConsoleLevel::Log => 1,
        ConsoleLevel::Info => 2,
        ConsoleLevel::Warn => 3,
        ConsoleLevel::Error => 4,
    });
    w.text(text);
}

fn read_line(r: &mut Reader<'_>) -> Decoded<ConsoleLine> {
    let level = match r.u8("console level")? {
        0 => ConsoleLevel::Debug,
        1 => ConsoleLevel::Log,
        2 => ConsoleLevel::Info,
        3 => ConsoleLevel::Warn,
        4 => ConsoleLevel::Error,
        tag => {
            return Err(CodecError::UnknownTag {
                what: "console level",
                tag,
            });
        }
    };
    Ok(ConsoleLine {
        level,
        text: r.text("console text")?,
    })
}
