//! What goes along with a call to its server, besides the call.

use crate::upstream::inquiry::Behind;

pub(crate) struct Along {
    /// The `traceparent` that the request carries.
    pub(crate) trace: Option<String>,
    /// Who is asked what the server asks, and how long all may take.
    pub(crate) behind: Behind,
}
