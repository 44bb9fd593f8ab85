//! Which engine runs scripts.

use airlock_core::problem::Problem;

use super::{Located, invalid_at};
use crate::sandbox::JsEngine;

pub(super) fn parse(at: &Located) -> Result<JsEngine, Problem> {
    JsEngine::of_name(&at.text).ok_or_else(|| {
        let names = JsEngine::ALL.map(JsEngine::name).join(" nor ");
        invalid_at(
            &at.origin,
            format!("`engine` ({}) cannot be used", at.origin),
            format!("`{}` is neither {names}", at.text),
            "write one of the two; `airlock engines` says which this program carries",
        )
    })
}
