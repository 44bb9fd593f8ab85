//! The rows of the benchmark, and their limits relative to the peers.

use super::engine_name::EngineName;

/// One kind of work, which is the same for every engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Row {
    Cold,
    Warm,
    Calls,
    Concurrent,
    Filter,
    Waiting,
}

/// The parts of an engine that a measurement includes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// A new process, from its start to its first output.
    Process,
    /// The sandbox alone: no decision, no validation, no journal.
    Bare,
    /// The library's `run`: rules, argument validation, decision, journal.
    Full,
    /// A faster mode of a peer that needs code of the user. It is shown but not compared.
    Pump,
}

/// A line of the table: airlock in one mode, compared with the better peer.
pub(super) struct Line {
    pub(super) row: Row,
    pub(super) way: Mode,
    pub(super) title: &'static str,
    /// Maximum ratio to the better peer, or `None` if the line is only informative.
    boa_max: Option<f64>,
    quickjs_max: Option<f64>,
}

impl Line {
    pub(super) fn ratio_max(&self, which: EngineName) -> Option<f64> {
        match which {
            EngineName::Boa => self.boa_max,
            EngineName::QuickJs => self.quickjs_max,
        }
    }
}

/// The lines, each with its maximum ratios for Boa and for QuickJS.
pub(super) const LINES: &[Line] = &[
    line(
        Row::Cold,
        Mode::Process,
        "cold start to first result",
        [Some(0.5), Some(0.3)],
    ),
    line(
        Row::Warm,
        Mode::Bare,
        "warm: start, `return 1+1`, drop",
        [Some(0.35), Some(0.12)],
    ),
    line(
        Row::Warm,
        Mode::Full,
        "warm, complete run with its journal",
        [None, None],
    ),
    line(
        Row::Calls,
        Mode::Bare,
        "one call, sandbox only",
        [Some(1.5), Some(0.8)],
    ),
    line(
        Row::Calls,
        Mode::Full,
        "one call, complete",
        [Some(8.0), None],
    ),
    line(
        Row::Concurrent,
        Mode::Bare,
        "1,000 calls of 10 ms at once, sandbox only",
        [None, Some(1.2)],
    ),
    line(
        Row::Concurrent,
        Mode::Full,
        "1,000 calls of 10 ms at once, complete",
        [Some(2.0), None],
    ),
    line(
        Row::Filter,
        Mode::Bare,
        "10 MB of JSON in, 100 bytes out, sandbox only",
        [None, None],
    ),
    line(
        Row::Filter,
        Mode::Full,
        "10 MB of JSON in, 100 bytes out, complete",
        [Some(3.0), Some(1.5)],
    ),
    line(
        Row::Waiting,
        Mode::Bare,
        "memory of each of 1,000 waiting sandboxes",
        [Some(2.0), Some(0.75)],
    ),
    line(
        Row::Waiting,
        Mode::Full,
        "memory of each of 1,000 waiting runs",
        [None, None],
    ),
];

const fn line(
    row: Row,
    way: Mode,
    title: &'static str,
    [boa_max, quickjs_max]: [Option<f64>; 2],
) -> Line {
    Line {
        row,
        way,
        title,
        boa_max,
        quickjs_max,
    }
}

/// The number that represents the samples.
#[derive(Clone, Copy)]
pub(super) enum Statistic {
    Median,
    Mean,
}

impl Row {
    pub(super) const ALL: [Row; 6] = [
        Row::Cold,
        Row::Warm,
        Row::Calls,
        Row::Concurrent,
        Row::Filter,
        Row::Waiting,
    ];

    pub(super) fn word(self) -> &'static str {
        match self {
            Row::Cold => "cold",
            Row::Warm => "warm",
            Row::Calls => "calls",
            Row::Concurrent => "concurrent",
            Row::Filter => "filter",
            Row::Waiting => "waiting",
        }
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Row::Cold | Row::Concurrent | Row::Filter => "ms",
            Row::Warm | Row::Calls => "µs",
            Row::Waiting => "KiB",
        }
    }

    /// Returns the statistic of this row. Calls are compared by their mean, so that pauses of a
    /// garbage collector count.
    pub(super) fn stand(self) -> Statistic {
        match self {
            Row::Calls => Statistic::Mean,
            _ => Statistic::Median,
        }
    }

    /// Returns the number of samples of one round. All rounds together give 10,000 samples of the
    /// rows `warm` and `calls`.
    pub(super) fn count(self, quick: bool) -> u32 {
        match (self, quick) {
            (Row::Warm | Row::Calls, false) => 2_000,
            (Row::Warm | Row::Calls, true) => 500,
            (Row::Cold, false) => 10,
            (Row::Cold, true) => 3,
            (Row::Concurrent | Row::Filter, false) => 3,
            (Row::Concurrent | Row::Filter, true) => 1,
            (Row::Waiting, _) => 1_000,
        }
    }
}
