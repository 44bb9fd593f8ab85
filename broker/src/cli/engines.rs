//! `airlock engines`: which guests this program carries, read from the loaded modules.

use airlock_core::problem::Problem;
use clap::Args;
use serde_json::json;

use super::{Outcome, exit, print, print_json};
use crate::sandbox::Sandbox;

#[derive(Debug, Args)]
pub(super) struct EnginesOptions {
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(options: &EnginesOptions) -> Outcome {
    let sandbox = Sandbox::load_embedded().map_err(|error| {
        Problem::new(
            "internal",
            "the sandbox cannot be loaded",
            error.to_string(),
            "build airlock again",
        )
    })?;
    let (name, digest) = (sandbox.name(), sandbox.digest().to_string());
    let (bytes, imports) = (sandbox.image_bytes(), sandbox.imports());
    if options.json {
        let engine = json!({ "name": name, "digest": digest, "bytes": bytes, "imports": imports });
        print_json(&json!({ "engines": [engine] }))?;
    } else {
        let imports = if imports.is_empty() {
            "none".to_owned()
        } else {
            imports.join(", ")
        };
        print(&format!(
            "{name}  {digest}  {bytes} bytes  imports: {imports}\n"
        ))?;
    }
    Ok(exit::DONE)
}
