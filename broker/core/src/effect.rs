//! Everything the core can request from the shell, and every event it can receive. The whole
//! conversation between the run machine and the shell is in this file.
//!
//! The shell performs effects strictly in order. An [`Effect::Append`] is complete (written, and
//! synced if `sync` is set) before the next effect begins; several in a row may share one write and
//! one sync. If an append fails, the shell drops the rest of the batch and reports
//! [`Event::AppendFailed`] before any other event. The core then sends a dropped `Finish` again,
//! with the failure in its report. In each batch, all appends come before all effects that are
//! visible outside. Stopping, cancelling or withdrawing something that no longer exists is not an
//! error.

use sandbox_protocol::{ConsoleLine, Resume, Start, Step};

use crate::decide::{Answer, AuthorizedCall, Question};
use crate::flow::ResolvedPath;
use crate::grant::{Grant, Use};
use crate::id::{CallId, Digest, GrantId, ToolId};
use crate::inquiry::{Inquiry, InquiryEnd, InquiryId, InquiryLogin};
use crate::journal::Entry;
use crate::limits::Limit;
use crate::outcome::Reply;
use crate::report::Report;

#[derive(Debug)]
pub enum Effect {
    /// Write this entry to disk before anything that follows. With `sync`, the entry must also
    /// survive a crash of the machine.
    Append { entry: Entry, sync: bool },
    /// Start the guest; answered by [`Event::Stepped`] or [`Event::GuestStopped`].
    StartGuest(Box<Start>),
    /// Let the guest continue; answered by [`Event::Stepped`] or [`Event::GuestStopped`].
    Resume(Resume),
    /// Stop the guest for good and free it.
    StopGuest,
    /// Store a grant that was given for more than this run.
    KeepGrant(Box<Grant>),
    /// Count one use of a shared grant for this call, in the store where the grant is kept;
    /// answered by [`Event::Claimed`].
    Claim { call: CallId, grant: GrantId },
    /// Perform this call; answered by [`Event::Replied`] with its id.
    Call(AuthorizedCall),
    /// Tell the server that the result of this call is no longer needed. No answer is expected.
    CancelCall(CallId),
    /// Put this question to a human; answered by [`Event::Answered`].
    Ask(Box<Question>),
    /// Withdraw the question about this call; its answer is no longer needed.
    WithdrawAsk(CallId),
    /// Pass this inquiry on to the host; answered by [`Event::InquiryEnded`].
    ForwardInquiry(InquiryId),
    /// Withdraw this inquiry from the host, and tell the server how it ended. If it was answered,
    /// declined or dismissed, the server gets the host's reply; otherwise it gets the reply that no
    /// answer came.
    EndInquiry { inquiry: InquiryId, end: InquiryEnd },
    /// Show these lines to anyone who watches the run.
    Console(Vec<ConsoleLine>),
    /// Send [`Event::Woke`] when the host's clock reaches this time (milliseconds since the
    /// epoch). A later `WakeAt` replaces an earlier one.
    WakeAt { at_ms: u64 },
    /// End the run with its report: the one terminal effect.
    Finish(Box<Report>),
}

/// Something that happened outside. Each event comes with the host's time, in milliseconds since
/// the epoch.
#[derive(Debug)]
pub enum Event {
    /// The guest stopped to wait, or the script ended.
    Stepped {
        step: Step,
        usage: GuestUsage,
        /// Resolved targets of the paths from [`Run::paths_of`](crate::run::Run::paths_of). A
        /// path without an entry is in no root.
        paths: Vec<ResolvedPath>,
        /// The place in the script where it reached a limit or could not continue.
        whereabouts: Option<Whereabouts>,
    },
    /// The guest did not return: a limit, a trap, or a malformed frame.
    GuestStopped {
        stop: GuestStop,
        usage: GuestUsage,
        /// The place in the script where the guest stopped.
        whereabouts: Option<Whereabouts>,
    },
    AppendFailed {
        why: String,
    },
    Replied {
        call: CallId,
        reply: Reply,
    },
    /// These descriptions were shown in the run's session. The event comes right before the reply
    /// that shows them to the script.
    Disclosed {
        tools: Vec<(ToolId, Digest)>,
    },
    Answered {
        call: CallId,
        answer: Answer,
    },
    /// A server asked something of the host during a call.
    Inquired(Inquiry),
    InquiryEnded {
        inquiry: InquiryId,
        end: InquiryEnd,
        /// The login that answered the inquiry.
        login: Option<InquiryLogin>,
    },
    /// The use that was claimed and is already on disk, or why the claim failed.
    Claimed {
        call: CallId,
        used: Result<Use, String>,
    },
    /// The current number of extraction requests that were handed to a host and wait for its next
    /// request.
    HeldByHost {
        calls: u32,
    },
    Woke,
    /// Something outside requests the end of the run.
    Cancelled {
        why: String,
        /// Whether outcomes of calls in flight can still arrive.
        may_wait: bool,
    },
    /// The caller dropped the run. The run is suspended if it waits only for people and may be
    /// suspended; otherwise it is cancelled.
    Abandoned {
        why: String,
        may_wait: bool,
    },
}

/// Totals of the guest's usage since the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GuestUsage {
    pub guest_cpu_us: u64,
    pub memory_bytes_peak: u64,
}

/// The place in a script where it reached a limit or could not continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whereabouts {
    pub line: u32,
    pub column: u32,
    /// The activity of the script: the loops that ran, the functions that called each other, or
    /// what was awaited. Empty if unknown.
    pub doing: String,
    pub stack: String,
}

/// Why a guest did not return, with the console lines of its last turn.
#[derive(Debug, Clone, PartialEq)]
pub enum GuestStop {
    Limit {
        limit: Limit,
        console: Vec<ConsoleLine>,
    },
    /// A trap or a malformed frame; the instance is discarded.
    EngineFault {
        why: String,
        console: Vec<ConsoleLine>,
    },
    /// [`Effect::StopGuest`] or a cancellation reached the guest while it was computing.
    Interrupted { console: Vec<ConsoleLine> },
    /// The memory budget of all runs has too little left for the guest.
    Busy {
        why: String,
        retry_after_ms: u64,
        console: Vec<ConsoleLine>,
    },
}
