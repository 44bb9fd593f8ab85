//! `boa_engine` with the corrections in `../corrections`. The build script generates the whole
//! crate from these two.

#![allow(
    warnings,
    macro_expanded_macro_exports_accessed_by_absolute_paths,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "the text is generated"
)]

include!(concat!(env!("OUT_DIR"), "/src/lib.rs"));
