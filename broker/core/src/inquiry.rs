//! Inquiries: requests of a server to the host during a call, for a form or an address for the
//! person, a text from the host's model, or the host's folders. The run machine only knows that the
//! server asked and how the inquiry ended, never the content.

use serde::{Deserialize, Serialize};

use crate::id::{CallId, Digest};
use crate::login::ScopeSet;

/// The shell's number of an inquiry within its run: 1, 2, 3 … in the order of their arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InquiryId(pub u32);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inquiry {
    pub id: InquiryId,
    pub call: CallId,
    /// Other calls under way to which the inquiry may belong. Not every server names the call.
    pub or: Vec<CallId>,
    pub wants: InquiryKind,
    /// Digest of everything that the server asked.
    pub digest: Digest,
    /// Whether the server refused the call until the inquiry is answered. The call is then sent
    /// again.
    pub again: bool,
}

/// The kind of answer that the server wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InquiryKind {
    /// A form that the person fills in.
    Form,
    /// An address that the person opens.
    Address,
    /// A text from the host's model.
    Sampling,
    /// The folders that the host works in.
    Roots,
}

impl InquiryKind {
    /// Returns words that complete the sentence "the server asks for …" for a person.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Form => "an answer from the person at the host",
            Self::Address => "the person at the host to open an address",
            Self::Sampling => "a text from the host's model",
            Self::Roots => "the folders of the host",
        }
    }
}

/// The login that a person made because a server refused a call without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InquiryLogin {
    pub issuer: String,
    pub scopes: ScopeSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InquiryEnd {
    /// An answer came and is sent to the server.
    Answered,
    /// The person or the host declined.
    Declined,
    /// The inquiry was closed without an answer.
    Dismissed,
    /// No answer came in time.
    Expired,
    /// The reply was not a valid answer.
    Invalid,
    /// The call ended, the run ended, or the server withdrew the inquiry.
    Withdrawn,
    /// The run reached its maximum number of inquiries.
    TooMany,
}
