//! The messages between the host and the checker guest, in the encoding of the sandbox protocol.
//!
//! The guest is started with one [`Request`] and answers with one [`Reply`]. After a request to
//! instrument a script, it can be asked about the output of that script ([`Question`]). Decoding
//! never panics, and allocates in proportion to the size of the input.

mod shapes;
mod tools;

use sandbox_protocol::codec::CodecError;
use sandbox_protocol::codec::wire::{Reader, Writer};

use crate::finding::{CheckResult, Finding, FindingCode, Form, Severity};
use crate::uses::{DescribeUse, Uses};

pub use shapes::{decode_shape, encode_shape};
pub use tools::{Flat, ServerNames, ToolNames, decode_tools, encode_tools};

type Decoded<T> = Result<T, CodecError>;

mod kind {
    pub(super) const CHECK: u8 = 16;
    pub(super) const USES: u8 = 17;
    pub(super) const INSTRUMENT: u8 = 18;
    pub(super) const FOLLOW: u8 = 19;
    pub(super) const NESTING: u8 = 20;

    pub(super) const WHY_FAILED: u8 = 24;
    pub(super) const WHAT_WAITS: u8 = 25;
    pub(super) const WHERE_STOPPED: u8 = 26;

    pub(super) const CHECKED: u8 = 32;
    pub(super) const SHAPES_WANTED: u8 = 33;
    pub(super) const USED: u8 = 34;
    pub(super) const INSTRUMENTED: u8 = 35;
    pub(super) const FAILURE: u8 = 36;
    pub(super) const WAIT: u8 = 37;
    pub(super) const STOP: u8 = 38;
    pub(super) const DEPTH: u8 = 39;
}

/// The message that starts a checker guest.
#[derive(Debug, Clone)]
pub enum Request<'a> {
    /// Check a script before it runs.
    Check(CheckRequest<'a>),
    /// Ask which globals and members a script uses.
    Uses { script: &'a str },
    /// Instrument a script so that it reports its errors.
    Instrument {
        script: &'a str,
        look: InstrumentPass,
        secret: Secret,
    },
    /// Instrument a script so that it reports its location: at each step from step `from` on, or
    /// without `from` at fewer and fewer steps.
    Follow {
        script: &'a str,
        from: Option<u64>,
        secret: Secret,
    },
    /// Find where a script is nested too deeply for any engine, without parsing it.
    Nesting { script: &'a str },
}

/// A script and the information about tools that its check needs.
#[derive(Debug, Clone, Default)]
pub struct CheckRequest<'a> {
    pub script: &'a str,
    /// Whether the script's name marks it as TypeScript.
    pub is_typescript: bool,
    /// The names of all tools, from [`encode_tools`].
    pub tools: &'a [u8],
    /// A [`ToolMention`] for each tool as a byte, in the order of `tools`. Empty if findings may
    /// describe all tools.
    pub mentions: &'a [u8],
    /// Shapes from [`encode_shape`], each with its tool's position in `tools`.
    pub shapes: Vec<(u32, &'a [u8])>,
    /// Globals of the language that the engine lacks.
    pub lacking: Vec<&'a str>,
    pub absent: Vec<AbsentServer<'a>>,
}

/// What findings may contain about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ToolMention {
    /// Its name, but not its arguments and its result.
    Name = 0,
    Everything = 1,
    /// Nothing that the script itself does not contain. Every call of the tool is denied.
    Nothing = 2,
}

impl ToolMention {
    /// Returns the mention of a byte in [`CheckRequest::mentions`], or of a tool without a byte.
    #[must_use]
    pub fn of_byte(byte: Option<u8>) -> Self {
        match byte {
            Some(0) => Self::Name,
            None | Some(1) => Self::Everything,
            Some(_) => Self::Nothing,
        }
    }
}

/// A server that is configured but whose tools are not available now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbsentServer<'a> {
    /// The global that stands for the server when it is available.
    pub global: &'a str,
    /// Why it is not available, as the rest of a sentence whose subject is the server.
    pub why: &'a str,
    /// What the user can do about it.
    pub next: &'a str,
}

