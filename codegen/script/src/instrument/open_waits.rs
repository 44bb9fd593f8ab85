//! Describes the promise that a script waits for although nothing can settle it.

use serde::Deserialize;

use super::place::{Place, SiteKind, WaitKind};
use super::wording::FRAMES_MAX;
use codegen_shared::message::{Frame, Wait};

/// Maximum number of further waits mentioned.
const OTHERS_MAX: usize = 5;
/// Maximum number of promises of one place that are listed by number.
const NUMBERS_MAX: usize = 10;

/// The waits that have not ended, in the order in which they began.
#[derive(Debug, Deserialize)]
struct OpenWaits {
    waits: Vec<OpenWait>,
}

#[derive(Debug, Deserialize)]
struct OpenWait {
    place: usize,
    /// Whether the awaited promise comes from a function of the script, which itself waits.
    #[serde(default)]
    own: bool,
    /// Number of this promise among those awaited together, from 1.
    number: Option<usize>,
    /// Number of promises awaited together.
    of: Option<usize>,
}

pub(super) fn locate<'t>(places: &[Place], lines: impl Iterator<Item = &'t str>) -> Option<Wait> {
    let open: OpenWaits = lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .last()?;
    let (parts, waits): (Vec<_>, Vec<_>) = open.waits.iter().partition(|it| it.number.is_some());
    // The waits that cause the others, oldest first; all waits if there are none.
    let is_cause = |it: &&&OpenWait| !it.own && !is_only_of_own(it, &parts);
    let mut causes: Vec<&OpenWait> = waits.iter().filter(is_cause).copied().collect();
    if causes.is_empty() {
        causes = waits.clone();
    }
    let first = causes.first()?;
    let place = places.get(first.place)?;
    let mut message = describe(place, first, &parts);
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

/// Whether all promises awaited together come from functions of the script.
fn is_only_of_own(it: &OpenWait, parts: &[&OpenWait]) -> bool {
    let mut open = parts
        .iter()
        .filter(|part| part.place == it.place)
        .peekable();
    it.of.is_some() && open.peek().is_some() && open.all(|part| part.own)
}

fn describe(place: &Place, wait: &OpenWait, parts: &[&OpenWait]) -> String {
    let SiteKind::Wait { of, kind } = &place.what else {
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

/// Describes the other places where the script waits.
fn others(places: &[Place], first: &Place, causes: &[&OpenWait]) -> Vec<String> {
    let mut others: Vec<String> = Vec::new();
    for place in causes.iter().filter_map(|it| places.get(it.place)) {
        let SiteKind::Wait { of, .. } = &place.what else {
            continue;
        };
        let text = format!("`{of}` at {}:{}", place.line, place.column);
        if place != first && !others.contains(&text) && others.len() < OTHERS_MAX {
            others.push(text);
        }
    }
    others
}

/// Returns the location and the waits for it, innermost first: the wait for a function begins after
/// the wait inside that function.
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
