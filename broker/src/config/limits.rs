//! The limits of a run, and of all runs together, under the names that flags and files use for
//! them.

use airlock_core::limits::Limits;

use super::units::{self, BadUnit};
use crate::budget::BudgetLimits;

/// All limits that a person can set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitSet {
    /// Of each run.
    pub run: Limits,
    /// Of all runs together.
    pub budget: BudgetLimits,
}

/// One limit as a person sets it.
pub struct Setting {
    /// The name in `--limit NAME=VALUE` and under `[limits]`.
    pub name: &'static str,
    /// The flag of its own that the common ones have.
    pub flag: Option<&'static str>,
    pub what: &'static str,
    unit: Unit,
    /// None where the machine decides.
    read: fn(&LimitSet) -> Option<u64>,
    write: fn(&mut LimitSet, u64) -> bool,
    /// What the machine decides, in words.
    unset: &'static str,
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setting")
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
pub enum BadLimit {
    #[error("there is no limit `{name}`; {}", meant(*closest))]
    Unknown {
        name: String,
        closest: Option<&'static str>,
    },
    #[error("`{name}`: {cause}")]
    Unit { name: &'static str, cause: BadUnit },
    #[error("`{name}`: {value} is too large")]
    TooLarge { name: &'static str, value: String },
    #[error("`{name}` is 0, and nothing could run")]
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
        || format!("there are {}", SETTINGS.map(|it| it.name).join(", ")),
        |name| format!("did you mean `{name}`?"),
    )
}

macro_rules! setting {
    ($name:literal, $flag:expr, $unit:ident, $what:literal, $($field:ident),+) => {
        Setting {
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

pub const SETTINGS: [Setting; 24] = [
    setting!(
        "timeout",
        Some("--timeout"),
        Milliseconds,
        "the run's clock, sleeps included",
        run_wall_ms_max
    ),
    setting!(
        "cpu",
        None,
        Milliseconds,
        "time that the script may compute",
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
        "nested calls of functions",
        recursion_max
    ),
    setting!(
        "script",
        None,
        Bytes,
        "the script's own text",
        script_bytes_max
    ),
    setting!("input", None, Bytes, "`input`, as JSON", input_bytes_max),
    setting!(
        "args",
        None,
        Bytes,
        "the arguments of one call",
        args_bytes_max
    ),
    setting!(
        "result",
        None,
        Bytes,
        "the result of one call",
        result_bytes_max
    ),
    setting!(
        "value",
        None,
        Bytes,
        "the value that the script returns",
        value_bytes_max
    ),
    setting!(
        "output",
        Some("--max-output"),
        Bytes,
        "console output that is kept; the rest is counted",
        console_bytes_max
    ),
    setting!(
        "flood",
        None,
        Bytes,
        "console output, kept or not, that stops the run",
        console_flood_bytes_max
    ),
    setting!(
        "calls",
        Some("--max-calls"),
        Count,
        "calls of one run",
        calls_max
    ),
    setting!(
        "in-flight",
        Some("--max-in-flight"),
        Count,
        "calls at the same time",
        calls_in_flight_max
    ),
    setting!(
        "call-timeout",
        Some("--call-timeout"),
        Milliseconds,
        "one call, until its reply",
        call_wall_ms_max
    ),
    setting!(
        "ask-timeout",
        None,
        Milliseconds,
        "one question, until its answer",
        ask_wall_ms_max
    ),
    setting!(
        "human-timeout",
        None,
        Milliseconds,
        "all waiting for humans in one run; then its questions are unanswered",
        human_wall_ms_max
    ),
    setting!(
        "json-depth",
        None,
        Count,
        "nesting of arguments and results",
        json_depth_max
    ),
    setting!(
        "json-nodes",
        None,
        Count,
        "values in one argument or result",
        json_nodes_max
    ),
    setting!(
        "journal-payload",
        None,
        Bytes,
        "a result that is kept in the journal; a longer one as its digest",
        journal_payload_bytes_max
    ),
    setting!(
        "journal",
        None,
        Bytes,
        "what one run may write into its journal",
        journal_bytes_max
    ),
    Setting {
        name: "runs",
        flag: None,
        what: "all runs: how many at the same time",
        unit: Unit::Count,
        read: |limits| Some(limits.budget.runs_max.into()),
        write: |limits, value| {
            let value = value.try_into().map(|it| limits.budget.runs_max = it);
            value.is_ok()
        },
        unset: "",
    },
    Setting {
        name: "runs-memory",
        flag: None,
        what: "all runs: memory of their sandboxes",
        unit: Unit::Bytes,
        read: |limits| limits.budget.memory_bytes_max,
        write: |limits, value| {
            limits.budget.memory_bytes_max = Some(value);
            true
        },
        unset: "half of the machine's",
    },
    Setting {
        name: "runs-cpu",
        flag: None,
        what: "all runs: sandboxes that compute at the same time",
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
    Setting {
        name: "queue-timeout",
        flag: None,
        what: "waiting for room among all runs; then the run is refused as `busy`",
        unit: Unit::Milliseconds,
        read: |limits| Some(limits.budget.queue_wall_ms_max),
        write: |limits, value| {
            limits.budget.queue_wall_ms_max = value;
            true
        },
        unset: "",
    },
];

impl Setting {
    /// The limit's value as people write it.
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
pub(crate) fn set(limits: &mut LimitSet, name: &str, text: &str) -> Result<(), BadLimit> {
    let setting = SETTINGS
        .iter()
        .find(|setting| setting.name == name)
        .ok_or_else(|| BadLimit::Unknown {
            name: name.to_owned(),
            closest: codegen::closest::closest(name, SETTINGS.iter().map(|setting| setting.name)),
        })?;
    let name = setting.name;
    let value = setting
        .parse(text)
        .map_err(|cause| BadLimit::Unit { name, cause })?;
    if value == 0 && !matches!(name, "calls" | "output" | "input") {
        return Err(BadLimit::Zero { name });
    }
    let mut changed = *limits;
    if (setting.write)(&mut changed, value) {
        let valid = changed.run.validate().and(changed.budget.validate());
        valid.map_err(|bad| BadLimit::OutOfBounds {
            name,
            value: setting.shown(bad.value),
            min: setting.shown(bad.min),
            max: setting.shown(bad.max),
        })?;
        *limits = changed;
        Ok(())
    } else {
        Err(BadLimit::TooLarge {
            name,
            value: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_can_be_set_by_its_name_and_shows_what_was_set() {
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
    fn an_unknown_limit_names_the_closest_one() {
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
    fn a_limit_out_of_bounds_is_told_in_the_words_that_set_it() {
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
    fn a_limit_that_would_be_none_or_nonsense_is_refused() {
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