/// The operations that an instrumented script reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstrumentPass {
    /// Member reads, calls, destructuring and iteration. Nearly all errors come from these.
    Calls,
    /// Also operators, assignments, awaits and classes; this makes the script several times slower.
    Operators,
    /// Every `await`, for a script that waits for something that never happens.
    Awaits,
}

/// The number at the start of each line that the instrumentation prints. The script prints on the
/// same console but does not know the number, so it cannot forge such a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub u64);

/// A question about the output of an instrumented script.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    pub about: About<'a>,
    pub console: Vec<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About<'a> {
    /// Where the error that ended the script was thrown; `name` is the error's name.
    Error { name: &'a str },
    /// What the script was waiting for when no event was left to continue it.
    Waits,
    /// Where the script was when it reached a limit.
    Stop { is_recursion: bool },
}

/// The message that a checker guest answers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Checked(CheckResult),
    /// The check needs the shapes of these tools, given by their positions in the request.
    ShapesWanted(Vec<u32>),
    Uses(Uses),
    /// `None` if the script cannot be instrumented, or only with too much work.
    Instrumented(Option<String>),
    Failure(Option<Failure>),
    Wait(Option<Wait>),
    Stop(Option<Stop>),
    /// Line and column of the bracket that exceeds the depth limit.
    Nesting(Option<(u32, u32)>),
}

/// Where and why a script failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub line: u32,
    pub column: u32,
    /// `None` if the engine's own message is clear enough.
    pub message: Option<String>,
    /// The earlier error, if the script threw an error that names or repeats it.
    pub because: Option<String>,
    /// Innermost frame first. Contains only functions that the script itself called.
    pub stack: Vec<Frame>,
    /// Whether the error came from an unknown place inside a call; the location is then that of the
    /// call.
    pub is_around: bool,
    /// Whether a more detailed pass would give the same result.
    pub is_sure: bool,
}

/// Where a script waits for something that never happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub line: u32,
    pub column: u32,
    pub message: String,
    pub stack: Vec<Frame>,
}

/// Where a limit stopped a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    pub line: u32,
    pub column: u32,
    /// What the script does there; empty if the location alone explains the stop.
    pub message: String,
    pub stack: Vec<Frame>,
    /// Present if no function calls itself. The location is then only the last reported one;
    /// following the script again from this step on finds the exact one.
    pub exact_from: Option<u64>,
}

/// A function of the script, and a location inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub function: String,
    pub line: u32,
    pub column: u32,
}

impl Request<'_> {
    pub fn encode(&self) -> Decoded<Vec<u8>> {
        match self {
            Self::Check(check) => encode_check(check),
            Self::Uses { script } => encode_script(kind::USES, script),
            Self::Nesting { script } => encode_script(kind::NESTING, script),
            Self::Instrument {
                script,
                look,
                secret,
            } => {
                let mut w = Writer::new(kind::INSTRUMENT);
                w.text(script);
                w.u8(match look {
                    InstrumentPass::Calls => 0,
                    InstrumentPass::Operators => 1,
                    InstrumentPass::Awaits => 2,
                });
                w.u64(secret.0);
                w.finish()
            }
            Self::Follow {
                script,
                from,
                secret,
            } => {
                let mut w = Writer::new(kind::FOLLOW);
                w.text(script);
                write_optional(&mut w, from.as_ref(), |w, from| w.u64(*from));
                w.u64(secret.0);
                w.finish()
            }
        }
    }
}

