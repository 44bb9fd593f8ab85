//! Describes where a script was when it reached a limit.

use serde::Deserialize;

use super::locations::Location;
use super::quote;
use codegen_shared::message::{Frame, Stop};

/// Maximum number of nested loops mentioned.
const LOOPS_MAX: usize = 3;
/// Maximum number of function entries searched for a repetition.
const ENTERED_MAX: usize = 64;

/// The last reported location of a script.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct LastLocation {
    at: usize,
    /// Number of locations passed so far.
    steps: u64,
    /// The active loops, innermost first, each with its number of iterations.
    loops: Vec<(usize, Option<u64>)>,
    entered: Vec<usize>,
}

pub(super) fn locate<'t>(
    script: &str,
    spots: &[Location],
    lines: impl Iterator<Item = &'t str>,
    is_recursion: bool,
) -> Option<Stop> {
    let last: LastLocation = lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .last()?;
    let at = spots.get(last.at)?;
    if is_recursion {
        let calling = calling(spots, &last);
        // Among functions that call each other, the first one is named.
        if let Some(spot) = calling.first() {
            return Some(stopped(spot, recursion(&calling)));
        }
        let text = quote(script, at.span);
        let message = format!("`{text}` handles a value nested that deeply");
        return Some(Stop {
            exact_from: Some(last.steps),
            ..stopped(at, message)
        });
    }
    Some(stopped(at, turns(spots, &last, at)))
}

fn stopped(spot: &Location, message: String) -> Stop {
    let Location { line, column, .. } = *spot;
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

/// Describes the enclosing loops, innermost first, with their iteration numbers. In a function
/// without a loop, these are the loops of its caller.
fn turns(spots: &[Location], last: &LastLocation, spot: &Location) -> String {
    let is_around = |at: usize| spot.inside.is_none_or(|inside| inside == at);
    let around = last.loops.iter().skip_while(|(at, _)| !is_around(*at));
    let told = around.take(LOOPS_MAX).filter_map(|(at, rounds)| {
        let Location { line, text, .. } = spots.get(*at)?;
        let rounds = rounds.unwrap_or_default();
        Some(format!("round {rounds} of `{text}` of line {line}"))
    });
    let told: Vec<_> = told.collect();
    if told.is_empty() {
        return String::new();
    }
    // The second run has other limits than the first, which may have come further.
    format!("a second run reached {}", told.join(", in "))
}

/// Returns the functions that call themselves or each other, in the order of the script. Functions
/// without a name are omitted if another function has one.
fn calling<'s>(spots: &'s [Location], last: &LastLocation) -> Vec<&'s Location> {
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

fn recursion(calling: &[&Location]) -> String {
    let names = calling
        .iter()
        .map(|Location { text, line, .. }| format!("`{text}` of line {line}"));
    match names.collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        [one] => format!("{one} calls itself without end"),
        several => format!("{} call each other without end", several.join(" and ")),
    }
}
