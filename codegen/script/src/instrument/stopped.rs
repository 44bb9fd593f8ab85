//! Where a script was when a limit struck, in words.

use serde::Deserialize;

use super::quote;
use super::ticks::Spot;
use codegen_shared::message::{Frame, Stop};

/// Loops around loops that are told.
const LOOPS_MAX: usize = 3;
/// Entries of functions in which a repetition is looked for.
const ENTERED_MAX: usize = 64;

/// The last that was said of where a script is.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct Last {
    at: usize,
    /// How often it has passed somewhere.
    steps: u64,
    /// The loops that are going round, innermost first, each with how often it has.
    loops: Vec<(usize, Option<u64>)>,
    entered: Vec<usize>,
}

pub(super) fn of<'t>(
    script: &str,
    spots: &[Spot],
    lines: impl Iterator<Item = &'t str>,
    is_recursion: bool,
) -> Option<Stop> {
    let last: Last = lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .last()?;
    let at = spots.get(last.at)?;
    if is_recursion {
        let calling = calling(spots, &last);
        // The outermost of those that call each other stands for all.
        if let Some(spot) = calling.first() {
            return Some(stopped(spot, recursion(&calling)));
        }
        let text = quote(script, at.span);
        let message = format!("`{text}` meets a value that is nested that deeply");
        return Some(Stop {
            exact_from: Some(last.steps),
            ..stopped(at, message)
        });
    }
    Some(stopped(at, turns(spots, &last, at)))
}

fn stopped(spot: &Spot, message: String) -> Stop {
    let Spot { line, column, .. } = *spot;
    let frame = Frame {
        function: spot.function.clone(),
        line,
        column,
    };
    Stop {
        line,
        column,
        message,
        stack: vec![frame],
        exact_from: None,
    }
}

/// The loops around, innermost first, with how often each had gone round. In a function that
/// has no loop they are those of the one that called.
fn turns(spots: &[Spot], last: &Last, spot: &Spot) -> String {
    let is_around = |at: usize| spot.inside.is_none_or(|inside| inside == at);
    let around = last.loops.iter().skip_while(|(at, _)| !is_around(*at));
    let told = around.take(LOOPS_MAX).filter_map(|(at, rounds)| {
        let Spot { line, text, .. } = spots.get(*at)?;
        let rounds = rounds.unwrap_or_default();
        Some(format!("round {rounds} of `{text}` of line {line}"))
    });
    let told: Vec<_> = told.collect();
    if told.is_empty() {
        return String::new();
    }
    // It has bounds of its own, and the script itself may have been further.
    format!("a second look came as far as {}", told.join(", in "))
}

/// Which functions call themselves or each other, in the order of the script. Those without a
/// name are left out beside one with a name.
fn calling<'s>(spots: &'s [Spot], last: &Last) -> Vec<&'s Spot> {
    let entered: Vec<_> = last
        .entered
        .iter()
        .rev()
        .take(ENTERED_MAX)
        .copied()
        .collect();
    let repeats = |period: &usize| {
        let later = entered.iter().skip(*period);
        entered.iter().zip(later).all(|(one, other)| one == other)
    };
    let period = (1..=entered.len() / 2).find(repeats).unwrap_or_default();
    let mut all: Vec<_> = entered
        .iter()
        .take(period)
        .filter_map(|at| spots.get(*at))
        .collect();
    all.sort_by_key(|spot| (spot.line, spot.column));
    all.dedup();
    if all.iter().any(|spot| !spot.text.starts_with('<')) {
        all.retain(|spot| !spot.text.starts_with('<'));
    }
    all
}

fn recursion(calling: &[&Spot]) -> String {
    let names = calling
        .iter()
        .map(|Spot { text, line, .. }| format!("`{text}` of line {line}"));
    match names.collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        [one] => format!("{one} calls itself without end"),
        several => format!("{} call each other without end", several.join(" and ")),
    }
}
