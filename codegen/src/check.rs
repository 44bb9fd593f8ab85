//! The host's half of the check of a script: what a script is checked against, as a request to the
//! checker guest, and the reading of a TypeScript compiler's answers.
//!
//! The script itself is read by `codegen-script` inside the sandbox. Nothing here parses it.

mod surface;
mod tools;
pub mod typed;

pub use codegen_shared::finding::{Checked, FINDINGS_MAX, Finding, FindingCode, Form, Severity};
pub use codegen_shared::identifiers::ASKED_BY_THE_LANGUAGE;
pub use surface::{Absent, Exchange, Surface};
pub use tools::EncodedTools;
