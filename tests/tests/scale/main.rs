//! Tests `airlock serve` with many servers: no request waits for a slow server, a change is
//! noticed, and unused servers are not started.

mod budget;
mod fixtures;
mod joining;
mod many;
mod metadata;
mod on_demand;
mod resume;
mod workbench;
