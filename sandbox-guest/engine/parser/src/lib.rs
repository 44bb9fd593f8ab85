//! `boa_parser` with the corrections in `../corrections`. The build script generates the whole
//! crate from these two.

#![allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "the text is generated"
)]

include!(concat!(env!("OUT_DIR"), "/src/lib.rs"));