impl<'a> Request<'a> {
    pub fn decode(frame: &'a [u8]) -> Decoded<Self> {
        let (kind, mut r) = Reader::open(frame)?;
        let script = r.borrowed_text("script")?;
        let request = match kind {
            kind::CHECK => Self::Check(read_check(script, &mut r)?),
            kind::USES => Self::Uses { script },
            kind::NESTING => Self::Nesting { script },
            kind::INSTRUMENT => Self::Instrument {
                script,
                look: match r.u8("look")? {
                    0 => InstrumentPass::Calls,
                    1 => InstrumentPass::Operators,
                    2 => InstrumentPass::Awaits,
                    tag => return Err(CodecError::UnknownTag { what: "look", tag }),
                },
                secret: Secret(r.u64("secret")?),
            },
            kind::FOLLOW => Self::Follow {
                script,
                from: read_optional(&mut r, |r| r.u64("step"))?,
                secret: Secret(r.u64("secret")?),
            },
            found => return Err(CodecError::WrongKind { found }),
        };
        r.finish()?;
        Ok(request)
    }
}

fn encode_script(kind: u8, script: &str) -> Decoded<Vec<u8>> {
    let mut w = Writer::new(kind);
    w.text(script);
    w.finish()
}

fn encode_check(check: &CheckRequest<'_>) -> Decoded<Vec<u8>> {
    let mut w = Writer::new(kind::CHECK);
    w.text(check.script);
    w.bool(check.is_typescript);
    w.bytes(check.tools);
    w.bytes(check.mentions);
    w.count(check.shapes.len());
    for (tool, shape) in &check.shapes {
        w.u32(*tool);
        w.bytes(shape);
    }
    w.count(check.lacking.len());
    check.lacking.iter().for_each(|name| w.text(name));
    w.count(check.absent.len());
    for server in &check.absent {
        w.text(server.global);
        w.text(server.why);
        w.text(server.next);
    }
    w.finish()
}

fn read_check<'a>(script: &'a str, r: &mut Reader<'a>) -> Decoded<CheckRequest<'a>> {
    Ok(CheckRequest {
        script,
        is_typescript: r.bool("kind of script")?,
        tools: r.borrowed("tools")?,
        mentions: r.borrowed("mentions of tools")?,
        shapes: r.sequence("shapes", |r| Ok((r.u32("tool")?, r.borrowed("shape")?)))?,
        lacking: r.sequence("missing globals", |r| r.borrowed_text("global"))?,
        absent: r.sequence("absent servers", |r| {
            Ok(AbsentServer {
                global: r.borrowed_text("global")?,
                why: r.borrowed_text("reason")?,
                next: r.borrowed_text("next step")?,
            })
        })?,
    })
}

impl Question<'_> {
    pub fn encode(&self) -> Decoded<Vec<u8>> {
        let mut w = match self.about {
            About::Error { name } => {
                let mut w = Writer::new(kind::WHY_FAILED);
                w.text(name);
                w
            }
            About::Waits => Writer::new(kind::WHAT_WAITS),
            About::Stop { is_recursion } => {
                let mut w = Writer::new(kind::WHERE_STOPPED);
                w.bool(is_recursion);
                w
            }
        };
        w.count(self.console.len());
        self.console.iter().for_each(|line| w.text(line));
        w.finish()
    }
}

impl<'a> Question<'a> {
    pub fn decode(frame: &'a [u8]) -> Decoded<Self> {
        let (kind, mut r) = Reader::open(frame)?;
        let about = match kind {
            kind::WHY_FAILED => About::Error {
                name: r.borrowed_text("error name")?,
            },
            kind::WHAT_WAITS => About::Waits,
            kind::WHERE_STOPPED => About::Stop {
                is_recursion: r.bool("recursion")?,
            },
            found => return Err(CodecError::WrongKind { found }),
        };
        let console = r.sequence("console", |r| r.borrowed_text("console line"))?;
        r.finish()?;
        Ok(Self { about, console })
    }
}

