//! What a script waits for that nothing can settle, in words.

use serde::Deserialize;

use super::place::{Place, WaitKind, What};
use super::words::FRAMES_MAX;
use codegen_shared::message::{Frame, Wait};

/// Other waits that are told.
const OTHERS_MAX: usize = 5;
/// Waits of one place that are told as numbers.
const NUMBERS_MAX: usize = 10;

/// The waits that are not over, in the order in which they began.
#[derive(Debug, Deserialize)]
struct Open {
    waits: Vec<OpenWait>,
}

#[derive(Debug, Deserialize)]
struct OpenWait {
    place: usize,
    /// It waits for a function of the script, which waits itself.
    #[serde(default)]
    own: bool,
    /// Which of those that are waited for together, from 1.
    number: Option<usize>,
    /// How many are waited for together.
    of: Option<usize>,
}

pub(super) fn of<'t>(places: &[Place], lines: impl Iterator<Item = &'t str>) -> Option<Wait> {
    let open: Open = lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .last()?;
    let (parts, waits): (Vec<_>, Vec<_>) = open.waits.iter().partition(|it| it.number.is_some());
    // What it all hangs on, in the order of its beginning; without that, whoever waits.
    let is_cause = |it: &&&OpenWait| !it.own && !is_only_of_own(it, &parts);
    let mut causes: Vec<&OpenWait> = waits.iter().filter(is_cause).copied().collect();
    if causes.is_empty() {
        causes = waits.clone();
    }
    let first = causes.first()?;
    let place = places.get(first.place)?;
    let mut message = said(place, first, &parts);
    let times = causes.iter().filter(|it| it.place == first.place).count();
    if times > 1 {
        message = format!("{message}, {times} times at once");
    }
    let others = others(places, place, &causes);
    if !others.is_empty() {
        message = format!("{message}; so does {}", others.join(", "));
    }
    Some(Wait {
        line: place.line,
        column: place.column,
        message,
        stack: stack(places, place, &waits),
    })
}

/// Whether all that it waits for together are functions of the script.
fn is_only_of_own(it: &OpenWait, parts: &[&OpenWait]) -> bool {
    let mut open = parts
        .iter()
        .filter(|part| part.place == it.place)
        .peekable();
    it.of.is_some() && open.peek().is_some() && open.all(|part| part.own)
}

fn said(place: &Place, wait: &OpenWait, parts: &[&OpenWait]) -> String {
    let What::Wait { of, kind } = &place.what else {
        return String::new();
    };
    let what = match kind {
        WaitKind::Await => format!("`await {of}` waits for ever"),
        WaitKind::Return => format!("`{of}`, which is returned, never settles"),
        WaitKind::ForAwait => format!("the loop over `{of}` waits for ever"),
    };
    let open = parts.iter().filter(|part| part.place == wait.place);
    let mut numbers: Vec<_> = open.filter_map(|part| part.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let Some(of) = wait.of.filter(|_| !numbers.is_empty()) else {
        return what;
    };
    let told: Vec<_> = numbers
        .iter()
        .take(NUMBERS_MAX)
        .map(usize::to_string)
        .collect();
    let more = if numbers.len() > told.len() {
        " and others"
    } else {
        ""
    };
    let plural = if numbers.len() == 1 { "" } else { "s" };
    format!(
        "{what}, for promise{plural} {}{more} of {of}",
        told.join(", ")
    )
}

/// The other places that something hangs on.
fn others(places: &[Place], first: &Place, causes: &[&OpenWait]) -> Vec<String> {
    let mut others: Vec<String> = Vec::new();
    for place in causes.iter().filter_map(|it| places.get(it.place)) {
        let What::Wait { of, .. } = &place.what else {
            continue;
        };
        let text = format!("`{of}` at {}:{}", place.line, place.column);
        if place != first && !others.contains(&text) && others.len() < OTHERS_MAX {
            others.push(text);
        }
    }
    others
}

/// The place itself, and the waits for it, innermost first: who waits for a function began to
/// do so after the function did.
fn stack(places: &[Place], first: &Place, waits: &[&OpenWait]) -> Vec<Frame> {
    let frame = |place: &Place| Frame {
        function: place.function.clone(),
        line: place.line,
        column: place.column,
    };
    let mut frames = vec![frame(first)];
    for place in waits.iter().filter_map(|it| places.get(it.place)) {
        let frame = frame(place);
        if !frames.contains(&frame) && frames.len() < FRAMES_MAX {
            frames.push(frame);
        }
    }
    frames
}
