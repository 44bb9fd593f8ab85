//! The lines that a script prints: kept up to a limit, and only counted beyond it.

use sandbox_protocol::codec::{append_line, decode_lines};
use sandbox_protocol::{ConsoleLevel, ConsoleLine, GuestLimits};

use crate::panic_message;
use crate::text::beginning;

/// Message of a guest that ends because of too much output at a point where it cannot answer.
pub const FLOOD: &str = "output flood";

/// Converts the prelude's number of a `console` level.
pub fn level(number: Option<i32>) -> ConsoleLevel {
    match number {
        Some(0) => ConsoleLevel::Debug,
        Some(2) => ConsoleLevel::Info,
        Some(3) => ConsoleLevel::Warn,
        Some(4) => ConsoleLevel::Error,
        _ => ConsoleLevel::Log,
    }
}

#[derive(Debug, Default)]
pub struct Console {
    /// Encoded lines since the last step; the host can read them after a trap.
    printed: Vec<u8>,
    kept_bytes: u64,
    dropped_bytes: u64,
    pub flooded: bool,
}

impl Console {
    /// Keeps the lines that fit the limit, and counts the others.
    pub fn print(&mut self, level: ConsoleLevel, text: &str, limits: &GuestLimits) {
        // The length includes the line break, or empty lines would be free; the host counts in the
        // same way.
        let length = text.len() as u64 + 1;
        let room = u64::from(limits.console_bytes_max).saturating_sub(self.kept_bytes);
        if length <= room && self.dropped_bytes == 0 {
            self.kept_bytes += length;
            append_line(&mut self.printed, level, text);
        } else {
            let kept = if self.dropped_bytes == 0 {
                beginning(text, room.saturating_sub(1))
            } else {
                ""
            };
            self.dropped_bytes += length;
            if !kept.is_empty() {
                let kept_bytes = kept.len() as u64 + 1;
                self.kept_bytes += kept_bytes;
                self.dropped_bytes -= kept_bytes;
                append_line(&mut self.printed, level, kept);
            }
        }
        self.flooded |= self.kept_bytes + self.dropped_bytes > limits.console_flood_bytes_max;
        panic_message::printed_at(&self.printed);
    }

    pub fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }

    pub fn take(&mut self) -> Vec<ConsoleLine> {
        let lines = decode_lines(&self.printed).unwrap_or_default();
        self.printed.clear();
        panic_message::printed_at(&self.printed);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::NONE_YET;

    fn printed(texts: &[&str], bytes_max: u32) -> (Vec<String>, u64, bool) {
        let limits = GuestLimits {
            console_bytes_max: bytes_max,
            console_flood_bytes_max: 20,
            ..NONE_YET
        };
        let mut console = Console::default();
        for text in texts {
            console.print(ConsoleLevel::Log, text, &limits);
        }
        let lines = console.take().into_iter().map(|line| line.text).collect();
        (lines, console.dropped_bytes(), console.flooded)
    }

    #[test]
    fn a_line_costs_its_break_and_what_does_not_fit_is_counted() {
        assert_eq!(
            printed(&["ab", "cd"], 6),
            (vec!["ab".into(), "cd".into()], 0, false)
        );
        assert_eq!(
            printed(&["ab", "cde"], 6),
            (vec!["ab".into(), "cd".into()], 1, false)
        );
        assert_eq!(
            printed(&["abcd", "e", "f"], 4),
            (vec!["abc".into()], 5, false)
        );
    }

    #[test]
    fn empty_lines_flood_as_well() {
        assert!(!printed(&[""; 20], 4).2);
        assert!(printed(&[""; 21], 4).2);
    }
}
