//! `airlock demo-server`: the embedded demo server, on stdio.

use airlock_core::problem::Problem;

use super::{Outcome, exit, runtime};

pub(super) fn run() -> Outcome {
    runtime()?.block_on(crate::demo::serve()).map_err(|error| {
        Problem::new(
            "internal",
            "the demo server ended with an error",
            error.to_string(),
            "",
        )
    })?;
    Ok(exit::DONE)
}
