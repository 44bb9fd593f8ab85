//! Everything the core may ask for, and everything it may hear. The whole
//! conversation between the run machine and the shell is in this file.
//!
//! The shell performs effects strictly in order. An [`Effect::Append`] is
//! complete (written, and synced if it says so) before the next effect is
//! begun; several in a row may share one write and one sync. If an append
//! cannot be done, the rest of the batch is dropped and the run hears
//! [`Event::AppendFailed`] before anything else; a `Finish` that was dropped so
//! comes again, saying so. In each batch all appends stand before all effects
//! that let anything out. Stopping, cancelling or withdrawing what is not there
//! (any more) is no error.

use sandbox_protocol::{ConsoleLine, Resume, Start, Step};

use crate::call::AuthorizedCall;
use crate::decide::{Answer, Question};
use crate::flow::ResolvedPath;
use crate::grant::{Grant, Use};
use crate::id::{CallId, Digest, GrantId, ToolId};
use crate::inquiry::{Inquiry, InquiryEnd, InquiryId};
use crate::journal::Entry;
use crate::limits::Limit;
use crate::outcome::Reply;
use crate::report::Report;

#[derive(Debug)]
pub enum Effect {
    /// Put this entry on disk before anything that follows. `sync`: survive the machine's death too.
    Append { entry: Entry, sync: bool },
    /// Start the guest; answered by [`Event::Stepped`] or [`Event::GuestStopped`].
    StartGuest(Box<Start>),
    /// Let the guest go on; answered likewise.
    Resume(Resume),
    /// Stop the guest for good and free it.
    StopGuest,
    /// Keep a grant that was given for more than this run.
    Keep(Box<Grant>),
    /// Count one use of a grant that other runs share, for this call, where it is kept;
    /// answered by [`Event::Claimed`].
    Claim { call: CallId, grant: GrantId },
    /// Perform this call; answered by [`Event::Replied`] with its id.
    Call(AuthorizedCall),
    /// Tell the server that nobody waits any more. No answer is expected.
    CancelCall(CallId),
    /// Put this question to a human; answered by [`Event::Answered`].
    Ask(Question),
    /// The question no longer matters.
    WithdrawAsk(CallId),
    /// Carry this inquiry to the host; answered by [`Event::InquiryEnded`].
    Carry(InquiryId),
    /// Tell the server: what the host said when it was answered, declined or dismissed, else
    /// that nothing was said. It is carried no longer.
    EndInquiry { inquiry: InquiryId, end: InquiryEnd },
    /// Show these lines to whoever watches the run.
    Console(Vec<ConsoleLine>),
    /// Send [`Event::Woke`] when the host's clock reaches this time (milliseconds since the
    /// epoch). A later `WakeAt` replaces an earlier one.
    WakeAt { at_ms: u64 },
    /// The one terminal effect; nothing follows it.
    Finish(Box<Report>),
}

/// What happened outside. Each comes with the host's time, in milliseconds since the epoch.
#[derive(Debug)]
pub enum Event {
    /// Where the paths lead that the calls of the next step name. It comes right before the
    /// step, and what is missing in it stays unknown.
    Resolved {
        paths: Vec<ResolvedPath>,
    },
    /// Where the script was when it met a limit or could not go on. It comes right before the
    /// step or stop that says which.
    Located(Whereabouts),
    /// The guest stopped to wait, or ended.
    Stepped {
        step: Step,
        usage: GuestUsage,
    },
    /// The guest did not come back: a limit, a trap, or a frame that makes no sense.
    GuestStopped {
        stop: GuestStop,
        usage: GuestUsage,
    },
    AppendFailed {
        why: String,
    },
    Replied {
        call: CallId,
        reply: Reply,
    },
    /// These descriptions were shown in the run's session. It comes right before the reply that
    /// shows them to the script.
    Disclosed {
        tools: Vec<(ToolId, Digest)>,
    },
    Answered {
        call: CallId,
        answer: Answer,
    },
    /// A server asks something of the host in the middle of a call.
    Inquired(Inquiry),
    InquiryEnded {
        inquiry: InquiryId,
        end: InquiryEnd,
    },
    /// Which use it is, on disk by now; or why there is none.
    Claimed {
        call: CallId,
        used: Result<Use, String>,
    },
    /// So many values that are read are in the hands of a host that is away, from now on.
    InHand {
        calls: u32,
    },
    Woke,
    /// Somebody outside wants the run to end.
    Cancelled {
        why: String,
    },
}

/// Totals since the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GuestUsage {
    pub guest_cpu_us: u64,
    pub memory_bytes_peak: u64,
}

/// Where a script was when it met a limit or could not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whereabouts {
    pub line: u32,
    pub column: u32,
    /// Which loops went round, which functions called each other or what was waited for; empty
    /// when that is not known.
    pub doing: String,
    pub stack: String,
}

/// Why a guest did not come back, each with what it had printed in its last turn.
#[derive(Debug, Clone, PartialEq)]
pub enum GuestStop {
    Limit {
        limit: Limit,
        console: Vec<ConsoleLine>,
    },
    /// A trap or a malformed frame: the instance is discarded.
    EngineFault {
        why: String,
        console: Vec<ConsoleLine>,
    },
    /// [`Effect::StopGuest`] or a cancellation reached the guest while it computed.
    Interrupted { console: Vec<ConsoleLine> },
    /// All runs together have no memory left for it.
    Busy {
        why: String,
        retry_after_ms: u64,
        console: Vec<ConsoleLine>,
    },
}
