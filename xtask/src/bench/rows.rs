//! What is measured, and what it is held against.

use super::which::Which;

/// One kind of work, the same for every engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Row {
    Cold,
    Warm,
    Calls,
    Concurrent,
    Filter,
    Waiting,
}

/// How the work goes through an engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// A process of its own, from its start to its first output.
    Process,
    /// The sandbox alone: no decision, no validation, no journal.
    Bare,
    /// The library's `run`: rules, argument validation, decision, journal.
    Full,
    /// A peer's quicker way that its user has to build; shown, not judged by.
    Pump,
}

/// A line of the table: ours in one way, held against the better peer.
pub(super) struct Line {
    pub(super) row: Row,
    pub(super) way: Way,
    pub(super) title: &'static str,
    /// At most this many times the better peer; `None` is for information.
    boa_max: Option<f64>,
    quickjs_max: Option<f64>,
}

impl Line {
    pub(super) fn ratio_max(&self, which: Which) -> Option<f64> {
        match which {
            Which::Boa => self.boa_max,
            Which::QuickJs => self.quickjs_max,
        }
    }
}

/// What each may be at most, for Boa and for QuickJS.
pub(super) const LINES: &[Line] = &[
    line(
        Row::Cold,
        Way::Process,
        "cold start to first result",
        [Some(0.5), Some(0.3)],
    ),
    line(
        Row::Warm,
        Way::Bare,
        "warm: start, `return 1+1`, drop",
        [Some(0.35), Some(0.12)],
    ),
    line(
        Row::Warm,
        Way::Full,
        "warm, the whole run with its journal",
        [None, None],
    ),
    line(
        Row::Calls,
        Way::Bare,
        "one call, bare door",
        [Some(1.5), Some(0.8)],
    ),
    line(
        Row::Calls,
        Way::Full,
        "one call, decided, validated, journaled",
        [Some(8.0), None],
    ),
    line(
        Row::Concurrent,
        Way::Bare,
        "1,000 calls of 10 ms at once, bare door",
        [None, Some(1.2)],
    ),
    line(
        Row::Concurrent,
        Way::Full,
        "1,000 calls of 10 ms at once",
        [Some(2.0), None],
    ),
    line(
        Row::Filter,
        Way::Bare,
        "10 MB of JSON in, 100 bytes out, bare door",
        [None, None],
    ),
    line(
        Row::Filter,
        Way::Full,
        "10 MB of JSON in, 100 bytes out",
        [Some(3.0), Some(1.5)],
    ),
    line(
        Row::Waiting,
        Way::Bare,
        "memory of a sandbox that waits, of 1,000",
        [Some(2.0), Some(0.75)],
    ),
    line(
        Row::Waiting,
        Way::Full,
        "memory of a whole run that waits, of 1,000",
        [None, None],
    ),
];

const fn line(
    row: Row,
    way: Way,
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

/// Which number of the samples stands for them.
#[derive(Clone, Copy)]
pub(super) enum Stand {
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

    /// Calls are judged by their mean, so that no engine's collector hides in the tail.
    pub(super) fn stand(self) -> Stand {
        match self {
            Row::Calls => Stand::Mean,
            _ => Stand::Median,
        }
    }

    /// Samples of one round; over all rounds 10,000 of the small ones.
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
