//! Durations, sizes and counts as people write them: `30s`, `64MiB`, `1000`.

/// The error for an invalid duration, size or count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUnit {
    #[error("invalid duration `{text}`; expected a number and ms, s, m or h, such as 500ms or 30s")]
    Duration { text: String },
    #[error(
        "invalid size `{text}`; expected a number and B, KiB, MiB, GiB, kB, MB or GB, such as 64MiB"
    )]
    Size { text: String },
    #[error("invalid count `{text}`; expected a whole number")]
    Count { text: String },
}

pub fn duration_ms(text: &str) -> Result<u64, BadUnit> {
    let bad = || BadUnit::Duration {
        text: text.to_owned(),
    };
    let (number, unit) = split(text);
    let factor = match unit {
        "ms" => 1.0,
        "s" => 1000.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return Err(bad()),
    };
    scaled(number, factor).ok_or_else(bad)
}

pub fn size_bytes(text: &str) -> Result<u64, BadUnit> {
    let bad = || BadUnit::Size {
        text: text.to_owned(),
    };
    let (number, unit) = split(text);
    let factor = match unit {
        "" | "B" => 1.0,
        "KiB" | "K" | "k" => 1024.0,
        "MiB" | "M" => 1024.0 * 1024.0,
        "GiB" | "G" => 1024.0 * 1024.0 * 1024.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => return Err(bad()),
    };
    scaled(number, factor).ok_or_else(bad)
}

pub fn count(text: &str) -> Result<u64, BadUnit> {
    text.trim()
        .replace('_', "")
        .parse()
        .map_err(|_| BadUnit::Count {
            text: text.to_owned(),
        })
}

/// Formats 30000 as `30s` and 1500 as `1500ms`.
pub fn show_ms(ms: u64) -> String {
    match ms {
        0 => "0s".to_owned(),
        ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

/// Formats 67108864 as `64MiB`.
pub fn show_bytes(bytes: u64) -> String {
    for (factor, unit) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes}B")
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number.trim_end(), unit)
}

fn scaled(number: &str, factor: f64) -> Option<u64> {
    let plain = number.replace('_', "");
    if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let value = plain.parse::<f64>().ok()? * factor;
    // The bound is 2^53, up to which every whole number is exact.
    (value <= 9_007_199_254_740_992.0).then_some(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_parse() {
        for (text, expected) in [
            ("30s", 30_000),
            ("500ms", 500),
            ("1.5s", 1500),
            ("2m", 120_000),
            ("1 h", 3_600_000),
        ] {
            assert_eq!(duration_ms(text), Ok(expected), "{text}");
        }
        for (text, expected) in [
            ("64MiB", 64 << 20),
            ("1_000", 1000),
            ("4k", 4096),
            ("1.5 GiB", 3 << 29),
            ("2MB", 2_000_000),
        ] {
            assert_eq!(size_bytes(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn number_without_unit_is_refused_with_suggestion() {
        for text in ["", "30", "s", "-1s", "1e9s", "1d", "999999999999999h"] {
            assert!(
                duration_ms(text).unwrap_err().to_string().contains("30s"),
                "{text}"
            );
        }
        for text in ["", "MiB", "-4", "12 parsecs", "inf"] {
            assert!(size_bytes(text).is_err(), "{text}");
        }
        assert!(count("many").is_err());
    }

    #[test]
    fn displayed_values_parse_back() {
        for ms in [1, 999, 1000, 30_000, 90_000, 3_600_000] {
            assert_eq!(duration_ms(&show_ms(ms)), Ok(ms));
        }
        for bytes in [1, 1000, 1024, 64 << 20, 3 << 30] {
            assert_eq!(size_bytes(&show_bytes(bytes)), Ok(bytes));
        }
    }
}
