//! Tool descriptions in; declarations, stubs and validators out. Pure: the
//! same input gives the same bytes, nothing is fetched, nothing panics.

pub mod canonical;
