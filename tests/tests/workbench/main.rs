//! What reviewers of policies work with: `airlock policy` from outside, on
//! folders, lists and journals, with no server running.

mod planted;
mod sarif;
