//! Tests of the whole module against well-behaved and misbehaving servers.

mod calls;
mod children;
pub(crate) mod fake;
mod fake_http;
mod floods;
mod fuzz;
mod handshake;
mod http;
mod inquiries;
mod listening;
mod lists;
