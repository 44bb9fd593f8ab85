//! `airlock serve` in front of many servers: nobody waits for a slow one, a
//! change is heard, and servers that nobody needs are not started.

mod budget;
mod fixtures;
mod joining;
mod many;
mod metadata;
mod on_demand;
mod workbench;
