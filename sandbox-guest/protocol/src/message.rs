//! The messages themselves, as plain data.

/// What a guest is started with. Time and chance are arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The script's own text.
    pub script: String,
    /// The name that positions in errors carry, such as `triage.js`.
    pub script_name: String,
    pub stubs: Vec<ServerStubs>,
    /// JSON text of the global `input`; empty means `undefined`.
    pub input: Vec<u8>,
    /// Seed of everything random that the script can see.
    pub seed: u64,
    /// Milliseconds since the Unix epoch.
    pub now_ms: u64,
    pub limits: GuestLimits,
}

/// The bounds that the guest itself keeps; the host checks them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestLimits {
    /// Kept console bytes of the whole run; what comes after is counted and dropped.
    pub console_bytes_max: u32,
    /// Console bytes, kept or dropped, after which the guest stops with [`StepState::OutputFlood`].
    pub console_flood_bytes_max: u64,
    pub args_bytes_max: u32,
    pub value_bytes_max: u32,
    pub json_depth_max: u32,
    pub recursion_max: u32,
}

/// The tools of one server as the script sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStubs {
    /// The global that carries this server's tools; an identifier.
    pub name: String,
    pub tools: Vec<ToolStub>,
}

/// One callable member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolStub {
    /// Member of the server's object, `server.member(...)`; unique there.
    pub member: String,
    /// Name of the flat global form, `server_tool(...)`; empty when it would collide.
    pub flat: String,
    /// A global of its own besides, `member(...)`; empty when there is none.
    pub short: String,
    /// The names of its arguments for a script that gives values instead of one object; none when
    /// it takes no values. They are identifiers.
    pub order: Vec<String>,
}

/// The guest's own number of a call, 0, 1, 2 … in the order of the calls in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallTicket(pub u32);

/// A call that the script made and now waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    pub ticket: CallTicket,
    /// Index into [`Start::stubs`].
    pub server: u16,
    /// Index into that server's tools.
    pub tool: u16,
    /// JSON text of the arguments, serialised exactly once.
    pub args: Vec<u8>,
    /// Where the script made the call: line and column, 1-based, 0 when unknown.
    pub line: u32,
    pub column: u32,
}

/// What the guest says when it stops.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub console: Vec<ConsoleLine>,
    /// Console bytes dropped so far in this run because of the limit.
    pub console_dropped_bytes: u64,
    /// Calls made since the last step, in order.
    pub calls: Vec<OpenCall>,
    pub state: StepState,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StepState {
    /// Nothing more can run until an outcome arrives or a timer is due.
    Waiting { wake_at_ms: Option<u64> },
    /// The script returned. JSON text; empty means `undefined`.
    Done { value: Vec<u8> },
    /// The script ended with an uncaught error.
    Failed(ScriptError),
    /// Something is awaited that nothing can settle: no call in flight, no timer.
    Deadlocked,
    /// An engine limit that the script cannot catch, such as recursion.
    StackExhausted,
    /// More console output than `console_flood_bytes_max`.
    OutputFlood,
    /// The script returned a value of more than `value_bytes_max`.
    ValueTooLarge,
}

/// Goes on: what became of some of the open calls, and what time it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    pub now_ms: u64,
    /// Settled in this order.
    pub outcomes: Vec<CallOutcome>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CallOutcome {
    pub ticket: CallTicket,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// JSON text of what the promise resolves with; empty means `undefined`.
    Value(Vec<u8>),
    /// What the promise rejects with: a `ToolError`.
    Failure(Failure),
}

/// The fields of a `ToolError`.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub code: String,
    /// `server.tool`
    pub tool: String,
    pub message: String,
    pub retryable: bool,
    /// JSON text of the content array; empty when there is none.
    pub content: Vec<u8>,
    /// JSON text; empty when there is none.
    pub structured_content: Vec<u8>,
}

/// An uncaught error, as plain data, each text bounded by the guest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScriptError {
    pub name: String,
    pub message: String,
    /// The `code` of a `ToolError`; empty otherwise.
    pub code: String,
    /// In the script's own text, 1-based; 0 when unknown.
    pub line: u32,
    pub column: u32,
    pub stack: String,
    /// The call whose failure this is, when it is a `ToolError` of this run.
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
