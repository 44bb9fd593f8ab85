//! All limits of a run, with units in their names. Every limit is finite.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Maximum time on the run's clock, sleeps included.
    pub run_wall_ms_max: u64,
    /// Maximum computing time of the guest over all its steps.
    pub guest_cpu_ms_max: u64,
    pub guest_memory_bytes_max: u64,
    /// Maximum depth of nested calls in the script.
    pub recursion_max: u32,
    pub script_bytes_max: u32,
    pub input_bytes_max: u32,
    pub args_bytes_max: u32,
    /// Maximum size of one tool result, as received.
    pub result_bytes_max: u32,
    /// Maximum size of the value that the script returns.
    pub value_bytes_max: u32,
    /// Maximum number of console bytes kept; the rest is counted and dropped.
    pub console_bytes_max: u32,
    /// Number of console bytes, kept or dropped, after which the run is stopped.
    pub console_flood_bytes_max: u64,
    pub calls_max: u32,
    pub calls_in_flight_max: u32,
    /// Maximum time of one call, from leaving to its reply.
    pub call_wall_ms_max: u64,
    /// How long a question may stay open before it counts as unanswered.
    pub ask_wall_ms_max: u64,
    /// How long a run may wait for humans in total. Until then, the waiting time does not count as
    /// run time. After that, questions count as unanswered, and waiting for servers' inquiries
    /// counts as run time.
    #[serde(default = "human_wall_ms_max")]
    pub human_wall_ms_max: u64,
    pub json_depth_max: u32,
    pub json_nodes_max: u32,
    /// Maximum size of an outcome or input in the journal; a longer one is recorded by its digest
    /// alone.
    pub journal_payload_bytes_max: u32,
    /// Maximum size of a run's journal. The entries that end the run and its open calls may exceed
    /// it.
    #[serde(default = "journal_bytes_max")]
    pub journal_bytes_max: u64,
}

const fn human_wall_ms_max() -> u64 {
    60 * 60 * 1_000
}

const fn journal_bytes_max() -> u64 {
    256 * 1024 * 1024
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
            human_wall_ms_max: human_wall_ms_max(),
            json_depth_max: 256,
            json_nodes_max: 4_000_000,
            journal_payload_bytes_max: MIB,
            journal_bytes_max: journal_bytes_max(),
        }
    }
}

/// Number of denied, refused or invalid calls after which the run is stopped: such a number looks
/// like probing.
pub const DENIALS_MAX: u32 = 100;

/// Maximum size of the arguments of all unsettled calls of a run: asked about, queued, or in
/// flight.
pub const ARGS_OPEN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Maximum number of open questions; further calls that need one wait for their turn.
pub const ASKS_OPEN_MAX: usize = 64;

/// Maximum number of inquiries that servers may make in one run.
pub const INQUIRIES_MAX: u32 = 200;

/// The limit that ended a run. The error code is `limit-` followed by this word.
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
    Journal,
}

impl Limits {
    /// Returns the message for a person when the limit has ended a run.
    #[must_use]
    pub fn says(&self, limit: Limit) -> String {
        match limit {
            Limit::Time => format!("the run took longer than {} ms", self.run_wall_ms_max),
            Limit::Cpu => format!(
                "the script used more than {} ms of computing time",
                self.guest_cpu_ms_max
            ),
            Limit::Memory => {
                format!(
                    "the script needs more than {} bytes of memory",
                    self.guest_memory_bytes_max
                )
            }
            Limit::Stack => format!(
                "the script nests calls deeper than {}, or values deeper than the sandbox can follow",
                self.recursion_max
            ),
            Limit::Output => {
                format!(
                    "the script printed more than {} bytes",
                    self.console_flood_bytes_max
                )
            }
            Limit::Calls => format!("the script made more than {} calls", self.calls_max),
            Limit::Payload => format!(
                "a value is larger than allowed (arguments {} bytes, input {} bytes, value {} \
                 bytes, {} levels, {} nodes)",
                self.args_bytes_max,
                self.input_bytes_max,
                self.value_bytes_max,
                self.json_depth_max,
                self.json_nodes_max
            ),
            Limit::Source => format!("the script is longer than {} bytes", self.script_bytes_max),
            Limit::Journal => format!(
                "the run's journal became larger than {} bytes",
                self.journal_bytes_max
            ),
        }
    }