impl Reply {
    pub fn encode(&self) -> Decoded<Vec<u8>> {
        let w = match self {
            Self::Checked(checked) => write_checked(checked),
            Self::ShapesWanted(tools) => {
                let mut w = Writer::new(kind::SHAPES_WANTED);
                w.count(tools.len());
                tools.iter().for_each(|tool| w.u32(*tool));
                w
            }
            Self::Uses(uses) => write_uses(uses),
            Self::Instrumented(text) => {
                let mut w = Writer::new(kind::INSTRUMENTED);
                write_optional(&mut w, text.as_ref(), |w, text| w.text(text));
                w
            }
            Self::Failure(failure) => {
                let mut w = Writer::new(kind::FAILURE);
                write_optional(&mut w, failure.as_ref(), write_failure);
                w
            }
            Self::Wait(wait) => {
                let mut w = Writer::new(kind::WAIT);
                write_optional(&mut w, wait.as_ref(), |w, it| {
                    write_place(w, it.line, it.column, &it.message, &it.stack);
                });
                w
            }
            Self::Stop(stop) => {
                let mut w = Writer::new(kind::STOP);
                write_optional(&mut w, stop.as_ref(), |w, it| {
                    write_place(w, it.line, it.column, &it.message, &it.stack);
                    write_optional(w, it.exact_from.as_ref(), |w, step| w.u64(*step));
                });
                w
            }
            Self::Nesting(place) => {
                let mut w = Writer::new(kind::DEPTH);
                write_optional(&mut w, place.as_ref(), |w, (line, column)| {
                    w.u32(*line);
                    w.u32(*column);
                });
                w
            }
        };
        w.finish()
    }

    pub fn decode(frame: &[u8]) -> Decoded<Self> {
        let (kind, mut reader) = Reader::open(frame)?;
        let r = &mut reader;
        let reply = match kind {
            kind::CHECKED => Self::Checked(read_checked(r)?),
            kind::SHAPES_WANTED => Self::ShapesWanted(r.sequence("tools", |r| r.u32("tool"))?),
            kind::USED => Self::Uses(read_uses(r)?),
            kind::INSTRUMENTED => Self::Instrumented(read_optional(r, |r| r.text("script"))?),
            kind::FAILURE => Self::Failure(read_optional(r, read_failure)?),
            kind::WAIT => Self::Wait(read_optional(r, |r| {
                let (line, column, message, stack) = read_place(r)?;
                Ok(Wait {
                    line,
                    column,
                    message,
                    stack,
                })
            })?),
            kind::STOP => Self::Stop(read_optional(r, |r| {
                let (line, column, message, stack) = read_place(r)?;
                Ok(Stop {
                    line,
                    column,
                    message,
                    stack,
                    exact_from: read_optional(r, |r| r.u64("step"))?,
                })
            })?),
            kind::DEPTH => Self::Nesting(read_optional(r, |r| {
                Ok((r.u32("line")?, r.u32("column")?))
            })?),
            found => return Err(CodecError::WrongKind { found }),
        };
        reader.finish()?;
        Ok(reply)
    }
}

fn write_checked(checked: &CheckResult) -> Writer {
    let mut w = Writer::new(kind::CHECKED);
    w.u8(match checked.form {
        None => 0,
        Some(Form::Body) => 1,
        Some(Form::Function) => 2,
        Some(Form::Expression) => 3,
        Some(Form::Module) => 4,
    });
    write_optional(&mut w, checked.blanked.as_ref(), |w, text| w.text(text));
    w.count(checked.findings.len());
    for finding in &checked.findings {
        w.bool(finding.severity == Severity::Error);
        w.u8(finding.code.number());
        w.u32(finding.line);
        w.u32(finding.column);
        w.text(&finding.message);
        write_optional(&mut w, finding.suggestion.as_ref(), |w, text| w.text(text));
    }
    w.u64(checked.findings_dropped as u64);
    w
}

