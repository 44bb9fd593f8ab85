//! All limits of a run, with units in their names. Every limit is finite.

use serde::{Deserialize, Serialize};

const MIB: u64 = 1024 * 1024;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Milliseconds,
    Bytes,
    Count,
}

/// One limit of a run, as people set it.
#[derive(Debug)]
pub struct RunLimit {
    /// The name in `--limit NAME=VALUE` and under `[limits]`.
    pub name: &'static str,
    /// The limit's own flag, which only common limits have.
    pub flag: Option<&'static str>,
    pub unit: Unit,
    pub what: &'static str,
    pub read: fn(&Limits) -> u64,
    /// Returns false if the value does not fit the limit's type.
    pub write: fn(&mut Limits, u64) -> bool,
    field: &'static str,
    min: u64,
    max: u64,
}

const fn only(flags: &[&'static str]) -> Option<&'static str> {
    match flags {
        [flag] => Some(flag),
        _ => None,
    }
}

/// Declares each limit once: its field, default and bounds, and its name, flag, unit and meaning for
/// people.
macro_rules! limits {
    ($(
        $(#[$about:meta])*
        $field:ident: $type:ty = $default:expr, $min:expr, $max:expr,
            $name:literal $($flag:literal)?, $unit:ident, $what:literal;
    )*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Limits {
            $($(#[$about])* pub $field: $type,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        /// All limits of a run.
        pub const RUN_LIMITS: &[RunLimit] = &[$(RunLimit {
            name: $name,
            flag: only(&[$($flag)?]),
            unit: Unit::$unit,
            what: $what,
            read: |limits| u64::from(limits.$field),
            write: |limits, value| value.try_into().map(|value| limits.$field = value).is_ok(),
            field: stringify!($field),
            min: $min,
            max: $max,
        },)*];
    };
}

limits! {
    /// Maximum time on the run's clock, sleeps included.
    run_wall_ms_max: u64 = 30_000, 1, 7 * DAY_MS,
        "timeout" "--timeout", Milliseconds, "duration of a run, including sleeps";
    /// Maximum computing time of the guest over all its steps.
    guest_cpu_ms_max: u64 = 10_000, 1, DAY_MS,
        "cpu", Milliseconds, "computing time of the script";
    guest_memory_bytes_max: u64 = 256 * MIB, 16 * MIB, 4096 * MIB,
        "memory" "--memory", Bytes, "memory of the sandbox";
    /// Maximum depth of nested calls in the script.
    recursion_max: u32 = 2_000, 16, 2_000,
        "recursion", Count, "nesting of function calls";
    script_bytes_max: u32 = 1024 * 1024, 1, 16 * MIB,
        "script", Bytes, "size of the script's text";
    input_bytes_max: u32 = 16 * 1024 * 1024, 0, 256 * MIB,
        "input", Bytes, "size of `input`, as JSON";
    args_bytes_max: u32 = 4 * 1024 * 1024, 2, 64 * MIB,
        "args", Bytes, "size of the arguments of one call";
    /// Maximum size of one tool result, as received.
    result_bytes_max: u32 = 16 * 1024 * 1024, 2, 256 * MIB,
        "result", Bytes, "size of the result of one call";
    /// Maximum size of the value that the script returns.
    value_bytes_max: u32 = 4 * 1024 * 1024, 1, 256 * MIB,
        "value", Bytes, "size of the value that the script returns";
    /// Maximum number of console bytes kept; the rest is counted and dropped.
    console_bytes_max: u32 = 256 * 1024, 0, 64 * MIB,
        "output" "--max-output", Bytes,
        "size of the console output that is kept; the rest is only counted";
    /// Number of console bytes, kept or dropped, after which the run is stopped.
    console_flood_bytes_max: u64 = 16 * MIB, 1, 4096 * MIB,
        "flood", Bytes, "size of all console output; a run that prints more is stopped";
    calls_max: u32 = 1_000, 0, 1_000_000,
        "calls" "--max-calls", Count, "number of calls in one run";
    calls_in_flight_max: u32 = 16, 1, 10_000,
        "in-flight" "--max-in-flight", Count, "number of concurrent calls in one run";
    /// Maximum time of one call, from when it is sent until the reply.
    call_wall_ms_max: u64 = 60_000, 1, DAY_MS,
        "call-timeout" "--call-timeout", Milliseconds, "time until the reply to one call";
    /// How long a question may stay open before it counts as unanswered.
    ask_wall_ms_max: u64 = 300_000, 1, 7 * DAY_MS,
        "ask-timeout", Milliseconds, "time until the answer to one question";
    /// How long a run may wait for humans in total. Until then, the waiting time does not count as
    /// run time. After that, questions count as unanswered, and waiting for servers' inquiries
    /// counts as run time.
    #[serde(default = "human_wall_ms_max")]
    human_wall_ms_max: u64 = human_wall_ms_max(), 1, 7 * DAY_MS,
        "human-timeout", Milliseconds,
        "total time that one run waits for people; later questions count as unanswered";
    // Reading recurses up to this depth.
    json_depth_max: u32 = 256, 1, 512,
        "json-depth", Count,
        "nesting of JSON in arguments, results, `input` and the returned value";
    json_nodes_max: u32 = 4_000_000, 1, 100_000_000,
        "json-nodes", Count,
        "number of JSON values in the arguments or the result of one call";
    /// Maximum size of an outcome or input in the journal; a longer one is recorded by its digest
    /// alone.
    journal_payload_bytes_max: u32 = 1024 * 1024, 1, 256 * MIB,
        "journal-payload", Bytes,
        "size of a result in the journal; of a longer one, only the digest is recorded";
    /// Maximum size of a run's journal. The entries that end the run and its open calls may exceed
    /// it.
    #[serde(default = "journal_bytes_max")]
    journal_bytes_max: u64 = journal_bytes_max(), 1, 64 * 1024 * MIB,
        "journal", Bytes, "size of the journal of one run";
}

// Journals of earlier versions lack these two limits.
const fn human_wall_ms_max() -> u64 {
    60 * 60 * 1_000
}

const fn journal_bytes_max() -> u64 {
    256 * MIB
}

/// Number of denied, refused or invalid calls after which the run is stopped: such a number looks
/// like probing.
pub const DENIALS_MAX: u32 = 100;

/// How long a run that has ended waits for the outcomes of calls that are not repeatable.
pub const DRAIN_WALL_MS_MAX: u64 = 30_000;

/// How long a cancelled run waits for the outcomes of calls that are not repeatable.
pub const CANCEL_DRAIN_WALL_MS_MAX: u64 = 2_000;

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
                "a value is larger or nested deeper than allowed (arguments {} bytes, input {} \
                 bytes, value {} bytes, {} levels, {} nodes)",
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
        RUN_LIMITS.iter().try_for_each(|limit| {
            BadLimit::check(limit.field, (limit.read)(self), limit.min, limit.max)
        })
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

impl BadLimit {
    /// Checks a value against its bounds.
    pub fn check(name: &'static str, value: u64, min: u64, max: u64) -> Result<(), Self> {
        let bad = Self {
            name,
            value,
            min,
            max,
        };
        (min..=max).contains(&value).then_some(()).ok_or(bad)
    }
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
