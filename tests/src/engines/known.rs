//! What the list of known differences means for a comparison.

use airlock::sandbox::{Compared, DIFFERENCES};

use super::compare::Difference;

/// Whether a script does what the engines are known to do differently.
pub(super) fn is_left_out(script: &str) -> bool {
    DIFFERENCES
        .iter()
        .any(|difference| match difference.compared {
            Compared::LeftOut(ways) => ways
                .iter()
                .any(|words| words.iter().all(|word| script.contains(word))),
            _ => false,
        })
}

/// Whether the order of what a script shows is nobody's promise.
pub(super) fn is_unordered(script: &str) -> bool {
    DIFFERENCES
        .iter()
        .any(|difference| match difference.compared {
            Compared::Unordered(words) => words.iter().any(|word| script.contains(word)),
            _ => false,
        })
}

/// What is never looked at, beside the words of errors: how expressions are written, the last
/// digits, and the class of an error about a text that grows too long.
pub(super) fn is_known(difference: &Difference) -> bool {
    let [boa, quickjs] = [&difference.boa, &difference.quickjs].map(|line| bare(line));
    boa == quickjs
}

fn bare(line: &str) -> String {
    let line = line
        .replace("InternalError", "RangeError")
        .replace("\\u005c", "");
    let bare = rounded(&line).replace('\\', "");
    // A table is as wide as the stack of an error in it.
    match bare.contains("(index)") {
        true => bare.replace([' ', '-'], ""),
        false => bare,
    }
}

/// With every fraction at twelve digits.
fn rounded(line: &str) -> String {
    let mut told = String::new();
    let mut number = String::new();
    for c in line.chars().chain(['\n']) {
        if c.is_ascii_digit() || c == '.' {
            number.push(c);
            continue;
        }
        if !number.is_empty() {
            match number.parse::<f64>() {
                Ok(value) if number.contains('.') => told.push_str(&format!("{value:.11e}")),
                _ => told.push_str(&number),
            }
            number.clear();
        }
        told.push(c);
    }
    told
}
