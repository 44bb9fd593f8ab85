//! The scripts and payloads that `cargo xtask bench` writes for all engines.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::timing::WARM_UPS;

/// How many calls wait at the same time in the row `concurrent`.
pub(crate) const AT_ONCE: usize = 1_000;
/// Rows in one reply of the row `calls`.
const ROWS_PER_CALL: usize = 7;

pub(crate) struct Work {
    pub(crate) folder: PathBuf,
    pub(crate) one: String,
    pub(crate) calls: String,
    pub(crate) concurrent: String,
    pub(crate) filter: String,
    pub(crate) waiting: String,
    pub(crate) args: Value,
    pub(crate) result: String,
    pub(crate) big: String,
    /// The value that the script `filter` must return.
    pub(crate) filtered: String,
}

impl Work {
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let text =
            |name: &str| fs::read_to_string(folder.join(name)).with_context(|| name.to_owned());
        Ok(Self {
            folder: folder.to_owned(),
            one: text("one.js")?,
            calls: text("calls.js")?,
            concurrent: text("concurrent.js")?,
            filter: text("filter.js")?,
            waiting: text("waiting.js")?,
            args: serde_json::from_str(&text("args.json")?)?,
            result: text("result.json")?,
            big: text("big.json")?,
            filtered: text("filtered.json")?,
        })
    }

    /// Returns the script's `input` for `count` measured calls.
    pub(crate) fn calls_input(&self, count: usize) -> Value {
        json!({ "args": self.args, "count": WARM_UPS + count })
    }

    /// Returns the value that the script `calls` must return for `count` measured calls.
    pub(crate) fn calls_value(&self, count: usize) -> String {
        ((WARM_UPS + count) * ROWS_PER_CALL).to_string()
    }
}