fn read_checked(r: &mut Reader<'_>) -> Decoded<CheckResult> {
    Ok(CheckResult {
        form: match r.u8("form")? {
            0 => None,
            1 => Some(Form::Body),
            2 => Some(Form::Function),
            3 => Some(Form::Expression),
            4 => Some(Form::Module),
            tag => return Err(CodecError::UnknownTag { what: "form", tag }),
        },
        blanked: read_optional(r, |r| r.text("script without types"))?,
        findings: r.sequence("findings", |r| {
            Ok(Finding {
                severity: match r.bool("severity")? {
                    true => Severity::Error,
                    false => Severity::Warning,
                },
                code: read_code(r)?,
                line: r.u32("line")?,
                column: r.u32("column")?,
                message: r.text("message")?,
                suggestion: read_optional(r, |r| r.text("suggestion"))?,
            })
        })?,
        findings_dropped: usize::try_from(r.u64("dropped findings")?).unwrap_or(usize::MAX),
    })
}

fn read_code(r: &mut Reader<'_>) -> Decoded<FindingCode> {
    let tag = r.u8("finding code")?;
    FindingCode::of_number(tag).ok_or(CodecError::UnknownTag {
        what: "finding code",
        tag,
    })
}

fn write_uses(uses: &Uses) -> Writer {
    let mut w = Writer::new(kind::USED);
    w.count(uses.members.len());
    for (object, member) in &uses.members {
        w.text(object);
        w.text(member);
    }
    w.count(uses.names.len());
    uses.names.iter().for_each(|name| w.text(name));
    w.count(uses.described.names.len());
    let described = uses.described.names.iter();
    described.for_each(|name| w.text(name));
    w.bool(uses.described.others);
    w
}

fn read_uses(r: &mut Reader<'_>) -> Decoded<Uses> {
    let members = r.sequence("members", |r| Ok((r.text("object")?, r.text("member")?)))?;
    let names = r.sequence("names", |r| r.text("name"))?;
    let described = r.sequence("described tools", |r| r.text("tool"))?;
    Ok(Uses {
        members: members.into_iter().collect(),
        names: names.into_iter().collect(),
        described: DescribeUse {
            names: described.into_iter().collect(),
            others: r.bool("other tools")?,
        },
    })
}

fn write_failure(w: &mut Writer, failure: &Failure) {
    w.u32(failure.line);
    w.u32(failure.column);
    write_optional(w, failure.message.as_ref(), |w, text| w.text(text));
    write_optional(w, failure.because.as_ref(), |w, text| w.text(text));
    write_stack(w, &failure.stack);
    w.bool(failure.is_around);
    w.bool(failure.is_sure);
}

fn read_failure(r: &mut Reader<'_>) -> Decoded<Failure> {
    Ok(Failure {
        line: r.u32("line")?,
        column: r.u32("column")?,
        message: read_optional(r, |r| r.text("message"))?,
        because: read_optional(r, |r| r.text("cause"))?,
        stack: read_stack(r)?,
        is_around: r.bool("certainty")?,
        is_sure: r.bool("certainty")?,
    })
}

fn write_place(w: &mut Writer, line: u32, column: u32, message: &str, stack: &[Frame]) {
    w.u32(line);
    w.u32(column);
    w.text(message);
    write_stack(w, stack);
}

fn read_place(r: &mut Reader<'_>) -> Decoded<(u32, u32, String, Vec<Frame>)> {
    let (line, column) = (r.u32("line")?, r.u32("column")?);
    Ok((line, column, r.text("message")?, read_stack(r)?))
}

fn write_stack(w: &mut Writer, stack: &[Frame]) {
    w.count(stack.len());
    for frame in stack {
        w.text(&frame.function);
        w.u32(frame.line);
        w.u32(frame.column);
    }
}

fn read_stack(r: &mut Reader<'_>) -> Decoded<Vec<Frame>> {
    r.sequence("stack", |r| {
        Ok(Frame {
            function: r.text("function")?,
            line: r.u32("line")?,
            column: r.u32("column")?,
        })
    })
}

fn write_optional<T>(w: &mut Writer, value: Option<&T>, write: impl FnOnce(&mut Writer, &T)) {
    w.bool(value.is_some());
    if let Some(value) = value {
        write(w, value);
    }
}

fn read_optional<'a, T>(
    r: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Decoded<T>,
) -> Decoded<Option<T>> {
    if r.bool("presence")? {
        read(r).map(Some)
    } else {
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
