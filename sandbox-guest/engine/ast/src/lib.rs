//! `boa_ast` with the corrections in `../corrections`. What its build makes of the two is the
//! whole of this crate.

#![allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "the text is not ours"
)]

include!(concat!(env!("OUT_DIR"), "/src/lib.rs"));
