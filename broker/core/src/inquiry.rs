//! What a server asks in the middle of a call: a form or an address for the
//! person at the host, a text of the host's model, the host's folders. The run
//! machine knows that it was asked and how it ended, and never what was said.

use serde::{Deserialize, Serialize};

use crate::id::{CallId, Digest};

/// The shell's number of an inquiry within its run: 1, 2, 3 … in the order of their arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InquiryId(pub u32);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inquiry {
    pub id: InquiryId,
    pub call: CallId,
    /// Calls under way that it may be about as well: not every server says which one it means.
    pub or: Vec<CallId>,
    pub wants: Wants,
    /// Of all that the server asked.
    pub digest: Digest,
    /// The server has refused the call until this is answered; it is made again then.
    pub again: bool,
}

/// What would answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wants {
    /// A form that the person fills in.
    Form,
    /// An address that the person opens.
    Address,
    /// A text of the host's model.
    Sampling,
    /// The folders that the host works in.
    Roots,
}

impl Wants {
    /// For a person: the server asks for …
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Form => "an answer of the person at the host",
            Self::Address => "the person at the host to open an address",
            Self::Sampling => "a text of the host's model",
            Self::Roots => "the folders of the host",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InquiryEnd {
    /// The server is told what was said.
    Answered,
    /// The person, or the host, said no.
    Declined,
    /// It was put away without an answer.
    Dismissed,
    /// Nobody answered in time.
    Expired,
    /// What came back was no answer to it.
    Invalid,
    /// The call, the run or the server did not wait for it any more.
    Withdrawn,
    /// A run puts only so many.
    TooMany,
}
