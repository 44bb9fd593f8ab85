//! The console output of the script. It is kept up to a limit; the rest is counted and dropped,
//! with a marker. The guest enforces the same limit, but the host does not rely on it.

use sandbox_protocol::{ConsoleLevel, ConsoleLine};

use crate::limits::Limits;
use crate::report::ReportedLine;

#[derive(Debug)]
pub(super) struct Console {
    kept: Vec<ReportedLine>,
    kept_bytes: u64,
    dropped_bytes: u64,
    dropped_by_guest_bytes: u64,
    marked: bool,
    bytes_max: u64,
    flood_bytes_max: u64,
}

impl Console {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            kept: Vec::new(),
            kept_bytes: 0,
            dropped_bytes: 0,
            dropped_by_guest_bytes: 0,
            marked: false,
            bytes_max: u64::from(limits.console_bytes_max),
            flood_bytes_max: limits.console_flood_bytes_max,
        }
    }

    /// Adds lines and returns those to show now.
    pub(super) fn take(&mut self, lines: Vec<ConsoleLine>, guest_dropped: u64) -> Vec<ConsoleLine> {
        self.dropped_by_guest_bytes = self.dropped_by_guest_bytes.max(guest_dropped);
        let mut shown: Vec<_> = lines.into_iter().filter(|line| self.keep(line)).collect();
        if self.total_dropped_bytes() > 0 && !self.marked {
            self.marked = true;
            shown.push(ConsoleLine {
                level: ConsoleLevel::Warn,
                text: format!("console output beyond {} bytes is dropped", self.bytes_max),
            });
        }
        shown
    }

    fn keep(&mut self, line: &ConsoleLine) -> bool {
        // The line break counts too, so that empty lines are limited as well.
        let bytes = line.text.len() as u64 + 1;
        if self.dropped_bytes > 0 || self.kept_bytes + bytes > self.bytes_max {
            self.dropped_bytes += bytes;
            return false;
        }
        self.kept_bytes += bytes;
        self.kept.push(ReportedLine {
            level: word(line.level).into(),
            text: line.text.clone(),
        });
        true
    }

    pub(super) fn total_dropped_bytes(&self) -> u64 {
        self.dropped_bytes
            .saturating_add(self.dropped_by_guest_bytes)
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.kept_bytes.saturating_add(self.total_dropped_bytes())
    }

    pub(super) fn is_flooded(&self) -> bool {
        self.total_bytes() > self.flood_bytes_max
    }

    /// Returns the kept lines for the report, and a marker if some were dropped.
    pub(super) fn lines(&self) -> Vec<ReportedLine> {
        let dropped = self.total_dropped_bytes();
        let mut lines = self.kept.clone();
        if dropped > 0 {
            let text = format!("{dropped} more bytes of console output were dropped");
            lines.push(ReportedLine {
                level: word(ConsoleLevel::Warn).into(),
                text,
            });
        }
        lines
    }
}

fn word(level: ConsoleLevel) -> &'static str {
    match level {
        ConsoleLevel::Debug => "debug",
        ConsoleLevel::Log => "log",
        ConsoleLevel::Info => "info",
        ConsoleLevel::Warn => "warn",
        ConsoleLevel::Error => "error",
    }
}
