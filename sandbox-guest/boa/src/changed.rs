//! Scripts that are changed before the engine reads them, where it does something in an
//! instruction that nothing outside can replace:
//!
//! ```text
//! text += more;       becomes   text =airlock_append(text, more/*airlock_append*/);
//! text = text + more;    becomes   text = airlock_append(text , more/*airlock_append*/);
//! function f() {…}    becomes   function f() {airlock_depth();…}
//! () => …             becomes   () => airlock_depth()?0:…
//! [...list]           becomes   airlock_list([...airlock_items(list)])
//! { ...object }       becomes   { ...airlock_sweep()?0:object }
//! ```
//!
//! The first two are done where a text may become long ([`appends`], [`sums`]), the third in a
//! function that may call itself in a script that catches errors ([`depth`]), then where the
//! items of a list come into a list ([`spreads`]), and where much may be made, to ask whether the
//! heap is full of what nobody has any more ([`sweeps`]). No place and no source that a script or
//! a report sees changes: columns are counted back, and `toString` of a function takes out what
//! was put in.

mod append;
mod appends;
pub(crate) mod depth;
mod marks;
mod room;
mod spans;
mod spreads;
mod sums;
mod sweeps;
#[cfg(test)]
mod tests;

use boa_engine::object::JsObject;
use boa_engine::{Context, JsResult, JsValue, NativeFunction, js_string};
use boa_interner::Interner;
use boa_parser::{Parser, Source};

use crate::builtin;
use crate::run::Run;
pub(crate) use room::Rooms;

/// Larger scripts stay as they are.
const SCRIPT_BYTES_MAX: usize = 256 * 1024;

/// A script without any of these catches no error. An asynchronous generator is among them,
/// since the engine panics where an error leaves one that nobody can catch.
const CATCHING: [&str; 7] = [
    "catch",
    "finally",
    ".then",
    "allSettled",
    "async function*",
    "async function *",
    "async *",
];

/// A script that is changed.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) text: String,
    pub(crate) shifts: Shifts,
    pub(crate) asks_for_depth: bool,
}

/// Where columns are not those of the script, and what is not its own.
#[derive(Debug, Default)]
pub(crate) struct Shifts {
    /// In the order of the text.
    cuts: Vec<Cut>,
    names: Names,
}

/// What the functions are called, and what marks what was put in; the script has no such names.
#[derive(Debug, Default, Clone)]
struct Names {
    append: String,
    depth: String,
    mark: String,
    sweep: String,
    items: String,
    list: String,
}

/// Characters of one line that stand for others.
#[derive(Debug)]
struct Cut {
    line: u32,
    column: u32,
    /// How many there are, and how many there were.
    now: u32,
    before: u32,
    /// By how much those behind them were moved.
    shift: u32,
    /// How far before them what they belong to begins; `None` when it is nothing of the script's.
    back: Option<u32>,
}

/// A part of the script, and what comes into its place.
struct Edit {
    start: usize,
    end: usize,
    text: String,
    /// Where a position in the text belongs, if anywhere.
    place: Option<usize>,
}

/// The script, changed; `None` when there is nothing to change, or when it is none that is
/// read here.
pub(crate) fn changed(script: &str) -> Option<Changed> {
    if script.len() > SCRIPT_BYTES_MAX {
        return None;
    }
    let appends = script.contains("+=");
    let sums = sums::is_likely(script);
    let catches = CATCHING.iter().any(|word| script.contains(word));
    let sweeps = sweeps::is_likely(script);
    if !(appends || sums || catches || sweeps) {
        return None;
    }
    let mut interner = Interner::default();
    let mut parser = Parser::new(Source::from_bytes(script));
    parser.set_strict();
    let body = parser
        .parse_function_body(&mut interner, false, true)
        .ok()?;
    let names = Names::unused_in(script, &interner);
    let mut edits = Vec::new();
    if catches {
        edits = depth::edits(script, &names.depth, &body, &interner);
    }
    let asks_for_depth = !edits.is_empty();
    if appends {
        edits.extend(appends::edits(script, &names.append, &body, &interner));
    }
    if sums {
        edits.extend(sums::edits(script, &names, &body, &interner));
    }
    if sweeps {
        edits.extend(spreads::edits(script, &names, &body));
        edits.extend(sweeps::edits(script, &names.sweep, &body));
    }
    if edits.is_empty() {
        return None;
    }
    // What is put in at one place stays in its order.
    edits.sort_by_key(|edit| edit.start);
    let mut made = written(script, &edits)?;
    made.shifts.names = names;
    made.asks_for_depth = asks_for_depth;
    Some(made)
}

impl Names {
    fn unused_in(script: &str, interner: &Interner) -> Self {
        let unused = |name| unused(name, script, interner);
        Self {
            append: unused("airlock_append"),
            depth: unused("airlock_depth"),
            mark: unused("airlock_mark"),
            sweep: unused("airlock_sweep"),
            items: unused("airlock_items"),
            list: unused("airlock_list"),
        }
    }
}

/// A name that the script does not have, neither as it is written nor as it is read: `\u0061`
/// in a name is an `a`.
fn unused(name: &str, script: &str, interner: &Interner) -> String {
    let mut name = name.to_owned();
    while script.contains(&name) || interner.get(name.as_str()).is_some() {
        name.push('_');
    }
    name
}

