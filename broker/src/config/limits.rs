//! The limits for each run and for all runs together, with the names that flags and files use.

use airlock_core::limits::Limits;

use airlock_sandbox::budget::BudgetLimits;
use airlock_sandbox::units::{self, BadUnit};

/// All limits that users can set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitSet {
    /// The limits of each run.
    pub run: Limits,
    /// The limits for all runs together.
    pub budget: BudgetLimits,
}

/// One limit that users can set.
pub struct LimitSetting {
    /// The name in `--limit NAME=VALUE` and under `[limits]`.
    pub name: &'static str,
    /// The limit's own flag, which only common limits have.
    pub flag: Option<&'static str>,
    pub what: &'static str,
    unit: Unit,
    /// Returns the value, or `None` if it depends on the machine.
    read: fn(&LimitSet) -> Option<u64>,
    write: fn(&mut LimitSet, u64) -> bool,
    /// Describes a value that depends on the machine.
    unset: &'static str,
}

impl std::fmt::Debug for LimitSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LimitSetting")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Milliseconds,
    Bytes,
    Count,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLimitSetting {
    #[error("there is no limit `{name}`; {}", meant(*closest))]
    Unknown {
        name: String,
        closest: Option<&'static str>,
    },
    #[error("`{name}`: {cause}")]
    Unit { name: &'static str, cause: BadUnit },
    #[error("`{name}`: {value} is too large")]
    TooLarge { name: &'static str, value: String },
    #[error("`{name}` is 0, and must be greater")]
    Zero { name: &'static str },
    #[error("`{name}` is {value}, and must be between {min} and {max}")]
    OutOfBounds {
        name: &'static str,
        value: String,
        min: String,
        max: String,
    },
}

fn meant(closest: Option<&'static str>) -> String {
    closest.map_or_else(
        || format!("the limits are {}", SETTINGS.map(|it| it.name).join(", ")),
        |name| format!("did you mean `{name}`?"),
    )
}

macro_rules! setting {
    ($name:literal, $flag:expr, $unit:ident, $what:literal, $($field:ident),+) => {
        LimitSetting {
            name: $name,
            flag: $flag,
            what: $what,
            unit: Unit::$unit,
            read: |limits| Some([$(u64::from(limits.run.$field)),+][0]),
            write: |limits, value| {
                $(match value.try_into() {
                    Ok(value) => limits.run.$field = value,
                    Err(_) => return false,
                })+
                true
            },
            unset: "",
        }
    };
}

pub const SETTINGS: [LimitSetting; 24] = [
    setting!(
        "timeout",
        Some("--timeout"),
        Milliseconds,
        "duration of a run, including sleeps",
        run_wall_ms_max
    ),
    setting!(
        "cpu",
        None,
        Milliseconds,
        "computing time of the script",
        guest_cpu_ms_max
    ),
    setting!(
        "memory",
        Some("--memory"),
        Bytes,
        "memory of the sandbox",
        guest_memory_bytes_max
    ),
    setting!(
        "recursion",
        None,
        Count,
        "nesting of function calls",
        recursion_max
    ),
    setting!(
        "script",
        None,
        Bytes,
        "size of the script's text",
        script_bytes_max
    ),
    setting!(
        "input",
        None,
        Bytes,
        "size of `input`, as JSON",
        input_bytes_max
    ),
    setting!(
        "args",
        None,
        Bytes,
        "size of the arguments of one call",
        args_bytes_max
    ),
    setting!(
        "result",
        None,
        Bytes,
        "size of the result of one call",
        result_bytes_max
    ),
    setting!(
        "value",
        None,
        Bytes,
        "size of the value that the script returns",
        value_bytes_max
    ),
    setting!(
        "output",
        Some("--max-output"),
        Bytes,
        "size of the console output that is kept; the rest is only counted",
        console_bytes_max
    ),
    setting!(
        "flood",
        None,
        Bytes,
        "size of all console output; a run that prints more is stopped",
        console_flood_bytes_max
    ),
    setting!(
        "calls",
        Some("--max-calls"),
        Count,
        "number of calls in one run",
        calls_max
    ),
    setting!(
        "in-flight",
        Some("--max-in-flight"),
        Count,
        "number of concurrent calls in one run",
        calls_in_flight_max
    ),
    setting!(
        "call-timeout",
        Some("--call-timeout"),
        Milliseconds,
        "time until the reply to one call",
        call_wall_ms_max
    ),
    setting!(
        "ask-timeout",
        None,
        Milliseconds,
        "time until the answer to one question",
        ask_wall_ms_max
    ),
    setting!(
        "human-timeout",
        None,
        Milliseconds,
        "total time that one run waits for people; later questions count as unanswered",
        human_wall_ms_max
    ),
    setting!(
        "json-depth",
        None,
        Count,
        "nesting of JSON in arguments and results",
        json_depth_max
    ),
    setting!(
        "json-nodes",
        None,
        Count,
        "number of JSON values in the arguments or the result of one call",
        json_nodes_max
    ),
    setting!(
        "journal-payload",
        None,
        Bytes,
        "size of a result in the journal; of a longer one, only the digest is recorded",
        journal_payload_bytes_max
    ),
    setting!(
        "journal",
        None,
        Bytes,
        "size of the journal of one run",
        journal_bytes_max
    ),
    LimitSetting {
        name: "runs",
        flag: None,
        what: "all runs: number of concurrent runs",
        unit: Unit::Count,
        read: |limits| Some(limits.budget.runs_max.into()),
        write: |limits, value| {
            let value = value.try_into().map(|it| limits.budget.runs_max = it);
            value.is_ok()
        },
        unset: "",
    },
    LimitSetting {
        name: "runs-memory",
        flag: None,
        what: "all runs: total memory of their sandboxes",
        unit: Unit::Bytes,
        read: |limits| limits.budget.memory_bytes_max,
        write: |limits, value| {
            limits.budget.memory_bytes_max = Some(value);
            true
        },
        unset: "half of the machine's memory",
    },
    LimitSetting {
        name: "runs-cpu",
        flag: None,
        what: "all runs: number of sandboxes that compute at the same time",
        unit: Unit::Count,
        read: |limits| limits.budget.computing_max.map(u64::from),
        write: |limits, value| {
            let value = value.try_into();
            value
                .map(|it| limits.budget.computing_max = Some(it))
                .is_ok()
        },
        unset: "one per processor",
    },
    LimitSetting {
        name: "queue-timeout",
        flag: None,
        what: "all runs: time that a run waits for room before it is refused as `busy`",
        unit: Unit::Milliseconds,
        read: |limits| Some(limits.budget.queue_wall_ms_max),
        write: |limits, value| {
            limits.budget.queue_wall_ms_max = value;
            true
        },
        unset: "",
    },
];

impl LimitSetting {
    /// Formats the value of the limit for people.
    #[must_use]
    pub fn show(&self, limits: &LimitSet) -> String {
        let value = (self.read)(limits);
        value.map_or_else(|| self.unset.to_owned(), |value| self.shown(value))
    }

    fn shown(&self, value: u64) -> String {
        match self.unit {
            Unit::Milliseconds => units::show_ms(value),
            Unit::Bytes => units::show_bytes(value),
            Unit::Count => value.to_string(),
        }
    }

    fn parse(&self, text: &str) -> Result<u64, BadUnit> {
        match self.unit {
            Unit::Milliseconds => units::duration_ms(text),
            Unit::Bytes => units::size_bytes(text),
            Unit::Count => units::count(text),
        }
    }
}

/// Sets one limit by its name.
pub(crate) fn set(limits: &mut LimitSet, name: &str, text: &str) -> Result<(), BadLimitSetting> {
    let setting = SETTINGS
        .iter()
        .find(|setting| setting.name == name)
        .ok_or_else(|| BadLimitSetting::Unknown {
            name: name.to_owned(),
            closest: codegen::closest::closest(name, SETTINGS.iter().map(|setting| setting.name)),
        })?;
    let name = setting.name;
    let value = setting
        .parse(text)
        .map_err(|cause| BadLimitSetting::Unit { name, cause })?;
    if value == 0 && !matches!(name, "calls" | "output" | "input") {
        return Err(BadLimitSetting::Zero { name });
    }
    let mut changed = *limits;
    if (setting.write)(&mut changed, value) {
        let valid = changed.run.validate().and(changed.budget.validate());
        valid.map_err(|bad| BadLimitSetting::OutOfBounds {
            name,
            value: setting.shown(bad.value),
            min: setting.shown(bad.min),
            max: setting.shown(bad.max),
        })?;
        *limits = changed;
        Ok(())
    } else {
        Err(BadLimitSetting::TooLarge {
            name,
            value: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_can_be_set_and_displayed() {
        for setting in &SETTINGS {
            let mut limits = LimitSet::default();
            let text = match (setting.name, setting.unit) {
                ("memory" | "runs-memory", _) => "17MiB",
                (_, Unit::Milliseconds) => "7s",
                (_, Unit::Bytes) => "7KiB",
                (_, Unit::Count) => "17",
            };
            set(&mut limits, setting.name, text).unwrap();
            assert_eq!(setting.show(&limits), text, "{}", setting.name);
            assert_ne!(limits, LimitSet::default());
        }
    }

    #[test]
    fn unknown_limit_suggests_closest_name() {
        let error = set(&mut LimitSet::default(), "time-out", "3s").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no limit `time-out`; did you mean `timeout`?"
        );
        let error = set(&mut LimitSet::default(), "speed", "3s").unwrap_err();
        let said = error.to_string();
        for setting in &SETTINGS {
            assert!(said.contains(setting.name), "{said}");
        }
    }

    #[test]
    fn out_of_bounds_limit_is_reported_in_its_source_terms() {
        let said = |name, text| {
            let error = set(&mut LimitSet::default(), name, text).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            said("memory", "1KiB"),
            "`memory` is 1KiB, and must be between 16MiB and 4GiB"
        );
        assert_eq!(
            said("cpu", "48h"),
            "`cpu` is 48h, and must be between 1ms and 24h"
        );
    }

    #[test]
    fn zero_or_invalid_limit_is_refused() {
        let mut limits = LimitSet::default();
        for (name, text) in [
            ("timeout", "0s"),
            ("timeout", "soon"),
            ("args", "5GiB"),
            ("memory", "lots"),
            ("memory", "1KiB"),
            ("runs", "0"),
            ("runs-memory", "1MiB"),
            ("runs-cpu", "0"),
            ("runs-cpu", "5000000000"),
            ("queue-timeout", "48h"),
        ] {
            assert!(set(&mut limits, name, text).is_err(), "{name}={text}");
        }
        assert_eq!(limits, LimitSet::default());
    }
}
