//! What reviewers of policies work with: `airlock policy` from outside, on
//! folders, lists and journals, with no server running.

mod cases;
mod large;
mod planted;
mod replay;
mod sarif;
