//! Checks the result that a person states for a call while no process of its run exists.

use airlock_core::journal::StartedTool;
use airlock_core::json;
use airlock_core::resume::ledger::LedgerEntry;
use airlock_core::statement::{STATED_RESULT, UnusableResult};
use codegen::description::Description;
use codegen::validate::Validator;
use serde_json::json;

use crate::listing_file::ListingStore;
use crate::private_file::StateDir;
use crate::render::escape;
use crate::run_chain::StoredChain;
use crate::secrets::Secrets;

/// What a stated result was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaCheck {
    Fits,
    /// The description that the tool had in the run is not stored.
    Unknown,
}

/// Refuses a result that is not JSON, contains a credential, or does not fit the output schema that
/// the tool had when the call was made. The schema comes from the last list of the server.
pub(crate) fn check(
    text: &str,
    (entry, stored): (&LedgerEntry, &StoredChain),
    (state, secrets): (&StateDir, &Secrets),
) -> Result<SchemaCheck, UnusableResult> {
    let value = json::parse_strict(text.as_bytes(), STATED_RESULT)?;
    if secrets.redaction().is_secret(text) {
        return Err(UnusableResult::Credential);
    }
    let tool = stored.tool_of(entry);
    let described = tool.and_then(|tool| description(tool, state));
    let (Some(tool), Some(described)) = (tool, described) else {
        return Ok(SchemaCheck::Unknown);
    };
    let schema = described.checked_output();
    // A schema that cannot be compiled checks no result of a call either.
    let Some(validator) = schema.and_then(|schema| Validator::compile(schema).ok()) else {
        return Ok(SchemaCheck::Fits);
    };
    let value = match tool.unwrap {
        true => json!({ "result": value }),
        false => value,
    };
    let findings = validator.errors("result", &value);
    if findings.is_empty() {
        return Ok(SchemaCheck::Fits);
    }
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let findings = escape::line(&findings.join("; ")).into_owned();
    Err(UnusableResult::Schema(findings))
}

/// Returns the description that a tool had in a run, if it is stored.
fn description(tool: &StartedTool, state: &StateDir) -> Option<Description> {
    let (server, name) = (&*tool.tool.server.0, &*tool.tool.tool.0);
    let listed = ListingStore::new(state.path()).find(name, tool.upstream?)?;
    Description::parse(server, &listed).ok()
}
