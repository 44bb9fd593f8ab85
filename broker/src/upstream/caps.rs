//! How much a server may send before it is cut off.

/// Bounds on one server's messages. None of them is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// One tool result, as it arrives.
    pub result_bytes_max: usize,
    /// One page of a list, however small a result may be.
    pub list_page_bytes_max: usize,
    pub list_pages_max: usize,
    /// All pages together.
    pub list_bytes_max: usize,
    pub tools_max: usize,
    /// A server's instructions; the rest is cut off.
    pub instructions_bytes_max: usize,
}

impl Caps {
    /// A whole message: the largest of what it may carry, and the envelope around it.
    pub(super) fn message_bytes_max(&self) -> usize {
        const ENVELOPE_BYTES: usize = 64 * 1024;
        self.result_bytes_max
            .max(self.list_page_bytes_max)
            .saturating_add(ENVELOPE_BYTES)
    }
}

impl Default for Caps {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            result_bytes_max: 16 * MIB,
            list_page_bytes_max: 8 * MIB,
            list_pages_max: 200,
            list_bytes_max: 16 * MIB,
            tools_max: 5_000,
            instructions_bytes_max: 64 * 1024,
        }
    }
}
