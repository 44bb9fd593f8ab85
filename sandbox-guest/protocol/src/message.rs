//! The messages, as plain data.

/// The message that starts a guest. Time and randomness are arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The script's own text.
    pub script: String,
    /// The script's name in error positions, such as `triage.js`.
    pub script_name: String,
    pub stubs: Vec<ServerStubs>,
    /// JSON text of the global `input`; empty means `undefined`.
    pub input: Vec<u8>,
    /// Seed of all randomness that the script can observe.
    pub seed: u64,
    /// Milliseconds since the Unix epoch.
    pub now_ms: u64,
    pub limits: GuestLimits,
}

/// The limits that the guest itself enforces. The host checks them too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestLimits {
    /// Maximum number of console bytes that are kept for the whole run; further bytes are dropped
    /// and counted.
    pub console_bytes_max: u32,
    /// Maximum number of console bytes, kept or dropped. Beyond this limit the guest stops with
    /// [`StepState::OutputFlood`].
    pub console_flood_bytes_max: u64,
    pub args_bytes_max: u32,
    pub value_bytes_max: u32,
    pub json_depth_max: u32,
    pub recursion_max: u32,
}

/// The tools of one server, under the names that the script uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStubs {
    /// The global for this server's tools; an identifier.
    pub name: String,
    pub tools: Vec<ToolStub>,
}

/// One callable member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolStub {
    /// The member of the server's object, `server.member(...)`; unique within the server.
    pub member: String,
    /// The flat name, `server_tool(...)`; empty if the name is taken.
    pub flat: String,
    /// The tool's own global, `member(...)`; empty if there is none.
    pub short: String,
    /// The order of the arguments, for a script that passes values instead of one object; empty if
    /// the tool accepts only one object. The names are identifiers.
    pub order: Vec<String>,
    /// Whether no list of the script's tools shows the tool, because a rule denies every call. A
    /// script that knows the name can make the call, and learns of the denial.
    pub hidden: bool,
}

/// The guest's number of a call: 0, 1, 2 … in the order of the calls in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallTicket(pub u32);

/// A call that the script made and whose outcome it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    pub ticket: CallTicket,
    /// Index into [`Start::stubs`].
    pub server: u16,
    /// Index into that server's tools.
    pub tool: u16,
    /// JSON text of the arguments, serialised exactly once.
    pub args: Vec<u8>,
    /// Where the script made the call: line and column, from 1; 0 if unknown.
    pub line: u32,
    pub column: u32,
}

/// The message of a guest that stops, to wait or because the script has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub console: Vec<ConsoleLine>,
    /// Number of console bytes dropped so far in this run.
    pub console_dropped_bytes: u64,
    /// Calls made since the last step, in order.
    pub calls: Vec<OpenCall>,
    pub state: StepState,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StepState {
    /// The script cannot continue until an outcome arrives or a timer is due.
    Waiting { wake_at_ms: Option<u64> },
    /// The script returned this JSON text; empty means `undefined`.
    Done { value: Vec<u8> },
    /// The script ended with an uncaught error.
    Failed(ScriptError),
    /// The script awaits something that nothing can settle: there is no open call and no timer.
    Deadlocked,
    /// The script exceeded an engine limit whose error it cannot catch, such as recursion.
    StackExhausted,
    /// The script printed more than `console_flood_bytes_max`.
    OutputFlood,
    /// The script returned a value larger than `value_bytes_max`, or nested deeper than
    /// `json_depth_max`.
    ValueTooLarge,
}

/// The message that continues a guest: outcomes of open calls, and the current time.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    pub now_ms: u64,
    /// The outcomes, in the order in which their promises are settled.
    pub outcomes: Vec<CallOutcome>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CallOutcome {
    pub ticket: CallTicket,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// JSON text of the value with which the promise resolves; empty means `undefined`.
    Value(Vec<u8>),
    /// The fields of the `ToolError` with which the promise rejects.
    Failure(Failure),
}

/// The fields of a `ToolError`.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub code: String,
    /// The tool as `server.tool`.
    pub tool: String,
    pub message: String,
    pub retryable: bool,
    /// JSON text of the content array; empty if there is none.
    pub content: Vec<u8>,
    /// JSON text of the structured content; empty if there is none.
    pub structured_content: Vec<u8>,
}

/// An uncaught error as plain data. The guest limits the length of each text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScriptError {
    pub name: String,
    pub message: String,
    /// The `code` of a `ToolError`; empty otherwise.
    pub code: String,
    /// Line in the script's own text, from 1; 0 if unknown.
    pub line: u32,
    pub column: u32,
    pub stack: String,
    /// The failed call, if the error is a `ToolError` of this run.
    pub ticket: Option<CallTicket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleLevel {
    Debug,
    Log,
    Info,
    Warn,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleLine {
    pub level: ConsoleLevel,
    pub text: String,
}
