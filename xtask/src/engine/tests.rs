//! Tests that the module built here matches the committed digests.

use super::*;

const LABEL: &str = "zig 1, rustc 2";

/// Returns the built module, or `None` if there is none. CI builds the module first and requires
/// it.
fn made() -> Option<Vec<u8>> {
    let folder = guest_target().join("engines/quickjs").join(host().unwrap());
    let module = fs::read(folder.join("quickjs.wasm")).ok();
    let is_required = std::env::var_os("AIRLOCK_REQUIRE_QUICKJS").is_some_and(|it| !it.is_empty());
    assert!(
        module.is_some() || !is_required,
        "AIRLOCK_REQUIRE_QUICKJS is set, but {} contains no module",
        folder.display()
    );
    module
}

#[test]
fn module_with_flipped_bit_is_refused() {
    let Some(mut module) = made() else { return };
    assert!(module.starts_with(b"\0asm"));
    let committed = digests::line("56ad", &module, LABEL) + "\n";
    let hold = |module: &[u8]| {
        compare_with_committed(&committed, &digests::line("56ad", module, LABEL), true)
    };
    hold(&module).unwrap();
    let length = module.len();
    for nth in 0..16 {
        let at = (length - 1) * nth / 15;
        let bit = 1 << (nth % 8);
        module[at] ^= bit;
        let why = hold(&module).unwrap_err().to_string();
        assert!(why.contains("has another digest"), "byte {at}: {why}");
        module[at] ^= bit;
    }
    // One byte shorter, and one byte longer.
    assert!(hold(&module[..length - 1]).is_err());
    module.push(0);
    assert!(hold(&module).is_err());
}

#[test]
fn sources_without_digest_are_refused() {
    let line = digests::line("56ad", b"\0asm", LABEL);
    let others = digests::line("0000", b"\0asm", LABEL) + "\n";
    assert!(compare_with_committed(&others, &line, false).is_ok());
    let why = compare_with_committed(&others, &line, true).unwrap_err();
    assert!(why.to_string().contains("--accept"), "{why}");
}
