//! Limits on the messages of a server.

/// Limits on one server's messages. All of them are finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageLimits {
    /// Maximum length of one tool result as it arrives, in bytes.
    pub result_bytes_max: usize,
    /// Maximum length of one page of a list, in bytes, independent of `result_bytes_max`.
    pub list_page_bytes_max: usize,
    pub list_pages_max: usize,
    /// Maximum length of all pages together, in bytes.
    pub list_bytes_max: usize,
    pub tools_max: usize,
    /// Maximum length of a server's instructions, in bytes; the rest is cut off.
    pub instructions_bytes_max: usize,
}

impl MessageLimits {
    /// Returns the maximum length of a message, in bytes: the largest payload and the envelope
    /// around it.
    pub(super) fn message_bytes_max(&self) -> usize {
        const ENVELOPE_BYTES: usize = 64 * 1024;
        self.result_bytes_max
            .max(self.list_page_bytes_max)
            .saturating_add(ENVELOPE_BYTES)
    }
}

impl Default for MessageLimits {
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
