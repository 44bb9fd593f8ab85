//! The room as a whole, against servers that behave and servers that do not.

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
