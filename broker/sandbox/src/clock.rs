//! The clock. No other module reads the time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock in milliseconds since the Unix epoch that never goes back. It reads the wall clock once,
/// and adds the time that has passed since then.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin_ms: u64,
    origin: Instant,
}

impl Clock {
    #[must_use]
    pub fn start() -> Self {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            origin_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(0),
            origin: Instant::now(),
        }
    }

    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.ms_at(self.passed())
    }

    /// Returns the time since the clock was started.
    #[must_use]
    pub fn passed(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Returns the clock's time when `passed` had elapsed since the start.
    #[must_use]
    pub fn ms_at(&self, passed: Duration) -> u64 {
        self.origin_ms + u64::try_from(passed.as_millis()).unwrap_or(0)
    }
}

/// Formats a time for people, in UTC: `2026-11-21 12:41:48Z`.
#[must_use]
pub fn utc(at_ms: u64) -> String {
    let seconds = at_ms / 1000;
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

/// Parses what [`utc`] writes, with a space or a `T` in the middle.
#[must_use]
pub fn parse_utc(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once([' ', 'T', 't'])?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    if !(1970..=9_999).contains(&year) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Uses `civil` near the estimate, because a second formula could be wrong about leap days.
    let near = (year - 1970) * 365;
    let day = (near..near + 3_000).find(|days| civil(*days) == (year, month, day))?;
    Some(((day * 24 + hour) * 60 + minute) * 60_000 + second * 1_000)
}

fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let parts: Option<Vec<u64>> = text.split(between).map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}

/// Returns year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian
/// calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Days are counted from 0000-03-01, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_is_formatted_in_utc() {
        for (at_ms, expected) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_400_000, "2000-02-29 00:00:00Z"),
            (1_709_251_199_999, "2024-02-29 23:59:59Z"),
            (4_107_542_400_000, "2100-03-01 00:00:00Z"),
        ] {
            assert_eq!(utc(at_ms), expected);
            assert_eq!(parse_utc(expected), Some(at_ms / 1_000 * 1_000));
        }
    }

    #[test]
    fn invalid_timestamp_is_rejected() {
        for text in [
            "",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01",
            "1969-12-31T23:59:59Z",
            "99999-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_utc(text), None, "{text}");
        }
        assert_eq!(parse_utc("9999-12-31T23:59:59Z"), Some(253_402_300_799_000));
    }

    #[test]
    fn clock_is_monotonic() {
        let clock = Clock::start();
        let first = clock.now_ms();
        assert!(clock.now_ms() >= first && first > 1_700_000_000_000);
    }
}
