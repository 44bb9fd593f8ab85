//! Tests the commands `airlock policy` for reviewers, on folders, tool lists and journals, without
//! servers.

mod cases;
mod large;
mod planted;
mod replay;
mod sarif;
