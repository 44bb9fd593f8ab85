//! The host's part of the check of a script: builds the request to the checker guest, and reads the
//! output of a TypeScript compiler.
//!
//! The sandboxed `codegen-script` parses the script. This module never does.

mod surface;
mod tools;
pub mod typed;

pub use codegen_shared::finding::{
    CheckResult, FINDINGS_MAX, Finding, FindingCode, Form, Severity,
};
pub use codegen_shared::identifiers::ASKED_BY_THE_LANGUAGE;
pub use codegen_shared::message::ToolMention;
pub use surface::{Absent, Exchange, Surface};
pub use tools::EncodedTools;
