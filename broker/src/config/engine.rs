//! Parses the name of the engine that runs scripts.

use airlock_core::problem::Problem;

use super::{LocatedText, choice, invalid_at};
use airlock_sandbox::JsEngine;

pub(super) fn parse(at: &LocatedText) -> Result<JsEngine, Problem> {
    JsEngine::of_name(&at.text).ok_or_else(|| {
        let names = JsEngine::ALL.map(JsEngine::name).join(" or ");
        invalid_at(
            &at.origin,
            format!("invalid value for `engine` ({})", at.origin),
            format!("invalid value `{}`; expected {names}", at.text),
            choice::one_of(&at.text, &JsEngine::ALL.map(JsEngine::name)),
        )
    })
}
