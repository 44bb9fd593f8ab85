//! The engine that the tests use, from `AIRLOCK_ENGINE`. A test whose result depends on the engine
//! has an expectation for each; `docs/design/0022-a-second-engine.md` lists the differences.

use airlock::sandbox::JsEngine;

/// # Panics
/// Panics if `AIRLOCK_ENGINE` is not the name of an engine.
#[must_use]
pub fn engine() -> JsEngine {
    std::env::var("AIRLOCK_ENGINE").map_or(JsEngine::default(), |name| {
        JsEngine::of_name(&name).unwrap_or_else(|| panic!("AIRLOCK_ENGINE={name}: unknown engine"))
    })
}

/// Returns the expectation for the current engine.
#[must_use]
pub fn by_engine<T>(boa: T, quickjs: T) -> T {
    match engine() {
        JsEngine::Boa => boa,
        JsEngine::QuickJs => quickjs,
    }
}

/// Returns whether this build contains the second engine. Otherwise tests of it are skipped. CI
/// sets `AIRLOCK_REQUIRE_QUICKJS` once the engine is built, so that no test is skipped there.
///
/// # Panics
/// Panics if the engine is required and missing.
#[must_use]
pub fn carries_both() -> bool {
    let carries = JsEngine::QuickJs.image().is_some();
    let is_required = std::env::var_os("AIRLOCK_REQUIRE_QUICKJS").is_some_and(|it| !it.is_empty());
    assert!(
        carries || !is_required,
        "AIRLOCK_REQUIRE_QUICKJS is set, but this build lacks the engine quickjs; run `cargo xtask engine quickjs`"
    );
    carries
}
