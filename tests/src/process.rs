//! Reads the memory and the processor time of a process from the operating system. Works only on
//! Linux; elsewhere nothing is measured.

use std::time::Duration;

/// Resolution of processor time: a hundredth of a second.
const TICK: Duration = Duration::from_millis(10);

/// A process whose time and memory are measured.
#[derive(Debug, Clone, Copy)]
pub struct Process(pub u32);

impl Process {
    /// Returns the processor time since the process started, or `None` if there is no `/proc` or no
    /// such process.
    #[must_use]
    pub fn cpu(self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).ok()?;
        // The name of the program is in parentheses and may contain anything.
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks: u32 = [fields.get(11)?, fields.get(12)?]
            .into_iter()
            .map(|it| it.parse::<u32>())
            .sum::<Result<_, _>>()
            .ok()?;
        Some(TICK * ticks)
    }

    #[must_use]
    pub fn resident_bytes(self) -> Option<u64> {
        self.status("VmRSS:")
    }

    /// Returns the peak memory since [`Process::forget_peak`].
    #[must_use]
    pub fn peak_bytes(self) -> Option<u64> {
        self.status("VmHWM:")
    }

    /// Lets [`Process::peak_bytes`] begin again at the current memory.
    pub fn forget_peak(self) {
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.0), "5");
    }

    fn status(self, field: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        Some(kib * 1024)
    }
}
