//! The module that the command made here, held against what is committed.

use super::*;

const LABEL: &str = "zig 1, rustc 2";

/// Where there is no C compiler there is none; in CI, where it was made before, there has to be.
fn made() -> Option<Vec<u8>> {
    let folder = guest_target().join("engines/quickjs").join(host().unwrap());
    let module = fs::read(folder.join("quickjs.wasm")).ok();
    let is_required = std::env::var_os("AIRLOCK_REQUIRE_QUICKJS").is_some_and(|it| !it.is_empty());
    assert!(
        module.is_some() || !is_required,
        "AIRLOCK_REQUIRE_QUICKJS is set, and {} holds no module",
        folder.display()
    );
    module
}

#[test]
fn the_module_is_refused_when_one_bit_of_it_differs_wherever_it_stands() {
    let Some(mut module) = made() else { return };
    assert!(module.starts_with(b"\0asm"));
    let committed = digests::line("56ad", &module, LABEL) + "\n";
    let hold = |module: &[u8]| {
        hold_against_committed(&committed, &digests::line("56ad", module, LABEL), true)
    };
    hold(&module).unwrap();
    let length = module.len();
    for nth in 0..16 {
        let at = (length - 1) * nth / 15;
        let bit = 1 << (nth % 8);
        module[at] ^= bit;
        let why = hold(&module).unwrap_err().to_string();
        assert!(why.contains("is not the one"), "byte {at}: {why}");
        module[at] ^= bit;
    }
    // Cut by a byte, and longer by one.
    assert!(hold(&module[..length - 1]).is_err());
    module.push(0);
    assert!(hold(&module).is_err());
}

#[test]
fn sources_without_a_digest_are_refused_where_one_is_wanted() {
    let line = digests::line("56ad", b"\0asm", LABEL);
    let others = digests::line("0000", b"\0asm", LABEL) + "\n";
    assert!(hold_against_committed(&others, &line, false).is_ok());
    let why = hold_against_committed(&others, &line, true).unwrap_err();
    assert!(why.to_string().contains("--accept"), "{why}");
}