    /// Checks every limit against its bounds. No limit exceeds what the broker can handle. Only
    /// limits for which zero means "none at all" may be zero: calls, input, console.
    pub fn validate(&self) -> Result<(), BadLimit> {
        const MIB: u64 = 1024 * 1024;
        const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
        let bounds: [(&'static str, u64, u64, u64); 20] = [
            ("run_wall_ms_max", self.run_wall_ms_max, 1, 7 * DAY_MS),
            ("guest_cpu_ms_max", self.guest_cpu_ms_max, 1, DAY_MS),
            (
                "guest_memory_bytes_max",
                self.guest_memory_bytes_max,
                16 * MIB,
                4096 * MIB,
            ),
            ("recursion_max", self.recursion_max.into(), 16, 2_000),
            (
                "script_bytes_max",
                self.script_bytes_max.into(),
                1,
                16 * MIB,
            ),
            ("input_bytes_max", self.input_bytes_max.into(), 0, 256 * MIB),
            ("args_bytes_max", self.args_bytes_max.into(), 2, 64 * MIB),
            (
                "result_bytes_max",
                self.result_bytes_max.into(),
                2,
                256 * MIB,
            ),
            ("value_bytes_max", self.value_bytes_max.into(), 1, 256 * MIB),
            (
                "console_bytes_max",
                self.console_bytes_max.into(),
                0,
                64 * MIB,
            ),
            (
                "console_flood_bytes_max",
                self.console_flood_bytes_max,
                1,
                4096 * MIB,
            ),
            ("calls_max", self.calls_max.into(), 0, 1_000_000),
            (
                "calls_in_flight_max",
                self.calls_in_flight_max.into(),
                1,
                10_000,
            ),
            ("call_wall_ms_max", self.call_wall_ms_max, 1, DAY_MS),
            ("ask_wall_ms_max", self.ask_wall_ms_max, 1, 7 * DAY_MS),
            ("human_wall_ms_max", self.human_wall_ms_max, 1, 7 * DAY_MS),
            // Reading recurses up to this depth.
            ("json_depth_max", self.json_depth_max.into(), 1, 512),
            ("json_nodes_max", self.json_nodes_max.into(), 1, 100_000_000),
            (
                "journal_payload_bytes_max",
                self.journal_payload_bytes_max.into(),
                1,
                256 * MIB,
            ),
            (
                "journal_bytes_max",
                self.journal_bytes_max,
                1,
                64 * 1024 * MIB,
            ),
        ];
        match bounds
            .into_iter()
            .find(|(_, value, min, max)| !(min..=max).contains(&value))
        {
            Some((name, value, min, max)) => Err(BadLimit {
                name,
                value,
                min,
                max,
            }),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is {value}, and must be between {min} and {max}")]
pub struct BadLimit {
    pub name: &'static str,
    pub value: u64,
    pub min: u64,
    pub max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limits: Limits, expected: Option<&str>) {
        assert_eq!(limits.validate().err().map(|bad| bad.name), expected);
    }

    #[test]
    fn default_limits_are_valid_and_zero_is_refused() {
        let limits = Limits::default();
        check(limits, None);
        check(
            Limits {
                calls_in_flight_max: 0,
                ..limits
            },
            Some("calls_in_flight_max"),
        );
        check(
            Limits {
                run_wall_ms_max: u64::MAX,
                ..limits
            },
            Some("run_wall_ms_max"),
        );
        check(
            Limits {
                json_depth_max: 513,
                ..limits
            },
            Some("json_depth_max"),
        );
    }

    #[test]
    fn unknown_limit_is_an_error() {
        let mut value = serde_json::to_value(Limits::default()).unwrap();
        value["calls_maxx"] = 1.into();
        assert!(serde_json::from_value::<Limits>(value).is_err());
    }
}