fn written(script: &str, edits: &[Edit]) -> Option<Changed> {
    let mut made = Changed::default();
    let mut written = 0;
    let (mut line, mut column, mut shift) = (1, 1, 0);
    for edit in edits {
        let kept = script.get(written..edit.start)?;
        made.text.push_str(kept);
        let mut lines = lines(kept);
        let last = lines.next_back().unwrap_or_default();
        let lines_passed = count(lines);
        if lines_passed > 0 {
            line += lines_passed;
            (column, shift) = (1, 0);
        }
        column += count(last.chars());
        let now = count(edit.text.chars());
        let before = u32::try_from(edit.end - edit.start).ok()?;
        shift += now.checked_sub(before)?;
        made.shifts.cuts.push(Cut {
            line,
            column,
            now,
            before,
            shift,
            back: match edit.place {
                Some(place) => Some(back(script.get(place..edit.start)?)),
                None => None,
            },
        });
        made.text.push_str(&edit.text);
        column += now;
        written = edit.end;
    }
    made.text.push_str(script.get(written..)?);
    Some(made)
}

/// What stands between the ends of lines, one more than there are.
fn lines(text: &str) -> std::vec::IntoIter<&str> {
    let mut lines: Vec<&str> = Vec::new();
    let mut start = 0;
    for (at, end) in text.match_indices(spans::is_line_end) {
        // `\r\n` is one.
        let is_second_of_two = end == "\n"
            && at == start
            && text.get(..at).is_some_and(|before| before.ends_with('\r'));
        if !is_second_of_two {
            lines.extend(text.get(start..at));
        }
        start = at + end.len();
    }
    lines.extend(text.get(start..));
    lines.into_iter()
}

fn count(them: impl Iterator) -> u32 {
    u32::try_from(them.count()).unwrap_or(u32::MAX)
}

impl Changed {
    /// What [`functions`] are called, in their order.
    pub(crate) fn names(&self) -> [&str; 5] {
        let Names {
            append,
            depth,
            sweep,
            items,
            list,
            ..
        } = &self.shifts.names;
        [append, depth, sweep, items, list]
    }
}

/// The length of what stands between, on one line.
fn back(between: &str) -> u32 {
    match between.contains(spans::is_line_end) {
        true => 0,
        false => count(between.chars()),
    }
}

impl Shifts {
    /// The column that a column was in the script as it was written; `None` in what is nothing
    /// of the script's.
    pub(crate) fn column(&self, line: u32, column: u32) -> Option<u32> {
        let passed = |cut: &Cut| (cut.line, cut.column) <= (line, column);
        let last = self.cuts.partition_point(passed).checked_sub(1);
        let Some(cut) = last
            .and_then(|last| self.cuts.get(last))
            .filter(|cut| cut.line == line)
        else {
            return Some(column);
        };
        if column < cut.column + cut.now {
            let shift_before = cut.shift - (cut.now - cut.before);
            return cut.back.map(|back| cut.column - shift_before - back);
        }
        Some(column - cut.shift)
    }

    /// Text of the script as it was written.
    fn restored(&self, text: &str) -> Option<String> {
        let Names {
            append,
            depth,
            mark,
            sweep,
            list,
            ..
        } = &self.names;
        let names = [append, depth, mark, sweep];
        if append.is_empty() || !names.iter().any(|name| text.contains(name.as_str())) {
            return None;
        }
        let text = marks::restored(text, mark)?;
        let text = text.replace(&format!("{depth}();"), "");
        let text = text.replace(&format!("{depth}()?0:"), "");
        let text = text.replace(&sweeps::asking(sweep), "");
        let text = text.replace(&spreads::closing(list), "");
        let mut pieces = text.split(append.as_str());
        let mut whole = pieces.next()?.to_owned();
        for piece in pieces {
            if whole.ends_with("/*") {
                whole.truncate(whole.len() - 2);
                whole.push_str(piece.strip_prefix("*/)")?);
            } else {
                whole.truncate(whole.strip_suffix('=')?.len());
                whole.push_str("+=");
                whole.push_str(piece.split_once(',')?.1);
            }
        }
        Some(whole)
    }
}

/// What a changed script is given.
pub(crate) fn functions(context: &Context) -> [JsObject; 5] {
    let natives = [
        append::append,
        depth::ask,
        sweeps::sweep,
        spreads::items,
        spreads::list,
    ];
    natives.map(|native| {
        let function = NativeFunction::from_fn_ptr(native).to_js_function(context.realm());
        JsObject::from(function)
    })
}

/// Takes out of the source of functions what was put in.
pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let functions = builtin::prototype_of("Function", context)?;
    builtin::replace(&functions, js_string!("toString"), source_of, context)?;
    Ok(())
}

fn source_of(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let source = original.call(this, args, context)?;
    let run = Run::of(context)?;
    let text = source.as_string().unwrap_or_default();
    let restored = run.shifts.borrow().restored(&text.to_std_string_lossy());
    Ok(restored.map_or(source, |text| js_string!(text).into()))
}
