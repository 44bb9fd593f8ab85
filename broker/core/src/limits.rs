//! All limits of a run, units in their names. None of them is unlimited.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The run's clock, sleeps included.
    pub run_wall_ms_max: u64,
    /// Time that the guest may compute, over all its steps.
    pub guest_cpu_ms_max: u64,
    pub guest_memory_bytes_max: u64,
    /// Nested script calls.
    pub recursion_max: u32,
    pub script_bytes_max: u32,
    pub input_bytes_max: u32,
    pub args_bytes_max: u32,
    /// One tool result, as it arrives.
    pub result_bytes_max: u32,
    /// The value that the script returns.
    pub value_bytes_max: u32,
    /// Console bytes kept; the rest is counted and dropped.
    pub console_bytes_max: u32,
    /// Console bytes, kept or dropped, after which the run is stopped.
    pub console_flood_bytes_max: u64,
    pub calls_max: u32,
    pub calls_in_flight_max: u32,
    /// One call, from leaving to its reply.
    pub call_wall_ms_max: u64,
    /// How long a question may stay open before it counts as unanswered.
    pub ask_wall_ms_max: u64,
    pub json_depth_max: u32,
    pub json_nodes_max: u32,
    /// An outcome or input longer than this stands in the journal as its digest alone.
    pub journal_payload_bytes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u32 = 1024 * 1024;
        Self {
            run_wall_ms_max: 30_000,
            guest_cpu_ms_max: 10_000,
            guest_memory_bytes_max: 256 * u64::from(MIB),
            recursion_max: 2_000,
            script_bytes_max: MIB,
            input_bytes_max: 16 * MIB,
            args_bytes_max: 4 * MIB,
            result_bytes_max: 16 * MIB,
            value_bytes_max: 4 * MIB,
            console_bytes_max: 256 * 1024,
            console_flood_bytes_max: 16 * u64::from(MIB),
            calls_max: 1_000,
            calls_in_flight_max: 16,
            call_wall_ms_max: 60_000,
            ask_wall_ms_max: 300_000,
            json_depth_max: 256,
            json_nodes_max: 4_000_000,
            journal_payload_bytes_max: MIB,
        }
    }
}

/// Which limit ended a run. Its code is `limit-` and this word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    Time,
    Cpu,
    Memory,
    Stack,
    Output,
    Calls,
    Payload,
    Source,
}
