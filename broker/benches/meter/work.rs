//! The scripts and payloads, as `cargo xtask bench` wrote them for all engines.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::timing::WARM_UPS;

/// How many calls wait at once in the row `concurrent`.
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
    /// What `filter` must return.
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

    /// The script's `input` for `count` counted calls.
    pub(crate) fn calls_input(&self, count: usize) -> Value {
        json!({ "args": self.args, "count": WARM_UPS + count })
    }

    /// What `calls` must return for it.
    pub(crate) fn calls_value(&self, count: usize) -> String {
        ((WARM_UPS + count) * ROWS_PER_CALL).to_string()
    }
}
