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

/// Whether this build carries the second engine. Where `AIRLOCK_REQUIRE_QUICKJS` is set, as in CI
/// once the engine was made, it has to: a test that only looks at it there must not pass without.
///
/// # Panics
/// When it has to and does not.
#[must_use]
pub fn carries_both() -> bool {
    let carries = JsEngine::QuickJs.image().is_some();
    let is_required = std::env::var_os("AIRLOCK_REQUIRE_QUICKJS").is_some_and(|it| !it.is_empty());
    assert!(
        carries || !is_required,
        "AIRLOCK_REQUIRE_QUICKJS is set, and this build carries one engine; `cargo xtask engine quickjs` makes the second"
    );
    carries
}
