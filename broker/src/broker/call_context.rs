//! The context of a call that is sent to a server.

use crate::upstream::server_request::CallOrigin;

pub(crate) struct CallContext {
    /// The `traceparent` of the request.
    pub(crate) trace: Option<String>,
    /// The run that receives the server's inquiries during the call, and the call's deadline.
    pub(crate) origin: CallOrigin,
}
