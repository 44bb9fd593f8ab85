//! The limits for each run and for all runs together, with the names that flags and files use.

use airlock_core::limits::{Limits, RUN_LIMITS, RunLimit, Unit};

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
#[derive(Debug, Clone, Copy)]
pub struct LimitSetting {
    /// The name in `--limit NAME=VALUE` and under `[limits]`.
    pub name: &'static str,
    /// The limit's own flag, which only common limits have.
    pub flag: Option<&'static str>,
    pub what: &'static str,
    unit: Unit,
    field: LimitField,
}

#[derive(Debug, Clone, Copy)]
enum LimitField {
    Run(&'static RunLimit),
    Runs,
    RunsMemory,
    RunsCpu,
    QueueTimeout,
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

impl BadLimitSetting {
    /// Returns what to write instead.
    pub(crate) fn next(&self) -> String {
        match self {
            Self::Unknown {
                closest: Some(meant),
                ..
            } => format!("did you mean `{meant}`?"),
            Self::Unknown { .. } => "docs/limits.md describes the limits".to_owned(),
            Self::Unit { cause, .. } => match cause {
                BadUnit::Duration { .. } => "write a number and a unit, such as `30s`".to_owned(),
                BadUnit::Size { .. } => "write a number and a unit, such as `64MiB`".to_owned(),
                BadUnit::Count { .. } => "write a whole number, such as `100`".to_owned(),
            },
            Self::TooLarge { .. } => "write a smaller number, such as `100`".to_owned(),
            Self::Zero { .. } => "write a number greater than 0".to_owned(),
            Self::OutOfBounds { min, max, .. } => format!("write a value from `{min}` to `{max}`"),
        }
    }
}

fn names() -> Vec<&'static str> {
    settings().map(|setting| setting.name).collect()
}

fn meant(closest: Option<&'static str>) -> String {
    closest.map_or_else(
        || format!("the limits are {}", names().join(", ")),
        |name| format!("did you mean `{name}`?"),
    )
}

/// Returns all limits: those of each run, and those of all runs together.
pub fn settings() -> impl Iterator<Item = LimitSetting> {
    let of_run = |limit: &'static RunLimit| LimitSetting {
        name: limit.name,
        flag: limit.flag,
        what: limit.what,
        unit: limit.unit,
        field: LimitField::Run(limit),
    };
    let of_all = |name, unit, what, field| LimitSetting {
        name,
        flag: None,
        what,
        unit,
        field,
    };
    RUN_LIMITS.iter().map(of_run).chain([
        of_all(
            "runs",
            Unit::Count,
            "all runs: number of concurrent runs",
            LimitField::Runs,
        ),
        of_all(
            "runs-memory",
            Unit::Bytes,
            "all runs: total memory of their sandboxes",
            LimitField::RunsMemory,
        ),
        of_all(
            "runs-cpu",
            Unit::Count,
            "all runs: number of sandboxes that compute at the same time",
            LimitField::RunsCpu,
        ),
        of_all(
            "queue-timeout",
            Unit::Milliseconds,
            "all runs: time that a run waits for room before it is refused as `busy`",
            LimitField::QueueTimeout,
        ),
    ])
}

impl LimitSetting {
    /// Returns the limit's own flag, if it has one.
    pub(crate) fn argument(&self) -> Option<clap::Arg> {
        let value_name = match self.unit {
            Unit::Milliseconds => "DURATION",
            Unit::Bytes => "SIZE",
            Unit::Count => "N",
        };
        let default = self.show(&LimitSet::default());
        let help = format!("Maximum {} [default: {default}]", self.what);
        let flag = clap::Arg::new(self.name)
            .long(self.flag?.trim_start_matches('-'))
            .value_name(value_name)
            .allow_negative_numbers(self.unit == Unit::Count)
            .help(help);
        Some(flag)
    }

    /// Formats the value of the limit for people.
    #[must_use]
    pub fn show(&self, limits: &LimitSet) -> String {
        let budget = &limits.budget;
        let value = match self.field {
            LimitField::Run(limit) => (limit.read)(&limits.run),
            LimitField::Runs => budget.runs_max.into(),
            LimitField::RunsMemory => match budget.memory_bytes_max {
                Some(bytes) => bytes,
                None => return "half of the machine's memory".to_owned(),
            },
            LimitField::RunsCpu => match budget.computing_max {
                Some(number) => number.into(),
                None => return "one per processor".to_owned(),
            },
            LimitField::QueueTimeout => budget.queue_wall_ms_max,
        };
        self.shown(value)
    }

    /// Sets the value. Returns false if it is too large for the limit's type.
    fn write(&self, limits: &mut LimitSet, value: u64) -> bool {
        let LimitSet { run, budget } = limits;
        let small = u32::try_from(value);
        match self.field {
            LimitField::Run(limit) => return (limit.write)(run, value),
            LimitField::Runs => return small.map(|it| budget.runs_max = it).is_ok(),
            LimitField::RunsCpu => return small.map(|it| budget.computing_max = Some(it)).is_ok(),
            LimitField::RunsMemory => budget.memory_bytes_max = Some(value),
            LimitField::QueueTimeout => budget.queue_wall_ms_max = value,
        }
        true
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
    let setting = settings()
        .find(|setting| setting.name == name)
        .ok_or_else(|| BadLimitSetting::Unknown {
            name: name.to_owned(),
            closest: codegen::closest::closest(name, names()),
        })?;
    let name = setting.name;
    let value = setting
        .parse(text)
        .map_err(|cause| BadLimitSetting::Unit { name, cause })?;
    if value == 0 && !matches!(name, "calls" | "output" | "input") {
        return Err(BadLimitSetting::Zero { name });
    }
    let mut changed = *limits;
    if setting.write(&mut changed, value) {
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
        for setting in settings() {
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
        for setting in settings() {
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
