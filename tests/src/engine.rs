//! The engine that a pass of the tests is about. `AIRLOCK_ENGINE` names it, as it
//! does for the program; what differs between engines by nature stands at each
//! test and in `docs/design/0022-a-second-engine.md`.

use airlock::sandbox::JsEngine;

/// # Panics
/// When the variable names no engine.
#[must_use]
pub fn engine() -> JsEngine {
    std::env::var("AIRLOCK_ENGINE").map_or(JsEngine::default(), |name| {
        JsEngine::of_name(&name).unwrap_or_else(|| panic!("AIRLOCK_ENGINE={name}: no such engine"))
    })
}

/// One expectation or the other.
#[must_use]
pub fn by_engine<T>(boa: T, quickjs: T) -> T {
    match engine() {
        JsEngine::Boa => boa,
        JsEngine::QuickJs => quickjs,
    }
}
