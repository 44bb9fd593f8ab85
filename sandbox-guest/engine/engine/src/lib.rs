//! `boa_engine` with the corrections in `../corrections`. What its build makes of the two is the
//! whole of this crate.

#![allow(
    warnings,
    macro_expanded_macro_exports_accessed_by_absolute_paths,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "the text is not ours"
)]

include!(concat!(env!("OUT_DIR"), "/src/lib.rs"));
